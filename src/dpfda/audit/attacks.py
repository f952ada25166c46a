"""Membership inference by an attacker who knows everything but one curve, and what differential privacy allows.

The attacker knows the population, all other curves and the two candidates for one position, and sees the released curve
alone. It scores by the likelihood ratio of the released coefficients, estimated from its own simulations: it can run the
library as often as it likes.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpfda._typing import Floats, Interval
from dpfda.audit.hypothesis_tests import LEVEL, clopper_pearson_low
from dpfda.audit.search import Subject, replaced
from dpfda.curves.curves import Curves
from dpfda.estimators import PrivateMean
from dpfda.silo.silo import Silo


@dataclass(frozen=True)
class Membership:
    """The outcome of a membership attack, beside the e^eps bound on it."""

    name: str
    epsilon: float
    delta: float
    runs: int
    true_rate: float
    false_rate: float
    within: bool

    @property
    def allowed(self) -> float:
        """The largest true positive rate that (eps, delta)-DP allows at this false positive rate."""
        bound = math.exp(self.epsilon) * self.false_rate + self.delta
        return min(1.0, bound, 1 - math.exp(-self.epsilon) * (1 - self.delta - self.false_rate))


def membership_attacks(runs: int) -> list[Membership]:
    """On simulated curves and, where the example data are installed, on real ones."""
    from dpfda.curves.datasets import get_dataset_info, load_dataset
    from dpfda.curves.simulated import simulate_mean
    from dpfda.errors import InvalidInput

    simulated = simulate_mean(60, 5, rng=1)
    unit, y_bounds = (0.0, 1.0), (-3.0, 5.0)
    found = [
        member_of("simulated, n = 60", simulated, unit, y_bounds, epsilon=epsilon, delta=1e-5, runs=runs)
        for epsilon in (1.0, 4.0)
    ]
    try:
        info, curves = get_dataset_info("blackmore"), load_dataset("blackmore")
    except InvalidInput:
        return found
    real = f"{info.name}, n = {info.subjects}"
    return [*found, member_of(real, curves, info.domain, info.y_bounds, epsilon=1.0, delta=1e-5, runs=runs)]


def member_of(
    name: str, curves: Curves, domain: Interval, y_bounds: Interval, *, epsilon: float, delta: float, runs: int
) -> Membership:
    """Train the attacker on half of the runs and attack with the other half, on the released curve only."""
    outlier = np.linspace(*domain, 7)
    candidates = [
        replaced(curves, Subject(outlier, np.full(7, value), curves.design[0])) for value in (y_bounds[0], y_bounds[1])
    ]
    first, second = (
        np.array([_released(data, domain, y_bounds, epsilon, delta) for _ in range(2 * runs)]) for data in candidates
    )
    score = _likelihood_ratio(first[:runs], second[:runs])
    hits, alarms = int((score(second[runs:]) > 0).sum()), int((score(first[runs:]) > 0).sum())
    return Membership(
        name, epsilon, delta, runs, hits / runs, alarms / runs, _within(hits, alarms, runs, epsilon, delta)
    )


def _within(hits: int, alarms: int, runs: int, epsilon: float, delta: float) -> bool:
    """Whether the rates may come from an (eps, delta)-DP release: both bounds, at the audit's level."""
    low, high = clopper_pearson_low(hits, runs, LEVEL / 2), 1 - clopper_pearson_low(runs - alarms, runs, LEVEL / 2)
    return low <= math.exp(epsilon) * high + delta and 1 - high <= math.exp(epsilon) * (1 - low) + delta


def _released(curves: Curves, domain: Interval, y_bounds: Interval, epsilon: float, delta: float) -> Floats:
    silo = Silo(curves, epsilon=epsilon, delta=delta, points_per_curve=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = PrivateMean(domain=domain, y_bounds=y_bounds, n_basis=3).fit([silo])
    coefficients: Floats = fitted.coef_
    return coefficients


def _likelihood_ratio(first: Floats, second: Floats) -> Callable[[Floats], Floats]:
    """Two Gaussian laws with their own means and a common covariance, robust to a few wild fits."""
    centre = [np.median(side, axis=0) for side in (first, second)]
    spread = np.vstack([first - centre[0], second - centre[1]])
    limit = 4 * np.median(np.abs(spread), axis=0) + 1e-12
    inverse = np.linalg.pinv(np.cov(np.clip(spread, -limit, limit).T))
    direction, middle = inverse @ (centre[1] - centre[0]), (centre[0] + centre[1]) / 2
    return lambda released: (released - middle) @ direction
