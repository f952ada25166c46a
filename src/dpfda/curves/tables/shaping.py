"""Rows of whole curves into `Curves` inside the public domain, with the counts for the owner."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dpfda.curves.curves import Curves
from dpfda.curves.tables.copies import find_copies, find_copies_in_curve
from dpfda.curves.tables.covariates import Covariate
from dpfda.curves.tables.filling import fill_down, place_baselines
from dpfda.curves.tables.keys import split_texts
from dpfda.curves.tables.owner_view import Tally, count_findings, count_lacking, lie_within
from dpfda.curves.tables.rows import Rows
from dpfda.curves.tables.spoiling import find_spoiled, is_spoiled, without_points

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

    from dpfda.curves.tables.design import Design
    from dpfda.curves.tables.ordering import Piece
    from dpfda.curves.tables.reading import Reading

_MANY = 1 << 16  # rows for which compiled code pays
_DENSE = 4  # codes per row up to which a table of all codes is cheaper than sorting
_MOST_WHOLE = (1 << 63) - 1  # that a signed number of 64 bits holds


@dataclass(frozen=True)
class ShapedRows:
    """Some curves and their tally."""

    curves: Curves
    tally: Tally


def shape_rows(rows: Rows, reading: Reading) -> ShapedRows:
    """All rows of some ids, in any order, as curves."""
    complete = None if reading.never_refuses else _take_complete(rows)
    if complete is not None and (reading.duplicates == "keep" or not _may_hold_copies(complete, len(rows))):
        return _restrict_to_domain(complete, rows, reading)
    codes, labels = _number_ids(rows.ids)
    spoiled, filled = np.zeros(0, dtype=np.bool_), _fill_down(rows, codes, reading)
    kept = filled
    if reading.never_refuses:
        spoiled = find_spoiled(filled, codes, one_design=reading.one_design)
        kept = without_points(filled, codes, spoiled)
    whole = _assemble_curves(codes, kept, labels)
    repeats = np.empty(0, dtype=np.int64)
    if reading.duplicates != "keep" and _may_hold_copies(whole, len(rows)):
        repeats = find_copies(codes, rows.x, rows.y, rows.design)
    if repeats.size and reading.duplicates == "drop":
        others = np.delete(np.arange(len(rows)), repeats)
        filled = filled[others]
        whole = _assemble_curves(codes[others], kept[others], labels)
    elif repeats.size and reading.never_refuses:
        spoiled[codes[repeats]] = True
        whole = _assemble_curves(codes, without_points(kept, codes, spoiled), labels)
    counts = {"copies": repeats.size, "spoiled": int(np.count_nonzero(spoiled))}
    return _restrict_to_domain(whole, filled, reading, **counts)


def shape_long_curve(piece: Piece, reading: Reading, at_once: int) -> Iterator[ShapedRows]:
    """One curve with very many points, in parts. The parts' tallies are those of one curve together."""
    copies = np.empty(0, dtype=np.int64)
    if reading.duplicates != "keep":
        copies = find_copies_in_curve(
            lambda: ((rows.x, rows.y, rows.design) for rows in piece.blocks(at_once)), len(piece), at_once
        )
    refused = bool(copies.size) and reading.duplicates == "refuse"
    filled = _filled_blocks(piece, reading, at_once)
    spoiled = reading.never_refuses and (refused or is_spoiled(filled(), one_design=reading.one_design))
    start, untold = 0, copies.size
    for rows in filled():
        low, high = np.searchsorted(copies, [start, start + len(rows)])
        start += len(rows)
        if reading.duplicates == "drop" and high > low:
            rows = rows[np.delete(np.arange(len(rows)), copies[low:high] - (start - len(rows)))]  # noqa: PLW2901
        if len(rows):  # the first part is never empty and counts the copies of all
            codes = np.zeros(len(rows), dtype=np.int64)
            kept = without_points(rows, codes, np.array([spoiled]))
            whole = _assemble_curves(codes, kept, _label_ids(rows.ids[:1]))
            yield _restrict_to_domain(whole, rows, reading, copies=untold, spoiled=int(spoiled))
            untold = 0


