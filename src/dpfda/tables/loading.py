"""From a source to curves, with notes for the owner. Refuses before anything is spent."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dpfda.curves import Curves
from dpfda.errors import InvalidInput
from dpfda.tables.database import read_query
from dpfda.tables.files import explained, scan_file
from dpfda.tables.numbers import numbers, positions
from dpfda.tables.owner_notes import notes_on
from dpfda.tables.reading import Reading
from dpfda.tables.source import Source
from dpfda.tables.wide import columns_are_subjects, measured, rows_are_subjects

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Loaded:
    """Curves inside the public domain, the names of their design columns, and NOT PRIVATE notes for the owner."""

    curves: Curves
    functions: tuple[str, ...]
    owner_notes: tuple[str, ...]


def load_curves(source: Source, reading: Reading) -> Loaded:
    """Read, check and shape one table.

    The number of curves is public, so every subject in the table becomes a curve, if need be an empty one. What is
    refused here is told to the owner only, before any release.
    """
    frame = _read(source, reading)
    if not frame.height:
        raise InvalidInput(f"{source.name} has a header but no rows; export it again, or correct --query.")
    frame, copies = _without_copies(frame, reading)
    owners, x, y = _long(frame, reading)
    design, unlisted = _design(frame, reading)
    if design is not None and reading.wide:
        design = design[owners]
    whole = Curves.from_long(owners, x, y, design)
    if design is not None:
        whole = whole.with_intercept()
    inside = whole.restrict(reading.domain.interval)
    notes = notes_on(whole, inside, reading, missing=int((~(np.isfinite(x) & np.isfinite(y))).sum()), rows=x.size)
    functions = ("mean",) if design is None else ("intercept", *_design_names(reading))
    return Loaded(inside, functions, (*copies, *unlisted, *notes))


def column_names(source: Source) -> list[str]:
    """The names of the columns; of a file, no row is kept."""
    if source.is_database:
        return read_query(source).columns
    path = Path(source.location)
    with explained(path):
        return scan_file(path, source.kind).collect_schema().names()


def _read(source: Source, reading: Reading) -> pl.DataFrame:
    if source.is_database:
        frame = read_query(source)
        return frame.select(_wanted(frame.columns, source, reading))
    path = Path(source.location)
    lazy = scan_file(path, source.kind, reading.separator)
    with explained(path):
        columns = lazy.collect_schema().names()
        return lazy.select(_wanted(columns, source, reading)).collect(engine="streaming")


def _wanted(columns: list[str], source: Source, reading: Reading) -> list[str]:
    """The columns to read; a wrong name is refused with the nearest right one."""
    named = [("id", reading.id), ("x", reading.x), *(("design", covariate.name) for covariate in reading.covariates)]
    if not reading.wide:
        named.insert(2, ("y", reading.y))
    for role, column in named:
        if column is not None and column not in columns:
            near = difflib.get_close_matches(column, columns, n=1, cutoff=0.6)
            hint = f"did you mean {near[0]!r}? " if near else ""
            shown = ", ".join(columns[:12]) + (", ..." if len(columns) > 12 else "")
            raise InvalidInput(
                f"--{role} names the column {column!r}, which {source.name} lacks; {hint}It has: {shown}."
            )
    if not reading.wide:
        return [column for _, column in named if column is not None]
    if reading.x is not None:
        return columns
    return [column for _, column in named if column is not None] + measured(columns, reading)


def _without_copies(frame: pl.DataFrame, reading: Reading) -> tuple[pl.DataFrame, tuple[str, ...]]:
    if reading.wide or reading.duplicates == "keep":
        return frame, ()
    distinct = frame.unique(maintain_order=True)
    copies = frame.height - distinct.height
    if copies and reading.duplicates == "refuse":
        raise InvalidInput(
            f"{copies:,} rows are exact copies of another row; add --duplicates drop if they are mistakes, or "
            "--duplicates keep if they are repeated measurements."
        )
    return distinct, (f"{copies:,} rows were exact copies and were dropped",) if copies else ()


def _long(frame: pl.DataFrame, reading: Reading) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    if reading.wide:
        if reading.x is not None:
            return columns_are_subjects(frame, reading)
        if _ids(frame, reading).n_unique() < frame.height:
            raise InvalidInput(f"--id {reading.id} names a subject twice; --wide needs one row per subject.")
        return rows_are_subjects(frame, reading)
    assert reading.x is not None
    assert reading.y is not None
    x = positions(frame[reading.x], reading.domain, reading.decimal)
    y = numbers(frame[reading.y], reading.decimal)
    ranks = _ids(frame, reading).rank("dense").to_numpy().astype(np.int64)
    return ranks, x, y


def _ids(frame: pl.DataFrame, reading: Reading) -> pl.Series:
    import polars as pl

    assert reading.id is not None
    column = frame[reading.id]
    if column.dtype == pl.String:
        column = column.str.strip_chars().replace("", None)
    if column.dtype.is_float():
        column = column.fill_nan(None)
    if column.null_count():
        raise InvalidInput(
            f"{column.null_count():,} rows have no {reading.id!r}: they belong to nobody; drop them or give them an id."
        )
    return column


def _design(frame: pl.DataFrame, reading: Reading) -> tuple[NDArray[np.float64] | None, list[str]]:
    if not reading.covariates:
        return None, []
    columns, notes = [], []
    for covariate in reading.covariates:
        values = frame[covariate.name]
        if covariate.bounds is not None:
            columns.append(numbers(values, reading.decimal)[:, None])
            continue
        columns.append(covariate.indicators(values))
        unlisted = int(np.isnan(columns[-1][:, 0]).sum())
        if unlisted == frame.height:
            raise InvalidInput(
                f"No row of {covariate.name!r} has a level of --levels {covariate.name}=; correct the list."
            )
        if unlisted:
            notes.append(
                f"{unlisted:,} rows have a {covariate.name!r} that is missing or not in --levels and were left out"
            )
    return np.hstack(columns), notes


def _design_names(reading: Reading) -> list[str]:
    return [name for covariate in reading.covariates for name in covariate.columns]
