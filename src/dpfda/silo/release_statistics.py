"""How a silo computes each statistic: what every curve contributes, bounded before it is added up.

One function per class of `protocol/statistics.py`, found by its decorator. Each returns a `BoundedSum`, a total over curves
together with the sensitivity that the bound in `privacy/` states for it. Nothing here draws noise or talks to anybody.

A plan's parameters are looked at again here, whoever made the plan: out of range they are refused before anything is summed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np

from dpfda import _validate
from dpfda._typing import Floats, Integers, Words
from dpfda.basis.moments import uniform_moments
from dpfda.errors import InvalidInput
from dpfda.privacy.clipping import BoundedSum
from dpfda.privacy.cones import HistogramsBound
from dpfda.protocol.plan import Plan
from dpfda.protocol.statistics import (
    COVARIATE_CELLS,
    LARGEST_COVARIATE,
    LEAST_RADIUS,
    LEAST_SCALE,
    MOST_RADIUS,
    ClippedGradient,
    CovariateHistograms,
    CovariateMoments,
    DesignMoments,
    Dimensions,
    EntrywiseGradient,
    LengthHistogram,
    LevelHistogram,
    ShareBelow,
    SharesAtBounds,
    Statistic,
    VisitWeights,
)
from dpfda.silo.prepared import PreparedCurves, mean_per_curve
from dpfda.silo.sums import (
    ClippedGradientSum,
    CurveSums,
    DesignMomentSum,
    LengthCounts,
    LevelCounts,
    PlaceCounts,
    RowSum,
    SumRequest,
    TruncatedGradientSum,
    check_bins,
)

NEAR_BOUND = 1e-3  # of the distance of the bounds: as near as that counts as at a bound


@dataclass(frozen=True)
class Question:
    """A checked query together with what the silo itself knows: the plan."""

    plan: Plan
    arrays: Mapping[str, Floats]

    @property
    def dimensions(self) -> Dimensions:
        """The sizes of the plan."""
        return self.plan.dimensions

    @property
    def iterate(self) -> Floats:
        """The coefficients at which gradients are asked for."""
        return self.arrays["iterate"].reshape(self.plan.shape)

    @property
    def whitener(self) -> Floats:
        """The matrix that takes gradients to the query's coordinates."""
        return self.arrays["whitener"].reshape(self.dimensions.size, self.dimensions.size)


@dataclass(frozen=True, eq=False)
class Measurement:
    """A round's question put to the curves at some positions."""

    curves: CurveSums
    positions: range
    question: Question

    @property
    def n(self) -> int:
        """The number of curves."""
        return len(self.positions)

    def words(self, request: SumRequest) -> Words:
        """The exact sum over these curves."""
        return self.curves.words(request, self.positions)


MeasureFunction = Callable[[Any, Measurement], BoundedSum]
_Function = TypeVar("_Function", bound=MeasureFunction)
MEASURES: dict[type[Statistic], MeasureFunction] = {}


def measures(statistic: type[Statistic]) -> Callable[[_Function], _Function]:
    """Say that the decorated function computes this statistic."""

    def register(function: _Function) -> _Function:
        if statistic in MEASURES:
            raise ValueError(f"two functions measure {statistic.kind!r}")
        MEASURES[statistic] = function
        return function

    return register


def measure(
    statistics: Sequence[Statistic], curves: CurveSums, positions: range, question: Question
) -> list[BoundedSum]:
    """The bounded sums of a round's statistics over the curves at these positions."""
    measurement = Measurement(curves, positions, question)
    return [MEASURES[type(statistic)](statistic, measurement) for statistic in statistics]


@measures(EntrywiseGradient)
def entrywise_gradient(statistic: EntrywiseGradient, measurement: Measurement) -> BoundedSum:
    """Line 4 of Algorithms 1-4: truncate every curve's gradient entrywise at R_h, then add up."""
    dimensions = measurement.question.dimensions
    if len(statistic.radii) != dimensions.size:
        raise InvalidInput(f"radii must have one entry for each of {dimensions.size} coefficients.")
    bound = statistic.bound(dimensions)  # finite and positive, or it cannot be made
    return bound.total(measurement.words(TruncatedGradientSum(measurement.question.iterate, bound)), measurement.n)


