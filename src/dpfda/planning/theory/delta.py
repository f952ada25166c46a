"""How small delta must be for the lower bounds to hold; up to constants.

A delta that breaks these conditions breaks no privacy guarantee and no upper bound: only the claim
that nothing better is possible.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dpfda.errors import InvalidInput
from dpfda.planning.theory.heterogeneous import SiteBudget, lower_bound_r0
from dpfda.planning.theory.setting import Privacy, Problem, Setting, check_dimension

Shape = Literal["delta * log(1/delta)", "delta * sqrt(log(1/delta))"]


@dataclass(frozen=True)
class DeltaCondition:
    """``shape(delta) <= bound`` up to a constant; `largest` is the delta at which equality holds."""

    shape: Shape
    bound: float
    source: str
    note: str = ""

    @property
    def largest(self) -> float:
        """Largest delta that satisfies the condition with constant one, on the increasing branch."""
        if self.shape == "delta * log(1/delta)":
            return _invert(self.bound)
        return math.sqrt(_invert(2 * self.bound**2))  # delta^2 log(1/delta^2) = 2 bound^2

    def allows(self, delta: float) -> bool:
        return 0 <= delta <= self.largest


def _invert(level: float) -> float:
    """The x <= 1/e with ``x log(1/x) = level``; 1/e if the level is never exceeded."""
    if level >= 1 / math.e:
        return 1 / math.e
    if level <= 0:
        return 0.0
    low, high = 1.0, 2 * math.log(1 / level) + 2  # x = e^-u with u - log u = log(1/level)
    for _ in range(200):
        u = (low + high) / 2
        low, high = (u, high) if u - math.log(u) < -math.log(level) else (low, u)
    return math.exp(-high)


def _mean_central(n: float, m: float, epsilon: float, alpha: float) -> DeltaCondition:
    a = alpha
    bound = n ** (-(2 * a + 3) / (2 * a + 2)) * m ** (-(8 * a + 9) / (4 * a + 4)) * epsilon ** (-1 / (2 * a + 2))
    note = "its proof also uses delta <= n^-(1+w) for some w > 0 in the dense terms"
    return DeltaCondition("delta * sqrt(log(1/delta))", bound, "Theorem 3", note)


def _mean_federated(S: float, n: float, m: float, epsilon: float, alpha: float) -> DeltaCondition:
    a = alpha
    first = (S * n) ** (-1 / (2 * a + 1)) * m ** (-(6 * a + 4) / (2 * a + 1)) * epsilon**2
    second = (
        S ** (-1 / (2 * a + 2))
        * n ** (-1 / (a + 1))
        * m ** (-(6 * a + 7) / (2 * a + 2))
        * epsilon ** ((2 * a + 1) / (a + 1))
    )
    return DeltaCondition("delta * log(1/delta)", min(first, second), "Theorem 5.2")


def _vcm(S: float, n: float, m: float, d: float, epsilon: float, alpha: float, source: str) -> DeltaCondition:
    a = alpha
    first = d**-1 * (S * n) ** (-1 / (2 * a + 1)) * m ** (-(2 * a + 2) / (2 * a + 1)) * epsilon**2
    second = (
        d ** (-(2 * a + 1) / (2 * a + 2))
        * S ** (-1 / (2 * a + 2))
        * n ** (-1 / (a + 1))
        * m ** (-(2 * a + 3) / (2 * a + 2))
        * epsilon ** ((2 * a + 1) / (a + 1))
    )
    return DeltaCondition("delta * log(1/delta)", min(first, second), source)


def delta_condition(
    problem: Problem,
    privacy: Privacy,
    *,
    n: float,
    m: float,
    alpha: float,
    epsilon: float,
    S: float = 1,
    d: float = 1,
) -> DeltaCondition:
    """Condition on delta of the homogeneous lower bound; up to constants.

    Theorem 3 (mean, CDP), Theorem 5.2 (mean, FDP), Corollary 1 (VCM, CDP), Theorem 7.2 (VCM, FDP;
    it prints log(delta) for log(1/delta)). CDP pools the curves; LDP is FDP with one curve per server.

    Examples
    --------
    >>> condition = delta_condition("mean", "fdp", n=1000, m=3, S=5, epsilon=0.5, alpha=3)
    >>> condition.source, round(condition.bound, 4)
    ('Theorem 5.2', 0.0014)
    """
    setting = Setting(problem, privacy, n, m, alpha, S, d, epsilon)
    if setting.privacy == "none":
        raise InvalidInput("privacy must not be 'none': there is no delta.")
    servers, curves = {"cdp": (1.0, S * n), "fdp": (S, n), "ldp": (S * n, 1.0)}[privacy]
    if problem == "vcm":
        source = "Corollary 1" if privacy == "cdp" else "Theorem 7.2"
        return _vcm(servers, curves, m, d, epsilon, alpha, source)
    if privacy == "cdp":
        return _mean_central(curves, m, epsilon, alpha)
    return _mean_federated(servers, curves, m, epsilon, alpha)


def heterogeneous_delta_conditions(
    problem: Problem, sites: Sequence[SiteBudget], T: int = 1, *, m: float, alpha: float, d: float = 1
) -> tuple[DeltaCondition, ...]:
    """Per server, the condition of Theorem 5.1 (mean) or 7.1 (VCM); up to constants."""
    check_dimension(problem, d)
    r0 = lower_bound_r0(sites, T, m=m, alpha=alpha, d=d)
    if problem == "mean":  # delta log(1/delta) <= r0^-1 m^-3 eps^2
        scale, source = 1 / (r0 * m**3), "Theorem 5.1"
    else:  # delta log(1/delta) <= r0^-1 d^-1 m^-1 eps^2
        scale, source = 1 / (r0 * d * m), "Theorem 7.1"
    shape: Shape = "delta * log(1/delta)"
    return tuple(DeltaCondition(shape, scale * site.epsilon**2, source) for site in sites)
