"""Rows of whole curves into `Curves` inside the public domain, with the counts for the owner."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from dpfda.curves import Curves
from dpfda.errors import InvalidInput
from dpfda.tables.copies import copied_rows, copies_in_one_curve
from dpfda.tables.owner_notes import Tally, tally_of

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

    from dpfda.tables.ordering import Piece
    from dpfda.tables.reading import Reading
    from dpfda.tables.rows import Rows


@dataclass(frozen=True)
class Shaped:
    """Some curves and their tally."""

    curves: Curves
    tally: Tally


def shaped(rows: Rows, reading: Reading) -> Shaped:
    """All rows of some ids, in any order, as curves."""
    codes = _codes(rows.ids)
    copies = 0
    if reading.duplicates != "keep":
        repeats = copied_rows(codes, rows.x, rows.y, rows.design)
        copies = repeats.size
        if copies and reading.duplicates == "drop":
            kept = np.delete(np.arange(len(rows)), repeats)
            rows, codes = rows[kept], codes[kept]
    return _curves(codes, rows.x, rows.y, rows.design, reading, copies)


def shaped_one_curve(piece: Piece, reading: Reading, at_once: int) -> Iterator[Shaped]:
    """One curve with very many points, in parts. The parts' tallies are those of one curve together."""
    copies = np.empty(0, dtype=np.int64)
    if reading.duplicates != "keep":
        copies = copies_in_one_curve(
            lambda: ((rows.x, rows.y, rows.design) for rows in piece.blocks(at_once)), len(piece), at_once
        )
    start, untold = 0, copies.size
    for rows in piece.blocks(at_once):
        low, high = np.searchsorted(copies, [start, start + len(rows)])
        start += len(rows)
        if reading.duplicates == "drop" and high > low:
            rows = rows[np.delete(np.arange(len(rows)), copies[low:high] - (start - len(rows)))]  # noqa: PLW2901
        if len(rows):  # the first part is never empty and counts the copies of all
            codes = np.zeros(len(rows), dtype=np.int64)
            yield _curves(codes, rows.x, rows.y, rows.design, reading, untold)
            untold = 0


def shaped_rows_as_they_are(
    codes: NDArray[np.int64],
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    design: NDArray[np.float64] | None,
    reading: Reading,
) -> Shaped:
    """Curves by number, without a look for copies: for wide tables."""
    return _curves(codes, x, y, design, reading, 0)


def refuse_copies(tally: Tally, reading: Reading) -> list[str]:
    """Refuse a table with copies if they are to be refused; else the note for the owner."""
    if not tally.copies:
        return []
    if reading.duplicates == "refuse":
        raise InvalidInput(
            f"{tally.copies:,} rows are exact copies of another row; add --duplicates drop if they are mistakes, or "
            "--duplicates keep if they are repeated measurements."
        )
    return [f"{tally.copies:,} rows were exact copies and were dropped"]


def _curves(
    codes: NDArray[np.int64],
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    design: NDArray[np.float64] | None,
    reading: Reading,
    copies: int,
) -> Shaped:
    whole, ones = Curves.from_long(codes, x, y, design), None
    if design is not None:
        usable = whole.design.any(axis=1) | (whole.counts > 0)
        ones = tuple(whole.constant_columns().tolist()) if usable.any() else None
        whole = whole.with_intercept(allow_ones=True)
    inside = whole.restrict(reading.domain.interval)
    missing = int(np.count_nonzero(~(np.isfinite(x) & np.isfinite(y))))
    tally = tally_of(whole, inside, reading, missing=missing, rows=x.size)
    return Shaped(inside, replace(tally, copies=copies, ones=ones))


def _codes(ids: pl.Series) -> NDArray[np.int64]:
    """Numbers in the order of the ids."""
    import polars as pl

    if ids.dtype in (pl.Int64, pl.UInt64):
        values = ids.to_numpy()
        low = values.min()
        if int(values.max()) - int(low) < 1 << 62:
            shifted: NDArray[np.int64] = (values - low).astype(np.int64)
            return shifted
    return ids.rank("dense").to_numpy().astype(np.int64)
