"""The published algorithms for many repetitions and many budgets at once, with plain numpy.

A curve's gradient is linear in the iterate before it is truncated: g_i(B) = A_i B - c_i, with A_i = G_i G_i^T (x) mean of
Phi Phi^T and c_i = G_i (x) mean of Phi y. A and c are computed once for the data and shared by all budgets; a round is
then one matrix product, one truncation and one sum for all plans. Plans may differ in budget, radii and step, not in
shape. Radii, noise levels and weights come from the plans, that is from the code which fits use.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpfda._typing import Floats
from dpfda.basis.basis import Basis
from dpfda.basis.sobolev import Ellipsoid
from dpfda.errors import InvalidInput
from dpfda.privacy.clipping import EntrywiseBound
from dpfda.privacy.gaussian import noise_sd
from dpfda.protocol.plan import Plan
from dpfda.protocol.statistics import EntrywiseGradient
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

    @property
    def size(self) -> int:
        """q: the number of coefficients."""
        return len(self.radii)

    @property
    def count(self) -> int:
        """The number of plans."""
        return len(self.steps)

    @staticmethod
    def of(plans: Sequence[Plan]) -> PublishedRuns:
        """Read the plans' own numbers; they must agree in shape, rounds and sizes of silos."""
        first = plans[0]
        names = [terms.name for terms in first.silos]
        sizes = [terms.n for terms in first.silos]
        shapes = {(plan.shape, len(plan.rounds), tuple(terms.n for terms in plan.silos)) for plan in plans}
        if len(shapes) != 1 or any(plan.method != "published" for plan in plans):
            raise InvalidInput("plans must be published ones of one shape, with as many rounds and the same silos.")
        rounds = len(first.rounds)
        batches = tuple(n // rounds for n in sizes)
        noise = [[_noise_of_mean(plan, name, b) for name, b in zip(names, batches, strict=True)] for plan in plans]
        weights = np.array([[terms.weight for terms in plan.silos] for plan in plans])
        return PublishedRuns(
            columns=first.n_coefficients,
            rounds=rounds,
            batches=batches,
            radii=np.array([_radii(plan) for plan in plans]).T,
            noise=np.moveaxis(np.array(noise), 0, -1),
            weights=(weights / weights.sum(axis=1, keepdims=True)).T,
            steps=np.array([plan.step for plan in plans]),
            ellipsoids=tuple(map(_ellipsoid, plans)),
        )

    def draw(self, rng: np.random.Generator) -> Floats:
        """Standard normal numbers for one repetition."""
        return rng.standard_normal((self.rounds, len(self.batches), self.size, self.count))

    def run(self, silos: Sequence[Moments], normals: Floats) -> Floats:
        """Coefficients of shape (repetitions, plans, q); `normals` has one `draw` for each repetition."""
        iterate = np.zeros((len(normals), self.size, self.count))
        for index in range(self.rounds):
            gradient = np.zeros_like(iterate)
            for s, (data, batch) in enumerate(zip(silos, self.batches, strict=True)):
                mean = self._truncated_mean(data, slice(index * batch, (index + 1) * batch), iterate)
                gradient += self.weights[s] * (mean + self.noise[s] * normals[:, index, s])
            iterate = self._project(iterate - self.steps * gradient)
        return np.moveaxis(iterate, -1, 1)

    def _truncated_mean(self, data: Moments, batch: slice, iterate: Floats) -> Floats:
        """Line 4 of Algorithms 1-4 for all plans: gradients of the batch, truncated at R, averaged."""
        matrices, vectors = data.matrices[:, batch], data.vectors[:, batch]
        repetitions, curves, q = vectors.shape
        gradients = matrices.reshape(repetitions, curves * q, q) @ iterate
        gradients = gradients.reshape(repetitions, curves, q, -1)
        gradients -= vectors[..., None]
        np.minimum(gradients, self.radii, out=gradients)
        np.maximum(gradients, -self.radii, out=gradients)
        mean: Floats = gradients.sum(axis=1) / curves
        return mean

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


def _radii(plan: Plan) -> tuple[float, ...]:
    (measure,) = plan.rounds[0].statistics
    assert isinstance(measure, EntrywiseGradient)
    return measure.radii


def _noise_of_mean(plan: Plan, silo: str, batch: int) -> Floats:
    """The sd of the noise in a batch mean, exactly as a silo computes it."""
    sensitivity = EntrywiseBound(np.asarray(_radii(plan))).sensitivity(batch)
    return noise_sd(sensitivity, plan.mu(silo)) / batch


def _ellipsoid(plan: Plan) -> Ellipsoid | None:
    rule = plan.projection
    if rule.kind == "cone":
        raise InvalidInput("projection must be 'ellipsoid' or 'none' here; fit one by one to use the cone.")
    if rule.kind == "none":
        return None
    return Ellipsoid(tuple(plan.basis.sobolev_weights(rule.alpha)), rule.radius)
