"""Which privacy model, which budget, how many sites: one table at a fixed number of subjects, and what a target takes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dpfda import _validate
from dpfda.planning.expected_error import ExpectedError
from dpfda.planning.planned_study import PlannedStudy

TIMES = (0.25, 0.5, 1.0, 2.0, 4.0)  # budgets of the table, as multiples of the study's own
SITES = (2, 5, 10, 20)
LEAST_AT_A_SITE = 20  # subjects, in the rows of the table
BAND_WIDTHS = 2 * 1.959964  # typical distances in the width of a pointwise 95% band: 1.96 to either side
_EPSILONS, _SUBJECTS = (1e-3, 100.0), (10.0, 1e8)
_PRECISION = 1.001


@dataclass(frozen=True)
class Row:
    """One privacy model at a number of sites: the forecast for each multiple of the budget."""

    model: str
    sites: int
    errors: tuple[ExpectedError, ...]

    @property
    def distances(self) -> tuple[float, ...]:
        """Typical distances from the truth, in units of y."""
        return tuple(math.sqrt(error.total) for error in self.errors)


def decide(study: PlannedStudy, times: Sequence[float] = TIMES) -> list[Row]:
    """The same subjects under every model: without privacy, central, federated at several numbers of sites, local."""
    rows = [
        Row("none", 1, (study.without_privacy(),) * len(times)),
        Row("central", 1, tuple(study.central(each) for each in times)),
    ]
    rows += [
        Row("federated", S, tuple(study.federated(None if study.sites else S, each) for each in times))
        for S in _list_sites(study)
    ]
    return [*rows, Row("local", study.subjects, even_out([study.local(each) for each in times]))]


def even_out(errors: Sequence[ExpectedError]) -> tuple[ExpectedError, ...]:
    """Forecasts for growing budgets from few drawn courses: where chance lets them rise, neighbours share their mean."""
    groups: list[list[ExpectedError]] = []
    for error in errors:
        groups.append([error])
        while len(groups) > 1 and _average(groups[-1]) > _average(groups[-2]):
            groups[-2:] = [groups[-2] + groups[-1]]
    return tuple(
        replace(error, privacy=error.privacy + _average(group) - error.total) for group in groups for error in group
    )


def _average(errors: Sequence[ExpectedError]) -> float:
    return sum(error.total for error in errors) / len(errors)


def _list_sites(study: PlannedStudy) -> list[int]:
    """The study's own number of sites and some others; unequal sites stay as they are."""
    own = len(study.members)
    if study.sites:
        return [own]
    others = {S for S in SITES if study.subjects >= LEAST_AT_A_SITE * S}
    return sorted((others | {own}) - {1})


@dataclass(frozen=True)
class Target:
    """What brings the typical distance down to a value: a budget, or subjects; None where nothing does."""

    distance: float
    epsilon: float | None
    n: int | None


def reach(study: PlannedStudy, distance: float) -> Target:
    """The least budget at these subjects, and the fewest subjects at this budget, for this typical distance."""
    wanted = _validate.positive("error", distance) ** 2
    epsilon = _find_least(lambda value: study.expected(epsilon=value).total <= wanted, *_EPSILONS)
    subjects = _find_least(lambda value: study.expected(n=math.ceil(value)).total <= wanted, *_SUBJECTS)
    return Target(distance, epsilon, None if subjects is None else math.ceil(subjects))


def _find_least(enough: Callable[[float], bool], low: float, high: float) -> float | None:
    """The smallest value between the limits that is enough, to three digits; None if the largest is not."""
    if not enough(high):
        return None
    while high / low > _PRECISION:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def leave_out(study: PlannedStudy) -> dict[str, float]:
    """By how much the squared error grows when one site is left out."""
    sites, all_of_them = study.members, study.expected().total
    if len(sites) < 2:
        return {}
    return {
        site.name: study.forecast_of([other for other in sites if other is not site]).total / all_of_them
        for site in sites
    }
