"""The level of y, the spread of the curves' means and the share of curves with points, from a noisy histogram."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from dpfda.engine.adaptive.pooling import Pooled

_LOCATIONS = np.linspace(-1.0, 1.0, 257)
_SCALES = np.exp(np.linspace(math.log(0.004), math.log(0.7), 20))
_MODEL_ERROR = 0.1  # relative error allowed to the normal model of the curves' means
_COMPLETE = 0.9  # prior probability that every curve has points
_TYPICAL_SPREAD, _TYPICAL_LEVEL = 0.12, 0.2  # of y in [-1, 1]; one unit of the log, and a standard deviation


@dataclass(frozen=True)
class Level:
    """Posterior mean and sd of the level, and of the (log) spread of the curves' means around it."""

    value: float
    sd: float
    spread: float
    log_spread_sd: float


@dataclass(frozen=True)
class Filled:
    """Posterior mean and sd of the share of curves that have points in the domain."""

    share: float
    sd: float


def fit_filled(histogram: Pooled) -> Filled:
    """All curves with probability 9 in 10, else any share: curves without points are in the last cell."""
    shares = np.linspace(0.05, 1.0, 191)
    variance = float(histogram.sd[-1] ** 2) + 0.25 / histogram.n
    weights = np.full(shares.size, (1 - _COMPLETE) / shares.size)
    weights[-1] += _COMPLETE
    distance = (1 - float(histogram.values[-1]) - shares) ** 2 / (2 * variance)
    weights *= np.exp(distance.min() - distance)
    weights /= weights.sum()
    share = float(weights @ shares)
    return Filled(share, math.sqrt(float(weights @ (shares - share) ** 2)))


@lru_cache(maxsize=8)
def _shares(bins: int) -> NDArray[np.float64]:
    """What each bin holds of a normal law, for every location and scale."""
    edges = np.linspace(-1.0, 1.0, bins + 1)
    below = ndtr((edges - _LOCATIONS[:, None, None]) / _SCALES[None, :, None])
    below[..., 0], below[..., -1] = 0.0, 1.0
    return np.asarray(np.diff(below, axis=-1))


def _log_likelihood(histogram: Pooled, share: NDArray[np.float64]) -> NDArray[np.float64]:
    variance = histogram.sd**2 + (0.02 + share) / histogram.n + (_MODEL_ERROR * share) ** 2
    return np.asarray(-0.5 * ((histogram.values - share) ** 2 / variance + np.log(variance)).sum(axis=-1))


def fit_level(histogram: Pooled, filled: Filled) -> Level:
    """Posterior of location and scale of a normal law under the noise of the histogram and weak priors."""
    histogram = Pooled(histogram.values[:-1], histogram.sd[:-1], histogram.n).scaled(1 / filled.share)
    location, scale = _LOCATIONS[:, None, None], _SCALES[None, :, None]
    parts = np.array_split(_shares(histogram.values.size), 16)  # small ones stay in the cache
    log_posterior = np.concatenate([_log_likelihood(histogram, share) for share in parts])
    log_posterior -= 0.5 * (location[..., 0] / _TYPICAL_LEVEL) ** 2
    log_posterior -= 0.5 * np.log(scale[..., 0] / _TYPICAL_SPREAD) ** 2
    weights = np.exp(log_posterior - log_posterior.max())
    weights /= weights.sum()
    value = float((weights * location[..., 0]).sum())
    variance_of_value = float((weights * (location[..., 0] - value) ** 2).sum())
    log_scale = np.log(scale[..., 0])
    mean_log = float((weights * log_scale).sum())
    variance_of_log = float((weights * (log_scale - mean_log) ** 2).sum())
    return Level(value, math.sqrt(variance_of_value), math.exp(mean_log), math.sqrt(variance_of_log))
