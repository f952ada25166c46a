"""What a silo's curves can be asked for: bounded sums over curves, as integers that add.

A `SumRequest` holds public numbers and the bound that clips; `CurveSums.words` answers it. The words of parts of the curves
add up to the words of all of them without error, so memory, files, chunks and workers give the same bits. Only
`release_statistics.py` turns words into numbers, together with the sensitivity that the bound states.

Words belong to raw data: nothing of them may leave a silo before noise was added.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from dpfda._typing import Floats, Words
from dpfda.basis.basis import Basis
from dpfda.privacy.clipping import EllipsoidBound, EntrywiseBound
from dpfda.privacy.cones import HistogramBound, OuterProductBound
from dpfda.privacy.exact import no_words
from dpfda.protocol.scaling import Scaling
from dpfda.silo.kernels.packed import PackedCurves
from dpfda.silo.prepared import PreparedCurves


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

    def words(self, request: SumRequest, positions: range) -> Words:
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

    Entries: the gradient; how many are at most `threshold` long; with `remainder`, what the ball takes along `direction`;
    with `outer_products`, the triangle of outer products in units of the radius.
    """

    iterate: Floats
    whitener: Floats
    ball: EllipsoidBound
    threshold: float
    direction: Floats | None = None
    remainder: EntrywiseBound | None = None
    outer_products: OuterProductBound | None = None

    @property
    def gradient(self) -> slice:
        return slice(0, self.ball.width)

    @property
    def short(self) -> int:
        return self.ball.width

    @property
    def clipped_remainder(self) -> slice:
        start = self.ball.width + 1
        return slice(start, start + (self.remainder is not None))

    @property
    def triangle(self) -> slice:
        start = self.clipped_remainder.stop
        return slice(start, start + (0 if self.outer_products is None else self.outer_products.width))

    @property
    def width(self) -> int:
        return int(self.triangle.stop)

    def packed_words(self, curves: PackedCurves) -> Words:
        total, short, outer, left = curves.whitened_words(
            self.iterate,
            self.whitener,
            self.ball,
            threshold=self.threshold,
            outer_products=self.outer_products is not None,
            direction=self.direction,
            remainder=self.remainder,
        )
        words = no_words(self.width)
        words[:, self.gradient], words[1, self.short] = total, short
        words[:, self.clipped_remainder], words[:, self.triangle] = left, outer
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
class RowSum:
    """One row per curve by a plain numpy function, each bounded. The function travels to workers: a name, or a partial.

    Row i may depend on curve i only: the bound limits a row, and cannot see from which curves it was made.
    """

    rows: Callable[[PreparedCurves], Floats]
    bound: EntrywiseBound | EllipsoidBound | OuterProductBound

    @property
    def width(self) -> int:
        return self.bound.width

    def prepared_words(self, curves: PreparedCurves) -> Words:
        rows = self.rows(curves)
        if len(rows) != curves.n:
            raise ValueError("a curve contributes one row, no more and no less")
        return self.bound.words(rows)


PackedRequest = TruncatedGradientSum | WhitenedGradientSums | DesignMomentSum | LevelCounts
SumRequest = PackedRequest | RowSum
