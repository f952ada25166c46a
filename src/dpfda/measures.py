"""What every curve contributes to a release, and how it is bounded before it is added up.

One function per kind of measure in `engine/plan.py`. Each returns a `BoundedSum`: a total over curves together with the
sensitivity that the bounding function in `privacy/` states for it. Nothing here draws noise or talks to anybody.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfda.engine.moments import moment_bounds, moment_features, uniform_moments
from dpfda.engine.plan import Plan
from dpfda.engine.quantities import (
    ClippedRest,
    CovariateProducts,
    CovariateSquares,
    DesignMoments,
    EntrywiseGradient,
    LevelHistogram,
    ShareBelow,
    ShortShare,
    SpreadMatrix,
    WhitenedGradient,
)
from dpfda.engine.radius import ClipRule
from dpfda.model import PreparedCurves, curve_gradients, mean_per_curve, rowwise_product
from dpfda.privacy.clipping import BoundedSum, EllipsoidBound, EntrywiseBound, sum_chunks
from dpfda.privacy.cones import HistogramBound, OuterProductBound

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Question:
    """A checked query together with what the silo itself knows: the plan and its own clipping rule."""

    plan: Plan
    arrays: Mapping[str, Floats]
    clip: ClipRule | None

    @property
    def iterate(self) -> Floats:
        """The coefficients at which gradients are asked for."""
        return self.arrays["iterate"].reshape(self.plan.shape)

    def whitened(self, curves: PreparedCurves) -> Floats:
        """Gradients in the public coordinates of the query, one row per curve; overflow leaves non-finite rows."""
        size = self.arrays["iterate"].size
        gradients = curve_gradients(curves, self.plan.basis, self.iterate)
        with np.errstate(over="ignore", invalid="ignore"):
            return rowwise_product(gradients, self.arrays["whitener"].reshape(size, size).T)

    def rule(self) -> ClipRule:
        """The silo's own radius for this round."""
        assert self.clip is not None
        return self.clip


def measure(kind: Any, curves: PreparedCurves, question: Question) -> BoundedSum:
    """The bounded sum of one planned measure; silent about overflow, because a warning would depend on the data."""
    with np.errstate(all="ignore"):
        return _MEASURES[type(kind)](kind, curves, question)


def _entrywise_gradient(kind: EntrywiseGradient, curves: PreparedCurves, question: Question) -> BoundedSum:
    """Line 4 of Algorithms 1-4: truncate every curve's gradient entrywise at R_h, then add up."""
    gradients = (curve_gradients(chunk, question.plan.basis, question.iterate) for chunk in curves.chunks())
    return sum_chunks(EntrywiseBound(np.asarray(kind.radii)), gradients, width=len(kind.radii))


def _level_histogram(kind: LevelHistogram, curves: PreparedCurves, question: Question) -> BoundedSum:
    """In which of equal bins of [-1, 1] each curve's own mean of y lies; y is within [-1, 1] already."""

    def bins(chunk: PreparedCurves) -> NDArray[np.int64]:
        means = mean_per_curve(chunk.y[:, None], chunk.offsets)[:, 0]
        counted = (np.diff(chunk.offsets) > 0) & np.isfinite(means)
        places = np.floor((np.where(counted, means, 0.0) + 1) / 2 * kind.bins)
        return np.where(counted, np.clip(places, 0, kind.bins - 1).astype(np.int64), -1)

    return HistogramBound(kind.bins).sum_chunks(map(bins, curves.chunks()))


def _design_moments(kind: DesignMoments, curves: PreparedCurves, question: Question) -> BoundedSum:
    """Each curve's mean of cos(k theta) and sin(k theta), minus what a uniform design would give."""
    basis = question.plan.basis
    centre = uniform_moments(basis)

    def moments(chunk: PreparedCurves) -> Floats:
        return mean_per_curve(moment_features(basis, chunk.u) - centre, chunk.offsets)

    return sum_chunks(EllipsoidBound(*moment_bounds(basis)), map(moments, curves.chunks()), width=centre.size)


