"""Units of covariates: centres and scales from released histograms, so that a covariate has mean 0 and variance 1.

The first function is then the curve of average covariates and the others are effects of one standard deviation; `Units`
takes coefficients and gradients there and back.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr

from dpfda._typing import Floats
from dpfda.methods.adaptive import constants
from dpfda.methods.adaptive.matrices import kron
from dpfda.methods.adaptive.prior import normalise
from dpfda.protocol.statistics import COVARIATE_CELLS


@dataclass(frozen=True)
class Units:
    """g = (G - centre) / scale; the intercept, where there is one, stays 1."""

    centre: Floats
    scale: Floats
    intercept: bool

    @property
    def matrix(self) -> Floats:
        """theta* = matrix theta: what coefficient functions become in these units."""
        matrix = np.diag(self.scale)
        if self.intercept:
            matrix[0, 1:] = self.centre[1:]
        return matrix

    @cached_property
    def back(self) -> Floats:
        """theta = back theta*."""
        return np.asarray(np.linalg.inv(self.matrix))

    def standardise_gradients(self, size: int) -> Floats:
        """What takes gradients with respect to theta to those with respect to theta*, `size` functions a column."""
        return np.asarray(kron(self.back.T, np.eye(size)))

    def restore(self, coefficients: Floats) -> Floats:
        """Coefficients theta from theta*, one row a column."""
        return np.asarray(self.back @ coefficients)


def fit_column(shares: Floats, sd: float) -> tuple[float, float, bool]:
    """Centre, scale and whether there are two values: from the ends' shares, or from those of all bins."""
    low, high = float(shares[0]), float(shares[-1])
    inside = float(shares[1:-1].sum())
    noise = sd * math.sqrt(COVARIATE_CELLS - 2)
    if inside < constants.TWO_VALUED_SDS * noise and inside < constants.MOST_INSIDE:
        share = min(max((high + 1 - low) / 2, constants.LEAST_GROUP), 1 - constants.LEAST_GROUP)
        return 2 * share - 1, 2 * math.sqrt(share * (1 - share)), True
    bins = COVARIATE_CELLS - 2
    places = np.concatenate([[-1.0], (np.arange(bins) + 0.5) * (2 / bins) - 1, [1.0]])
    clear = np.maximum(shares - constants.CLEAR_BINS * sd, 0.0)  # noise in empty bins would widen everything
    clear = clear if clear.sum() > 0 else np.maximum(shares, constants.LEAST_BIN)
    weights = clear / clear.sum()
    mean = float(weights @ places)
    spread = math.sqrt(float(weights @ (places - mean) ** 2) + (constants.WITHIN_BIN / bins) ** 2)
    likely_mean, likely_spread = _fit_normal(shares, sd)
    clear_part = 1 / (1 + (noise / constants.UNCLEAR) ** 4)  # bins that are mostly noise say less than a normal law
    mean += (1 - clear_part) * (likely_mean - mean)
    return mean, max(spread**clear_part * likely_spread ** (1 - clear_part), constants.LEAST_SCALE), False


def _fit_normal(shares: Floats, sd: float) -> tuple[float, float]:
    """Posterior mean and spread of a normal law, cut off at the bounds, under the noise of its cells and a weak prior."""
    bins = COVARIATE_CELLS - 2
    edges = np.linspace(-1, 1, bins + 1)
    means = constants.LIKELY_MEANS * np.linspace(-1, 1, constants.LIKELY_POINTS)[:, None, None]
    spreads = np.geomspace(constants.LIKELY_LEAST, 1.0, constants.LIKELY_POINTS)[:, None]
    below = ndtr((edges - means) / spreads)
    cells = np.diff(below, axis=-1, prepend=0.0, append=1.0)
    misfit = ((shares - cells) ** 2 / (sd**2 + (constants.NORMAL_MODEL_ERROR * cells) ** 2)).sum(axis=-1)
    prior = (means / constants.LIKELY_MEAN_SD) ** 2
    prior = prior + (np.log(spreads / constants.LIKELY_SPREAD) / constants.LIKELY_LOG_SD) ** 2
    weights = normalise(-0.5 * (misfit + prior[..., 0]).ravel()).reshape(misfit.shape)
    mean, log_spread = (weights * means[..., 0]).sum(), (weights * np.log(spreads[:, 0])).sum()
    return float(mean), math.exp(float(log_spread))
