"""From a spool to pieces: rows of whole curves, in the order of ids, each piece small enough for memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dpfda.curves.tables.spool import Spool

if TYPE_CHECKING:
    import polars as pl

    from dpfda.curves.tables.rows import Rows


@dataclass(frozen=True)
class Piece:
    """Rows start..stop-1 of some ranges of a spool, read when asked for. `one_curve`: too many rows, all of one id."""

    spool: Spool
    first: int
    last: int
    start: int
    stop: int
    one_curve: bool = False

    def __len__(self) -> int:
        return self.stop - self.start

    def read(self) -> Rows:
        """All rows."""
        return self.spool.read(self.first, self.last, self.start, self.stop)

    def blocks(self, rows: int) -> Iterator[Rows]:
        """The rows some at a time."""
        for start in range(self.start, self.stop, rows):
            yield self.spool.read(self.first, self.last, start, min(start + rows, self.stop))


def cut_into_pieces(spool: Spool, folder: Path, most: int) -> Iterator[Piece]:
    """All rows of a spool in pieces of at most `most` rows, but for single ids that have more."""
    first = 0
    for last, count in enumerate([*spool.counts.tolist(), most + 1]):
        before = int(spool.counts[first:last].sum())
        if before + count <= most:
            continue
        if before:
            yield Piece(spool, first, last, 0, before)
        first = last
        if count > most and last < spool.counts.size:
            yield from _cut_large_range(spool, last, folder, most)
            first = last + 1


def _cut_large_range(spool: Spool, range_: int, folder: Path, most: int) -> Iterator[Piece]:
    """A range with too many rows: cut where it is in order already, else divided again by a sample of its own."""
    rows = int(spool.counts[range_])
    if _is_ordered(spool, range_, most):
        yield from _cut_between_ids(spool, range_, most)
        return
    finer = Spool(folder, spool.sample(range_))
    for start in range(0, rows, most):
        finer.add(spool.read(range_, range_ + 1, start, min(start + most, rows)))
    if finer.counts.max() == rows:  # ids that no key tells apart: NULs at the end of long texts
        yield Piece(spool, range_, range_ + 1, 0, rows)
        return
    yield from cut_into_pieces(finer, folder, most)


def _is_ordered(spool: Spool, range_: int, most: int) -> bool:
    rows, end = int(spool.counts[range_]), None
    for start in range(0, rows, most):
        ids = spool.read_ids(range_, start, min(start + most, rows))
        if not ids.is_sorted() or (end is not None and ids[0] < end):
            return False
        end = ids[-1]
    return True


def _cut_between_ids(spool: Spool, range_: int, most: int) -> Iterator[Piece]:
    rows, start = int(spool.counts[range_]), 0
    while start < rows:
        stop = min(start + most, rows)
        ids = spool.read_ids(range_, start, stop)
        if stop < rows:
            others = _find_other_ids(ids, ids[-1])
            stop = start + int(others[-1]) + 1 if others.size else _find_end_of_id(spool, range_, stop, ids[-1], most)
        yield Piece(spool, range_, range_ + 1, start, stop, one_curve=stop - start > most)
        start = stop


def _find_end_of_id(spool: Spool, range_: int, start: int, id_: object, most: int) -> int:
    rows = int(spool.counts[range_])
    while start < rows:
        stop = min(start + most, rows)
        others = _find_other_ids(spool.read_ids(range_, start, stop), id_)
        if others.size:
            return start + int(others[0])
        start = stop
    return rows


def _find_other_ids(ids: pl.Series, id_: object) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.flatnonzero((ids != id_).to_numpy())
