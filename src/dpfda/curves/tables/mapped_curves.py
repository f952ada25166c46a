"""Curves written piece by piece, into memory while they are few and into scratch files beyond, and then mapped."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dpfda._typing import Floats
from dpfda.curves.curves import Curves
from dpfda.curves.tables.scratch import Stash

_AT_ONCE = 1 << 18  # points


class CurvesWriter:
    """Joins pieces, each a `Curves` in order, into one `Curves`, bit by bit the same numbers.

    Arrays of more than `held` numbers are maps of scratch files. A design vector for each point is written once it changes
    within a curve, then also for the points before.
    """

    def __init__(self, folder: Path, held: int = 0) -> None:
        self._x, self._y, self._starts, self._design, self._labels, self._rows = self._files = tuple(
            Stash(folder, 8 * held) for _ in range(6)
        )
        self._n = self._points = 0
        self._columns = 1
        self._has_rows = False
        self._last = np.zeros((0, 1))  # the design of the last curve, which may go on: not written yet
        self._last_points = 0

    def add(self, piece: Curves, *, continues: bool = False) -> None:
        """Append a piece; with `continues`, its first curve continues the last one before it."""
        first, design = int(continues), piece.design
        self._columns = piece.p
        if continues:
            joined = self._join(piece)
            if (joined != self._last).any() and self._last_points:
                self._write_rows_so_far()
            self._last = joined
        if piece.rows is not None:
            self._write_rows_so_far()
        if self._has_rows:
            self._rows.append(piece.point_design)
        self._x.append(piece.x)
        self._y.append(piece.y)
        self._starts.append(piece.offsets[first:-1] + self._points)
        if piece.labels is not None:
            self._labels.append(piece.labels[first:])
        self._n += piece.n - first
        self._points += piece.n_points
        self._last_points = int(piece.counts[-1]) + (self._last_points if continues and piece.n == 1 else 0)
        if piece.n > first:
            self._design.append(self._last)
            self._design.append(design[first:-1])
            self._last = design[-1:].copy()

    def curves(self) -> Curves:
        """All that was added. The files vanish with the arrays."""
        self._starts.append(np.array([self._points], dtype=np.int64))
        self._design.append(self._last)
        arrays = (
            self._x.map_array("f8", (self._points,)),
            self._y.map_array("f8", (self._points,)),
            self._starts.map_array("i8", (self._n + 1,)),
            self._design.map_array("f8", (self._n, self._columns)),
        )
        labels = self._labels.map_array("u8", (self._n, 2)) if self._labels.size else None
        rows = self._rows.map_array("f8", (self._points, self._columns)) if self._has_rows else None
        for file in self._files:
            file.close()
        return Curves.of_checked_arrays(*arrays, labels, rows)

    def _join(self, piece: Curves) -> Floats:
        """The design of the last curve and the first of the piece taken together: zeros if it changes."""
        mine = piece.design[:1].copy()
        if not piece.counts[0]:  # a curve without points has its last complete design
            return mine if mine.any() and not self._last_points else self._last
        if not self._last_points or mine.tobytes() == self._last.tobytes():
            return mine
        return np.zeros_like(mine)

    def _write_rows_so_far(self) -> None:
        if self._has_rows:
            return
        self._has_rows = True
        if not self._points:
            return
        starts = self._starts.map_array("i8", (self._n,))
        design = np.concatenate([self._design.map_array("f8", (max(self._n - 1, 0), self._columns)), self._last])
        for begin in range(0, self._points, _AT_ONCE):
            points = np.arange(begin, min(begin + _AT_ONCE, self._points))
            self._rows.append(design[np.searchsorted(starts, points, side="right") - 1])
