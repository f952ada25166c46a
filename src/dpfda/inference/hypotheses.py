"""Simultaneous tests: p-values that hold for the whole domain, and the intervals of x where a hypothesis is rejected."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from dpfda._typing import Floats
from dpfda.inference.critical import KNOWN, exceedance, nodes
from dpfda.inference.places import write_place

if TYPE_CHECKING:
    from dpfda.inference.curve import ReleasedCurve

_HALVINGS = 60
LEAST_P = 1e-15  # smaller ones are beyond what a normal law can be trusted for


@dataclass(frozen=True)
class Excluded:
    """An interval of x on which the band excludes zero, and on which side the curve lies: 1 above, -1 below."""

    low: float
    high: float
    sign: int

    def describe(self, write: Callable[[float], str]) -> str:
        """In words, places written by `write`."""
        return f"({write(self.low)} to {write(self.high)}: {'above' if self.sign > 0 else 'below'})"

    def __repr__(self) -> str:
        return self.describe(write_place)


@dataclass(frozen=True)
class CurveTest:
    """The result of a test. It is true if the hypothesis is compatible with what was released.

    Attributes
    ----------
    hypothesis : str
        What was tested.
    p_value : float
        For the whole domain at once; at most that often a true hypothesis gives a p-value this small.
    statistic : float
        The largest absolute estimate in standard errors.
    level : float
        Of `intervals`.
    intervals : tuple of Excluded
        Where the simultaneous band of this level excludes the hypothesis.
    x_origin : str or None
        The date from which places are counted in days, if x is a date.
    """

    hypothesis: str
    p_value: float
    statistic: float
    level: float
    intervals: tuple[Excluded, ...]
    x_origin: str | None = None

    @property
    def rejected(self) -> bool:
        """Whether the hypothesis is rejected at this level."""
        return self.p_value < 1 - self.level

    def __bool__(self) -> bool:
        return not self.rejected

    def __repr__(self) -> str:
        return self.describe(partial(write_place, origin=self.x_origin))

    def describe(self, write: Callable[[float], str]) -> str:
        """In words, places written by `write`."""
        where = f" on {', '.join(each.describe(write) for each in self.intervals)}" if self.intervals else ""
        verdict = f"rejected{where}" if self.rejected else "not rejected"
        return f"{self.hypothesis}: {write_p(self.p_value)}, {verdict} (level {self.level:g})"


def write_p(p_value: float) -> str:
    """In words; a p-value is never shown as 0."""
    return f"p = {p_value:.3g}" if p_value >= LEAST_P else f"p < {LEAST_P:g}"


def judge_zero(curve: ReleasedCurve, level: float, hypothesis: str) -> CurveTest:
    """Test that a curve is zero everywhere."""
    u = nodes()
    ratios = _ratios(curve, u)
    statistic = float(np.abs(ratios).max())
    c = curve.critical_value(level)
    p_value = exceedance(statistic, np.array([curve.path_length]))
    intervals = tuple(_find_intervals(curve, u, ratios, c))
    return CurveTest(hypothesis, p_value, statistic, level, intervals, curve.x_origin)


def _ratios(curve: ReleasedCurve, u: Floats) -> Floats:
    """Estimates in standard errors; 0 where the value is known exactly."""
    variance = curve.sd_unit(u) ** 2
    doubtful = variance > KNOWN * variance.max(initial=0.0)
    return np.where(doubtful, curve.at_unit(u) / np.sqrt(np.where(doubtful, variance, 1.0)), 0.0)


def _find_intervals(curve: ReleasedCurve, u: Floats, ratios: Floats, c: float) -> list[Excluded]:
    low, high = curve.domain
    found = []
    signs = np.where(ratios > c, 1, np.where(ratios < -c, -1, 0))
    starts = np.flatnonzero((signs != 0) & (np.concatenate([[0], signs[:-1]]) != signs))
    for start in starts:
        sign, end = int(signs[start]), int(start)
        while end + 1 < len(u) and signs[end + 1] == sign:
            end += 1
        left = u[start] if start == 0 else _crossing(curve, u[start - 1], u[start], c, sign)
        right = u[end] if end == len(u) - 1 else _crossing(curve, u[end + 1], u[end], c, sign)
        found.append(Excluded(low + (high - low) * float(left), low + (high - low) * float(right), sign))
    return found


def _crossing(curve: ReleasedCurve, outside: float, inside: float, c: float, sign: int) -> float:
    """Where the band begins to exclude zero, by bisection."""
    for _ in range(_HALVINGS):
        middle = np.array([(outside + inside) / 2])
        excluded = sign * curve.at_unit(middle)[0] > c * curve.sd_unit(middle)[0]
        outside, inside = (outside, middle[0]) if excluded else (middle[0], inside)
    return (outside + inside) / 2
