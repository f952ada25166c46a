"""A study as its planner describes it, and the error to expect of it under each privacy model. From public numbers only.

Every figure is `expected_error`, the forecast that estimators give: of the study as it is, of the same subjects pooled at
one place (central), split over other numbers of sites (federated) or each alone (local), or without privacy.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from dpfda.errors import InvalidInput
from dpfda.methods.adaptive.constants import COURSES
from dpfda.planning.expected_error import ExpectedError, expected_error
from dpfda.planning.theory import Setting
from dpfda.privacy.accounting import gaussian_epsilon, mu_for
from dpfda.protocol.ranges import MOST_SILOS
from dpfda.protocol.terms import SiloTerms
from dpfda.protocol.transforms import NO_TRANSFORM, name_transformed

NO_PRIVACY = 1e4  # an epsilon at which noise is below the last digit of any error
_GROUPS, _TINY_DELTA = 20, 1e-12


@dataclass(frozen=True)
class PlannedStudy:
    """n subjects at each of S sites that all promise (epsilon, delta); or `sites`, each as it is.

    With `sites`, n, S, epsilon and delta are the equal sites that stand for them in the theory of rates, and nowhere else.
    """

    n: int
    m: float
    S: int
    epsilon: float
    delta: float
    alpha: float
    d: int
    y_bounds: tuple[float, float]
    guesses: tuple[tuple[str, float], ...] = ()
    sites: tuple[SiloTerms, ...] = ()
    transform: str | None = None

    @property
    def setting(self) -> Setting:
        """The study for the theory; unequal sites are replaced by equal ones."""
        problem, privacy = ("vcm" if self.d else "mean"), ("fdp" if self.S > 1 else "cdp")
        return Setting(problem, privacy, self.n, self.m, self.alpha, self.S, max(self.d, 1), self.epsilon)  # type: ignore[arg-type]

    @property
    def units(self) -> str:
        """What errors are errors of."""
        return name_transformed(self.transform or NO_TRANSFORM)

    @property
    def members(self) -> tuple[SiloTerms, ...]:
        """The sites."""
        return self.sites or self._equal_sites(self.S)

    @property
    def subjects(self) -> int:
        """All subjects of all sites."""
        return sum(site.n for site in self.members)

    def expected(self, **changes: float) -> ExpectedError:
        """The forecast for this study, or for one that differs in n, m, S or epsilon (unequal sites: in proportion)."""
        changed = dataclasses.replace(self, **changes)  # type: ignore[arg-type]
        sites = changed.members
        if self.sites:
            sites = _scale_sites(self.sites, changed.n / self.n, changed.S / self.S, changed.epsilon / self.epsilon)
        return changed.forecast_of(sites)

    def without_privacy(self) -> ExpectedError:
        """The same subjects pooled, with a budget beyond which nothing changes: sampling and basis alone."""
        return self.forecast_of([SiloTerms("all", self.subjects, NO_PRIVACY, min(site.delta for site in self.members))])

    def central(self, times: float = 1.0) -> ExpectedError:
        """All subjects at one place, each with the strictest promise that a site made, its epsilon multiplied."""
        epsilon, delta = min(site.epsilon for site in self.members), min(site.delta for site in self.members)
        return self.forecast_of([SiloTerms("all", self.subjects, times * epsilon, delta)])

    def federated(self, S: int | None = None, times: float = 1.0) -> ExpectedError:
        """The same subjects at S sites as equal as can be; as they are if S is left out."""
        if S is None or len(self.members) == S:
            return self.forecast_of(_scale_sites(self.members, 1.0, 1.0, times))
        if self.sites:
            raise InvalidInput("S must be left out when sites differ: the budgets of further sites are unknown.")
        return self.forecast_of(_scale_sites(self._equal_sites(S), 1.0, 1.0, times))

    def local(self, times: float = 1.0) -> ExpectedError:
        """Every subject a site of its own, with the promise that its site made."""
        members = _scale_sites(self.members, 1.0, 1.0, times)
        if self.subjects <= 2 * _GROUPS:
            return self.forecast_of(_single_subjects(members))
        groups = [group for site in members for group in _group_subjects(site, self.subjects)]
        return self.forecast_of(groups, courses=COURSES)

    def forecast_of(self, sites: Sequence[SiloTerms], courses: int | None = None) -> ExpectedError:
        """The forecast for these sites, by so many `courses`; the same sites are computed once."""
        return _forecast(tuple(sites), self.m, self.y_bounds, self.d, self.guesses, self.transform, courses)

    def _equal_sites(self, S: int) -> tuple[SiloTerms, ...]:
        """S sites whose sizes differ by one subject at most."""
        least, more = divmod(self.n * self.S, S)
        if not least:
            raise InvalidInput(f"S must be at most the number of subjects, {self.n * self.S}.")
        return tuple(SiloTerms(f"site-{k}", least + (k <= more), self.epsilon, self.delta) for k in range(1, S + 1))


@lru_cache(maxsize=512)
def _forecast(
    sites: tuple[SiloTerms, ...],
    m: float,
    y_bounds: tuple[float, float],
    d: int,
    guesses: tuple[tuple[str, float], ...],
    transform: str | None,
    courses: int | None,
) -> ExpectedError:
    named: Any = dict(guesses)
    return expected_error(sites, m, y_bounds=y_bounds, d=d, transform=transform, courses=courses, **named)


def _scale_sites(sites: Sequence[SiloTerms], n: float, S: float, epsilon: float) -> tuple[SiloTerms, ...]:
    """Sites with all sizes and budgets multiplied; a fractional number of copies is rounded."""
    return tuple(
        dataclasses.replace(
            site,
            name=site.name if copy == 0 else f"{site.name}-{copy}",
            n=max(1, round(site.n * n)),
            epsilon=site.epsilon * epsilon,
        )
        for copy in range(max(1, round(S)))
        for site in sites
    )


def _single_subjects(sites: Sequence[SiloTerms]) -> list[SiloTerms]:
    return [dataclasses.replace(site, name=f"{site.name}-{k}", n=1) for site in sites for k in range(site.n)]


def _group_subjects(site: SiloTerms, subjects: int) -> list[SiloTerms]:
    """Groups of k subjects that stand for k sites of one: as many curves, and the same noise in their mean.

    k sites add up precision k mu^2, a site of k curves has k^2 mu'^2: so mu' = mu/sqrt(k). Any (epsilon, delta) with this mu
    will do. A study has at most 1,000 sites; the groups also show what more subjects would bring.
    """
    count = max(1, min(round(_GROUPS * site.n / subjects), site.n, MOST_SILOS))
    size = site.n / count
    epsilon = gaussian_epsilon(mu_for(site.epsilon, site.delta) / math.sqrt(size), _TINY_DELTA)
    return [SiloTerms(f"{site.name}-{k}", max(1, round(size)), epsilon, _TINY_DELTA) for k in range(count)]