@measures(LevelHistogram)
def level_histogram(statistic: LevelHistogram, measurement: Measurement) -> BoundedSum:
    """In which of equal bins of [-1, 1], as y is, each curve's own mean of y lies; a last cell is for those without any.

    Curves that weigh by visits are packed with their weights in y, so that means are taken before that. All count once.
    """
    check_bins(statistic.bins)
    bound = statistic.bound(measurement.question.dimensions)
    if measurement.question.plan.scaling.visit_cap is None:
        return bound.total(measurement.words(LevelCounts(bound)), measurement.n)
    one = HistogramsBound(1, bound.bins)
    return one.total(measurement.words(PlaceCounts(partial(find_level_cells, bins=statistic.bins), one)), measurement.n)


def find_level_cells(curves: PreparedCurves, bins: int) -> Integers:
    """The bin of [-1, 1] that a curve's mean of y is in; the last cell for curves without points."""
    means = mean_per_curve(curves.y[:, None], curves.offsets)
    cells = np.clip(np.floor((means + 1) / 2 * bins), 0, bins - 1)
    cells = np.where(np.isfinite(means), cells, -1).astype(np.int64)
    return np.where((np.diff(curves.offsets) > 0)[:, None], cells, bins)


@measures(DesignMoments)
def design_moments(statistic: DesignMoments, measurement: Measurement) -> BoundedSum:
    """Each curve's means of the basis's moment features, minus what a uniform design would give, times its weight."""
    bound = statistic.bound(measurement.question.dimensions)
    centre = uniform_moments(measurement.question.plan.basis)
    return bound.total(measurement.words(DesignMomentSum(centre, bound)), measurement.n)


@measures(ShareBelow)
def share_below(statistic: ShareBelow, measurement: Measurement) -> BoundedSum:
    """Each curve's own share of values at or below the threshold, minus 1/2; a curve without points counts as half."""
    bound = statistic.bound(measurement.question.dimensions)
    rows = partial(centred_shares, threshold=float(measurement.question.arrays["iterate"][0]))
    return bound.total(measurement.words(RowSum(rows, bound)), measurement.n)


def centred_shares(curves: PreparedCurves, threshold: float) -> Floats:
    """Each curve's share of y at or below the threshold, minus 1/2; zero without points."""
    below = (curves.y <= threshold).astype(np.float64)[:, None] - 0.5
    return mean_per_curve(below, curves.offsets)


@measures(LengthHistogram)
def length_histogram(statistic: LengthHistogram, measurement: Measurement) -> BoundedSum:
    """How long the gradients are in the query's coordinates, by octaves, and on which side they lie."""
    question = measurement.question
    bound = statistic.bound(question.dimensions)
    request = LengthCounts(question.iterate, question.whitener, bound, statistic.signs)
    return bound.total(measurement.words(request), measurement.n)


@measures(ClippedGradient)
def clipped_gradient(statistic: ClippedGradient, measurement: Measurement) -> BoundedSum:
    """The gradient in the query's coordinates within the query's radius, and its free companions."""
    question = measurement.question
    radius = _validate.within("radius", float(question.arrays["radius"][0]), LEAST_RADIUS, MOST_RADIUS)
    bound = statistic.bound(question.dimensions, radius)
    return bound.total(measurement.words(ClippedGradientSum(question.iterate, question.whitener, bound)), measurement.n)


@measures(SharesAtBounds)
def shares_at_bounds(statistic: SharesAtBounds, measurement: Measurement) -> BoundedSum:
    """Each curve's own share of values at either bound, minus 1/2; a curve without points counts as half."""
    bound = statistic.bound(measurement.question.dimensions)
    low, high = measurement.question.plan.scaled_bounds
    return bound.total(measurement.words(RowSum(partial(shares_at, low=low, high=high), bound)), measurement.n)


@measures(VisitWeights)
def visit_weights(statistic: VisitWeights, measurement: Measurement) -> BoundedSum:
    """What each curve weighs and the square of it, minus 1/2."""
    bound = statistic.bound(measurement.question.dimensions)
    return bound.total(measurement.words(RowSum(centred_weights, bound)), measurement.n)


