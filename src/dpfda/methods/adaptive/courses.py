"""Possible courses of a study with little precision: the method itself, run on releases that are drawn from made-up curves.

Where noise is large, what is learnt of scales, lengths and the first iterates differs from study to study, and a course
of average releases is too good: errors of bad courses are many times those of good ones. So the method learns from drawn
releases, several times, and its squared errors are averaged. All silos together are one: silos that are alike release what
one with all curves and the same precision would.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from dpfda._typing import Floats
from dpfda.basis.basis import Basis
from dpfda.basis.moments import uniform_moments
from dpfda.errors import TransportError
from dpfda.methods.adaptive import constants
from dpfda.methods.adaptive.coordinator import AdaptiveCoordinator
from dpfda.methods.adaptive.lengths import find_octaves
from dpfda.privacy.accounting import gaussian_epsilon
from dpfda.privacy.clipping import BoundedSum
from dpfda.protocol.messages import Release
from dpfda.protocol.plan import Plan, SiloPlan
from dpfda.protocol.statistics import (
    LENGTH_CELLS,
    ClippedGradient,
    DesignMoments,
    LengthHistogram,
    LevelHistogram,
    SharesAtBounds,
    Statistic,
)
from dpfda.protocol.terms import SiloTerms

_ALL = "all"


@dataclass(frozen=True)
class MadeUpCurves:
    """Curves in the units of the plan: means of y, and A and c of their gradients A b - c."""

    means: Floats
    at_bounds: Floats  # shares of y at the lower and the upper bound
    moments: Floats  # means of the basis's moment features
    matrices: Floats
    vectors: Floats

    @classmethod
    def of(cls, basis: Basis, points: Floats, y: Floats) -> MadeUpCurves:
        """Curves (rows) with these points in [0, 1] and these values, which are moved to the bounds if they are beyond."""
        y, count = np.clip(y, -1.0, 1.0), points.shape[1]
        features = basis.evaluate_unit(points.ravel()).reshape(*points.shape, -1)
        moments = np.zeros((*points.shape, 0))
        if basis.moment_count:
            moments = basis.moment_features(points.ravel()).reshape(*points.shape, -1)
        return cls(
            y.mean(axis=1),
            np.stack([(y <= -1.0).mean(axis=1), (y >= 1.0).mean(axis=1)], axis=1),
            moments.mean(axis=1),
            np.matmul(features.transpose(0, 2, 1), features) / count,
            np.einsum("ij,ijk->ik", y, features) / count,
        )

    def find_gradients(self, iterate: Floats, whitener: Floats) -> Floats:
        """At an iterate, in the coordinates of a matrix: one row each."""
        return np.asarray((self.matrices @ iterate - self.vectors) @ whitener.reshape(iterate.size, -1).T)


def pool_plan(plan: Plan) -> Plan:
    """The plan for one silo with all curves and the precision of all silos together."""
    n, precisions = sum(silo.n for silo in plan.silos), [silo.n * plan.mu(silo.name) for silo in plan.silos]
    epsilon = gaussian_epsilon(math.hypot(*precisions) / n, constants.POOLED_DELTA)
    weights = np.square(precisions) / np.square(precisions).sum()
    shares = tuple(
        tuple(float(weights @ [silo.shares[index][place] for silo in plan.silos]) for place in range(len(row)))
        for index, row in enumerate(plan.silos[0].shares)
    )
    return replace(plan, silos=(SiloPlan(SiloTerms(_ALL, n, epsilon, constants.POOLED_DELTA), shares=shares),))


def can_follow(plan: Plan) -> bool:
    """Whether courses can be drawn: of one function, all of whose curves count the same."""
    return plan.n_coefficients == 1 and not plan.outcomes and plan.scaling.visit_cap is None


def follow_course(plan: Plan, curves: MadeUpCurves, rng: np.random.Generator) -> Floats:
    """The coefficients that one study of one silo (`pool_plan`) finds; zeros if it finds no numbers."""
    coordinator = AdaptiveCoordinator(plan, with_band=False)
    try:
        for index in range(len(plan.rounds)):
            coordinator.learn(index, {_ALL: _draw_release(plan, index, coordinator.question(index), curves, rng)})
    except TransportError:
        return np.zeros(plan.basis.size)
    return np.asarray(coordinator.coefficients()[0])


def _draw_release(
    plan: Plan, index: int, question: Mapping[str, Floats], curves: MadeUpCurves, rng: np.random.Generator
) -> Release:
    """What a silo with curves like these would release, with the noise of the plan's silo."""
    sums = [_measure(statistic, plan, question, curves) for statistic in plan.rounds[index].statistics]
    mus, n = plan.statistic_mus(_ALL, index), plan.silos[0].n
    values = np.concatenate([each.total for each in sums]) / len(curves.means)
    sd = np.concatenate([each.sensitivity.whitening(mu) for each, mu in zip(sums, mus, strict=True)]) / n
    return Release("forecast", index, _ALL, values + sd * rng.standard_normal(sd.size), sd, False)


def _measure(statistic: Statistic, plan: Plan, question: Mapping[str, Floats], curves: MadeUpCurves) -> BoundedSum:
    """The bounded sum of a statistic over made-up curves."""
    sizes, count = plan.dimensions, len(curves.means)
    if isinstance(statistic, LevelHistogram):
        cells = np.clip(np.floor((curves.means + 1) / 2 * statistic.bins).astype(np.int64), 0, statistic.bins - 1)
        levels = statistic.bound(sizes)
        return levels.total(levels.words(cells), count)
    if isinstance(statistic, SharesAtBounds):
        return statistic.bound(sizes).sum(curves.at_bounds - 0.5)
    if isinstance(statistic, DesignMoments):
        return statistic.bound(sizes).sum(curves.moments - uniform_moments(plan.basis))
    gradients = curves.find_gradients(question["iterate"], question["whitener"])
    cells = find_octaves(gradients)
    if isinstance(statistic, LengthHistogram):
        for sign in range(statistic.signs):
            cells = cells + (LENGTH_CELLS << sign) * (gradients[:, sign] < 0)
        lengths = statistic.bound(sizes)
        return lengths.total(lengths.words(cells), count)
    if isinstance(statistic, ClippedGradient):
        ball = statistic.bound(sizes, float(question["radius"][0]))
        return ball.total(ball.words(gradients, cells), count)
    raise TypeError(f"no course can be drawn of {statistic.kind!r}")
