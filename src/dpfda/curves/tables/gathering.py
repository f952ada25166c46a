"""Rows of a source collected, in memory while they are few and on disk beyond, and given back as curves in order.

Rows that come in the order of ids are not sorted again: whole curves are made as they come, and only their arrays are kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpfda.curves.curves import Curves
from dpfda.curves.tables.mapped_curves import CurvesWriter
from dpfda.curves.tables.ordering import Piece, cut_into_pieces
from dpfda.curves.tables.owner_view import Tally
from dpfda.curves.tables.rows import Rows, join_ids, join_rows
from dpfda.curves.tables.scratch import choose_scratch_folder
from dpfda.curves.tables.shaping import ShapedRows, is_complete, is_dense, shape_long_curve, shape_rows
from dpfda.curves.tables.spool import Spool

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    import polars as pl

    from dpfda.curves.tables.reading import Reading

_THREADS = 2
_KEPT = 4  # batches that are put together at the end; more are divided or made into curves as they come
_HELD = 12  # batches that stay in memory before the disk is used
_COLUMNS = 3  # of rows without covariates: id, x and y


class NotSorted(Exception):
    """Rows that came in the order of ids, as far as they were made into curves, go on in another order: read them anew."""


class Collector:
    """Takes the rows of a source and makes curves of them.

    The arrays of the curves are the same, bit by bit, whether rows went through the disk or not, whatever the batches.
    """

    def __init__(
        self, reading: Reading, rows_at_once: int, scratch: str | os.PathLike[str] | None, *, may_be_sorted: bool = True
    ) -> None:
        self._reading = reading
        self._most = rows_at_once
        self._scratch = scratch
        self._folder: Path | None = None
        self._spool: Spool | None = None
        self._sorted = may_be_sorted
        self._last: object = None  # id
        self._stream: _CurveStream | None = None
        self._kept: list[Rows] = []
        self._kept_rows = 0
        self._ends: list[tuple[int, int] | None] = []  # the least and the greatest id of what is kept
        self.rows = 0
        self.tally = Tally()

    def add(self, rows: Rows) -> None:
        """The next rows of the source."""
        self.rows += len(rows)
        if not len(rows) and self._reading.never_refuses:  # without an id there is no type of ids either
            return
        self._sorted = self._sorted and self._goes_on(rows.ids)
        if not self._sorted and self._stream is not None:
            raise NotSorted
        self._kept.append(rows)
        self._kept_rows += len(rows)
        if self._spool is None and not self._sorted:
            self._ends += [_find_ends(each, self._reading) for each in self._kept[len(self._ends) :]]
        if self._kept_rows > self._most_kept():
            self._to_stream() if self._sorted else self._to_disk()

    def curves(self, progress: Callable[[int], None]) -> Curves:
        """All rows as curves in the order of ids; `progress` is told how many rows are done."""
        if self._spool is None and self._stream is None and self._kept_rows > self._most_kept():
            self._to_disk()
        if self._spool is not None:
            return self._curves_from_disk(self._spool, progress)
        if self._stream is not None:
            self._stream.add(join_rows(self._kept))
            self._kept = []
            curves, self.tally = self._stream.finish()
            progress(self.rows)
            return curves
        part = shape_rows(join_rows(self._kept), self._reading)
        self._kept = []
        self.tally += part.tally
        return part.curves

    def _most_kept(self) -> int:
        """Rows that are kept before something is done with them."""
        if self._spool is not None or self._stream is not None:
            return self._most
        return (_HELD if not self._sorted and self._are_counted() else _KEPT) * self._most

    def _are_counted(self) -> bool:
        """Whether rows can be put in order by counting, which takes less memory and time than dividing them first."""
        ends = [end for each in self._ends for end in each or ()]
        return bool(ends) and all(self._ends) and is_dense(max(ends) - min(ends) + 1, self._kept_rows)

    def _goes_on(self, ids: pl.Series) -> bool:
        """Whether ids are in order and none is before the last one."""
        if not len(ids):
            return True
        first, before, self._last = ids[0], self._last, ids[-1]
        return ids.is_sorted() and (before is None or before <= first)

    def _to_stream(self) -> None:
        """Curves of all rows but those of the last id, of which more may come."""
        ready, last = _cut_between_ids(self._kept)
        if not ready:  # one curve with very many points is put together on disk
            if self._stream is not None:
                raise NotSorted
            self._sorted = False
            self._to_disk()
            return
        if self._stream is None:
            self._stream = _CurveStream(choose_scratch_folder(self._scratch), self._reading, _HELD * self._most)
        for rows in ready:
            self._stream.add(rows)
        self._kept, self._kept_rows = [last], len(last)

    def _to_disk(self) -> None:
        """Divide what is kept: in memory at first, unless memory holds many rows already."""
        parts, held = self._kept, 0 if self._kept_rows > _HELD * self._most else _COLUMNS * _HELD * self._most
        if self._spool is None:
            self._folder = choose_scratch_folder(self._scratch)
            every = max(1, self._kept_rows >> 16)
            self._spool = Spool(self._folder, join_ids([part.ids.gather_every(every) for part in parts]), held)
        self._kept, self._kept_rows = [], 0
        while parts:
            count = next((k for k in range(1, len(parts)) if sum(map(len, parts[: k + 1])) > self._most), len(parts))
            rows, parts[:count] = join_rows(parts[:count]), []
            for start in range(0, len(rows), self._most):
                self._spool.add(rows[start : start + self._most])

    def _curves_from_disk(self, spool: Spool, progress: Callable[[int], None]) -> Curves:
        if self._kept_rows:
            self._to_disk()
        assert self._folder is not None
        writer, done = CurvesWriter(self._folder, 0 if spool.on_disk else _HELD * self._most), 0
        for piece, future in _shape_ahead(cut_into_pieces(spool, self._folder, self._most), self._reading):
            if future is None:
                self._long_curve(piece, writer)
            else:
                part = future.result()
                writer.add(part.curves)
                self.tally += part.tally
            done += len(piece)
            progress(done)
        return writer.curves()

    def _long_curve(self, piece: Piece, writer: CurvesWriter) -> None:
        tallies: list[Tally] = []
        for part in shape_long_curve(piece, self._reading, self._most):
            writer.add(part.curves, continues=bool(tallies))
            tallies.append(part.tally)
        self.tally += Tally.of_one_curve(tallies)


def _find_ends(rows: Rows, reading: Reading) -> tuple[int, int] | None:
    """The least and the greatest id of rows that `shape_rows` can put in order by counting, else None."""
    if reading.never_refuses or not is_complete(rows):
        return None
    least: Any = rows.ids.min()
    greatest: Any = rows.ids.max()
    return least, greatest


def _cut_between_ids(parts: list[Rows]) -> tuple[list[Rows], Rows]:
    """Rows in the order of ids: parts that hold all rows of their ids, and those of the last id. Few rows are copied."""
    ready, last = [], parts[0][:0]
    for rows in parts:
        same = int(rows.ids.search_sorted(last.ids[-1], side="right")) if len(last) else 0
        last = join_rows([last, rows[:same]]) if same else last
        if same == len(rows):
            continue
        whole = int(rows.ids.search_sorted(rows.ids[-1], side="left"))
        ready += [part for part in (last, rows[same:whole]) if len(part)]
        last = rows[whole:]
    return ready, last


class _CurveStream:
    """Curves in the order in which they come, written one part after the other while threads shape the next ones."""

    def __init__(self, folder: Path, reading: Reading, held: int) -> None:
        self._writer, self._reading, self._tally = CurvesWriter(folder, held), reading, Tally()
        self._pool, self._waiting = ThreadPoolExecutor(_THREADS), deque[Future[ShapedRows]]()

    def add(self, rows: Rows) -> None:
        """All rows of some ids, which come after those before."""
        self._waiting.append(self._pool.submit(shape_rows, rows, self._reading))
        while len(self._waiting) > _THREADS:
            self._write()

    def finish(self) -> tuple[Curves, Tally]:
        """The curves of all rows, and their tally."""
        while self._waiting:
            self._write()
        self._pool.shutdown()
        return self._writer.curves(), self._tally

    def _write(self) -> None:
        part = self._waiting.popleft().result()
        self._writer.add(part.curves)
        self._tally += part.tally


@dataclass(frozen=True)
class _Shaping:
    reading: Reading

    def __call__(self, piece: Piece) -> ShapedRows:
        return shape_rows(piece.read(), self.reading)


def _shape_ahead(pieces: Iterator[Piece], reading: Reading) -> Iterator[tuple[Piece, Future[ShapedRows] | None]]:
    """Pieces in order, a few of them shaped ahead by threads; one with very many rows of one curve is not."""
    waiting: deque[tuple[Piece, Future[ShapedRows] | None]] = deque()
    pool = ThreadPoolExecutor(_THREADS)
    try:
        for piece in pieces:
            waiting.append((piece, None if piece.one_curve else pool.submit(_Shaping(reading), piece)))
            if len(waiting) > _THREADS:
                yield waiting.popleft()
        yield from waiting
    finally:
        pool.shutdown(cancel_futures=True)
