"""Wide tables, as FDA people keep them: one row per subject with columns named by x, or one column per subject."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from dpfda.curves.tables.numbers import numbers, positions
from dpfda.curves.tables.rows import missing_ids, plain_ids
from dpfda.errors import InvalidInput

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

    from dpfda.curves.tables.reading import Reading

_NUMBER_AT_END = re.compile(r"[-+]?\d+(?:\.\d+)?$")

Long = tuple["NDArray[np.int64]", "NDArray[np.float64]", "NDArray[np.float64]"]


def wide_rows(frame: pl.DataFrame, reading: Reading) -> Long:
    """Subject numbers, x and y of every cell."""
    if reading.x is not None:
        return _columns_are_subjects(frame, reading)
    assert reading.id is not None
    ids = plain_ids(frame[reading.id])
    if ids.null_count():
        raise missing_ids(ids.null_count(), reading)
    if ids.n_unique() < frame.height:
        raise InvalidInput(f"--id {reading.id} names a subject twice; --wide needs one row per subject.")
    return _rows_are_subjects(frame, reading)


def _rows_are_subjects(frame: pl.DataFrame, reading: Reading) -> Long:
    """Row numbers, x and y of every cell; x is the number at the end of the column's name (`46`, `hdl_46`, `t0.5`)."""
    points = {column: _point(column) for column in measured(frame.columns, reading)}
    n = frame.height
    values = np.column_stack([numbers(frame[column], reading.decimal) for column in points])
    x = np.tile(np.fromiter(points.values(), dtype=np.float64), n)
    return np.repeat(np.arange(n, dtype=np.int64), len(points)), x, values.ravel()


def _columns_are_subjects(frame: pl.DataFrame, reading: Reading) -> Long:
    """Subject numbers, x and y of every cell of a table with one column per subject."""
    assert reading.x is not None
    grid = positions(frame[reading.x], reading.domain, reading.decimal)
    subjects = [column for column in frame.columns if column != reading.x]
    if not subjects:
        raise InvalidInput(
            f"There is no column beside {reading.x!r}; with --wide --x every other column is one subject."
        )
    values = [numbers(frame[column], reading.decimal) for column in subjects]
    owners = np.repeat(np.arange(len(subjects), dtype=np.int64), grid.size)
    return owners, np.tile(grid, len(subjects)), np.concatenate(values)


def measured(columns: list[str], reading: Reading) -> list[str]:
    """The columns that hold values: those beginning with --y if given, else all that end in a number."""
    others = {reading.id, *(covariate.name for covariate in reading.covariates)}
    free = [column for column in columns if column not in others]
    chosen = [column for column in free if column.startswith(reading.y or "") and _NUMBER_AT_END.search(column)]
    if not chosen:
        prefix = f"begins with {reading.y!r} and " if reading.y else ""
        raise InvalidInput(
            f"No column {prefix}ends in a number that could be x (as in hdl_46); check --y or drop --wide."
        )
    return chosen


def _point(column: str) -> float:
    found = _NUMBER_AT_END.search(column)
    assert found is not None
    text = found.group()
    joined = found.start() > 0 and text[0] == "-"  # hdl-46 is a name with a dash, not minus 46
    return float(text[1:] if joined else text)