def _covariate_squares(kind: CovariateSquares, curves: PreparedCurves, question: Question) -> BoundedSum:
    """G_k^2 - 1/2 of every column but the first; design entries are within [-1, 1] already."""
    width = curves.design.shape[1] - 1
    rows = (chunk.design[:, 1:] ** 2 - 0.5 for chunk in curves.chunks())
    return sum_chunks(EntrywiseBound(np.full(width, 0.5)), rows, width=width)


def _covariate_products(kind: CovariateProducts, curves: PreparedCurves, question: Question) -> BoundedSum:
    """The outer product of every design vector, its columns brought to about one size first."""
    scale = question.arrays["covariate_scale"]
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        rows = [chunk.design / scale for chunk in curves.chunks()]
    return OuterProductBound(scale.size, kind.radius).sum_chunks(rows)


def _whitened_gradient(kind: WhitenedGradient, curves: PreparedCurves, question: Question) -> BoundedSum:
    """Gradients in public coordinates, scaled into the ball of the silo's own radius."""
    width = question.arrays["iterate"].size
    ball = EllipsoidBound(np.ones(width), question.rule().radius)
    return sum_chunks(ball, map(question.whitened, curves.chunks()), width=width)


def _short_share(kind: ShortShare, curves: PreparedCurves, question: Question) -> BoundedSum:
    """Whether each curve's whitened gradient is shorter than the silo's own threshold: +1/2 or -1/2."""
    threshold = question.rule().threshold

    def short(chunk: PreparedCurves) -> Floats:
        with np.errstate(over="ignore", invalid="ignore"):
            lengths = np.linalg.norm(question.whitened(chunk), axis=1, keepdims=True)
        return np.where(lengths <= threshold, 0.5, -0.5)

    return sum_chunks(EntrywiseBound(np.array([0.5])), map(short, curves.chunks()), width=1)


def _spread_matrix(kind: SpreadMatrix, curves: PreparedCurves, question: Question) -> BoundedSum:
    """The outer product of every clipped whitened gradient, in units of the radius."""
    width = question.arrays["iterate"].size
    radius = question.rule().radius
    rows = (question.whitened(chunk) / radius for chunk in curves.chunks())
    return OuterProductBound(width, 1.0).sum_chunks(rows)


def _clipped_rest(kind: ClippedRest, curves: PreparedCurves, question: Question) -> BoundedSum:
    """What the ball takes away from every whitened gradient, along the query's direction, within `reach` radii."""
    direction, radius = question.arrays["rest_direction"], question.rule().radius
    ball = EllipsoidBound(np.ones(direction.size), radius)

    def rest(chunk: PreparedCurves) -> Floats:
        whitened = question.whitened(chunk)
        with np.errstate(over="ignore", invalid="ignore"):
            return rowwise_product(whitened - ball.clip(whitened), direction[:, None])

    return sum_chunks(EntrywiseBound(np.array([kind.reach * radius])), map(rest, curves.chunks()), width=1)


def _share_below(kind: ShareBelow, curves: PreparedCurves, question: Question) -> BoundedSum:
    """Each curve's own share of values at or below the threshold, minus 1/2; a curve without points counts as half."""
    threshold = float(question.arrays["iterate"][0])

    def shares(chunk: PreparedCurves) -> Floats:
        return mean_per_curve((chunk.y <= threshold).astype(np.float64)[:, None] - 0.5, chunk.offsets)

    return sum_chunks(EntrywiseBound(np.array([0.5])), map(shares, curves.chunks()), width=1)


_MEASURES: dict[type, Callable[[Any, PreparedCurves, Question], BoundedSum]] = {
    EntrywiseGradient: _entrywise_gradient,
    LevelHistogram: _level_histogram,
    DesignMoments: _design_moments,
    CovariateSquares: _covariate_squares,
    CovariateProducts: _covariate_products,
    WhitenedGradient: _whitened_gradient,
    ShortShare: _short_share,
    SpreadMatrix: _spread_matrix,
    ClippedRest: _clipped_rest,
    ShareBelow: _share_below,
}
