"""What is audited: for every statistic a plan of one round, and plans of whole studies."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dpfda._typing import Floats
from dpfda.basis.basis import make_basis
from dpfda.curves.curves import Curves
from dpfda.protocol.plan import Plan, Round, SiloPlan
from dpfda.protocol.plans.registry import BUILDERS, register_method
from dpfda.protocol.published_constants import PublishedConstants
from dpfda.protocol.scaling import symmetric_scaling
from dpfda.protocol.statistics import (
    KINDS,
    ClippedGradient,
    DesignMoments,
    EntrywiseGradient,
    Statistic,
    VisitWeights,
)
from dpfda.protocol.terms import CovariateTerms, SiloTerms, StudyTerms
from dpfda.silo.silo import Silo

EPSILON, DELTA = 4.0, 1e-5  # loose enough that a wrong noise level shows in some thousand runs
NAME, OTHER = "audited", "other"
POINTS = 3.0
Y_BOUNDS = (-2.0, 2.0)
DOMAIN = (0.0, 1.0)
COVARIATE = CovariateTerms("g", (-1.0, 1.0))
CONSTANTS = PublishedConstants(C_T=1.0)
_SIZE = 3
_BY_VISITS: dict[str, Any] = {"weight": "visit", "visit_cap": 3}
_LOG_OF_Y: dict[str, Any] = {"y_bounds": (0.05, 2.0), "transform": "log"}

Proposer = Callable[[list[SiloTerms]], StudyTerms]


@dataclass(frozen=True)
class Case:
    """One release type: the terms that a coordinator would propose, and how many curves the silos hold."""

    name: str
    proposer: Proposer
    columns: int
    n: int
    silos: int = 1

    def terms(self, *silos: Silo) -> StudyTerms:
        """The terms that a coordinator would propose to these silos."""
        return self.proposer([silo.terms() for silo in silos])


def single_cases() -> list[Case]:
    """Every statistic that exists, alone in a plan of one round; and the first round of the published methods."""
    cases = [Case(name, partial(terms_alone, kind), columns=2, n=4) for name, kind in KINDS.items()]
    return [
        *cases,
        Case("clipped gradient, log of y", partial(terms_alone, ClippedGradient, **_LOG_OF_Y), columns=2, n=4),
        *(
            Case(f"{kind.kind}, by visits", partial(terms_alone, kind, **_BY_VISITS), columns=2, n=4)
            for kind in (VisitWeights, DesignMoments, ClippedGradient)
        ),
        Case("published mean", _published(), columns=1, n=24),
        Case("published VCM", _published(COVARIATE), columns=2, n=24),
    ]


def study_cases() -> list[Case]:
    """Whole studies: all rounds of a silo together, alone or beside another silo."""
    return [
        Case("federated transcript, adaptive", _adaptive(), columns=1, n=40, silos=2),
        Case("federated transcript, published VCM", _published(COVARIATE), columns=2, n=40, silos=2),
        Case("federated transcript, published full batch", _full_batch, columns=1, n=16, silos=2),
        Case("transcript, adaptive VCM", _adaptive(COVARIATE), columns=2, n=40),
        Case("transcript, adaptive, log of y", _adaptive(**_LOG_OF_Y), columns=1, n=40),
        Case("transcript, adaptive, by visits", _adaptive(**_BY_VISITS), columns=1, n=40),
        Case("transcript, quantile", _quantile, columns=1, n=20),
    ]


def make_silo(curves: Curves, *, name: str = NAME, **options: object) -> Silo:
    """A silo on the real release path."""
    return Silo(curves, epsilon=EPSILON, delta=DELTA, name=name, points_per_curve=POINTS, **options)  # type: ignore[arg-type]


def ordinary_curves(n: int, columns: int, rng: np.random.Generator) -> Curves:
    """Unremarkable curves: those that the replaced one hides among."""
    counts = rng.integers(1, 6, n)
    x, y = rng.uniform(size=counts.sum()), rng.normal(0, 0.5, counts.sum())
    design = np.column_stack([np.ones(n), *(rng.uniform(-1, 1, n) for _ in range(columns - 1))])
    return Curves(x, y, np.concatenate([[0], np.cumsum(counts)]), design)


def default_arrays(plan: Plan, index: int) -> dict[str, Floats]:
    """A valid query for any round; the search then changes it."""
    size, columns = plan.n_coefficients * plan.basis.size, plan.n_coefficients
    special: dict[str, Floats] = {"whitener": np.eye(size).ravel(), "iterate": np.zeros(size)}
    special["covariate_centre"] = np.zeros(columns)  # in the middle of the bounds: covariates may be opposite
    return {name: special.get(name, np.ones(length)) for name, length in plan.query_sizes(index).items()}


def example(kind: type[Statistic]) -> Statistic:
    """A statistic of this kind for plans with two columns and _SIZE functions."""
    return EntrywiseGradient((0.7, 0.5, 0.3) * 2) if kind is EntrywiseGradient else kind()


def terms_alone(kind: type[Statistic], silos: list[SiloTerms], **options: Any) -> StudyTerms:
    """Terms of a study of one round that asks for this statistic only, at the whole budget.

    Its method is installed in this process by the audit: a coordinator elsewhere cannot name it.
    """
    return terms_of(example(kind), silos, **options)


def terms_of(statistic: Statistic, silos: list[SiloTerms], **options: Any) -> StudyTerms:
    """The same for a statistic with parameters of its own."""
    method = f"audit-{statistic.kind}"
    if statistic != example(type(statistic)):
        method += f"-{hashlib.sha256(repr(statistic).encode()).hexdigest()[:16]}"
    if method not in BUILDERS:
        register_method(method, partial(_plan_alone, statistic))
    fields: dict[str, Any] = {"domain": DOMAIN, "y_bounds": Y_BOUNDS, "covariates": (COVARIATE,), **options}
    return StudyTerms(method, silos=tuple(silos), **fields)


def _plan_alone(statistic: Statistic, terms: StudyTerms) -> Plan:
    scaling = symmetric_scaling(terms.y_bounds, terms.design_bounds, terms.transform, terms.visit_cap)
    members = tuple(SiloPlan(silo, shares=((1.0,),)) for silo in terms.silos)
    basis = make_basis(terms.basis, _SIZE, terms.domain)
    return Plan("audit", "audit", basis, len(terms.design_bounds), scaling, (Round((statistic,)),), members)


def _published(*covariates: CovariateTerms) -> Proposer:
    return lambda silos: StudyTerms(
        "published", DOMAIN, Y_BOUNDS, tuple(silos), covariates, basis="fourier", n_basis=_SIZE, constants=CONSTANTS
    )


def _full_batch(silos: list[SiloTerms]) -> StudyTerms:
    return dataclasses.replace(_published()(silos), variant="full-batch")


def _adaptive(*covariates: CovariateTerms, **options: Any) -> Proposer:
    fields: dict[str, Any] = {
        "domain": DOMAIN,
        "y_bounds": Y_BOUNDS,
        "covariates": covariates,
        "n_basis": _SIZE,
        **options,
    }
    return lambda silos: StudyTerms("adaptive", silos=tuple(silos), **fields)


def _quantile(silos: list[SiloTerms]) -> StudyTerms:
    return StudyTerms("quantiles", DOMAIN, Y_BOUNDS, (silos[0],), levels=(0.5,))
