"""What the upper bounds ask of n, m, r and eta: the conditions of Theorems 2, 4 and 6, as inequalities up to a constant."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dpfda import _validate
from dpfda.errors import InvalidInput
from dpfda.planning.theory.heterogeneous import SiteBudget, site_precisions
from dpfda.planning.theory.setting import Problem, check_at_least_one

MOST_ETA = 0.1


@dataclass(frozen=True)
class UpperCondition:
    """`left` must not exceed a constant times `right`; the paper does not say which constant, and 1 is taken."""

    shape: str
    left: float
    right: float
    source: str

    @property
    def holds(self) -> bool:
        """Whether it holds with the constant 1."""
        return self.left <= self.right


def upper_conditions(
    problem: Problem,
    sites: Sequence[SiteBudget],
    *,
    m: float,
    r: float,
    d: float = 1,
    eta: float = 0.05,
    C_T: float = 4.0,
) -> tuple[UpperCondition, ...]:
    """The conditions under which the upper bounds are proved, for sites as they are (one site is central privacy).

    T is C_T log N and the weights are the theorems' own. `eta` must be below 1/10.

    References
    ----------
    Theorem 2.2 (mean, CDP), the display before the bound of Theorem 4.2 (mean, FDP), Theorem 6.2 (VCM).

    Examples
    --------
    >>> from dpfda.planning.theory import SiteBudget, upper_conditions
    >>> [condition.holds for condition in upper_conditions("mean", [SiteBudget(500, 1.0)], m=6, r=3)]
    [True]
    """
    check_at_least_one("r", r)
    check_at_least_one("m", m)
    if not 0 < _validate.real("eta", eta) < MOST_ETA:
        raise InvalidInput(f"eta must be between 0 and {MOST_ETA:g} for the theorems to hold, got {eta!r}.")
    n = [site.n for site in sites]
    T = max(1.0, C_T * math.log(sum(n)))
    if problem == "mean" and len(sites) == 1:
        left = (r + math.log(T / eta)) * math.log(n[0])
        return (UpperCondition("{r + log(T/eta)} log n <= n m", left, n[0] * m, "Theorem 2.2"),)
    precisions = site_precisions(sites, r, m=m, d=d)
    nu = [value / sum(precisions) for value in precisions]
    log = math.log(T * r / eta)
    squares = sum(T * weight**2 / size for weight, size in zip(nu, n, strict=True))
    largest = max(T * weight / size for weight, size in zip(nu, n, strict=True))
    if problem == "mean":
        return (
            UpperCondition("r log^2(Tr/eta) <= 1/sum T nu_s^2/(n_s m)", r * log**2, m / squares, "Theorem 4.2"),
            UpperCondition("r log(Tr/eta) <= 1/max T nu_s/(n_s m)", r * log, m / largest, "Theorem 4.2"),
        )
    return (
        UpperCondition("r log^2(Tr/eta) <= 1/sum T nu_s^2 d/(n_s m)", r * log**2, m / (d * squares), "Theorem 6.2"),
        UpperCondition("log^2(Tr/eta) sum T nu_s^2 d/n_s <= 1", log**2 * d * squares, 1.0, "Theorem 6.2"),
        UpperCondition("r log(Tr/eta) <= 1/max T nu_s d/n_s", r * log, 1 / (d * largest), "Theorem 6.2"),
    )
