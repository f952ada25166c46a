"""The only place where user parameters are checked.

Every function returns the checked value in its canonical type or raises `InvalidInput` with one sentence that
names the argument and says how to fix it. Comparisons are written so that NaN fails them.
"""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfda.errors import InvalidInput


def real(name: str, value: Any) -> float:
    """A finite real number."""
    if isinstance(value, bool) or not isinstance(value, float | numbers.Real) or not math.isfinite(value):
        raise InvalidInput(f"{name} must be a finite number, got {value!r}.")
    return float(value)


def positive(name: str, value: Any) -> float:
    """A finite number above zero."""
    number = real(name, value)
    if not number > 0:
        raise InvalidInput(f"{name} must be greater than 0, got {value!r}.")
    return number


def within(name: str, value: Any, low: float, high: float) -> float:
    """A finite number between two limits."""
    number = real(name, value)
    if not low <= number <= high:
        raise InvalidInput(f"{name} must lie between {low:g} and {high:g}, got {value!r}.")
    return number


def name(argument: str, value: Any) -> str:
    """A short text that identifies something."""
    if not isinstance(value, str) or not 0 < len(value) <= 200:
        raise InvalidInput(f"{argument} must be a text of 1 to 200 characters, got {value!r}.")
    return value


def fraction(name: str, value: Any) -> float:
    """A number strictly between 0 and 1."""
    number = real(name, value)
    if not 0 < number < 1:
        raise InvalidInput(f"{name} must lie strictly between 0 and 1, got {value!r}.")
    return number


def integer(name: str, value: Any, *, minimum: int = 1) -> int:
    """A whole number of at least `minimum`."""
    if isinstance(value, bool) or not isinstance(value, int | numbers.Integral) or int(value) < minimum:
        raise InvalidInput(f"{name} must be a whole number of at least {minimum}, got {value!r}.")
    return int(value)


def choice(name: str, value: Any, allowed: Sequence[str]) -> str:
    """One of a fixed list of words."""
    if value not in allowed:
        raise InvalidInput(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}.")
    return str(value)


def interval(name: str, value: Any) -> tuple[float, float]:
    """A pair (low, high) of finite numbers with low < high."""
    try:
        low, high = value
    except (TypeError, ValueError):
        raise InvalidInput(f"{name} must be a pair (low, high), got {value!r}.") from None
    low, high = real(f"{name}[0]", low), real(f"{name}[1]", high)
    if not low < high:
        raise InvalidInput(f"{name} must have low < high, got ({low:g}, {high:g}); swap or widen the two.")
    if not math.isfinite(high - low):
        raise InvalidInput(f"{name} is too wide for floating point, got ({low:g}, {high:g}).")
    return low, high


def privacy_pair(epsilon: Any, delta: Any) -> tuple[float, float]:
    """A privacy budget: epsilon > 0 and 0 < delta < 1."""
    positive("epsilon", epsilon)
    return within("epsilon", epsilon, 1e-6, 1e4), within("delta", fraction("delta", delta), 1e-100, 1.0)


def vector(name: str, value: ArrayLike, *, length: int | None = None, finite: bool = True) -> NDArray[np.float64]:
    """A one-dimensional array of floats, of the given length if one is given."""
    array = numeric(name, value)
    if array.ndim != 1:
        raise InvalidInput(f"{name} must be one-dimensional, got shape {array.shape}.")
    if length is not None and array.size != length:
        raise InvalidInput(f"{name} must have length {length}, got {array.size}.")
    if finite and not np.isfinite(array).all():
        raise InvalidInput(f"{name} must hold finite numbers only; remove NaN and infinite entries.")
    return array


def numeric(name: str, value: ArrayLike) -> NDArray[np.float64]:
    """Anything that converts to floats without guessing: text is refused, missing values become NaN."""
    try:
        array = np.asarray(value)
    except ValueError:  # rows of different lengths
        raise InvalidInput(f"{name} must be a rectangular array of numbers.") from None
    if array.dtype.kind in "USmMcV":
        raise InvalidInput(f"{name} must be numeric, got {array.dtype}; convert it to numbers first.")
    try:
        if array.dtype == object and any(isinstance(entry, (str, bytes)) for entry in array.flat):
            raise ValueError
        return array.astype(np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(f"{name} must be numeric, got text or objects; convert it to numbers first.") from None


def url_without_password_option(name: str, value: str) -> str:
    """The URL of a database; a password among its options is refused, since options stand in logs and messages."""
    options = value.partition("?")[2].replace(";", "&")
    if any("pass" in unquote(option.partition("=")[0]).lower() for option in options.split("&")):
        raise InvalidInput(
            f"{name} must not hold a password behind the question mark; put it into ~/.pgpass or PGPASSWORD, or write "
            "user:password@ before the host."
        )
    if "@" in re.split(r"[?#]", value, maxsplit=1)[-1] and re.search(r"[?#]", value):
        raise InvalidInput(
            f"{name} must not have an @ behind a ? or #: in a password write %3F and %23 for these, in an option %40 for @."
        )
    return value
