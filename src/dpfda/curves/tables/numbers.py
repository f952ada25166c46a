"""Columns into numbers without guessing: a text, a date or a decimal comma is reported with its row and the fix."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from dpfda.curves.tables.cells import Cells, show_cell
from dpfda.curves.tables.dates import SLASHED, parse_dates
from dpfda.errors import InvalidInput

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

    from dpfda.curves.tables.reading import Domain

_DECIMAL_COMMA = r"^[+-]?[0-9]+,[0-9]+$"
_COMMA_AND_UNIT = r"^[+-]?[0-9]+,[0-9]+\s*(?:[^\W\d_]|[%‰°])"
_SOME_UNIT = r"^[+-]?[0-9]+(?:[.,][0-9]+)?\s*(?:[^\W\d_]|[%‰°])"
_CURRENCY = r"^[+-]?\s*[$€£¥]\s*[0-9]|[0-9]\s*[$€£¥]$"
_BEYOND_LIMIT = r"^[<>≤≥]=?\s*([0-9]+(?:[.,][0-9]+)?)"
_DAY_LENGTH = 86_400_000_000  # microseconds
_PLAIN = Cells()

Complain = Callable[[str], None]


def refuse(sentence: str) -> None:
    """What is done about an entry that cannot be read, unless the caller has another way."""
    raise InvalidInput(sentence)


def parse_numbers(
    column: pl.Series,
    cells: Cells = _PLAIN,
    *,
    rows_before: int = 0,
    complain: Complain = refuse,
    hint: str = "",
) -> NDArray[np.float64]:
    """The column as floats, missing values as NaN; anything else is refused, or infinite if `complain` returns.

    A column may come in parts: `rows_before` is the number of rows in earlier ones. `hint` is what else a text may mean.
    """
    import polars as pl

    if column.dtype.is_temporal():
        complain(f"The column {column.name!r} holds dates or times; it must hold numbers.")
        return _unreadable(column)
    if column.dtype.is_numeric() or column.dtype in (pl.Boolean, pl.Null):
        return cells.blank(_floats(column.cast(pl.Float64)))
    if column.dtype == pl.Binary:
        complain(f"The column {column.name!r} holds bytes; it must hold one number per row.")
        return _unreadable(column)
    text = cells.text(column)
    cast = cells.numbers(text)
    bad = text.is_not_null() & cast.is_null()
    if bad.any():
        complain(_describe_text(text, int(bad.arg_true()[0]), rows_before, cells, hint))
        cast = cast.set(bad, float("inf"))
    return cells.blank(_floats(cast))


def parse_choices(
    column: pl.Series, levels: tuple[str, ...], cells: Cells, *, rows_before: int = 0, complain: Complain = refuse
) -> NDArray[np.float64]:
    """Texts as the places of public levels (no, yes: 0, 1), missing ones as NaN; anything else is refused."""
    text = cells.text(column).str.replace(r"\.0$", "")
    values = np.full(len(text), np.nan)
    known = text.is_in(list(levels)).fill_null(False)
    for place, level in enumerate(levels):
        values[(text == level).fill_null(False).to_numpy()] = place
    bad = text.is_not_null() & ~known
    if bad.any():
        place = int(bad.arg_true()[0])
        complain(
            f"Row {rows_before + place + 1} of {column.name!r} is {show_cell(text[place])}, not one of --y-levels "
            f"{','.join(levels)}; correct the list, or name it with --missing if it stands for a missing value."
        )
        values[bad.to_numpy()] = np.inf
    return values


def parse_positions(
    column: pl.Series,
    domain: Domain,
    cells: Cells = _PLAIN,
    *,
    rows_before: int = 0,
    complain: Complain = refuse,
) -> NDArray[np.float64]:
    """The x of every row: numbers, or days since the first day of a domain of dates. Refuses as `parse_numbers` does."""
    import polars as pl

    moments = parse_dates(column, cells)
    if moments is not None and domain.origin is None and moments.null_count() == len(moments):
        moments = None
    if moments is None:
        if domain.origin is not None and not _all_missing(column, cells):
            complain(_describe_no_dates(column, cells, rows_before))
            return _unreadable(cells.text(column))
        return parse_numbers(column, cells, rows_before=rows_before, complain=complain)
    text = cells.text(column)
    bad = moments.is_null() & text.is_not_null()
    if bad.any():
        place = int(bad.arg_true()[0])
        row = f"Row {rows_before + place + 1} of {column.name!r} is {show_cell(text[place])}"
        complain(f"{row}, not a date like {_date_example(cells)}; correct or empty it, or see --date-format.")
    if domain.origin is None:
        complain(
            f"The column {column.name!r} holds dates; give --domain as dates too, for instance "
            "--domain 2019-01-01:2020-12-31, and x is counted in days from the first."
        )
        return parse_numbers(column, cells, rows_before=rows_before, complain=complain)
    days = (moments - pl.Series([domain.origin]).cast(pl.Datetime("us"))[0]).cast(pl.Int64).cast(
        pl.Float64
    ) / _DAY_LENGTH
    return _floats(days.set(bad, float("inf")) if bad.any() else days)


def _describe_no_dates(column: pl.Series, cells: Cells, rows_before: int) -> str:
    text = cells.text(column)
    slashed = text.str.contains(SLASHED).fill_null(False)
    if slashed.any():
        return _describe_text(text, int(slashed.arg_true()[0]), rows_before, cells, "")
    filled = text.is_not_null()
    place = int(filled.arg_true()[0]) if filled.any() else 0
    row = f"Row {rows_before + place + 1} of {column.name!r} is {show_cell(str(text[place]))}"
    return (
        f"{row}, not a date as --domain has; say how dates are written with --date-format (such as "
        "'%d-%b-%Y %H:%M'), or give --domain as numbers."
    )


def _date_example(cells: Cells) -> str:
    return {None: "2019-01-31", "dmy": "31/01/2019", "mdy": "01/31/2019", "ymd": "2019-01-31"}.get(
        cells.date_format, str(cells.date_format)
    )


def _unreadable(column: pl.Series) -> NDArray[np.float64]:
    """Infinite where something stands."""
    return np.where(column.is_null().to_numpy(), np.nan, np.inf)


def _all_missing(column: pl.Series, cells: Cells) -> bool:
    import polars as pl

    return column.null_count() == len(column) or (
        column.dtype == pl.String and cells.text(column).null_count() == len(column)
    )


def _describe_text(text: pl.Series, place: int, rows_before: int, cells: Cells, hint: str) -> str:
    row, sample, name = rows_before + place + 1, text[place], text.name
    shown = show_cell(sample)
    if re.search(_DECIMAL_COMMA, sample) and cells.decimal == "point":
        return f"The column {name!r} writes numbers with a comma (row {row}), {shown}; add --decimal comma."
    if re.search(_COMMA_AND_UNIT, sample) and cells.decimal == "point" and cells.strip_units:
        return (
            f"Row {row} of {name!r} is {shown}, a number with a comma and a unit; add --decimal comma to --strip-units."
        )
    if re.search(SLASHED, sample):
        return (
            f"The column {name!r} holds dates (row {row}), {shown}; say what comes first with --date-format dmy (day) or "
            "--date-format mdy (month), or write them year first, and give --domain as dates."
        )
    if re.search(_SOME_UNIT, sample) and not cells.strip_units:
        return (
            f"Row {row} of {name!r} is {shown}, not a number; add --strip-units if all cells have this unit, else correct "
            "the cell."
        )
    if re.search(_CURRENCY, sample):
        return f"Row {row} of {name!r} is {shown}, not a number; write amounts without a sign and without thousands."
    return f"Row {row} of {name!r} is {shown}, not a number; {_describe_remedy(sample, hint)}."


def _describe_remedy(sample: str, hint: str) -> str:
    if len(sample) > 20 or not sample.isprintable():
        return f"correct it, or empty it{hint}"
    missing = f"add --missing {shlex.quote(sample)}"
    limit = re.search(_BEYOND_LIMIT, sample)
    if limit is None:
        return f"correct it, or {missing} if it stands for a missing value{hint}"
    return (
        f"if it is a limit of detection, write the limit itself, {limit[1]}, into the table; {missing} only if such "
        "values may be left out, which biases a mean"
    )


def _floats(column: pl.Series) -> NDArray[np.float64]:
    if not column.null_count():
        return np.asarray(column.to_numpy(), dtype=np.float64)
    return np.asarray(column.fill_null(float("nan")).to_numpy(), dtype=np.float64)