def _fill_down(rows: Rows, codes: NDArray[np.int64], reading: Reading) -> Rows:
    """The rows with covariates filled down that the owner has named."""
    if not reading.fill_down or rows.design is None:
        return rows
    places = Covariate.places(reading.covariates)
    columns = [places[name] for name in reading.fill_down]
    return replace(rows, design=fill_down(codes, place_baselines(rows.x, rows.y), rows.y, rows.design, columns))


def _filled_blocks(piece: Piece, reading: Reading, at_once: int) -> Callable[[], Iterator[Rows]]:
    """The rows of one very long curve block by block; to fill down, its x, y and design are put in order in memory."""
    if not reading.fill_down:
        return lambda: piece.blocks(at_once)
    read = ((place_baselines(rows.x, rows.y), rows.y, rows.design) for rows in piece.blocks(at_once))
    x, y, design = map(np.concatenate, zip(*read, strict=True))
    places = Covariate.places(reading.covariates)
    columns = [places[name] for name in reading.fill_down]
    filled = fill_down(np.zeros(len(piece), dtype=np.int64), x, y, design, columns)

    def blocks() -> Iterator[Rows]:
        start = 0
        for rows in piece.blocks(at_once):
            yield replace(rows, design=filled[start : start + len(rows)])
            start += len(rows)

    return blocks


def shape_without_copies_check(
    codes: NDArray[np.int64],
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    design: NDArray[np.float64] | None,
    reading: Reading,
) -> ShapedRows:
    """Curves by number, without a look for copies: for wide tables."""
    import polars as pl

    rows = Rows(pl.Series(codes), x, y, design)
    return _restrict_to_domain(_assemble_curves(codes, rows, None), rows, reading)


def _assemble_curves(codes: NDArray[np.int64], rows: Rows, labels: NDArray[np.uint64] | None) -> Curves:
    """The curves of rows with these codes; compiled code puts many rows in order where a table of codes is small."""
    x, y = rows.x, rows.y
    many = rows.design is None and codes.size >= _MANY and codes.min() == 0
    if many and int(codes.max()) < _DENSE * codes.size and (codes[1:] < codes[:-1]).any():
        from dpfda.curves.tables.grouping import order_rows

        codes, x, y = order_rows(codes, x, y)
    curves = Curves.from_long(codes, x, y, rows.design)
    return Curves.of_checked_arrays(curves.x, curves.y, curves.offsets, curves.design, labels, curves.rows)


def _take_complete(rows: Rows) -> Curves | None:
    """The curves of rows with whole numbers as ids, without covariates and with nothing missing; else None.

    Of rows in the order of ids the arrays are those of the rows: nothing is put in order, and hardly anything is copied.
    """
    if len(rows) < _MANY or not is_complete(rows):
        return None
    ids = rows.ids.to_numpy()
    return _put_in_order(rows, ids) if (ids[1:] < ids[:-1]).any() else _take_in_order(rows, ids)


def is_complete(rows: Rows) -> bool:
    """Whether rows have whole numbers as ids, no covariates and nothing missing."""
    import polars as pl

    if rows.design is not None or not len(rows) or rows.ids.dtype not in (pl.Int64, pl.UInt64):
        return False
    with np.errstate(all="ignore"):
        return bool(np.isfinite(rows.x.sum() + rows.y.sum()))


def _take_in_order(rows: Rows, ids: NDArray[Any]) -> Curves:
    from dpfda.curves.fingerprint import label_numbers

    starts = np.concatenate([[0], np.flatnonzero(ids[1:] != ids[:-1]) + 1])
    offsets, ones = np.append(starts, len(rows)), np.ones((starts.size, 1))
    return Curves.of_checked_arrays(rows.x, rows.y, offsets, ones, label_numbers(ids[starts]), None)


