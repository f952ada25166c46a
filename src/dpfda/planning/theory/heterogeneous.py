"""Servers of unequal size and budget: the two sides of the federated bounds.

Upper bound: Theorems 4.2 (mean) and 6.2 (VCM). Lower bound: Theorems 5.1 and 7.1. With ``d=1`` the
formulas for the VCM are those for the mean, so `d` is the only switch. All up to constants and logs.

The paper takes one number of points m for all servers, and so does this module. Between the two
bounds there is a gap which the authors conjecture to be the lower bound's fault.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpfda import _validate
from dpfda.errors import InvalidInput
from dpfda.planning.theory.setting import check_alpha, check_at_least_one

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class SiteBudget:
    """The size `n` and the budget `epsilon` of one site (the paper's server)."""

    n: float
    epsilon: float

    def __post_init__(self) -> None:
        check_at_least_one("n", self.n)
        _validate.positive("epsilon", self.epsilon)


@dataclass(frozen=True)
class UpperBound:
    """``1 / sum(precisions) + squared bias`` at a given r; `weights` are the optimal nu_s."""

    variance: float
    squared_bias: float
    weights: tuple[float, ...]

    @property
    def value(self) -> float:
        return self.variance + self.squared_bias


@dataclass(frozen=True)
class LowerBound:
    """The larger of a sparse part (attained at `r`) and a dense part.

    `r0` is the real number of the theorem's delta condition; `proved` is false when some epsilon is 1
    or more, where the theorem is silent.
    """

    sparse: float
    dense: float
    r: int
    r0: float
    proved: bool

    @property
    def value(self) -> float:
        return max(self.sparse, self.dense)


def _columns(sites: Sequence[SiteBudget], m: float, d: float) -> tuple[Vector, Vector]:
    if not sites:
        raise InvalidInput("sites must not be empty.")
    check_at_least_one("m", m)
    check_at_least_one("d", d)
    n = np.array([site.n for site in sites], dtype=np.float64)
    epsilon = np.array([site.epsilon for site in sites], dtype=np.float64)
    return n, n**2 * epsilon**2


def _root(increasing: Callable[[float], float]) -> float:
    """The r > 0 at which `increasing` changes sign, by bisection on log r."""
    low, high = -60.0, 60.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if increasing(math.exp(middle)) < 0 else (low, middle)
    return math.exp((low + high) / 2)


def site_precisions(sites: Sequence[SiteBudget], r: float, *, m: float, d: float = 1) -> tuple[float, ...]:
    """The u_s: one over the largest of the four variances of server s.

    Theorem 6.2; Theorem 4.2 with ``d=1``. The latter prints n_s^-2 where its proof, and the bound that
    follows, have n_s^-1: this is n_s^-1.
    """
    _validate.positive("r", r)
    n, private = _columns(sites, m, d)
    # one over max(d / n, d r / (n m), d^2 / (n^2 eps^2), d^2 r^2 / (n^2 m eps^2))
    plain = n / d * min(1.0, m / r)
    noisy = private / d**2 * min(1.0, m / r**2)
    return tuple(float(value) for value in np.minimum(plain, noisy))


def heterogeneous_upper(sites: Sequence[SiteBudget], r: float, *, m: float, alpha: float, d: float = 1) -> UpperBound:
    """Upper bound with `r` basis functions: harmonic mean of the variances over S, plus squared bias.

    Theorem 4.2: r^2 / sum_s min(r n m, n^2 m eps^2, r^2 n, r^2 n^2 eps^2) + r^(-2 alpha); Theorem 6.2 with d.
    A further server, however poor, never increases it.

    Examples
    --------
    >>> sites = [SiteBudget(1000, 0.5), SiteBudget(300, 1)]
    >>> [round(weight, 2) for weight in heterogeneous_upper(sites, 4, m=3, alpha=3).weights]
    [0.77, 0.23]
    """
    check_alpha(alpha)
    precisions = site_precisions(sites, r, m=m, d=d)
    total = math.fsum(precisions)
    weights = tuple(value / total for value in precisions)
    return UpperBound(1 / total, d * r ** (-2 * alpha), weights)


def heterogeneous_optimal_r(sites: Sequence[SiteBudget], *, m: float, alpha: float, d: float = 1) -> float:
    """The real r at which variance and squared bias agree (appendix remarks on Theorems 4 and 6)."""
    check_alpha(alpha)

    def excess_variance(r: float) -> float:
        bound = heterogeneous_upper(sites, r, m=m, alpha=alpha, d=d)
        return math.log(bound.variance) - math.log(bound.squared_bias)

    return _root(excess_variance)


def _sparse_information(n: Vector, private: Vector, r: float, m: float, d: float, T: int) -> float:
    return float(np.minimum(r * d * n * m, private * m / T).sum())  # min(r d n m, T^-1 n^2 m eps^2)


def lower_bound_r0(sites: Sequence[SiteBudget], T: int = 1, *, m: float, alpha: float, d: float = 1) -> float:
    """Solution of ``d r^(2 alpha + 2) = sum_s min(r d n m, n^2 m eps^2 / T)`` (Theorems 5.1 and 7.1)."""
    check_alpha(alpha)
    n, private = _columns(sites, m, d)
    _check_rounds(sites, T)

    def excess(r: float) -> float:
        information = _sparse_information(n, private, r, m, d, T)
        return math.log(d) + (2 * alpha + 2) * math.log(r) - math.log(information)

    return _root(excess)


def heterogeneous_lower(sites: Sequence[SiteBudget], T: int = 1, *, m: float, alpha: float, d: float = 1) -> LowerBound:
    """Lower bound for mechanisms of `T` rounds (Theorem 5.1; Theorem 7.1 with d).

    The 1/T in it comes from splitting every server's curves into T EQUAL batches. A mechanism that may
    choose its batches can spend all curves in one round, so against such mechanisms only the value
    at ``T=1``, the default and the smallest, is a lower bound.
    """
    n, private = _columns(sites, m, d)
    r0 = lower_bound_r0(sites, T, m=m, alpha=alpha, d=d)

    def sparse(r: float) -> float:
        # r^2 d^2 / (sum_s min(r d n m, T^-1 n^2 m eps^2) + d r^(2 alpha + 2))
        information = _sparse_information(n, private, r, m, d, T)
        return float(r**2 * d**2 / (information + d * r ** (2 * alpha + 2)))

    best = max(_integers_around(r0), key=sparse)
    dense = d**2 / float(np.minimum(d * n, private / T).sum())
    return LowerBound(sparse(best), dense, best, r0, all(site.epsilon < 1 for site in sites))


def _integers_around(r0: float) -> list[int]:
    """Integers holding the maximiser: outside [r0/2, 2 r0] one half of the denominator has doubled."""
    low, high = max(1, math.floor(r0) // 2), 2 * math.ceil(r0)
    step = max(1, (high - low) // 4096)  # a coarser grid moves the supremum by a factor near 1
    return list(range(low, high + 1, step))


def _check_rounds(sites: Sequence[SiteBudget], T: int) -> None:
    if _validate.integer("T", T) > min(site.n for site in sites):
        raise InvalidInput(f"T must not exceed the smallest n, got {T}: a round would be empty.")
