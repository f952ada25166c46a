"""Curves written piece by piece into scratch files and then mapped."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dpfda.curves.curves import Curves
from dpfda.curves.tables.scratch import ScratchFile
from dpfda.errors import InvalidInput


class CurvesWriter:
    """Joins pieces, each a `Curves` in order, into one `Curves` of memory-mapped arrays, bit by bit the same numbers."""

    def __init__(self, folder: Path) -> None:
        self._x, self._y, self._starts, self._design, self._labels = (ScratchFile(folder) for _ in range(5))
        self._n = self._points = 0
        self._last_design: bytes | None = None
        self._columns = 1

    def add(self, piece: Curves, *, continues: bool = False) -> None:
        """Append a piece; with `continues`, its first curve continues the last one before it."""
        first = int(continues)
        if continues and piece.design[0].tobytes() != self._last_design:
            raise InvalidInput("design must be constant within a curve, but one of its columns varies; use one value.")
        self._x.append(piece.x)
        self._y.append(piece.y)
        self._starts.append(piece.offsets[first:-1] + self._points)
        self._design.append(piece.design[first:])
        if piece.labels is not None:
            self._labels.append(piece.labels[first:])
        self._n += piece.n - first
        self._points += piece.n_points
        self._columns = piece.p
        self._last_design = piece.design[-1].tobytes()

    def curves(self) -> Curves:
        """All that was added. The files vanish with the arrays."""
        self._starts.append(np.array([self._points], dtype=np.int64))
        arrays = (
            self._x.map_array("f8", (self._points,)),
            self._y.map_array("f8", (self._points,)),
            self._starts.map_array("i8", (self._n + 1,)),
            self._design.map_array("f8", (self._n, self._columns)),
        )
        labels = self._labels.map_array("u8", (self._n, 2)) if self._labels.size else None
        for file in (self._x, self._y, self._starts, self._design, self._labels):
            file.close()
        return Curves.of_checked_arrays(*arrays, labels)
