"""What a silo's curves can be asked for: bounded sums over curves, as integers that add.

A `SumRequest` holds public numbers and the bound that clips; `CurveSums.words` answers it. The words of parts of the curves
add up to the words of all of them without error, so memory, files, chunks and workers give the same bits. Only
`release_statistics.py` turns words into numbers, together with the sensitivity that the bound states.

Words belong to raw data: nothing of them may leave a silo before noise was added.

A request whose numbers do not belong together cannot be made, whatever a plan says; kernels check shapes once more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from dpfda import _validate
from dpfda._typing import Floats, Integers, Words
from dpfda.basis.basis import Basis
from dpfda.errors import InvalidInput
from dpfda.privacy.clipping import EllipsoidBound, EntrywiseBound
from dpfda.privacy.cones import CompanionBound, HistogramBound, HistogramsBound, free_weight
from dpfda.privacy.exact import Grid, no_words
from dpfda.protocol.scaling import Scaling
from dpfda.protocol.statistics import LENGTH_CELLS, LONGEST_OCTAVE, MOST_SIGNS, SHORTEST_OCTAVE
from dpfda.silo.kernels.packed import PackedCurves
from dpfda.silo.prepared import PreparedCurves

LEAST_BINS, MOST_BINS = 2, 1024


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

    @property
    def design_changes(self) -> bool:
        """Whether the design changes within a curve."""
        ...

    def sums(self, basis: Basis, scaling: Scaling) -> CurveSums:
        """Their sums under the public maps of a plan."""
        ...

    def fingerprint(self, key: bytes) -> bytes:
        """What `Curves.fingerprint` gives for the same curves in memory."""
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

    def __post_init__(self) -> None:
        _refuse_unless(self.bound.width == self.iterate.size, "radii must have one entry for each coefficient")

    @property
    def width(self) -> int:
        return self.bound.width

    def packed_words(self, curves: PackedCurves) -> Words:
        return curves.truncated_words(self.iterate, self.bound)


@dataclass(frozen=True, eq=False)
class LengthCounts:
    """In which octave the length of each gradient lies, in coordinates of a public matrix; empty curves have length 0.

    With `signs` each octave has a cell for each sign of the first coordinate, or of the first two: those below zero come
    after the others.
    """

    iterate: Floats
    whitener: Floats
    bound: HistogramBound
    signs: int = 0

    def __post_init__(self) -> None:
        signs = _validate.integer("signs", self.signs, minimum=0)
        _refuse_unless(signs <= MOST_SIGNS, f"signs are those of {MOST_SIGNS} coordinates at most")
        _refuse_unless(self.bound.bins == LENGTH_CELLS << self.signs, "lengths have a cell for each octave and sign")
        _refuse_unless(self.whitener.shape == (self.iterate.size,) * 2, "the whitener must be square")

    @property
    def width(self) -> int:
        return self.bound.width

    def packed_words(self, curves: PackedCurves) -> Words:
        lengths, *coordinates = curves.polar(self.iterate, self.whitener)
        places = find_octaves(lengths)
        for sign in range(self.signs):
            places = places + (LENGTH_CELLS << sign) * (coordinates[sign] < 0)
        return self.bound.words(places)


@dataclass(frozen=True, eq=False)
class ClippedGradientSum:
    """Gradients times a public matrix, within a ball, with the companions of `CompanionBound`."""

    iterate: Floats
    whitener: Floats
    bound: CompanionBound

    def __post_init__(self) -> None:
        size = self.bound.size
        _refuse_unless(self.bound.cells == LENGTH_CELLS, "lengths have a cell for each octave")
        _refuse_unless(self.iterate.size == size, "the ball must have one entry for each coefficient")
        _refuse_unless(self.whitener.shape == (size, size), "the whitener must have one row for each coefficient")

    @property
    def width(self) -> int:
        return self.bound.width

    def packed_words(self, curves: PackedCurves) -> Words:
        vector, outer, lengths = curves.clipped_words(self.iterate, self.whitener, self.bound.ball)
        return np.concatenate([vector, outer, self.count_words(lengths)], axis=1)

    def count_words(self, lengths: Floats) -> Words:
        """The companion counts of gradients of these lengths."""
        grid, words = Grid.of(np.ones(1)), no_words(LENGTH_CELLS)
        with np.errstate(over="ignore"):  # a warning would depend on the data
            radii = lengths / self.bound.radius
        weights, cells = free_weight(radii)[:, None], find_octaves(lengths)
        for cell in np.flatnonzero(np.bincount(cells, minlength=LENGTH_CELLS)):
            words[:, cell] = grid.words(weights[cells == cell])[:, 0]
        return words


def find_octaves(lengths: Floats) -> Integers:
    """The cell of each length; one that is not finite is in the last."""
    edges = np.ldexp(1.0, np.arange(SHORTEST_OCTAVE, LONGEST_OCTAVE + 1))
    return np.searchsorted(edges, lengths, side="right")


@dataclass(frozen=True, eq=False)
class DesignMomentSum:
    """Each curve's means of the basis's moment features, minus `centre`, within an ellipsoid."""

    centre: Floats
    bound: EllipsoidBound

    def __post_init__(self) -> None:
        _refuse_unless(self.centre.shape == (self.bound.width,), "the centre must have one entry for each moment")

    @property
    def width(self) -> int:
        return self.bound.width

    def packed_words(self, curves: PackedCurves) -> Words:
        return curves.moment_words(self.centre, self.bound)


@dataclass(frozen=True)
class LevelCounts:
    """In which of equal bins of [-1, 1] each curve's own mean of y lies; the last cell is for curves without points."""

    bound: HistogramBound

    def __post_init__(self) -> None:
        check_bins(self.bound.bins - 1)

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
    bound: EntrywiseBound | EllipsoidBound

    @property
    def width(self) -> int:
        return self.bound.width

    def prepared_words(self, curves: PreparedCurves) -> Words:
        rows = self.rows(curves)
        if len(rows) != curves.n:
            raise ValueError("a curve contributes one row, no more and no less")
        return self.bound.words(rows)


@dataclass(frozen=True, eq=False)
class PlaceCounts:
    """In which bins each curve counts, by a plain numpy function: one row of bin numbers a curve, which counts once each."""

    places: Callable[[PreparedCurves], Integers]
    bound: HistogramsBound

    @property
    def width(self) -> int:
        return self.bound.width

    def prepared_words(self, curves: PreparedCurves) -> Words:
        places = self.places(curves)
        if places.shape != (curves.n, self.bound.histograms):
            raise ValueError("a curve counts once in each histogram, no more and no less")
        return self.bound.words(places)


def check_bins(bins: int) -> int:
    """The number of bins of a histogram: a whole number from 2 to 1024, and True and False are none."""
    if _validate.integer("bins", bins, minimum=LEAST_BINS) > MOST_BINS:
        raise InvalidInput(f"bins must be at most {MOST_BINS}, got {bins!r}.")
    return bins


def _refuse_unless(holds: bool, rule: str) -> None:
    if not holds:
        raise InvalidInput(f"{rule[0].upper()}{rule[1:]}.")


PackedRequest = TruncatedGradientSum | LengthCounts | ClippedGradientSum | DesignMomentSum | LevelCounts
PreparedRequest = RowSum | PlaceCounts
SumRequest = PackedRequest | PreparedRequest
