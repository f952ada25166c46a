"""What a curve weighs on average: the scale of all mean gradients and moments, of every silo.

Where subjects weigh the same, that is the share of curves with points. Where visits do, it is released: a site whose
subjects are seen more often has longer gradients for the same curve, so each silo has a mean weight of its own, shrunk
towards those of the others as far as their noise makes it necessary.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from dpfda._typing import Floats
from dpfda.methods.adaptive import constants
from dpfda.methods.adaptive.level import Filled
from dpfda.methods.adaptive.pooling import find_shares, pool, pool_each
from dpfda.methods.adaptive.prior import normalise
from dpfda.protocol.messages import Release
from dpfda.protocol.plan import Plan
from dpfda.protocol.statistics import VisitWeights


@dataclass(frozen=True)
class MeanWeight:
    """E[w] and E[w^2] of a curve's weight w, and one sd of what is not known of E[w], relative to it."""

    mean: float
    square: float
    doubt: float = 0.0

    @classmethod
    def of_share(cls, filled: float) -> MeanWeight:
        """Curves with points weigh 1, the others nothing."""
        return cls(filled, filled)


@dataclass(frozen=True)
class CurveWeights:
    """The mean weight of a curve: of all silos together, and of each where there are several and visits weigh the same."""

    pooled: MeanWeight
    each: Mapping[str, MeanWeight] = field(default_factory=dict)

    def of(self, silo: str) -> MeanWeight:
        """At this silo."""
        return self.each.get(silo, self.pooled)

    def relative(self, silo: str) -> float:
        """What a curve of this silo weighs among those of all: the same everywhere if subjects weigh the same."""
        return self.each[silo].mean if self.each else 1.0

    def blend(self, shares: Mapping[str, float]) -> float:
        """E[w] over silos of which each counts for its share."""
        if not self.each:
            return self.pooled.mean
        return sum(share * self.each[silo].mean for silo, share in shares.items())


def fit_weights(
    plan: Plan, releases: Mapping[str, Release], trust: Mapping[str, float], filled: Filled
) -> CurveWeights:
    """From what round 0 released; silos that missed it have what the others make likely."""
    cap = plan.scaling.visit_cap
    if cap is None:
        return CurveWeights(MeanWeight.of_share(filled.share))
    own = pool_each(plan, 0, VisitWeights, releases)
    values = np.array([each.values[0] + 0.5 for each in own.values()])
    sds = np.array([each.sd[0] for each in own.values()])
    slack = constants.FILLED_SDS * filled.sd
    limits = max(filled.share - slack, constants.MIN_FILLED) / cap, min(filled.share + slack, 1.0)
    found, elsewhere = fit_means(values, sds, limits)
    shares = find_shares(plan, 0, VisitWeights, releases, trust)
    mean = sum(shares[name] * value for name, (value, _) in zip(own, found, strict=True))
    sd = math.hypot(*(shares[name] * sd for name, (_, sd) in zip(own, found, strict=True)))
    square = float(pool(plan, 0, VisitWeights, releases, trust).values[1]) + 0.5
    ratio = min(max(square / mean, mean), 1.0)  # E[w^2] lies between E[w]^2 and E[w]
    pooled = MeanWeight(mean, ratio * mean, sd / mean)
    if len(plan.silos) == 1:
        return CurveWeights(pooled)
    known = dict(zip(own, found, strict=True))
    each = {}
    for silo in plan.silos:
        value, sd = known.get(silo.name, elsewhere)
        each[silo.name] = MeanWeight(value, max(ratio, value) * value, sd / value)
    return CurveWeights(pooled, each)


def fit_means(
    values: Floats, sds: Floats, limits: tuple[float, float]
) -> tuple[list[tuple[float, float]], tuple[float, float]]:
    """Posterior mean and sd of E[w] at every silo and at one that is not among them.

    Silos scatter around a common mean within the limits; mean and scatter are averaged by evidence.
    """
    centre = np.linspace(*limits, constants.WEIGHT_POINTS)[:, None]
    spread = np.array([0.0] if values.size == 1 else constants.WEIGHT_SPREADS) * limits[1]
    total = sds[:, None, None] ** 2 + spread**2  # (silos, 1, spreads)
    apart = values[:, None, None] - centre
    log_evidence = -0.5 * (apart**2 / total + np.log(total)).sum(axis=0)
    odds = normalise(log_evidence.ravel())
    own = spread**2 / total
    means = centre + own * apart
    variances = np.broadcast_to(own * sds[:, None, None] ** 2, means.shape)
    found = [_average(odds, mean.ravel(), each.ravel()) for mean, each in zip(means, variances, strict=True)]
    shape = log_evidence.shape
    elsewhere = _average(odds, np.broadcast_to(centre, shape).ravel(), np.broadcast_to(spread**2, shape).ravel())
    low, high = limits
    return [(min(max(mean, low), high), sd) for mean, sd in found], elsewhere


def _average(odds: Floats, means: Floats, variances: Floats) -> tuple[float, float]:
    mean = float(odds @ means)
    return mean, math.sqrt(float(odds @ (variances + (means - mean) ** 2)))
