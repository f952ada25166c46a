"""Wide tables, as usual for functional data: one row per subject with columns named by x, or one column per subject."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from dpfda.curves.tables.numbers import parse_numbers, parse_positions
from dpfda.curves.tables.rows import explain_missing_ids, simplify_ids
from dpfda.errors import InvalidInput

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

    from dpfda.curves.tables.reading import Reading

_NUMBER_AT_END = re.compile(r"[-+]?\d+(?:\.\d+)?$")

Long = tuple["NDArray[np.int64]", "NDArray[np.float64]", "NDArray[np.float64]"]


def unpivot(frame: pl.DataFrame, reading: Reading) -> Long:
    """Subject numbers, x and y of every cell."""
    if reading.x is not None:
        return _unpivot_columns(frame, reading)
    assert reading.id is not None
    ids = simplify_ids(frame[reading.id])
    if ids.null_count():
        raise explain_missing_ids(ids.null_count(), reading)
    if ids.n_unique() < frame.height:
        raise InvalidInput(f"--id {reading.id} names a subject twice; --wide needs one row per subject.")
    return _unpivot_rows(frame, reading)


def _unpivot_rows(frame: pl.DataFrame, reading: Reading) -> Long:
    """Row numbers, x and y of every cell; x is the number at the end of the column's name (`46`, `hdl_46`, `t0.5`)."""
    points = {column: _parse_point(column) for column in find_value_columns(frame.columns, reading)}
    n = frame.height
    values = np.column_stack([parse_numbers(frame[column], reading.decimal) for column in points])
    x = np.tile(np.fromiter(points.values(), dtype=np.float64), n)
    return np.repeat(np.arange(n, dtype=np.int64), len(points)), x, values.ravel()


def _unpivot_columns(frame: pl.DataFrame, reading: Reading) -> Long:
    """Subject numbers, x and y of every cell of a table with one column per subject."""
    assert reading.x is not None
    grid = parse_positions(frame[reading.x], reading.domain, reading.decimal)
    subjects = [column for column in frame.columns if column != reading.x]
    if not subjects:
        raise InvalidInput(
            f"There is no column beside {reading.x!r}; with --wide --x every other column is one subject."
        )
    values = [parse_numbers(frame[column], reading.decimal) for column in subjects]
    owners = np.repeat(np.arange(len(subjects), dtype=np.int64), grid.size)
    return owners, np.tile(grid, len(subjects)), np.concatenate(values)


def find_value_columns(columns: list[str], reading: Reading) -> list[str]:
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


def _parse_point(column: str) -> float:
    found = _NUMBER_AT_END.search(column)
    assert found is not None
    text = found.group()
    joined = found.start() > 0 and text[0] == "-"  # hdl-46 is a name with a dash, not minus 46
    return float(text[1:] if joined else text)
