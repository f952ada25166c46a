"""Rows of whole curves into `Curves` inside the public domain, with the counts for the owner."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from dpfda.curves.curves import Curves
from dpfda.curves.tables.copies import find_copies, find_copies_in_curve
from dpfda.curves.tables.owner_notes import Tally, count_findings
from dpfda.errors import InvalidInput

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

    from dpfda.curves.tables.ordering import Piece
    from dpfda.curves.tables.reading import Reading
    from dpfda.curves.tables.rows import Rows

_MANY = 1 << 16  # rows for which compiled code pays
_DENSE = 4  # codes per row up to which a table of all codes is cheaper than sorting


@dataclass(frozen=True)
class ShapedRows:
    """Some curves and their tally."""

    curves: Curves
    tally: Tally


def shape_rows(rows: Rows, reading: Reading) -> ShapedRows:
    """All rows of some ids, in any order, as curves."""
    codes = _number_ids(rows.ids)
    whole = _assemble_curves(codes, rows.x, rows.y, rows.design)
    if reading.duplicates == "keep" or not _may_hold_copies(whole, len(rows)):
        return _restrict_to_domain(whole, rows.x, rows.y, rows.design, reading, 0)
    repeats = find_copies(codes, rows.x, rows.y, rows.design)
    if repeats.size and reading.duplicates == "drop":
        kept = np.delete(np.arange(len(rows)), repeats)
        rows, codes = rows[kept], codes[kept]
        whole = _assemble_curves(codes, rows.x, rows.y, rows.design)
    return _restrict_to_domain(whole, rows.x, rows.y, rows.design, reading, repeats.size)


def shape_long_curve(piece: Piece, reading: Reading, at_once: int) -> Iterator[ShapedRows]:
    """One curve with very many points, in parts. The parts' tallies are those of one curve together."""
    copies = np.empty(0, dtype=np.int64)
    if reading.duplicates != "keep":
        copies = find_copies_in_curve(
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
            yield _shape_curves(codes, rows.x, rows.y, rows.design, reading, untold)
            untold = 0


def shape_without_copies_check(
    codes: NDArray[np.int64],
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    design: NDArray[np.float64] | None,
    reading: Reading,
) -> ShapedRows:
    """Curves by number, without a look for copies: for wide tables."""
    return _shape_curves(codes, x, y, design, reading, 0)


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


def _shape_curves(
    codes: NDArray[np.int64],
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    design: NDArray[np.float64] | None,
    reading: Reading,
    copies: int,
) -> ShapedRows:
    return _restrict_to_domain(_assemble_curves(codes, x, y, design), x, y, design, reading, copies)


def _assemble_curves(
    codes: NDArray[np.int64], x: NDArray[np.float64], y: NDArray[np.float64], design: NDArray[np.float64] | None
) -> Curves:
    """The curves of rows with these codes; compiled code puts many rows in order where a table of codes is small."""
    if design is None and codes.size >= _MANY and int(codes.max()) < _DENSE * codes.size and codes.min() == 0:
        from dpfda.curves.tables.grouping import order_rows

        codes, x, y = order_rows(codes, x, y)
    return Curves.from_long(codes, x, y, design)


def _may_hold_copies(whole: Curves, rows: int) -> bool:
    """False only if no row is a copy of another; a fast look at the points of each curve, if none were dropped."""
    if rows < _MANY or whole.n_points < rows:
        return True
    from dpfda.curves.tables.grouping import may_hold_copies

    return may_hold_copies(whole.x, whole.y, whole.offsets)


def _restrict_to_domain(
    whole: Curves,
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    design: NDArray[np.float64] | None,
    reading: Reading,
    copies: int,
) -> ShapedRows:
    ones = None
    if design is not None:
        usable = whole.design.any(axis=1) | (whole.counts > 0)
        ones = tuple(whole.constant_columns().tolist()) if usable.any() else None
        whole = whole.with_intercept(allow_ones=True)
    inside = whole.restrict(reading.domain.interval)
    missing = int(np.count_nonzero(~(np.isfinite(x) & np.isfinite(y)))) if whole.n_points < x.size else 0
    tally = count_findings(whole, inside, reading, missing=missing, rows=x.size)
    return ShapedRows(inside, replace(tally, copies=copies, ones=ones))


def _number_ids(ids: pl.Series) -> NDArray[np.int64]:
    """Numbers in the order of the ids."""
    import polars as pl

    if ids.dtype in (pl.Int64, pl.UInt64):
        values = ids.to_numpy()
        low = values.min()
        if int(values.max()) - int(low) < 1 << 62:
            shifted: NDArray[np.int64] = (values - low).astype(np.int64)
            return shifted
    return ids.rank("dense").to_numpy().astype(np.int64)
