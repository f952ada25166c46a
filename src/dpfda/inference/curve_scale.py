"""What the numbers of a released curve are when y was transformed: means transformed back, ratios, or transformed values."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from dpfda._typing import Floats, Interval
from dpfda.errors import InvalidInput
from dpfda.protocol.transforms import NO_TRANSFORM, name_transformed, transform_bounds, undo_slope, undo_transform

MEANS = {NO_TRANSFORM: "mean", "log": "geometric mean", "log1p": "log1p mean", "sqrt": "square-root mean"}
_AVERAGES = {
    NO_TRANSFORM: "average",
    "log": "geometric average",
    "log1p": "log1p average",
    "sqrt": "square-root average",
}


def limit_means(transform: str, bounds: Interval) -> Interval:
    """Limits of means of transformed y that lie within the bounds of y when they are transformed back, rounding included."""
    low, high = transform_bounds(transform, bounds)
    return (
        _move(low, math.inf, lambda value: bool(undo_transform(transform, value) >= bounds[0])),
        _move(high, -math.inf, lambda value: bool(undo_transform(transform, value) <= bounds[1])),
    )


def _move(value: float, towards: float, is_right: Callable[[float], bool]) -> float:
    """The first number from here on that is right, once all behind it are; in steps that double, then by halves.

    One number after the other would take for ever where y is small: of 1 + y its last digits are lost.
    """
    if math.isinf(value) or is_right(value):
        return value
    wrong, right, step = value, value, math.copysign(math.ulp(value), towards)
    while not is_right(right):
        wrong, right, step = right, right + step, 2 * step
    while wrong != (middle := wrong + (right - wrong) / 2) != right:
        wrong, right = (wrong, middle) if is_right(middle) else (middle, right)
    return right


@dataclass(frozen=True)
class CurveScale:
    """The transform of y, and how many means of transformed y a curve consists of.

    `means` is 1 for a mean or a profile, 0 for an effect or a difference, None for what stays on the transformed scale
    (slopes, and what `ReleasedCurve.transformed` gives). A curve with 1 is transformed back to the units of y; one with 0 is
    a ratio if the transform is the logarithm, else a difference of transformed values.
    """

    transform: str = NO_TRANSFORM
    means: float | None = 1.0

    @property
    def is_plain(self) -> bool:
        """Whether numbers are shown as they are."""
        return self.back == NO_TRANSFORM

    @property
    def is_mean(self) -> bool:
        """Whether it is a mean of transformed y that is transformed back."""
        return self.means == 1 and self.transform != NO_TRANSFORM

    @property
    def is_ratio(self) -> bool:
        """Whether it is a ratio of two geometric means."""
        return self.means == 0 and self.transform == "log"

    @property
    def back(self) -> str:
        """The transform to undo before a number is shown."""
        return self.transform if self.is_mean or self.is_ratio else NO_TRANSFORM

    def show(self, values: Floats) -> Floats:
        """Numbers to read, from those of the law."""
        return undo_transform(self.back, values)

    def show_error(self, values: Floats, errors: Floats) -> Floats:
        """Their standard errors, to first order where something is transformed back."""
        return errors if self.is_plain else undo_slope(self.back, values) * errors

    def label(self, y: str) -> str:
        """What the numbers are, for axes."""
        if self.is_ratio:
            return f"ratio of {y}"
        return y if self.is_mean else name_transformed(self.transform, y)

    @property
    def average(self) -> str:
        """The word for an average over x."""
        return _AVERAGES[self.back]

    def combine(self, other: CurveScale, sign: float) -> CurveScale:
        """Of a sum or a difference."""
        if self.transform != other.transform:
            raise InvalidInput(
                f"the curves must have the same transform of y, got {self.transform!r} and {other.transform!r}."
            )
        if self.means is None or other.means is None:
            return CurveScale(self.transform, None)
        return self._check(self.means + sign * other.means)

    def times(self, factor: float) -> CurveScale:
        """Of a multiple."""
        return self if self.means is None else self._check(factor * self.means)

    def _check(self, means: float) -> CurveScale:
        if self.transform != NO_TRANSFORM and means not in (0.0, 1.0):
            raise InvalidInput(
                f"with transform={self.transform!r} only differences of means are answered; take curve.transformed() for "
                f"sums and multiples of {self.transform}(y)."
            )
        return CurveScale(self.transform, means)

    def refuse_numbers(self) -> None:
        """A number that is added would be one of transformed y, which nobody means."""
        if not self.is_plain:
            raise InvalidInput(
                f"a number cannot be added to a curve with transform={self.transform!r}; take curve.transformed() and add "
                f"one of {self.transform}(y)."
            )

    def refuse_integral(self) -> None:
        """A value that is transformed back is not an integral."""
        if not self.is_plain:
            raise InvalidInput(
                f"an integral needs y without a transform; with transform={self.transform!r} ask for an average, or for "
                f"that of {self.transform}(y) with curve.transformed()."
            )

    def refuse_basis(self) -> None:
        """A curve that is transformed back is not a combination of basis functions."""
        if not self.is_plain:
            raise InvalidInput(
                f"a curve that is transformed back from {self.transform}(y) is not a combination of basis functions; take "
                "curve.transformed(), which is."
            )

    def refuse_zero(self) -> None:
        """A mean that is transformed back is not tested against zero."""
        if self.is_mean:
            raise InvalidInput(
                f"a {MEANS[self.transform]} is not tested against zero; ask about a difference of two curves, or whether "
                "the curve is constant."
            )


AS_IS = CurveScale()
