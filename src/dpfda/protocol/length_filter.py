"""Where the lengths of the curves' contributions lie, learnt from private counts alone.

A clipping radius has to come from somewhere: a worst case is far too wide, and the data must not be asked for free. So
each round also releases one number, the noisy share of curves shorter than the length that splits them in half as far
as is known, and a Bayesian filter on a grid tracks the median. The filter sees released counts and public numbers only:
silo and coordinator run it side by side and agree to the last bit.

Lengths are modelled as median * chi_nu / median(chi_nu), a family from heavy lower tails (nu = 1) to nearly constant
lengths (nu = 20). The model steers the radius; it has no part in the guarantee, which holds for every radius.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.special import gammainc, gammaincinv

from dpfda._typing import Floats

TYPICAL_SHAPE = 2.3  # nu that is expected before anything is released: one point per curve has 1, many have more
_SHAPES = np.array([1.0, 2.0, 4.0, 8.0, 20.0])  # nu of the filter, and what is thought of each at the start
_SHAPE_PRIOR = np.array([0.1, 0.25, 0.3, 0.25, 0.1])
_STEP = 0.05  # grid of the log median
_HALF_WIDTH = 100  # grid points to each side: five units of the log
_SHARE_ERROR = 0.03  # by how much a share may differ from the model's
_VARIANCE_MARGIN = 0.02  # added to p (1 - p): a share that the model takes for 0 or 1 varies, too
_MIN_WEIGHT = 1e-30  # of a grid point: no count rules one out for ever
_MIN_FACTOR = 1e-3  # E min(1, radius/length) whose log is taken
_BLUR_SDS = 3  # where a blurring kernel ends
_POINTS = 2 * _HALF_WIDTH + 1
_PER_UNIT = 100  # steps of the tables in one unit of the log
_LOG_LENGTHS = np.linspace(-9.0, 4.0, 1301)  # log(length / median)
_RATIO = round(_STEP * _PER_UNIT)
_REACH = _RATIO * _POINTS + 2


def squared_chi_median(shape: Floats | float) -> Floats:
    """The median of chi_nu squared."""
    return np.asarray(2 * gammaincinv(np.asarray(shape) / 2, 0.5), dtype=np.float64)


def chi_below(shape: Floats | float, squared: Floats | float) -> Floats:
    """The probability that chi_nu squared is at most `squared`."""
    return np.asarray(gammainc(np.asarray(shape) / 2, np.asarray(squared) / 2), dtype=np.float64)


@lru_cache(maxsize=1)
def _tables() -> Floats:
    """For each shape, at log(length/median): the distribution function, and E min(1, c/length) at that log c."""
    medians = np.sqrt(squared_chi_median(_SHAPES))
    lengths = np.exp(_LOG_LENGTHS)[None, :] * medians[:, None]
    distribution = chi_below(_SHAPES[:, None], lengths**2)
    steps = np.diff(distribution, axis=1)
    middles = (_LOG_LENGTHS[1:] + _LOG_LENGTHS[:-1]) / 2
    # E min(1, c/L) = P(L <= c) + c E[1/L; L > c]
    inverse_above = np.cumsum((steps * np.exp(-middles))[:, ::-1], axis=1)[:, ::-1]
    shrunk = distribution + np.exp(_LOG_LENGTHS) * np.concatenate([inverse_above, np.zeros((len(_SHAPES), 1))], axis=1)
    return np.stack([distribution, np.minimum(shrunk, 1.0)])


@lru_cache(maxsize=1)
def _widened_tables() -> Floats:
    """The same, with the first and last values repeated as far as a grid reaches."""
    return np.pad(_tables(), ((0, 0), (0, 0), (_REACH, _REACH)), mode="edge")


def _lookup(tables: Floats, first: float) -> Floats:
    """Linear interpolation at `first` and below in steps of the grid, each of which is _RATIO steps of the tables."""
    position = (first - _LOG_LENGTHS[0]) * _PER_UNIT
    position = min(max(position, -1.0), _LOG_LENGTHS.size + _RATIO * (_POINTS - 1.0))  # beyond, all is constant
    whole = math.floor(position)
    start = whole + _REACH
    stop = start - _RATIO * (_POINTS - 1)
    below = tables[..., start : stop - 1 : -_RATIO]
    above = tables[..., start + 1 : stop : -_RATIO]
    return np.asarray(below + (position - whole) * (above - below), dtype=np.float64)


class LengthFilter:
    """What is known about the log median (and shape) of lengths, as weights on a grid. It does not change.

    The lengths of curves that have points, a share `filled` of all: every count has the others among the short.
    """

    def __init__(self, grid: Floats, log_weights: Floats, filled: float) -> None:
        self._grid = grid
        self._filled = filled
        weights = np.exp(log_weights - log_weights.max())
        self._weights: Floats = weights / weights.sum()
        self.shapes: Floats = self._weights.sum(axis=1)
        over_grid = self._weights.sum(axis=0)
        self.log_median = float(over_grid @ self._grid)
        self.sd = math.sqrt(float(over_grid @ (self._grid - self.log_median) ** 2))

    @classmethod
    def around(cls, log_median: float, sd: float, filled: float = 1.0) -> LengthFilter:
        """A normal law of the log median, and the usual shapes."""
        grid = log_median + np.arange(-_HALF_WIDTH, _HALF_WIDTH + 1, dtype=np.float64) * _STEP
        return cls(grid, -0.5 * ((grid - log_median) / sd) ** 2 + np.log(_SHAPE_PRIOR)[:, None], filled)

    def log_quantile(self, level: float) -> float:
        """The log of the length below which a share `level` of the curves is thought to be."""
        return self.log_median + float(np.interp(level, self.shapes @ _tables()[0], _LOG_LENGTHS))

    def observe(self, log_threshold: float, share: float, noise_sd: float, n: float) -> LengthFilter:
        """What is known after the noisy share of n curves that are shorter than a threshold."""
        expected = 1 - self._filled * (1 - _lookup(_widened_tables()[0], log_threshold - self._grid[0]))
        variance = noise_sd**2 + (expected * (1 - expected) + _VARIANCE_MARGIN) / n + _SHARE_ERROR**2
        likelihood = -0.5 * ((share - expected) ** 2 / variance + np.log(variance))
        return LengthFilter(self._grid, np.log(self._weights + _MIN_WEIGHT) + likelihood, self._filled)

    def move(self, ratio: float, blur: float) -> LengthFilter:
        """What is known after the iterate moved: lengths change by about `ratio`, and less is known."""
        reach = math.ceil(_BLUR_SDS * blur / _STEP)
        kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) * _STEP / blur) ** 2)
        apart = np.zeros((len(_SHAPES), _POINTS + 2 * reach))  # rows with nothing between them, to be blurred as one
        apart[:, reach:-reach] = self._weights
        blurred = np.convolve(apart.ravel(), kernel / kernel.sum(), "same").reshape(apart.shape)[:, reach:-reach]
        return LengthFilter(self._grid + math.log(ratio), np.log(blurred + _MIN_WEIGHT), self._filled)

    def attenuation(self, log_radius: float) -> tuple[float, float, float]:
        """What clipping at a radius does to a mean, and how uncertain that is.

        Returns E s, E[s; clipped] and the variance of log E s, where s = min(1, radius/length). A displacement far larger
        than the lengths shrinks by E s; at the centre of a symmetric law the slope is E s I - E[s; clipped] U, U being the
        mean direction u u^T of the clipped curves.
        """
        inside, mean_factor = _lookup(_widened_tables(), log_radius - self._grid[0])
        logs = np.log(mean_factor + _MIN_FACTOR)
        variance = float((self._weights * logs**2).sum() - (self._weights * logs).sum() ** 2)
        clipped = (self._weights * (mean_factor - inside)).sum()
        return float((self._weights * mean_factor).sum()), max(float(clipped), 0.0), max(variance, 0.0)