def centred_weights(curves: PreparedCurves) -> Floats:
    """Each curve's weight and its square, minus 1/2; a curve without points weighs nothing."""
    weights = (np.diff(curves.offsets) > 0).astype(np.float64) if curves.weights is None else curves.weights
    return np.column_stack([weights, weights * weights]) - 0.5


@measures(CovariateMoments)
def covariate_moments(statistic: CovariateMoments, measurement: Measurement) -> BoundedSum:
    """Means over a curve's points of products of covariates times polynomials in x, times its weight."""
    bound = statistic.bound(measurement.question.dimensions)
    arrays = measurement.question.arrays
    centre, scale = arrays["covariate_centre"], arrays["covariate_scale"]
    if not (scale >= LEAST_SCALE).all():
        raise InvalidInput(f"covariate_scale must be at least {LEAST_SCALE:g}.")
    rows = partial(weighted_products, intercept=statistic.intercept, centre=centre, scale=scale)
    return bound.total(measurement.words(RowSum(rows, bound)), measurement.n)


def shares_at(curves: PreparedCurves, low: float, high: float) -> Floats:
    """Each curve's shares of y near the lower and the upper bound, minus 1/2; zero without points."""
    near = NEAR_BOUND * (high - low)
    at = np.column_stack([curves.y <= low + near, curves.y >= high - near]).astype(np.float64) - 0.5
    return mean_per_curve(at, curves.offsets)


def weighted_products(curves: PreparedCurves, intercept: bool, centre: Floats, scale: Floats) -> Floats:
    """Means over a curve's points of g_j g_k T_q(1 - 2u), the degrees q of a product next to each other.

    Which formula a curve takes depends on its own design alone: whether it changes within the curve.
    """
    t = 1 - 2 * curves.u
    degrees = np.column_stack([np.ones_like(t), t, 2 * t * t - 1, t * (4 * t * t - 3)])
    means = mean_per_curve(degrees, curves.offsets)
    found = _multiply_columns(_standardise(curves.design, centre, scale), intercept)[:, :, None] * means[:, None, :]
    changes = curves.changes
    if changes.any():
        counts = np.diff(curves.offsets)
        inside, offsets = np.repeat(changes, counts), np.concatenate([[0], np.cumsum(counts[changes])])
        products = _multiply_columns(_standardise(curves.point_design[inside], centre, scale), intercept)
        for number, product in enumerate(products.T):
            found[changes, number] = mean_per_curve(product[:, None] * degrees[inside], offsets)
    rows = found.reshape(curves.n, -1)
    return rows if curves.weights is None else rows * curves.weights[:, None]


def _standardise(design: Floats, centre: Floats, scale: Floats) -> Floats:
    return np.clip((design - centre) / scale, -LARGEST_COVARIATE, LARGEST_COVARIATE)


def _multiply_columns(units: Floats, intercept: bool) -> Floats:
    """g_j g_k for j <= k; with an intercept without its own square."""
    first, second = np.triu_indices(units.shape[1])
    return np.asarray((units[:, first] * units[:, second])[:, int(intercept) :])


@measures(CovariateHistograms)
def covariate_histograms(statistic: CovariateHistograms, measurement: Measurement) -> BoundedSum:
    """In which bin of its bounds each covariate of a curve lies; curves without points are not counted."""
    bound = statistic.bound(measurement.question.dimensions)
    request = PlaceCounts(partial(find_covariate_cells, intercept=statistic.intercept), bound)
    return bound.total(measurement.words(request), measurement.n)


def find_covariate_cells(curves: PreparedCurves, intercept: bool) -> Integers:
    """The cell of every covariate, or of its mean over a curve's points, in [-1, 1]; -1 for curves without points."""
    inner, design, changes = COVARIATE_CELLS - 2, curves.design, curves.changes
    if changes.any():
        counts = np.diff(curves.offsets)
        inside, offsets = np.repeat(changes, counts), np.concatenate([[0], np.cumsum(counts[changes])])
        design = design.copy()
        design[changes] = mean_per_curve(curves.point_design[inside], offsets)
    design = design[:, int(intercept) :]
    cells = 1 + np.clip((design + 1) * (inner / 2), 0, inner - 1).astype(np.int64)
    cells = np.where(design <= -1, 0, np.where(design >= 1, COVARIATE_CELLS - 1, cells))
    return np.where((np.diff(curves.offsets) > 0)[:, None], cells, -1)
