"""The record of one curve with very many points, which come in pieces: working memory does not grow with the curve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dpfda._compile import DOUBLES, FLAG, REAL, REALS, REALS_2D, WHOLE, compiled, require, require_array
from dpfda._typing import Floats
from dpfda.silo.kernels.arena import Arena
from dpfda.silo.kernels.changing import RunningWeights
from dpfda.silo.kernels.frequencies import Frequencies
from dpfda.silo.kernels.moments import SEGMENT, add_gram_record, add_segments
from dpfda.silo.kernels.store import Layout, record_room, store_in

if TYPE_CHECKING:
    from dpfda.basis.basis import Basis
    from dpfda.silo.kernels.changing_curves import ChangingCurves


def start_record(basis: Basis, frequencies: Frequencies) -> RunningRecord | RunningGramRecord:
    """The record of a curve of which no points have come yet."""
    return RunningRecord(frequencies) if frequencies.has_waves else RunningGramRecord(basis, frequencies)


class RunningRecord:
    """Adds up points piece by piece, segment by segment: the bits are those that all points at once would give."""

    def __init__(self, frequencies: Frequencies) -> None:
        self._frequencies = frequencies
        self._segment, self._sums, self._totals = record_room(frequencies.record)
        self._u, self._y = np.zeros(0), np.zeros(0)  # less than a segment
        self.points = 0

    def add(self, u: Floats, y: Floats) -> None:
        """The next points of the curve."""
        require(u.shape == y.shape == (u.size,), "points must have an x and a y each")
        self.points += u.size
        u, y = np.concatenate([self._u, u]), np.concatenate([self._y, y])
        whole = u.size // SEGMENT * SEGMENT
        self._add(u[:whole], y[:whole])
        self._u, self._y = u[whole:].copy(), y[whole:].copy()

    def finish(self) -> Floats:
        """The record of all points, of which there is at least one."""
        self._add(self._u, self._y)
        a, b, c, d, e, f, g, h = self._totals.reshape(-1, 8).T
        means: Floats = (((a + b) + (c + d)) + ((e + f) + (g + h))) / float(self.points)
        return means

    def _add(self, u: Floats, y: Floats) -> None:
        require_array("u", u, DOUBLES, u.size)
        require_array("y", y, DOUBLES, u.size)
        wave = self._frequencies.rate, self._frequencies.harmonics, self._frequencies.sines
        _add_part(u, y, *wave, self._segment, self._sums, self._totals)


class RunningGramRecord:
    """The same for a basis that is not made of waves: points are added one by one, in their order."""

    def __init__(self, basis: Basis, frequencies: Frequencies) -> None:
        self._basis, self._frequencies = basis, frequencies
        self._totals = np.zeros(frequencies.record)
        self.points = 0

    def add(self, u: Floats, y: Floats) -> None:
        """The next points of the curve."""
        require(u.shape == y.shape == (u.size,), "points must have an x and a y each")
        self.points += u.size
        moments, features = self._basis.moment_features(u), self._basis.evaluate_unit(u)
        values = np.ascontiguousarray(y)
        require_array("moments", moments, DOUBLES, u.size, self._frequencies.moments)
        require_array("features", features, DOUBLES, u.size, self._frequencies.functions)
        require_array("y", values, DOUBLES, u.size)
        _add_gram_part(moments, features, values, self._totals)

    def finish(self) -> Floats:
        """The record of all points, of which there is at least one."""
        return self._totals / float(self.points)


class CurveInPieces:
    """One curve whose points come in pieces: a record of all of them, and the points themselves while they are few."""

    def __init__(self, basis: Basis) -> None:
        self._basis, self._frequencies = basis, Frequencies.of(basis)
        self._record = start_record(basis, self._frequencies)
        self._weights: RunningWeights | None = None
        self._few: list[tuple[Floats, Floats, Floats]] = []
        self.design, self.changes, self.count = np.zeros(0), False, 0

    def add(self, u: Floats, y: Floats, design: Floats) -> None:
        """The next points, with one design vector for all of them or one for each."""
        rows = design if design.ndim == 2 else np.broadcast_to(design, (u.size, design.size))
        if not self.count:  # a piece without points has a design of zeros
            self.design = rows[0].copy() if u.size else np.zeros(rows.shape[1])
            if design.ndim == 2:
                self._weights = RunningWeights(self._basis, self._frequencies, rows.shape[1])
        self.count += u.size
        self._record.add(u, y)
        if self._weights is not None:
            rows = np.ascontiguousarray(rows)
            self._weights.add(u, y, rows)
            self.changes |= bool((rows.view(np.int64) != self.design.view(np.int64)).any())
        if self.count <= self._longest:
            self._few.append((u, y, rows))

    @property
    def _longest(self) -> int:
        """The most points of which the curve could still be kept as points."""
        from dpfda.silo.kernels.changing_curves import longest_changing_as_points
        from dpfda.silo.kernels.packed import longest_kept_as_points

        changing = 0 if self._weights is None else longest_changing_as_points(self._basis, self.design.size)
        return max(longest_kept_as_points(self._basis), changing)

    @property
    def is_long(self) -> bool:
        """Whether it goes on as a record; else its points are at hand."""
        return self.count > self._longest

    @property
    def points(self) -> tuple[Floats, Floats, Floats]:
        """u, y and one design vector for each point, of a curve that is not long."""
        none = np.zeros(0), np.zeros(0), np.zeros((0, self.design.size))
        u, y, rows = (np.concatenate(parts) for parts in zip(none, *self._few, strict=True))
        return u, y, rows

    def finish(self, layout: Layout) -> tuple[Arena, ChangingCurves | None]:
        """A store with the long curve in it, or, if its design changes, an empty one and the curve beside it."""
        from dpfda.silo.kernels.changing_curves import ChangingCurves

        record = self._record.finish()
        if not self.changes or self._weights is None:
            return store_record(record, self.design, layout), None
        weights, columns = self._weights.finish(), self.design.size
        return Arena(layout.sizes), ChangingCurves.of_record(self._basis, record, weights, self.count, columns)


def store_record(record: Floats, design: Floats, layout: Layout) -> Arena:
    """A store with one long curve in it."""
    require(layout.groups == 1 and not layout.points.size, "the layout must be that of one long curve")
    arena = Arena(layout.sizes)
    store = store_in(arena)
    store.fill[0], store.start[0] = 1, layout.start[0]
    store.table[::8], store.design[::8] = record, design
    return arena


@compiled(REALS, REALS, REAL, WHOLE, FLAG, (REALS, REALS, REALS), REALS, REALS)
def _add_part(
    u: Any, y: Any, rate: float, harmonics: int, sines: bool, segment: tuple[Any, Any, Any], sums: Any, totals: Any
) -> None:
    add_segments(u, y, 0, u.size, rate, harmonics, sines, segment, sums, totals)


@compiled(REALS_2D, REALS_2D, REALS, REALS)
def _add_gram_part(moments: Any, features: Any, y: Any, totals: Any) -> None:
    add_gram_record(moments, features, y, 0, y.size, totals)
