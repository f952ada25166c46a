"""A number with its uncertainty: an integral or an average of a released curve, and what is linear in several of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import erfc

from dpfda import _validate
from dpfda._typing import Interval
from dpfda.inference.critical import pointwise_critical
from dpfda.inference.curve import ReleasedCurve

_ANYWHERE = np.zeros(1)


@dataclass(frozen=True, eq=False)
class ReleasedValue:
    """A curve that is the same at every x, seen as a number."""

    curve: ReleasedCurve

    @property
    def name(self) -> str:
        """What it is."""
        return self.curve.name

    @property
    def estimate(self) -> float:
        """The number."""
        return float(self.curve(self.curve.domain[:1])[0])

    @property
    def standard_error(self) -> float:
        """Its standard deviation, for sampling and privacy noise."""
        return float(self.curve.standard_error(self.curve.domain[:1])[0])

    def interval(self, level: float = 0.95) -> Interval:
        """A confidence interval."""
        half = pointwise_critical(_validate.fraction("level", level)) * self.curve.sd_unit(_ANYWHERE)
        low, high = self.curve.show_sides(self.curve.at_unit(_ANYWHERE), half)
        return float(low[0]), float(high[0])

    @property
    def p_value(self) -> float:
        """Of the test that the number is zero (that a ratio is 1)."""
        self.curve.scale.refuse_zero()
        centre, sd = abs(float(self.curve.at_unit(_ANYWHERE)[0])), float(self.curve.sd_unit(_ANYWHERE)[0])
        return float(erfc(centre / sd / math.sqrt(2))) if sd > 0 else float(centre == 0)

    def __float__(self) -> float:
        return self.estimate

    def __add__(self, other: ReleasedValue | float) -> ReleasedValue:
        return ReleasedValue(self.curve + other)

    __radd__ = __add__

    def __sub__(self, other: ReleasedValue | float) -> ReleasedValue:
        return ReleasedValue(self.curve - other)

    def __rsub__(self, other: float) -> ReleasedValue:
        return ReleasedValue(other - self.curve)

    def __mul__(self, factor: float) -> ReleasedValue:
        return ReleasedValue(self.curve * factor)

    __rmul__ = __mul__

    def __truediv__(self, divisor: float) -> ReleasedValue:
        return ReleasedValue(self.curve / divisor)

    def __neg__(self) -> ReleasedValue:
        return ReleasedValue(-self.curve)

    def rename(self, name: str) -> ReleasedValue:
        """The same number under another name."""
        return ReleasedValue(self.curve.rename(name))

    def __repr__(self) -> str:
        if not self.curve.has_band:
            return f"{self.name}: {self.estimate:.4g}"
        low, high = self.interval()
        return f"{self.name}: {self.estimate:.4g} (95% interval {low:.4g} to {high:.4g})"
