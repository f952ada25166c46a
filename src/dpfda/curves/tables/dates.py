"""Dates as people write them: year first, with points (the day first), or in the order that --date-format names."""

from __future__ import annotations

from datetime import date, datetime
from typing import TYPE_CHECKING

from dpfda.curves.tables.cells import write_objects

if TYPE_CHECKING:
    import polars as pl

    from dpfda.curves.tables.cells import Cells

# Digits are [0-9]: \d would be those of every script, of which most cannot be read as numbers.
ISO = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}"
DOTTED = r"^[0-9]{1,2}\.[0-9]{1,2}\.[0-9]{4}"
SLASHED = r"^[0-9]{1,4}[/.][0-9]{1,2}[/.][0-9]{1,4}"
_CLOCK = r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:\.[0-9]+)?)?"
_TIME = rf"(?:[T ]+{_CLOCK}\s*([AaPp])?\.?(?:[Mm]\.?)?\s*(?:Z|[+-][0-9]{{2}}:?[0-9]{{2}})?)?$"
_ORDERS = {"dmy": "%d-%m-%Y", "mdy": "%m-%d-%Y", "ymd": "%Y-%m-%d", "iso": "%Y-%m-%d", "dotted": "%d-%m-%Y"}
_PATTERNS = {
    "iso": r"^([0-9]{4}-[0-9]{2}-[0-9]{2})",
    "dotted": r"^([0-9]{1,2}\.[0-9]{1,2}\.[0-9]{4})",
    "dmy": r"^([0-9]{1,2}[-./][0-9]{1,2}[-./][0-9]{4})",
    "mdy": r"^([0-9]{1,2}[-./][0-9]{1,2}[-./][0-9]{4})",
    "ymd": r"^([0-9]{4}[-./][0-9]{1,2}[-./][0-9]{1,2})",
}


def parse_dates(column: pl.Series, cells: Cells) -> pl.Series | None:
    """The column as date-times, null where there is none, if it holds dates; else None."""
    import polars as pl

    if column.dtype in (pl.Date, pl.Datetime):
        return column.cast(pl.Datetime("us"), strict=False)
    if column.dtype == pl.Object:
        column = write_objects(column)
    if column.dtype != pl.String:
        return None
    text = cells.text(column)
    if cells.date_format is not None and "%" in cells.date_format:
        return text.str.to_datetime(cells.date_format, time_unit="us", strict=False, exact=True)
    orders = [cells.date_format, "iso"] if cells.date_format is not None else _find_orders(text)
    moments = None
    for order in dict.fromkeys(orders):
        found = _parse_order(text, order)
        moments = found if moments is None else moments.fill_null(found)
    return moments


def _find_orders(text: pl.Series) -> list[str]:
    """The orders that need no option: with the year first, and with points, which have the day first everywhere."""
    if not text.str.contains(f"{ISO}|{DOTTED}").any():
        return []
    return [order for order in ("iso", "dotted") if text.str.contains(_PATTERNS[order]).any()]


def _parse_order(text: pl.Series, order: str) -> pl.Series:
    """What a cell becomes depends on the cell alone."""
    import polars as pl

    form = _ORDERS[order]
    parts = text.str.extract_groups(_PATTERNS[order] + _TIME).struct.unnest()
    day, hour, minute, second, half = (parts.to_series(place) for place in range(5))
    days = day.str.replace_all(r"[./]", "-").str.to_datetime(form, time_unit="us", strict=False)
    if hour.null_count() == len(hour):
        return days
    hours = hour.cast(pl.Int64, strict=False).fill_null(0)
    hours = (hours % 12 + 12 * (half.str.to_lowercase() == "p").cast(pl.Int64)).zip_with(half.is_not_null(), hours)
    minutes, rest = (part.cast(pl.Int64, strict=False).fill_null(0) for part in (minute, second))
    seconds = 3600 * hours + 60 * minutes + rest
    possible = (hours < 24) & (seconds < 86_400)
    frame = pl.DataFrame({"days": days.set(~possible, None), "seconds": seconds})
    return frame.select(pl.col("days") + pl.duration(seconds="seconds", time_unit="us")).to_series()


def parse_day(value: str | float | date, date_format: str | None = None) -> date | None:
    """One date of a domain, written like those of the table; None if it is none."""
    if isinstance(value, date):
        return value
    text = str(value).strip()
    forms = ["%Y-%m-%d", "%d.%m.%Y"]
    if date_format is not None and "%" in date_format:
        forms.insert(0, date_format)
    elif date_format is not None:
        forms = [_ORDERS[date_format].replace("-", mark) for mark in "-./"] + ["%Y-%m-%d"]
    for form in forms:
        try:
            return datetime.strptime(text, form).date()
        except ValueError:
            continue
    return None
