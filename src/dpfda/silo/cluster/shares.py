"""Which worker keeps which subjects: ranges of ids, so that the parts one after the other are in the order of ids.

Of a table in the order of ids, each part reads its own row groups. Of one in another order each would read all of it; there
every worker reads one slice, once, and hands the rows of every part to the worker that keeps it, in the order of the table.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from dpfda.curves.curves import Curves
from dpfda.curves.tables.batches import open_batches, read_rows
from dpfda.curves.tables.keys import Ranges
from dpfda.curves.tables.loading import Findings, choose_columns, read_curves
from dpfda.curves.tables.parquet_files import scan_parquet, take_columns
from dpfda.curves.tables.rows import Rows, match_ids, simplify_ids
from dpfda.curves.tables.stores import open_locally
from dpfda.errors import InvalidInput
from dpfda.silo.cluster.part import Part

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

    from dpfda.curves.tables.reading import Reading
    from dpfda.curves.tables.source import Source

_SAMPLED = 256  # ids of every batch
_SHUFFLE_FROM = 2.0  # readings of each row from which it is cheaper to read it once and hand it on
_COPIES = 4  # of each row at one time: read, in parts, on the way, as curves
_SIGN = 1 << 63  # what makes the key of a signed number


@dataclass(frozen=True)
class Share:
    """The ids of one part: those in some consecutive ranges."""

    ranges: Ranges
    first: int
    last: int

    def of(self, rows: Rows) -> Rows:
        """The rows of the part."""
        bounds = self._find_bounds(rows.ids.dtype)
        if bounds is not None and len(rows) and _lie_between(rows.ids, *bounds):
            return rows
        numbers = self.ranges.of(rows.ids)
        return rows[(numbers >= self.first) & (numbers < self.last)]

    def narrow(self, lazy: pl.LazyFrame, reading: Reading) -> pl.LazyFrame:
        """Without most rows of other parts, where columns are numbers and ids whole ones; rows without an id stay.

        What a text in a column means is said with its row, and levels are judged from all rows: such tables are read whole.
        """
        import polars as pl

        schema = lazy.collect_schema()
        kind = schema[str(reading.id)]
        bounds = self._find_bounds(kind)
        if bounds is None or not all(each.is_numeric() for each in schema.values()) or not _all_bounded(reading):
            return lazy
        low, high = bounds
        (ids,) = take_columns([str(reading.id)])
        ids = ids.cast(pl.UInt64 if kind == pl.UInt64 else pl.Int64)
        return lazy.filter(ids.is_null() | ((ids >= low) & (ids <= high)))

    def _find_bounds(self, kind: pl.DataType) -> tuple[int, int] | None:
        """The least and the greatest id that the part may have, if ids are whole numbers."""
        import polars as pl

        if not kind.is_integer() or kind in (pl.Int128, pl.UInt128):
            return None
        shift = 0 if kind == pl.UInt64 else _SIGN
        low, high = (key - shift for key in self.ranges.key_bounds(self.first, self.last))
        return low, high


def _lie_between(ids: pl.Series, low: int, high: int) -> bool:
    least: Any = ids.min()
    greatest: Any = ids.max()
    return bool(low <= least and greatest <= high)


def _all_bounded(reading: Reading) -> bool:
    return not reading.y_levels and all(covariate.bounds is not None for covariate in reading.covariates)


@dataclass(frozen=True)
class Division:
    """The shares of all parts, and what it takes to read them."""

    shares: tuple[Share, ...]
    rows: int
    columns: int
    readings: float  # how often each row is read, about, if every part reads its own share by itself
    separable: bool  # whether a row can be handed on before it is understood

    @property
    def shuffle_bytes(self) -> int | None:
        """The memory that rows take when each is read once and handed to its part; None where that does not pay."""
        if not self.separable or self.readings < _SHUFFLE_FROM:
            return None
        return _COPIES * 8 * self.columns * self.rows

    def find_parts(self, ids: pl.Series) -> NDArray[np.uint16]:
        """The number of the part that each id belongs to."""
        firsts = np.array([share.first for share in self.shares[1:]])
        of_range = np.searchsorted(firsts, np.arange(self.shares[0].ranges.count), side="right").astype(np.uint16)
        return np.asarray(of_range[self.shares[0].ranges.of(ids)])


def divide(source: Source, reading: Reading, parts: int) -> Division:
    """Into at most `parts` shares with about as many rows each, none empty. Runs on a worker, since it sees ids."""
    import polars as pl

    def only_ids(columns: list[str]) -> list[str]:
        return choose_columns(columns, source, reading)[:1]

    sample: list[pl.Series] = []
    ends: list[pl.Series] = []  # least and greatest id of every batch
    heights: list[int] = []
    with open_batches(source, only_ids, reading.separator) as batches:
        for frame in batches.frames:
            ids = simplify_ids(frame[str(reading.id)]).drop_nulls()
            heights.append(frame.height)
            if len(ids):
                ids = match_ids(ids, sample[0].dtype if sample else ids.dtype)
                sample.append(ids.gather_every(max(1, len(ids) // _SAMPLED)))
                least, greatest = ids.arg_min(), ids.arg_max()
                ends.append(ids.gather([0 if least is None else least, 0 if greatest is None else greatest]))
    if not sample:
        raise InvalidInput(f"{source.name} has no row with an id; check --id, or export it again.")
    ids = pl.concat(sample)
    ranges = Ranges.from_sample(ids)
    rows = np.bincount(ranges.of(ids), minlength=ranges.count)
    middle = np.cumsum(rows) - rows / 2
    owner = np.minimum(middle * parts // len(ids), parts - 1).astype(np.int64)[rows > 0]
    used = np.flatnonzero(rows)
    starts = [0, *used[1:][owner[1:] > owner[:-1]].tolist(), ranges.count]
    shares = tuple(Share(ranges, first, last) for first, last in pairwise(starts))
    columns = 3 + len(reading.covariates)
    division = Division(shares, sum(heights), columns, float(len(shares)), _is_separable(source, reading))
    return replace(division, readings=_count_readings(division, pl.concat(ends)))


def _count_readings(division: Division, ends: pl.Series) -> float:
    """How many parts' ids a batch holds on average, from the least and the greatest id of every batch."""
    least, greatest = division.find_parts(ends).astype(np.int64).reshape(-1, 2).T
    return float((greatest - least + 1).mean())


