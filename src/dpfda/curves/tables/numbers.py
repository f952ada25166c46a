"""Columns into numbers without guessing: a text, a date or a decimal comma is reported with its row and the fix."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from dpfda.errors import InvalidInput

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

    from dpfda.curves.tables.reading import Domain

MISSING = ("", "na", "n/a", "nan", "null", "none", ".", "-", "missing")
_DECIMAL_COMMA = r"^[+-]?\d+,\d+$"
_LONGEST_SHOWN = 20
_SLASHED_DATE = r"^\d{1,4}[/.]\d{1,2}[/.]\d{1,4}"
_DAY_LENGTH = 86_400_000_000  # microseconds

Complain = Callable[[str], None]


def refuse(sentence: str) -> None:
    """What is done about an entry that cannot be read, unless the caller has another way."""
    raise InvalidInput(sentence)


def parse_numbers(
    column: pl.Series, decimal: str = "point", *, rows_before: int = 0, complain: Complain = refuse
) -> NDArray[np.float64]:
    """The column as floats, missing values as NaN; anything else is refused, or infinite if `complain` returns.

    A column may come in parts: `rows_before` is the number of rows in earlier ones.
    """
    import polars as pl

    if column.dtype.is_temporal():
        complain(f"The column {column.name!r} holds dates or times; it must hold numbers.")
        return _unreadable(column)
    if column.dtype.is_numeric() or column.dtype in (pl.Boolean, pl.Null):
        return _floats(column.cast(pl.Float64))
    if column.dtype.is_nested() or column.dtype == pl.Binary:
        complain(f"The column {column.name!r} holds {column.dtype} entries; it must hold one number per row.")
        return _unreadable(column)
    text = _text(column)
    plain = text.str.replace(",", ".", literal=True) if decimal == "comma" else text
    cast = plain.cast(pl.Float64, strict=False)
    bad = text.is_not_null() & cast.is_null()
    if bad.any():
        complain(_describe_text(text, int(bad.arg_true()[0]), rows_before))
        cast = cast.set(bad, float("inf"))
    return _floats(cast)


def parse_positions(
    column: pl.Series, domain: Domain, decimal: str = "point", *, rows_before: int = 0, complain: Complain = refuse
) -> NDArray[np.float64]:
    """The x of every row: numbers, or days since the first day of a domain of dates. Refuses as `parse_numbers` does."""
    import polars as pl

    moments = _parse_dates(column)
    if moments is None:
        if domain.origin is not None and not _all_missing(column):
            complain(f"The column {column.name!r} holds no dates, but --domain does; give --domain as numbers.")
            return _unreadable(column)
        return parse_numbers(column, decimal, rows_before=rows_before, complain=complain)
    bad = moments.is_null() & _text(column).is_not_null()
    if bad.any():
        row = rows_before + int(bad.arg_true()[0]) + 1
        complain(f"Row {row} of {column.name!r} is not a date like 2019-01-31; correct or empty it.")
    if domain.origin is None:
        complain(
            f"The column {column.name!r} holds dates; give --domain as dates too, for instance "
            "--domain 2019-01-01:2020-12-31, and x is counted in days from the first."
        )
        return parse_numbers(column, decimal, rows_before=rows_before, complain=complain)
    days = (moments - pl.Series([domain.origin]).cast(pl.Datetime("us"))[0]).cast(pl.Int64).cast(
        pl.Float64
    ) / _DAY_LENGTH
    return _floats(days.set(bad, float("inf")) if bad.any() else days)


def _unreadable(column: pl.Series) -> NDArray[np.float64]:
    """Infinite where something stands."""
    return np.where(column.is_null().to_numpy(), np.nan, np.inf)


def _all_missing(column: pl.Series) -> bool:
    import polars as pl

    return column.null_count() == len(column) or (
        column.dtype == pl.String and _text(column).null_count() == len(column)
    )


def _parse_dates(column: pl.Series) -> pl.Series | None:
    """The column as date-times, null where there is none, if it holds dates; else None."""
    import polars as pl

    if column.dtype in (pl.Date, pl.Datetime):
        return column.cast(pl.Datetime("us"))
    if column.dtype != pl.String:
        return None
    text = _text(column)
    if not text.str.contains(r"^\d{4}-\d{2}-\d{2}").sum():
        return None
    parsed = text.str.slice(0, 19).str.replace("T", " ", literal=True)
    whole_days = parsed.str.to_datetime("%Y-%m-%d", time_unit="us", strict=False)
    return whole_days.fill_null(parsed.str.to_datetime("%Y-%m-%d %H:%M:%S", time_unit="us", strict=False))


def write_objects(column: pl.Series) -> pl.Series:
    """A column of Python objects, lists or bytes as text; any other as it is."""
    import polars as pl

    if column.dtype in (pl.Object, pl.Binary) or column.dtype.is_nested():
        texts = [None if value is None else str(value) for value in column]
        return pl.Series(column.name, texts, dtype=pl.String)
    return column


def _text(column: pl.Series) -> pl.Series:
    import polars as pl

    column = write_objects(column)
    text = column.cast(pl.String).str.strip_chars()
    return text.set(text.str.to_lowercase().is_in(MISSING).fill_null(False), None)


def _describe_text(text: pl.Series, place: int, rows_before: int) -> str:
    row, sample, name = rows_before + place + 1, text[place], text.name
    if re.search(_DECIMAL_COMMA, sample):
        return f"The column {name!r} writes numbers with a comma (row {row}); add --decimal comma."
    if re.search(_SLASHED_DATE, sample):
        return f"The column {name!r} holds dates (row {row}); write them as 2019-01-31, year first."
    shown = sample if len(sample) <= _LONGEST_SHOWN else f"{sample[:_LONGEST_SHOWN]}..."
    return f"Row {row} of {name!r} is {shown!r}, not a number; correct it, or empty it if it is missing."


def _floats(column: pl.Series) -> NDArray[np.float64]:
    return np.asarray(column.fill_null(float("nan")).to_numpy(), dtype=np.float64)
