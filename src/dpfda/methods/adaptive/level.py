"""The level of y, the sd of the curves' means and the share of curves with points, from a noisy histogram."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy.special import ndtr

from dpfda._typing import Floats
from dpfda.errors import InvalidInput
from dpfda.methods.adaptive import constants
from dpfda.methods.adaptive.pooling import Pooled

_LOCATIONS = np.linspace(-1.0, 1.0, constants.LEVEL_POINTS)
_LOG_LIMITS = math.log(constants.MIN_SD_OF_MEANS), math.log(constants.MAX_SD_OF_MEANS)
_LOG_SCALES = np.linspace(*_LOG_LIMITS, constants.SD_OF_MEANS_POINTS)
_SCALES = np.exp(_LOG_SCALES)
_PRIOR_OF_SCALES = (_LOG_SCALES - math.log(constants.TYPICAL_SD_OF_MEANS)) ** 2
_PRIOR = (_LOCATIONS[:, None] / constants.TYPICAL_LEVEL) ** 2 + _PRIOR_OF_SCALES


@dataclass(frozen=True)
class Level:
    """Posterior mean and sd of the level, and of the (log) sd of the curves' means around it."""

    value: float
    sd: float
    sd_of_means: float
    log_sd_of_means_sd: float


@dataclass(frozen=True)
class Filled:
    """Posterior mean and sd of the share of curves that have points in the domain."""

    share: float
    sd: float


def fit_filled(histogram: Pooled) -> Filled:
    """All curves with probability 9 in 10, else any share: curves without points are in the last cell."""
    shares = np.linspace(constants.MIN_FILLED, 1.0, constants.FILLED_POINTS)
    variance = float(histogram.sd[-1] ** 2) + constants.MAX_SHARE_VARIANCE / histogram.n
    weights = np.full(shares.size, (1 - constants.ALL_FILLED) / shares.size)
    weights[-1] += constants.ALL_FILLED
    distance = (1 - float(histogram.values[-1]) - shares) ** 2 / (2 * variance)
    weights *= np.exp(distance.min() - distance)
    weights /= weights.sum()
    share = float(weights @ shares)
    return Filled(share, math.sqrt(float(weights @ (shares - share) ** 2)))


@lru_cache(maxsize=8)
def _tabulate_shares(bins: int) -> tuple[Floats, Floats]:
    """What cells hold of a normal law, for every scale: inner cells by distance from the location, the first by location.

    Locations divide every cell evenly, so that a cell's left edge is at `steps` * distance - part locations from the law's,
    0 <= part < steps, and few shares differ: inner[distance + bins, part, scale].
    """
    steps, remainder = divmod(_LOCATIONS.size - 1, bins)
    if remainder:
        raise InvalidInput(f"bins of a level histogram must divide {_LOCATIONS.size - 1}, got {bins}.")
    width = _LOCATIONS[1] - _LOCATIONS[0]
    left = (np.arange(-bins, bins)[:, None] * steps - np.arange(steps))[..., None] * width
    inner = ndtr((left + steps * width) / _SCALES) - ndtr(left / _SCALES)
    first = ndtr((steps - np.arange(_LOCATIONS.size))[:, None] * width / _SCALES)
    return inner, first


def measure_misfit(cells: Floats, sd: float, n: float) -> Floats:
    """-2 log likelihood of the cells' noisy shares, for every location and scale.

    For inner cells it is v^2 / variance - 2 v s / variance + (s^2 / variance + log variance), summed over cells: products
    of the cells, shifted to every location, with tables that depend on distance alone.
    """
    bins = cells.size
    share, outer = _tabulate_shares(bins)

    def variance(share: Floats) -> Floats:
        return sd**2 + (constants.CELL_MARGIN + share) / n + (constants.NORMAL_MODEL_ERROR * share) ** 2

    around = variance(share)
    ratio = share / around
    table = np.stack([1 / around, -2 * ratio, share * ratio + np.log(around)])
    table, padded = table.reshape(2 * len(table) * bins, -1), np.zeros((len(table), 3 * bins))
    padded[:, bins + 1 : 2 * bins - 1] = cells[1:-1] ** 2, cells[1:-1], np.ones(bins - 2)
    shifted = np.lib.stride_tricks.sliding_window_view(padded, 2 * bins, axis=1)
    inner = shifted.swapaxes(0, 1).reshape(bins + 1, -1) @ table
    around = variance(outer)
    logs = np.log(around)
    first = (cells[0] - outer) ** 2 / around + logs
    last = ((cells[-1] - outer) ** 2 / around + logs)[::-1]  # the mirror image of the first
    misfit: Floats = inner.reshape(-1, _SCALES.size)[: _LOCATIONS.size] + first + last
    return misfit


def fit_level(histogram: Pooled, filled: Filled) -> Level:
    """Posterior of location and scale of a normal law under the noise of the histogram and weak priors."""
    factor = 1 / filled.share
    misfit = measure_misfit(histogram.values[:-1] * factor, float(histogram.sd[0]) * factor, histogram.n)
    misfit += _PRIOR
    weights = np.exp((misfit.min() - misfit) / 2)
    weights /= weights.sum()
    of_locations, of_scales = weights.sum(axis=1), weights.sum(axis=0)
    value, mean_log = float(of_locations @ _LOCATIONS), float(of_scales @ _LOG_SCALES)
    variance = float(of_locations @ (_LOCATIONS - value) ** 2)
    variance_of_log = float(of_scales @ (_LOG_SCALES - mean_log) ** 2)
    return Level(value, math.sqrt(variance), math.exp(mean_log), math.sqrt(variance_of_log))


def allow_for_unseen(level: Level, histogram: Pooled, filled: Filled, part: float = 1.0) -> Level:
    """Where values are at a bound, few subjects may be at the other one: `part` of what the histogram's noise hides."""
    unseen = part * constants.LEVEL_DOUBT * float(histogram.sd[0]) / filled.share
    return replace(level, sd=math.hypot(level.sd, unseen))
