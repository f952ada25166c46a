"""How the cells of a table are written: what stands for a missing value, decimal marks, units, dates."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dpfda import _validate
from dpfda.errors import InvalidInput

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

MISSING = ("", "na", "n/a", "nan", "null", "none", ".", "-", "missing")
DECIMALS = ("point", "comma")
DATE_ORDERS = ("dmy", "mdy", "ymd")
_NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_UNIT_WORD = r"[\p{L}%‰°µμΩ'\"^²³*·/.-]"  # a digit stands in a unit as an exponent only: kg/m2, ml/min/1.73m2
_UNIT = rf"(?:[\p{{L}}%‰°µμΩ]{_UNIT_WORD}*(?:1\.73\s?m)?[23]?)(?:\s(?:[\p{{L}}%‰°µμΩ]{_UNIT_WORD}*[23]?))*"
_WITH_UNIT = rf"^({_NUMBER})\s*({_UNIT})$"
_THOUSANDS = r"^[+-]?[0-9]{1,3}(?:,[0-9]{3})+\.[0-9]+$"  # beside a decimal point commas can only be thousands
_LONGEST, _LONG = 1_000, "(a long text)"  # bytes of a cell
_LAST_DAY = 90_000_000  # from 1970, backwards and forwards: the calendar of polars ends a little later


@dataclass(frozen=True)
class Cells:
    """How to read the cells of one table. `missing` is what stands for a missing value beside the usual blanks."""

    decimal: str = "point"
    missing: tuple[str, ...] = ()
    strip_units: bool = False
    date_format: str | None = None

    def __post_init__(self) -> None:
        _validate.choice("decimal", self.decimal, DECIMALS)
        if self.date_format is not None and self.date_format not in DATE_ORDERS and "%" not in self.date_format:
            raise InvalidInput(
                f"--date-format must be dmy, mdy, ymd or a format such as %d/%m/%Y, got {self.date_format!r}."
            )

    def text(self, column: pl.Series) -> pl.Series:
        """The cells as text without spaces around, null where nothing is known."""
        text = write_texts(column).str.strip_chars()
        unknown = [*MISSING, *(code.strip().lower() for code in self.missing)]
        return text.set(text.str.to_lowercase().is_in(unknown).fill_null(False), None)

    def blank(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """The numbers, NaN where one stands for a missing value, such as -99."""
        codes = [code for code in map(self._as_number, self.missing) if code is not None]
        return np.where(np.isin(numbers, codes), np.nan, numbers) if codes else numbers

    def numbers(self, text: pl.Series) -> pl.Series:
        """Texts as floats; null where one is no number."""
        import polars as pl

        plain = self._with_points(text)
        cast = plain.cast(pl.Float64, strict=False)
        bad = text.is_not_null() & cast.is_null()
        if not bad.any():
            return cast
        thousands = plain.str.contains(_THOUSANDS).fill_null(False)
        cast = cast.fill_null(plain.set(~thousands, None).str.replace_all(",", "").cast(pl.Float64, strict=False))
        if self.strip_units:
            cast = cast.fill_null(plain.str.extract(_WITH_UNIT, 1).cast(pl.Float64, strict=False))
        return cast

    def units(self, text: pl.Series) -> list[str]:
        """The different units that would be stripped from these texts."""
        found = self._with_points(text).str.extract(_WITH_UNIT, 2).drop_nulls().str.to_lowercase()
        return [str(unit) for unit in found.unique(maintain_order=True)]

    def _with_points(self, text: pl.Series) -> pl.Series:
        if self.decimal == "point":
            return text
        mixed = text.str.contains(r"[0-9]\.[0-9]{3}(\.[0-9]{3})*,[0-9]").fill_null(
            False
        )  # 1.234,5: points are thousands
        plain = text.str.replace_all(".", "", literal=True).zip_with(mixed, text) if mixed.any() else text
        return plain.str.replace(",", ".", literal=True)

    def _as_number(self, code: str) -> float | None:
        plain = code.strip().replace(",", ".") if self.decimal == "comma" else code.strip()
        return float(plain) if re.fullmatch(_NUMBER, plain) else None


def write_texts(column: pl.Series) -> pl.Series:
    """The cells as text, but for ids: a longer one than any number, date or level is a short text that is none of these.

    A reader keeps a long text once, however many rows have it; what is done with texts here copies each.
    """
    import polars as pl

    text = column if column.dtype in (pl.Categorical, pl.Enum) else write_objects(column).cast(pl.String)
    length = text.str.len_bytes() if text.dtype == pl.String else text.cat.len_bytes()
    long = (length > _LONGEST).fill_null(False)
    if not long.any():
        return text.cast(pl.String)
    # categories are copied when they are cast, so long ones go first
    short = pl.select(pl.when(~long).then(text)).to_series().alias(text.name)
    return short.cast(pl.String).set(long, _LONG)


def write_objects(column: pl.Series) -> pl.Series:
    """A column of Python objects, bytes, dates, times or decimals as text; any other as it is.

    A number is written as in a column of such numbers, and a decimal without zeros behind its fraction, whose digits a
    column has as many of as one of its cells needs: so the text of a cell depends on this cell alone.
    """
    import polars as pl

    if column.dtype in (pl.Object, pl.Binary):
        texts = [None if value is None else str(value) for value in column]
        places = [place for place, value in enumerate(column) if type(value) is float]
        written = pl.Series([column[place] for place in places], dtype=pl.Float64).cast(pl.String)
        for place, text in zip(places, written, strict=True):
            texts[place] = text
        return pl.Series(column.name, texts, dtype=pl.String)
    if column.dtype.is_decimal():
        return column.cast(pl.String).str.replace(r"(\.\d*?)0+$", "$1").str.strip_suffix(".")
    return _write_moments(column) if column.dtype.is_temporal() else column


def _write_moments(column: pl.Series) -> pl.Series:
    """Dates and times as text; those that no calendar has, at which polars gives up, as the number that stands there."""
    import polars as pl

    kind, number = column.dtype, column.to_physical().cast(pl.Int64)
    if isinstance(kind, pl.Datetime):
        most = min(_LAST_DAY * 86_400 * {"ms": 10**3, "us": 10**6, "ns": 10**9}[kind.time_unit], 2**63 - 1)
        written = number.is_between(-most, most)
    elif kind == pl.Time:
        written = number.is_between(0, 86_400 * 10**9 - 1)
    else:
        written = number.is_between(-_LAST_DAY, _LAST_DAY) if kind == pl.Date else number.is_not_null()
    return column.set(~written, None).cast(pl.String).fill_null(number.cast(pl.String))


def show_cell(text: str, longest: int = 20) -> str:
    """A cell in a message to the owner."""
    return repr(text if len(text) <= longest else f"{text[:longest]}...")
