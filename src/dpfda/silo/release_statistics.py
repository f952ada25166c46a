"""What every curve contributes to a release, and how it is bounded before it is added up.

One entry per kind of measure in `protocol/plan.py`: the bound, and the question that `curve_sums` answers with it. Each
becomes a `BoundedSum`, a total over curves together with the sensitivity that the bound in `privacy/` states for it.
Nothing here draws noise or talks to anybody.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpfda._typing import Floats, Words
from dpfda.basis.moments import moment_bounds, uniform_moments
from dpfda.privacy.clipping import BoundedSum, EllipsoidBound, EntrywiseBound, Sensitivity
from dpfda.privacy.cones import HistogramBound, OuterProductBound
from dpfda.protocol.clip_radius import ClipRule
from dpfda.protocol.plan import Plan
from dpfda.protocol.statistics import (
    ClippedRemainder,
    CovariateProducts,
    CovariateSquares,
    DesignMoments,
    EntrywiseGradient,
    GradientOuterProducts,
    LevelHistogram,
    ShareBelow,
    ShortShare,
    Statistic,
    WhitenedGradient,
)
from dpfda.silo.sums import (
    CurveSums,
    DesignMomentSum,
    LevelCounts,
    ProductSum,
    ShareSum,
    SquareSum,
    TruncatedGradientSum,
    WhitenedGradientSums,
)

_WHITENED = (WhitenedGradient, ShortShare, ClippedRemainder, GradientOuterProducts)


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

    def rule(self) -> ClipRule:
        """The silo's own radius for this round."""
        assert self.clip is not None
        return self.clip


def measure(kinds: Sequence[Statistic], curves: CurveSums, positions: range, question: Question) -> list[BoundedSum]:
    """The bounded sums of a round's measures over the curves at these positions.

    All that a round asks of whitened gradients is answered in one pass over the curves.
    """
    found: dict[Statistic, BoundedSum] = {}
    while whitened := [kind for kind in kinds if isinstance(kind, _WHITENED) and kind not in found]:
        found.update(_whitened_sums(whitened, curves, positions, question))
    return [
        found[kind] if kind in found else _MEASURES[type(kind)](kind, curves, positions, question) for kind in kinds
    ]


def _entrywise_gradient(kind: EntrywiseGradient, curves: CurveSums, positions: range, question: Question) -> BoundedSum:
    """Line 4 of Algorithms 1-4: truncate every curve's gradient entrywise at R_h, then add up."""
    bound = EntrywiseBound(np.asarray(kind.radii))
    return bound.total(curves.words(TruncatedGradientSum(question.iterate, bound), positions), len(positions))


def _level_histogram(kind: LevelHistogram, curves: CurveSums, positions: range, question: Question) -> BoundedSum:
    """In which of equal bins of [-1, 1], as y is, each curve's own mean of y lies; a last cell is for those without any."""
    bound = HistogramBound(kind.bins + 1)
    return bound.total(curves.words(LevelCounts(bound), positions), len(positions))


def _design_moments(kind: DesignMoments, curves: CurveSums, positions: range, question: Question) -> BoundedSum:
    """Each curve's mean of cos(k theta) and sin(k theta), minus what a uniform design would give."""
    bound = EllipsoidBound(*moment_bounds(question.plan.basis))
    ask = DesignMomentSum(uniform_moments(question.plan.basis), bound)
    return bound.total(curves.words(ask, positions), len(positions))


def _covariate_squares(kind: CovariateSquares, curves: CurveSums, positions: range, question: Question) -> BoundedSum:
    """G_k^2 - 1/2 of every column but the first; design entries are within [-1, 1] already."""
    bound = EntrywiseBound(np.full(question.plan.n_coefficients - 1, 0.5))
    return bound.total(curves.words(SquareSum(bound), positions), len(positions))


def _covariate_products(kind: CovariateProducts, curves: CurveSums, positions: range, question: Question) -> BoundedSum:
    """The outer product of every design vector, its columns brought to about one size first."""
    scale = question.arrays["covariate_scale"]
    bound = OuterProductBound(scale.size, kind.radius)
    return bound.total(curves.words(ProductSum(scale, bound), positions), len(positions))


def _share_below(kind: ShareBelow, curves: CurveSums, positions: range, question: Question) -> BoundedSum:
    """Each curve's own share of values at or below the threshold, minus 1/2; a curve without points counts as half."""
    bound = EntrywiseBound(np.array([0.5]))
    ask = ShareSum(float(question.arrays["iterate"][0]), bound)
    return bound.total(curves.words(ask, positions), len(positions))


def _whitened_sums(
    kinds: Sequence[Statistic], curves: CurveSums, positions: range, question: Question
) -> dict[Statistic, BoundedSum]:
    """The gradient in the query's public coordinates, scaled into the ball of the silo's own radius, and its companions.

    Of several clipped rests, the first.

    | measure | a curve's part |
    |---|---|
    | short share | +1/2 if the whitened gradient is at most the silo's own threshold long, else -1/2 |
    | spread matrix | the outer product of the scaled gradient, in units of the radius |
    | clipped rest | what the ball takes away along the query's direction, within `reach` radii |
    """
    width, rule, n = question.arrays["iterate"].size, question.rule(), len(positions)
    rests = [kind for kind in kinds if isinstance(kind, ClippedRemainder)][:1]
    ask = WhitenedGradientSums(
        question.iterate,
        question.arrays["whitener"].reshape(width, width),
        EllipsoidBound(np.ones(width), rule.radius),
        rule.threshold,
        question.arrays["remainder_direction"] if rests else None,
        EntrywiseBound(np.array([rests[0].reach * rule.radius])) if rests else None,
        OuterProductBound(width, 1.0) if any(isinstance(kind, GradientOuterProducts) for kind in kinds) else None,
    )
    words = curves.words(ask, positions)
    return {
        kind: _whitened_part(kind, ask, words, n)
        for kind in kinds
        if kind in rests or not isinstance(kind, ClippedRemainder)
    }


def _whitened_part(kind: Statistic, ask: WhitenedGradientSums, words: Words, n: int) -> BoundedSum:
    """The part of the words that belongs to one measure, with its own bound."""
    if isinstance(kind, WhitenedGradient):
        return ask.ball.total(words[:, ask.gradient], n)
    if isinstance(kind, GradientOuterProducts):
        assert ask.spread is not None
        return ask.spread.total(words[:, ask.triangle], n)
    if isinstance(kind, ClippedRemainder):
        assert ask.rest is not None
        return ask.rest.total(words[:, ask.clipped_rest], n)
    short = int(words[1, ask.short])
    return BoundedSum(np.array([short - n / 2]), _half_each(n))


def _half_each(n: int) -> Sensitivity:
    """Of a sum of n numbers +1/2 or -1/2."""
    return EntrywiseBound(np.array([0.5])).sensitivity(n)


_MEASURES: dict[type, Callable[[Any, CurveSums, range, Question], BoundedSum]] = {
    EntrywiseGradient: _entrywise_gradient,
    LevelHistogram: _level_histogram,
    DesignMoments: _design_moments,
    CovariateSquares: _covariate_squares,
    CovariateProducts: _covariate_products,
    ShareBelow: _share_below,
}
