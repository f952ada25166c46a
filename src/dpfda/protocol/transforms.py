"""Public monotone transforms of y: a silo applies one to each value after clamping it, readers of a result take it back.

The logarithm is made of operations that IEEE 754 rounds correctly (+, -, *, / and frexp), one at a time. So its bits depend
on the value alone, never on its neighbours in an array or on the processor, as those of a vectorised library function may.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from dpfda._typing import Floats
from dpfda.errors import InvalidInput

TRANSFORMS = ("none", "log", "log1p", "sqrt")
NO_TRANSFORM = TRANSFORMS[0]
_LAST_TERM = 23  # of the series below: what follows is less than 1e-19
_BLOCK = 1 << 13
_SQRT_HALF, _LOG_2 = math.sqrt(0.5), math.log(2.0)


def check_transform(transform: str, y_bounds: tuple[float, float]) -> str:
    """A transform that is defined for every value within the bounds, and tells the bounds apart."""
    if transform not in TRANSFORMS:
        raise InvalidInput(f"transform must be one of {', '.join(map(repr, TRANSFORMS))}, got {transform!r}.")
    low = y_bounds[0]
    if transform == "log" and not low > 0:
        raise InvalidInput(
            f"y_bounds must be positive with transform='log', got a lower bound of {low:g}; give the smallest value that "
            "can be measured, or use 'log1p' or 'sqrt' if y may be 0."
        )
    if transform in ("log1p", "sqrt") and not low >= 0:
        raise InvalidInput(f"y_bounds must not be negative with transform={transform!r}, got a lower bound of {low:g}.")
    if transform != NO_TRANSFORM and not np.less(*transform_bounds(transform, y_bounds)):
        raise InvalidInput(
            f"y_bounds {y_bounds[0]:g} to {y_bounds[1]:g} are one number after transform={transform!r}; use another unit of "
            "y, or no transform."
        )
    return transform


def name_transformed(transform: str, y: str = "y") -> str:
    """What a transformed y is called: log(y)."""
    return y if transform == NO_TRANSFORM else f"{transform}({y})"


def apply_transform(transform: str, values: ArrayLike) -> Floats:
    """The transform of each value; the bits of an entry depend on that entry alone."""
    array = np.asarray(values, dtype=np.float64)
    if transform == "log":
        return _take_log(array)
    if transform == "log1p":
        return _take_log(1.0 + array)
    return np.sqrt(array) if transform == "sqrt" else array


def undo_transform(transform: str, values: ArrayLike) -> Floats:
    """The inverse: values of y from transformed ones."""
    array = np.asarray(values, dtype=np.float64)
    if transform == "log":
        return np.exp(array)
    if transform == "log1p":
        return np.expm1(array)
    return np.square(array) if transform == "sqrt" else array


def undo_slope(transform: str, values: ArrayLike) -> Floats:
    """The derivative of the inverse, for standard errors to first order."""
    array = np.asarray(values, dtype=np.float64)
    if transform in ("log", "log1p"):
        return np.exp(array)
    return 2.0 * array if transform == "sqrt" else np.ones_like(array)


def transform_bounds(transform: str, bounds: tuple[float, float]) -> tuple[float, float]:
    """Bounds of the transformed values; what is unbounded stays so."""
    low, high = bounds
    return (
        low if math.isinf(low) else float(apply_transform(transform, low)),
        high if math.isinf(high) else float(apply_transform(transform, high)),
    )


def _take_log(values: Floats) -> Floats:
    """Of positive numbers, some at a time: more than the cache holds would be several times slower."""
    found = np.empty_like(values)
    flat, logs = values.reshape(-1), found.reshape(-1)
    for start in range(0, flat.size, _BLOCK):
        logs[start : start + _BLOCK] = _take_log_of_block(flat[start : start + _BLOCK])
    return found


def _take_log_of_block(values: Floats) -> Floats:
    """values = 2^e f with f in [sqrt(1/2), sqrt(2)), and log f = 2 artanh((f - 1) / (f + 1))."""
    fraction, exponent = np.frexp(values)
    is_low = fraction < _SQRT_HALF
    fraction = np.where(is_low, 2.0 * fraction, fraction)
    s = (fraction - 1.0) / (fraction + 1.0)
    square = s * s
    series = np.zeros_like(s)
    for term in range(_LAST_TERM, 1, -2):
        series += 1.0 / term
        series *= square
    series *= s
    series += s
    return np.asarray((exponent - is_low) * _LOG_2 + 2.0 * series)
