"""Which worker reads which subjects: ranges of ids, so that the parts one after the other are in the order of ids."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from dpfda.curves.curves import Curves
from dpfda.curves.tables.batches import open_batches
from dpfda.curves.tables.keys import Ranges
from dpfda.curves.tables.loading import Findings, choose_columns, read_curves
from dpfda.curves.tables.rows import Rows, simplify_ids
from dpfda.errors import InvalidInput

if TYPE_CHECKING:
    import polars as pl

    from dpfda.curves.tables.reading import Reading
    from dpfda.curves.tables.source import Source

_SAMPLED = 256  # ids of every batch
_SIGN = 1 << 63  # what makes the key of a signed number


@dataclass(frozen=True)
class Share:
    """The ids of one part: those in some consecutive ranges."""

    ranges: Ranges
    first: int
    last: int

    def of(self, rows: Rows) -> Rows:
        """The rows of the part."""
        numbers = self.ranges.of(rows.ids)
        return rows[(numbers >= self.first) & (numbers < self.last)]

    def narrow(self, lazy: pl.LazyFrame, reading: Reading) -> pl.LazyFrame:
        """Without most rows of other parts, where columns are numbers and ids whole ones; rows without an id stay.

        What a text in a column means is said with its row, and levels are judged from all rows: such tables are read whole.
        """
        import polars as pl

        schema = lazy.collect_schema()
        kind = schema[str(reading.id)]
        whole = kind.is_integer() and kind not in (pl.Int128, pl.UInt128)
        if not whole or not all(each.is_numeric() for each in schema.values()) or not _all_bounded(reading):
            return lazy
        shift = 0 if kind == pl.UInt64 else _SIGN
        low, high = (key - shift for key in self.ranges.key_bounds(self.first, self.last))
        ids = pl.col(str(reading.id)).cast(pl.UInt64 if kind == pl.UInt64 else pl.Int64)
        return lazy.filter(ids.is_null() | ((ids >= low) & (ids <= high)))


def _all_bounded(reading: Reading) -> bool:
    return not reading.y_levels and all(covariate.bounds is not None for covariate in reading.covariates)


def shares_of(source: Source, reading: Reading, parts: int) -> list[Share]:
    """At most `parts` shares with about as many rows each, none empty. Runs on a worker, since it sees ids."""
    import polars as pl

    def only_ids(columns: list[str]) -> list[str]:
        return choose_columns(columns, source, reading)[:1]

    sample: list[pl.Series] = []
    with open_batches(source, only_ids, reading.separator) as batches:
        for frame in batches.frames:
            ids = simplify_ids(frame[str(reading.id)]).drop_nulls()
            if len(ids):
                sample.append(ids.gather_every(max(1, len(ids) // _SAMPLED)))
    if not sample:
        raise InvalidInput(f"{source.name} has no row with an id; check --id, or export it again.")
    ids = pl.concat(sample)
    ranges = Ranges.from_sample(ids)
    rows = np.bincount(ranges.of(ids), minlength=ranges.count)
    middle = np.cumsum(rows) - rows / 2
    owner = np.minimum(middle * parts // len(ids), parts - 1).astype(np.int64)[rows > 0]
    used = np.flatnonzero(rows)
    starts = [0, *used[1:][owner[1:] > owner[:-1]].tolist(), ranges.count]
    return [Share(ranges, first, last) for first, last in pairwise(starts)]


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


def recipe(source: Source, reading: Reading, shares: list[Share], number: int, scratch: str | None) -> Recipe:
    """The recipe of one part; made on a worker, from shares that the head has not seen."""
    return Recipe(source, reading, shares[number], scratch)
