"""The published algorithms for many repetitions, budgets and readings at once.

A curve's gradient is linear in the iterate before it is truncated: g_i(B) = A_i B - c_i, with A_i = G_i G_i^T (x) mean of
Phi Phi^T and c_i = G_i (x) mean of Phi y. A and c are computed once for the data and shared by all budgets; a round is
then one compiled pass over the curves for all plans. Plans may differ in budget, radii and step, not in shape. Radii,
noise levels and weights come from the plans, that is from the code which fits use; readings change them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpfda._compile import (
    DOUBLES,
    REALS,
    REALS_2D,
    REALS_3D,
    REALS_4D,
    WHOLE,
    compiled,
    inlined,
    require,
    require_array,
)
from dpfda._typing import Floats
from dpfda.basis.basis import Basis
from dpfda.basis.sobolev import Ellipsoid
from dpfda.errors import InvalidInput
from dpfda.privacy.clipping import EntrywiseBound
from dpfda.privacy.gaussian import noise_sd
from dpfda.protocol.plan import Plan
from dpfda.reproduce.readings import OURS, READINGS, Reading
from dpfda.silo.prepared import PreparedCurves, mean_per_curve


@dataclass(frozen=True)
class Moments:
    """A_i and c_i of every curve of one silo: arrays of shape (..., n, q, q) and (..., n, q)."""

    matrices: Floats
    vectors: Floats

    @staticmethod
    def stack(repetitions: Sequence[Moments]) -> Moments:
        """Repetitions of one silo along a new first axis."""
        return Moments(np.stack([one.matrices for one in repetitions]), np.stack([one.vectors for one in repetitions]))


def curve_moments(curves: PreparedCurves, basis: Basis) -> Moments:
    """A_i and c_i of all curves."""
    features, r = basis.evaluate_unit(curves.u), basis.size
    gram = _grams(features, curves.offsets)
    score = mean_per_curve(features * curves.y[:, None], curves.offsets)
    design, q = curves.design, curves.design.shape[1] * r
    return Moments(
        np.einsum("ia,ib,ikl->iakbl", design, design, gram).reshape(-1, q, q),
        np.einsum("ia,ik->iak", design, score).reshape(-1, q),
    )


def _grams(features: Floats, offsets: NDArray[np.int64]) -> Floats:
    """The mean of Phi Phi^T over the points of each curve."""
    r, counts = features.shape[1], np.diff(offsets)
    if r > 5 and counts.size and (counts == counts[0]).all() and counts[0] > 0:
        blocks = features.reshape(counts.size, counts[0], r)
        return np.asarray(np.matmul(blocks.transpose(0, 2, 1), blocks) / counts[0])
    products = np.einsum("jk,jl->jkl", features, features).reshape(len(features), r * r)
    return mean_per_curve(products, offsets).reshape(-1, r, r)


@dataclass(frozen=True)
class PublishedRuns:
    """The numbers of many plans of one shape, side by side: the last axis is the plan."""

    columns: int
    rounds: int
    batches: tuple[int, ...]
    radii: Floats
    noise: Floats
    weights: Floats
    steps: Floats
    ellipsoids: tuple[Ellipsoid | None, ...]
    first: Floats

    @property
    def size(self) -> int:
        """q: the number of coefficients."""
        return len(self.radii)

    @property
    def count(self) -> int:
        """The number of plans."""
        return len(self.steps)

    @staticmethod
    def of(plans: Sequence[Plan], readings: Sequence[Reading] = (), eta: Sequence[float] = ()) -> PublishedRuns:
        """Read the plans' own numbers; they must agree in shape, rounds, batches and sizes of silos."""
        readings = readings or [_as_planned(plan) for plan in plans]
        first, sizes, rounds = plans[0], [terms.n for terms in plans[0].silos], len(plans[0].rounds)
        batches = tuple(readings[0].batch(n, rounds) for n in sizes)
        shapes = {run_shape(plan, reading) for plan, reading in zip(plans, readings, strict=True)}
        if len(shapes) != 1 or any(plan.method != "published" for plan in plans):
            raise InvalidInput("plans must be published ones of one shape, with as many rounds and the same silos.")
        logs = [math.log(sum(sizes) / value) for value in eta] or [1.0] * len(plans)
        radii = [reading.radii(plan, log) for plan, reading, log in zip(plans, readings, logs, strict=True)]
        noise = [_noise(plan, reading, r) for plan, reading, r in zip(plans, readings, radii, strict=True)]
        weights = np.array([[terms.weight for terms in plan.silos] for plan in plans])
        return PublishedRuns(
            columns=first.n_coefficients,
            rounds=rounds,
            batches=batches,
            radii=np.ascontiguousarray(np.array(radii).T),
            noise=np.moveaxis(np.array(noise), 0, -1),
            weights=(weights / weights.sum(axis=1, keepdims=True)).T,
            steps=np.array([plan.step for plan in plans]),
            ellipsoids=tuple(map(_ellipsoid, plans)),
            first=np.stack([plan.start().ravel() for plan in plans], axis=-1),
        )

    def draw(self, rng: np.random.Generator, plans: int | None = None) -> Floats:
        """Standard normal numbers for one repetition of so many plans; those of a silo do not depend on other silos."""
        shape = (self.rounds, self.size, self.count if plans is None else plans)
        return np.stack([one.standard_normal(shape) for one in rng.spawn(len(self.batches))], axis=1)

    def run(self, silos: Sequence[Moments], normals: Floats) -> Floats:
        """Coefficients of shape (repetitions, plans, q); `normals` has one `draw` for each repetition."""
        iterate = np.tile(self.first, (len(normals), 1, 1))
        for index in range(self.rounds):
            gradient = np.zeros_like(iterate)
            for s, (data, batch) in enumerate(zip(silos, self.batches, strict=True)):
                start = 0 if batch == data.vectors.shape[1] else index * batch
                mean = truncated_sums(data, start, start + batch, iterate, self.radii) / batch
                gradient += self.weights[s] * (mean + self.noise[s] * normals[:, index, s])
            iterate = self._project(iterate - self.steps * gradient)
        return np.moveaxis(iterate, -1, 1)

    def _project(self, iterate: Floats) -> Floats:
        """Project every block that left its ellipsoid; plans with the same ellipsoid together."""
        by_plan = np.moveaxis(iterate, -1, 0).copy()
        for ellipsoid in set(self.ellipsoids) - {None}:
            assert ellipsoid is not None
            chosen = [index for index, one in enumerate(self.ellipsoids) if one == ellipsoid]
            blocks = by_plan[chosen].reshape(-1, self.size // self.columns)
            outside = blocks**2 @ np.asarray(ellipsoid.weights) > ellipsoid.radius**2
            if outside.any():
                blocks[outside] = ellipsoid.project(blocks[outside])
                by_plan[chosen] = blocks.reshape(len(chosen), len(iterate), self.size)
        return np.ascontiguousarray(np.moveaxis(by_plan, 0, -1))


def _as_planned(plan: Plan) -> Reading:
    """What the plan itself says."""
    return READINGS["full-batch" if plan.rounds[0].part is None else OURS]


def run_shape(plan: Plan, reading: Reading) -> tuple[object, ...]:
    """What plans that run together must have in common."""
    rounds, sizes = len(plan.rounds), tuple(terms.n for terms in plan.silos)
    return plan.shape, rounds, sizes, tuple(reading.batch(n, rounds) for n in sizes)


def _noise(plan: Plan, reading: Reading, radii: Sequence[float]) -> list[Floats]:
    """The sd of the noise in each silo's batch mean, as a silo computes it for so many curves."""
    bound, rounds, found = EntrywiseBound(np.asarray(radii)), len(plan.rounds), []
    for terms in plan.silos:
        curves = reading.noise_curves(terms.n, rounds)
        sd = noise_sd(bound.sensitivity(curves), plan.statistic_mus(terms.name, 0)[0]) / curves
        found.append(sd * reading.noise_factor(plan.step))
    return found


def truncated_sums(data: Moments, start: int, stop: int, iterate: Floats, radii: Floats) -> Floats:
    """Line 4 of Algorithms 1-4 for all plans: gradients of these curves, truncated at R, added up.

    Curves of one repetition serve all repetitions of the iterate.
    """
    sets, n, q = data.vectors.shape
    repetitions, plans = len(iterate), iterate.shape[-1]
    require(sets in (1, repetitions) and 0 <= start <= stop <= n, "curves must belong to the iterates")
    require_array("matrices", data.matrices, DOUBLES, sets, n, q, q)
    require_array("vectors", data.vectors, DOUBLES, sets, n, q)
    iterate = np.ascontiguousarray(iterate)
    require_array("iterate", iterate, DOUBLES, repetitions, q, plans)
    require_array("radii", radii, DOUBLES, q, plans)
    total = np.zeros((repetitions, q, plans))
    _add_truncated(data.matrices, data.vectors, start, stop, iterate, radii, np.empty(plans), total)
    return total


@inlined
def _add_row_of_three(matrix: Floats, score: float, iterate: Floats, radii: Floats, total: Floats) -> None:
    first, second, third = matrix[0], matrix[1], matrix[2]
    for p in range(len(total)):
        value = first * iterate[0, p] + second * iterate[1, p] + third * iterate[2, p] - score
        low = value if value > -radii[p] else -radii[p]
        total[p] += low if low < radii[p] else radii[p]


@inlined
def _add_row(matrix: Floats, score: float, iterate: Floats, radii: Floats, row: Floats, total: Floats) -> None:
    for p in range(len(total)):
        row[p] = matrix[0] * iterate[0, p] - score
    for h in range(1, len(matrix)):
        for p in range(len(total)):
            row[p] += matrix[h] * iterate[h, p]
    for p in range(len(total)):
        low = row[p] if row[p] > -radii[p] else -radii[p]
        total[p] += low if low < radii[p] else radii[p]


@compiled(REALS_4D, REALS_3D, WHOLE, WHOLE, REALS_3D, REALS_2D, REALS, REALS_3D)
def _add_truncated(
    matrices: Floats, vectors: Floats, start: int, stop: int, iterate: Floats, radii: Floats, row: Floats, total: Floats
) -> None:
    q, many = iterate.shape[1], matrices.shape[0] > 1
    for repetition in range(iterate.shape[0]):
        data = repetition if many else 0
        for i in range(start, stop):
            for k in range(q):
                matrix, score, sums = matrices[data, i, k], vectors[data, i, k], total[repetition, k]
                if q == 3:  # the paper's simulations: no room between the terms
                    _add_row_of_three(matrix, score, iterate[repetition], radii[k], sums)
                else:
                    _add_row(matrix, score, iterate[repetition], radii[k], row, sums)


def _ellipsoid(plan: Plan) -> Ellipsoid | None:
    rule = plan.projection
    if rule.kind == "cone":
        raise InvalidInput("projection must be 'ellipsoid' or 'none' here; fit one by one to use the cone.")
    if rule.kind == "none":
        return None
    return Ellipsoid(tuple(plan.basis.sobolev_weights(rule.alpha)), rule.radius)