def _is_separable(source: Source, reading: Reading) -> bool:
    """Whether rows mean the same wherever they are read: numbers in Parquet, and no levels that all rows decide."""
    if source.kind != "parquet" or not _all_bounded(reading):
        return False
    with open_locally(source) as local:
        table = scan_parquet(local.files)
    if len(table.parts) > 1:
        return False
    columns = table.choose(partial(choose_columns, source=source, reading=reading))
    return all(table.parts[0].find_type(column).is_numeric() for column in columns[1:])


class Piece(bytes):
    """Rows on their way from the worker that read them to that of their part, as Arrow bytes.

    Workers send bytes without polars, whose threads may be waiting for the sender's. A log shows how many they are: Dask
    writes the arguments of a task that failed into the worker's.
    """

    def __repr__(self) -> str:
        return f"Piece of {len(self)} bytes"

    @classmethod
    def of(cls, frame: pl.DataFrame) -> Piece:
        """The rows of a frame."""
        file = io.BytesIO()
        frame.write_ipc(file)
        return cls(file.getvalue())


def split_rows(source: Source, reading: Reading, division: Division, number: int, count: int) -> list[Piece]:
    """Of one of `count` slices of a table the rows of every part, in their order; rows without an id go to all parts."""
    import polars as pl

    first, last = (division.rows * each // count for each in (number, number + 1))
    frame = read_rows(source, partial(choose_columns, source=source, reading=reading), first, last)
    ids = simplify_ids(frame[str(reading.id)])
    nobody = frame.filter(ids.is_null())
    if nobody.height:
        frame, ids = frame.filter(ids.is_not_null()), ids.drop_nulls()
    parts = division.find_parts(ids)
    frame = frame[np.argsort(parts, kind="stable")]
    ends = np.cumsum(np.bincount(parts, minlength=len(division.shares))).tolist()
    return [Piece.of(pl.concat([frame[begin:end], nobody])) for begin, end in pairwise([0, *ends])]


@dataclass(frozen=True)
class Recipe:
    """How a worker loads its part of a source: it reads the source and keeps the rows of its share."""

    source: Source
    reading: Reading
    share: Share
    scratch: str | None

    def __call__(self) -> tuple[Curves, Findings]:
        narrow = partial(self.share.narrow, reading=self.reading)
        return read_curves(self.source, self.reading, keep=self.share.of, narrow=narrow, scratch=self.scratch)

    def make_part(self, pieces: list[Piece]) -> Part:
        """The part from its rows, which others have read; if it is sent away, it is read from the source."""
        import polars as pl

        frames = [pl.read_ipc(piece) for piece in pieces]
        return Part(self, read_curves(self.source, self.reading, frames=frames, scratch=self.scratch))


def recipe(source: Source, reading: Reading, division: Division, number: int, scratch: str | None) -> Recipe:
    """The recipe of one part; made on a worker, from shares that the head has not seen."""
    return Recipe(source, reading, division.shares[number], scratch)
