"""Wide tables, as usual for functional data: one row per subject with columns named by x, or one column per subject."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from dpfda.curves.tables.dates import parse_day
from dpfda.curves.tables.numbers import parse_positions
from dpfda.curves.tables.rows import RowReader, explain_missing_ids, simplify_ids
from dpfda.errors import InvalidInput

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

    from dpfda.curves.tables.reading import Reading

_NUMBER_AT_END = re.compile(r"([-+]?\d+(?:\.\d+)?)$")
_NUMBER_AND_UNIT = re.compile(r"([-+]?\d+(?:\.\d+)?)\s?[^\W\d_]*$")
_DATE_AT_END = re.compile(r"\d{4}-\d{2}-\d{2}$")

Long = tuple["NDArray[np.int64]", "NDArray[np.float64]", "NDArray[np.float64]"]


def unpivot(frame: pl.DataFrame, reader: RowReader) -> Long:
    """Subject numbers, x and y of every cell."""
    reading = reader.reading
    if reading.x is not None:
        return _unpivot_columns(frame, reader)
    assert reading.id is not None
    ids = simplify_ids(frame[reading.id])
    if ids.null_count():
        raise explain_missing_ids(ids.null_count(), reading)
    if ids.n_unique() < frame.height:
        raise InvalidInput(f"--id {reading.id} names a subject twice; --wide needs one row per subject.")
    return _unpivot_rows(frame, reader)


def _unpivot_rows(frame: pl.DataFrame, reader: RowReader) -> Long:
    """Row numbers, x and y of every cell; x is the number at the end of the column's name (`46`, `hdl_46`, `v_-2`)."""
    columns = find_value_columns(frame.columns, reader.reading)
    points = {column: parse_point(column, reader.reading) for column in columns}
    _refuse_same_points(points)
    n = frame.height
    values = np.column_stack([reader.values(frame[column]) for column in points])
    x = np.tile(np.fromiter(points.values(), dtype=np.float64), n)
    return np.repeat(np.arange(n, dtype=np.int64), len(points)), x, values.ravel()


def _unpivot_columns(frame: pl.DataFrame, reader: RowReader) -> Long:
    """Subject numbers, x and y of every cell of a table with one column per subject."""
    reading = reader.reading
    assert reading.x is not None
    grid = parse_positions(frame[reading.x], reading.domain, reading.cells)
    subjects = [column for column in frame.columns if column != reading.x]
    if not subjects:
        raise InvalidInput(
            f"There is no column beside {reading.x!r}; with --wide --x every other column is one subject."
        )
    values = [reader.values(frame[column]) for column in subjects]
    owners = np.repeat(np.arange(len(subjects), dtype=np.int64), grid.size)
    return owners, np.tile(grid, len(subjects)), np.concatenate(values)


def find_value_columns(columns: list[str], reading: Reading) -> list[str]:
    """The columns that hold values: those beginning with --y if given, else all that end in a number."""
    others = {reading.id, *(covariate.name for covariate in reading.covariates)}
    free = [column for column in columns if column not in others and column.startswith(reading.y or "")]
    chosen = [column for column in free if _find_number(column, reading) is not None]
    if not chosen:
        prefix = f"begins with {reading.y!r} and " if reading.y else ""
        units = any(_NUMBER_AND_UNIT.search(column) for column in free) and not reading.strip_units
        hint = "add --strip-units if a unit follows, as in hdl_46y" if units else "check --y or drop --wide"
        raise InvalidInput(f"No column {prefix}ends in a number that could be x (as in hdl_46); {hint}.")
    return chosen


def _find_number(column: str, reading: Reading) -> re.Match[str] | None:
    """The number at the end of a name, before a unit if units are to be stripped."""
    return (_NUMBER_AND_UNIT if reading.strip_units else _NUMBER_AT_END).search(column)


def parse_point(column: str, reading: Reading) -> float:
    """The x that a column's name ends in.

    A dash between a letter or digit and the number joins them (`hdl-46`); anywhere else it is a minus (`v_-2`, `-2`).
    """
    day = _DATE_AT_END.search(column)
    if day is not None:
        when, origin = parse_day(day.group()), reading.domain.origin
        if when is None or origin is None:
            raise InvalidInput(f"The column {column!r} is named by a date; give --domain as dates, too.")
        return float((when - origin).days)
    found = _find_number(column, reading)
    assert found is not None
    text = found.group(1)
    joined = text[0] in "+-" and found.start() > 0 and column[found.start() - 1].isalnum()
    return float(text[1:] if joined else text)


def _refuse_same_points(points: dict[str, float]) -> None:
    columns: dict[float, str] = {}
    for column, x in points.items():
        if x in columns:
            raise InvalidInput(
                f"The columns {columns[x]!r} and {column!r} both stand for x = {x:g}; say with --y how the right ones begin."
            )
        columns[x] = column
