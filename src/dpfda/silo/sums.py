"""What a silo's curves can be asked for: bounded sums over curves, as integers that add.

A `SumRequest` holds public numbers and the bound that clips; `CurveSums.words` answers it. The words of parts of the curves
add up to the words of all of them without error, so memory, files, chunks and workers give the same bits. Only
`measures.py` turns words into numbers, together with the sensitivity that the bound states.

Words belong to raw data: nothing of them may leave a silo before noise was added.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from dpfda._typing import Floats, Words
from dpfda.basis.basis import Basis
from dpfda.privacy.clipping import EllipsoidBound, EntrywiseBound
from dpfda.privacy.cones import HistogramBound, OuterProductBound
from dpfda.privacy.exact import no_words
from dpfda.protocol.terms import Scaling
from dpfda.silo.kernels.packed import PackedCurves
from dpfda.silo.prepared import PreparedCurves, mean_per_curve


@runtime_checkable
class CurveSource(Protocol):
    """Curves that are not in this process's memory, but can be summed up where they are."""

    @property
    def n(self) -> int:
        """The number of curves."""
        ...

    @property
    def p(self) -> int:
        """The length of the design vectors."""
        ...

    def sums(self, basis: Basis, scaling: Scaling) -> CurveSums:
        """Their sums under the public maps of a plan."""
        ...


class CurveSums(Protocol):
    """Curves in the units of a plan, wherever they are."""

    @property
    def n(self) -> int:
        """The number of curves."""
        ...

    def words(self, ask: SumRequest, positions: range) -> Words:
        """The sum over the curves at these consecutive positions; each curve is bounded as a whole."""
        ...


@dataclass(frozen=True, eq=False)
class TruncatedGradientSum:
    """Gradients at `iterate` (p rows of r), truncated entrywise."""

    iterate: Floats
    bound: EntrywiseBound

    @property
    def width(self) -> int:
        return self.bound.width

    def packed_words(self, curves: PackedCurves) -> Words:
        return curves.truncated_words(self.iterate, self.bound)


@dataclass(frozen=True, eq=False)
class WhitenedGradientSums:
    """Gradients times a public matrix, within a ball; and what else a round asks of them, in the same pass.

    Entries: the gradient; how many are at most `threshold` long; with `rest`, what the ball takes along `direction`; with
    `spread`, the triangle of outer products in units of the radius.
    """

    iterate: Floats
    whitener: Floats
    ball: EllipsoidBound
    threshold: float
    direction: Floats | None = None
    rest: EntrywiseBound | None = None
    spread: OuterProductBound | None = None

    @property
    def gradient(self) -> slice:
        return slice(0, self.ball.width)

    @property
    def short(self) -> int:
        return self.ball.width

    @property
    def clipped_rest(self) -> slice:
        start = self.ball.width + 1
        return slice(start, start + (self.rest is not None))

    @property
    def triangle(self) -> slice:
        start = self.clipped_rest.stop
        return slice(start, start + (0 if self.spread is None else self.spread.width))

    @property
    def width(self) -> int:
        return int(self.triangle.stop)

    def packed_words(self, curves: PackedCurves) -> Words:
        total, short, outer, left = curves.whitened_words(
            self.iterate,
            self.whitener,
            self.ball,
            threshold=self.threshold,
            spread=self.spread is not None,
            direction=self.direction,
            rest=self.rest,
        )
        words = no_words(self.width)
        words[:, self.gradient], words[1, self.short] = total, short
        words[:, self.clipped_rest], words[:, self.triangle] = left, outer
        return words


@dataclass(frozen=True, eq=False)
class DesignMomentSum:
    """Each curve's means of cos(k theta) and sin(k theta), minus `centre`, within an ellipsoid."""

    centre: Floats
    bound: EllipsoidBound

    @property
    def width(self) -> int:
        return self.bound.width

    def packed_words(self, curves: PackedCurves) -> Words:
        return curves.moment_words(self.centre, self.bound)


@dataclass(frozen=True)
class LevelCounts:
    """In which of equal bins of [-1, 1] each curve's own mean of y lies; the last cell is for curves without points."""

    bound: HistogramBound

    @property
    def width(self) -> int:
        return self.bound.width

    def packed_words(self, curves: PackedCurves) -> Words:
        return curves.level_words(self.bound.bins - 1)


@dataclass(frozen=True, eq=False)
class SquareSum:
    """G_k^2 - 1/2 of every design column but the first."""

    bound: EntrywiseBound

    @property
    def width(self) -> int:
        return self.bound.width

    def prepared_words(self, curves: PreparedCurves) -> Words:
        return self.bound.words(curves.design[:, 1:] ** 2 - 0.5)


@dataclass(frozen=True, eq=False)
class ProductSum:
    """Outer products of design vectors, each column divided by its public scale."""

    scale: Floats
    bound: OuterProductBound

    @property
    def width(self) -> int:
        return self.bound.width

    def prepared_words(self, curves: PreparedCurves) -> Words:
        return self.bound.words(curves.design / self.scale)


@dataclass(frozen=True, eq=False)
class ShareSum:
    """Each curve's own share of y at or below a threshold, minus 1/2; zero without points."""

    threshold: float
    bound: EntrywiseBound

    @property
    def width(self) -> int:
        return self.bound.width

    def prepared_words(self, curves: PreparedCurves) -> Words:
        below = (curves.y <= self.threshold).astype(np.float64)[:, None] - 0.5
        return self.bound.words(mean_per_curve(below, curves.offsets))


PackedRequest = TruncatedGradientSum | WhitenedGradientSums | DesignMomentSum | LevelCounts
PreparedRequest = SquareSum | ProductSum | ShareSum
SumRequest = PackedRequest | PreparedRequest
