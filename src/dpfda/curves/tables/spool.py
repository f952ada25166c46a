"""Rows divided by ranges of ids, in memory while they are few and on disk beyond: the first step of sorting many rows.

Each batch is put into the order of its ranges, stably, and appended as a whole. The rows of a range are then one slice
of every batch, in the order of the source.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpfda.curves.tables.keys import Ranges, join_texts, split_texts
from dpfda.curves.tables.rows import Rows
from dpfda.curves.tables.scratch import Stash

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

_SAMPLE = 1 << 16


@dataclass(frozen=True)
class _Batch:
    """Where a batch lies in the file: its ids, the bytes of its ids if they are texts, and its numbers by column."""

    bounds: NDArray[np.int64]  # range r has the rows bounds[r]..bounds[r + 1] - 1
    ids: int
    text: int
    numbers: int


class Spool:
    """Rows by ranges. `add` batches in the order of the source, then `read` slices of ranges."""

    def __init__(self, folder: Path, sample: pl.Series, held: int = 0) -> None:
        """`sample` holds ids that show how the rows are distributed; about `held` numbers stay in memory."""
        self._file = Stash(folder, 8 * held)
        self._ranges = Ranges.from_sample(sample)
        self._batches: list[_Batch] = []
        self._kind: Any = sample.dtype
        self._columns = 0
        self.counts = np.zeros(self._ranges.count, dtype=np.int64)

    def add(self, rows: Rows) -> None:
        """Append a batch."""
        numbers = self._ranges.of(rows.ids)
        counts = np.bincount(numbers, minlength=self.counts.size)
        self.counts += counts
        mixed = bool(np.any(numbers[1:] < numbers[:-1]))
        text = 0
        if self._is_text:
            rows = rows[np.argsort(numbers, kind="stable")] if mixed else rows
            ids, content = split_texts(rows.ids)
            text = self._file.append(content)
        else:
            ids = rows.ids.to_numpy()
        design = [] if rows.design is None else list(rows.design.T)
        self._columns = 2 + len(design)
        columns = [ids, rows.x, rows.y, *design]
        if mixed and not self._is_text:
            from dpfda.curves.tables.grouping import split_columns

            columns = split_columns(numbers, counts, columns)
        places = [self._file.append(column) for column in columns]
        self._batches.append(_Batch(np.concatenate([[0], np.cumsum(counts)]), places[0], text, places[1]))

    def read(self, first: int, last: int, start: int = 0, stop: int | None = None) -> Rows:
        """Rows start..stop-1 of the ranges first..last-1 taken together, in the order of the source."""
        parts = list(self._slices(first, last, start, stop))
        numbers = np.empty((self._columns, sum(high - low for _, low, high in parts)))
        done = 0
        for batch, low, high in parts:
            for column in range(self._columns):
                place = batch.numbers + 8 * (column * int(batch.bounds[-1]) + low)
                self._file.read_into(numbers[column, done : done + high - low], place)
            done += high - low
        return Rows(self._ids(parts), numbers[0], numbers[1], numbers[2:].T if self._columns > 2 else None)

    def read_ids(self, range_: int, start: int = 0, stop: int | None = None) -> pl.Series:
        """Only the ids of some rows of a range."""
        return self._ids(list(self._slices(range_, range_ + 1, start, stop)))

    def sample(self, range_: int) -> pl.Series:
        """Ids from all over a range."""
        import polars as pl

        rows = int(self.counts[range_])
        pieces, each = 64, _SAMPLE // 64
        starts = np.unique(np.linspace(0, max(rows - each, 0), pieces).astype(np.int64))
        return pl.concat([self.read_ids(range_, int(start), min(int(start) + each, rows)) for start in starts])

    @property
    def on_disk(self) -> bool:
        """Whether there are too many rows for memory."""
        return self._file.on_disk

    @property
    def _is_text(self) -> bool:
        import polars as pl

        return bool(self._kind == pl.String)

    def _slices(self, first: int, last: int, start: int, stop: int | None) -> Iterator[tuple[_Batch, int, int]]:
        before = 0
        for batch in self._batches:
            low, high = int(batch.bounds[first]), int(batch.bounds[last])
            begin = max(low, low + start - before)
            end = high if stop is None else min(high, low + stop - before)
            if begin < end:
                yield batch, begin, end
            before += high - low

    def _ids(self, parts: list[tuple[_Batch, int, int]]) -> pl.Series:
        import polars as pl

        total = sum(high - low for _, low, high in parts)
        if self._is_text:
            return self._texts(parts, total)
        values = np.empty(total, dtype=pl.Series([], dtype=self._kind).to_numpy().dtype)
        done = 0
        for batch, low, high in parts:
            self._file.read_into(values[done : done + high - low], batch.ids + 8 * low)
            done += high - low
        return pl.Series(values)

    def _texts(self, parts: list[tuple[_Batch, int, int]], total: int) -> pl.Series:
        offsets, contents = np.zeros(total + 1, dtype=np.int64), []
        done = 0
        for batch, low, high in parts:
            own = np.empty(high - low + 1, dtype=np.int64)
            self._file.read_into(own, batch.ids + 8 * low)
            content = np.empty(int(own[-1] - own[0]), dtype=np.uint8)
            self._file.read_into(content, batch.text + int(own[0]))
            offsets[done + 1 : done + own.size] = own[1:] - own[0] + offsets[done]
            contents.append(content)
            done += high - low
        return join_texts(offsets, np.concatenate(contents) if contents else np.empty(0, dtype=np.uint8))
