"""Statistics of error curves: gradients with breaks, where a curve levels off, directions with an error level."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm, wilcoxon

from dpfda._typing import Floats

LEAST_POINTS = 4  # a line through fewer says little
BREAK_LEVEL = 0.01  # how often a break may be found where there is none
BETWEEN_THEORIES = -1.5  # gradients below it are nearer to -2 than to -1
LEVELLING = 0.1  # levelled off: what is still to be gained is less than this share of all that m gains


@dataclass(frozen=True)
class Line:
    """A least-squares line through log error over log n, between two values of log n."""

    gradient: float
    intercept: float
    start: float
    stop: float

    def at(self, x: ArrayLike) -> Floats:
        """Its height."""
        return self.intercept + self.gradient * np.asarray(x, dtype=np.float64)


def lines_with_break(x: ArrayLike, y: ArrayLike) -> list[Line]:
    """Two lines with the best break if a break is significant at level 0.01, else one line.

    Every break that leaves four points on each side is tried. The statistic is the sum of squares around one line over
    the least sum around two; its law without a break is that of straight lines with normal errors at the same x.
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    makers = _residual_makers(tuple(x))
    if not makers or _gain(makers, y[:, None])[0] <= _critical_gain(tuple(x)):
        return [_line(x, y)]
    cut = LEAST_POINTS + int(np.argmin([float(((maker @ y) ** 2).sum()) for maker in makers[1:]]))
    return [_line(x[:cut], y[:cut]), _line(x[cut:], y[cut:])]


def _line(x: Floats, y: Floats) -> Line:
    gradient, intercept = np.polyfit(x, y, 1)
    return Line(float(gradient), float(intercept), float(x[0]), float(x[-1]))


@lru_cache(maxsize=16)
def _residual_makers(x: tuple[float, ...]) -> list[Floats]:
    """The matrices that leave residuals: around one line, then around two for every break; none for few points."""
    points = np.asarray(x)
    if len(points) < 2 * LEAST_POINTS:
        return []

    def maker(points: Floats) -> Floats:
        design = np.column_stack([np.ones_like(points), points])
        return np.asarray(np.eye(len(points)) - design @ np.linalg.pinv(design))

    makers = [maker(points)]
    for cut in range(LEAST_POINTS, len(points) - LEAST_POINTS + 1):
        both = np.zeros((len(points), len(points)))
        both[:cut, :cut], both[cut:, cut:] = maker(points[:cut]), maker(points[cut:])
        makers.append(both)
    return makers


def _gain(makers: Sequence[Floats], y: Floats) -> Floats:
    """Sum of squares around one line over the least around two, for every column of y."""
    squares = np.array([((maker @ y) ** 2).sum(axis=0) for maker in makers])
    return np.asarray(squares[0] / np.maximum(squares[1:].min(axis=0), 1e-300))


@lru_cache(maxsize=16)
def _critical_gain(x: tuple[float, ...]) -> float:
    draws = np.random.default_rng(0).standard_normal((len(x), 20_000))
    return float(np.quantile(_gain(_residual_makers(x), draws), 1 - BREAK_LEVEL))


def sorted_gradients(lines: Sequence[Line]) -> tuple[list[float], list[float]]:
    """Gradients nearer to -2 (private dense) and nearer to -1 (non-private dense)."""
    gradients = [line.gradient for line in lines]
    return (
        [value for value in gradients if value < BETWEEN_THEORIES],
        [value for value in gradients if value >= BETWEEN_THEORIES],
    )


@dataclass(frozen=True)
class Levelling:
    """Where a falling curve levels off, and by which share the error still falls from `claimed` to the end."""

    turn: float
    still_falls: float


def levelling(x: Sequence[float], errors: ArrayLike, claimed: float) -> Levelling:
    """By a smooth curve a + b x^-c through the logarithms, so that Monte Carlo noise at single points does not decide.

    The turn is the first x from which on less than 10% of the whole improvement is still to come.
    """
    from scipy.optimize import least_squares

    points, values = np.asarray(x, dtype=np.float64), np.asarray(errors, dtype=np.float64)
    start = [math.log(values[-1]), math.log(max(values[0] - values[-1], 1e-9 * values[0])), 0.0]

    def curve(p: Floats, at: Floats) -> Floats:
        shape: Floats = np.exp(p[0]) + np.exp(p[1]) * (at / points[0]) ** -np.exp(p[2])
        return shape

    def misfit(p: Floats) -> Floats:
        return np.asarray(np.log(curve(p, points)) - np.log(values))

    fit = least_squares(misfit, start, bounds=([-40, -40, -3], [40, 40, 2]), loss="soft_l1")
    dense = np.linspace(points[0], points[-1], 1000)
    heights = curve(fit.x, dense)
    remaining = (heights - heights[-1]) / max(heights[0] - heights[-1], 1e-300)
    at_claimed = float(np.interp(claimed, dense, heights))
    return Levelling(float(dense[np.argmax(remaining <= LEVELLING)]), float(1 - heights[-1] / at_claimed))


@dataclass(frozen=True)
class Direction:
    """A one-sided test that the second sample is smaller: means, and the p-value of the opposite."""

    before: float
    after: float
    p_value: float

    def holds(self, level: float) -> bool:
        """Whether the fall is significant at this level."""
        return self.after < self.before and self.p_value < level


def falls(worse: Floats, better: Floats, *, paired: bool = False) -> Direction:
    """Wilcoxon's signed-rank test for pairs (shared data), else a normal test of the mean logarithms."""
    if paired and len(worse) == len(better):
        p_value = float(wilcoxon(worse, better, alternative="greater").pvalue)
    else:
        first, second = np.log(worse), np.log(better)
        spread = math.hypot(*(float(one.std(ddof=1)) / math.sqrt(len(one)) for one in (first, second)))
        p_value = float(norm.sf((first.mean() - second.mean()) / max(spread, 1e-300)))
    return Direction(float(worse.mean()), float(better.mean()), p_value)


def monotone_share(values: ArrayLike) -> float:
    """The share of neighbouring pairs in which the second value is smaller."""
    steps = np.diff(np.asarray(values, dtype=np.float64))
    return float((steps < 0).mean())