def _put_in_order(rows: Rows, ids: NDArray[Any]) -> Curves | None:
    """By counting, where a table of all ids between the least and the greatest is small."""
    from dpfda.curves.fingerprint import label_numbers
    from dpfda.curves.tables.grouping import group_points

    low, span = ids.min(), int(ids.max()) - int(ids.min()) + 1
    if not is_dense(span, ids.size) or int(low) + span > _MOST_WHOLE:
        return None
    points = (np.ascontiguousarray(each) for each in (rows.x, rows.y))
    counts, x, y = group_points(np.ascontiguousarray(ids).view(np.int64), int(low), span, *points)
    used = np.flatnonzero(counts)
    offsets = np.concatenate([[0], np.cumsum(counts[used])])
    labels = label_numbers(used.astype(ids.dtype) + low)
    return Curves.of_checked_arrays(x, y, offsets, np.ones((used.size, 1)), labels, None)


def is_dense(span: int, rows: int) -> bool:
    """Whether a table of all ids between the least and the greatest is small beside the rows."""
    return span <= _DENSE * rows


def _may_hold_copies(whole: Curves, rows: int) -> bool:
    """False only if no row is a copy of another; a fast look at the points of each curve, if none were dropped."""
    if rows < _MANY or whole.n_points < rows:
        return True
    from dpfda.curves.tables.grouping import may_hold_copies

    return may_hold_copies(whole.x, whole.y, whole.offsets)


def _restrict_to_domain(
    whole: Curves, rows: Rows, reading: Reading, *, copies: int = 0, spoiled: int = 0
) -> ShapedRows:
    ones = None
    if rows.design is not None:
        usable = whole.design.any(axis=1) | (whole.counts > 0)
        ones = tuple(whole.constant_columns().tolist()) if usable.any() else None
        whole = whole.with_intercept(allow_ones=True)
    inside = whole if lie_within(whole.x, reading.domain.interval) else whole.restrict(reading.domain.interval)
    missing = 0
    if whole.n_points < rows.x.size:
        lacking = np.isnan(rows.x) | np.isnan(rows.y) if spoiled else ~(np.isfinite(rows.x) & np.isfinite(rows.y))
        missing = int(np.count_nonzero(lacking))
    tally = count_findings(whole, inside, reading, missing=missing, rows=rows.x.size)
    tally = replace(tally, copies=copies, spoiled=spoiled, ones=ones)
    if whole.n_points < rows.x.size - missing:
        tally.lacking = count_lacking(rows, reading)
    return ShapedRows(inside if reading.design is None else _expand_design(inside, reading.design), tally)


def _expand_design(curves: Curves, design: Design) -> Curves:
    """From an intercept and the plain covariates to the columns of a design; curves without a design vector have none."""
    has_vector = curves.design[:, 0] == 1.0
    expanded = np.where(has_vector[:, None], design.expand(curves.design[:, 1:]), 0.0)
    rows = None if curves.rows is None else design.expand(curves.rows[:, 1:])
    return Curves(curves.x, curves.y, curves.offsets, expanded, curves.labels, rows)


def _number_ids(ids: pl.Series) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Numbers in the order of the ids, and the labels of the ids in that order."""
    import polars as pl

    values = ids.to_numpy() if ids.dtype in (pl.Int64, pl.UInt64) else None
    if values is None:
        codes = ids.rank("dense").to_numpy().astype(np.int64)
        return codes, _label_ids(ids.gather(_find_last(codes)))
    from dpfda.curves.fingerprint import label_numbers

    low = values.min()
    if int(values.max()) - int(low) >= _DENSE * values.size:
        unique, codes = np.unique(values, return_inverse=True)
        return codes.astype(np.int64, copy=False), label_numbers(unique)
    codes = (values - low).astype(np.int64)
    occurs = np.zeros(int(codes.max()) + 1, dtype=np.bool_)
    occurs[codes] = True
    return codes, label_numbers(np.flatnonzero(occurs).astype(values.dtype) + low)


def _find_last(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The last row of each code that occurs, in the order of codes."""
    places = np.full(int(codes.max()) + 1, -1, dtype=np.int64)
    places[codes] = np.arange(codes.size)
    return places[places >= 0]


def _label_ids(ids: pl.Series) -> NDArray[np.uint64]:
    import polars as pl

    from dpfda.curves.fingerprint import label_numbers, label_texts

    return label_texts(*split_texts(ids)) if ids.dtype == pl.String else label_numbers(ids.to_numpy())
