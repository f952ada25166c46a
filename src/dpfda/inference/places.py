"""Places on the axis of x: numbers or, where a result counts days from a date, dates."""

from __future__ import annotations

import re
from datetime import date, timedelta
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfda import _validate
from dpfda._typing import Floats
from dpfda.errors import InvalidInput

_DAY = np.timedelta64(86_400_000_000, "us")
_DATE = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")


def is_date(text: str) -> bool:
    """Whether a text is a day of the calendar as year, month and day: 2020-01-31, in no other of ISO's forms."""
    if _DATE.fullmatch(text) is None:
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def write_place(x: float, origin: str | None = None) -> str:
    """To read: a number of four digits, or the date."""
    if origin is None:
        return f"{x:.4g}"
    return (date.fromisoformat(origin) + timedelta(days=round(float(x)))).isoformat()


def read_places(x: ArrayLike, origin: str | None) -> Floats:
    """Numbers as they are; dates, which results with an origin take as well, in days from it."""
    array = np.atleast_1d(np.asarray(x))
    if array.dtype.kind not in "OUM":
        return _validate.numeric("x", array)
    if origin is None:
        return _validate.numeric("x", array if array.dtype.kind != "M" else array.astype(str))
    try:
        moments = array.astype("datetime64[us]")
    except (ValueError, TypeError):
        raise InvalidInput(f"x must hold numbers, or dates such as {origin}, got {array.tolist()[0]!r}.") from None
    return _validate.numeric("x", (moments - np.datetime64(origin, "us")) / _DAY)


def show_places(x: Floats, origin: str | None) -> Floats | NDArray[np.datetime64]:
    """For tables and figures: the numbers, or dates to the second."""
    if origin is None:
        return x
    days: Any = np.round(np.asarray(x) * 86_400).astype("timedelta64[s]")
    moments: NDArray[np.datetime64] = np.datetime64(origin, "s") + days
    return moments
