"""The covariance of whitened gradients, from released outer products of the clipped ones."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from scipy.special import gammainc

from dpfda._typing import Floats
from dpfda.methods.adaptive import constants
from dpfda.methods.adaptive.matrices import raise_eigenvalues
from dpfda.methods.adaptive.pooling import weigh_silos
from dpfda.protocol.length_filter import TYPICAL_SHAPE, chi_below, squared_chi_median
from dpfda.protocol.plan import Plan

_LOG_LIMITS = math.log(constants.MIN_LENGTH_SHAPE), math.log(constants.MAX_LENGTH_SHAPE)
_SHAPES = np.exp(np.linspace(*_LOG_LIMITS, constants.LENGTH_SHAPES))  # chi_nu lengths, heavy tails first
_SHAPE_ODDS = np.exp(-0.5 * (np.log(_SHAPES / TYPICAL_SHAPE) / constants.LENGTH_SHAPE_LOG_SD) ** 2)


def pool_scaled(plan: Plan, scaled: Mapping[str, tuple[Floats, Floats]]) -> tuple[Floats, float]:
    """One matrix from all silos, and the sd of its noise."""
    n = np.array([plan.silo(name).n for name in scaled], dtype=np.float64)
    sd = np.array([float(noise[0]) for _, noise in scaled.values()])
    weights = weigh_silos(sd**2, n)
    total = sum(weight * value for weight, (value, _) in zip(weights, scaled.values(), strict=True))
    return np.asarray(total), float(np.sqrt((weights**2 * sd**2).sum()))


def fit_mean_square(clipped: float, sd: float, cut: float) -> float:
    """E L^2 from a noisy E min(L, cut)^2, lengths in units of their median and like chi_nu with unknown nu.

    Clipping hides the tail: for one point per curve E L^2 is 2.2 where two thirds of the lengths lie below 1.4. Bands that
    took it for 1.2 covered 60%.
    """
    median = squared_chi_median(_SHAPES)
    limit = cut**2 * median
    inside = _SHAPES / median * gammainc(_SHAPES / 2 + 1, limit / 2)
    expected = inside + cut**2 * (1 - chi_below(_SHAPES, limit))
    logs = -0.5 * (clipped - expected) ** 2 / (sd**2 + (constants.LENGTH_MODEL_ERROR * expected) ** 2)
    weights = np.exp(logs - logs.max()) * _SHAPE_ODDS
    return math.exp(float(weights @ np.log(_SHAPES / median) / weights.sum()))


def shrink_covariance(matrix: Floats, noise: float, directions: Floats, trace: float) -> Floats:
    """The measured shape, scaled to this trace, against the assumed one: Wiener weights of noise and assumption."""
    size, measured = len(matrix), float(np.trace(matrix))
    signal = (constants.ASSUMED_COVARIANCE_ERROR * trace / size) ** 2
    weight = signal / (signal + 2 * noise**2)
    scale = max(measured, constants.MIN_TRACE * trace)
    matrix = matrix * (trace / scale) if measured > 0 else np.zeros_like(matrix)
    lowest = constants.MIN_GRADIENT_EIGENVALUE * trace / size
    return raise_eigenvalues(trace * directions * (1 - weight) + weight * matrix, lowest)


def trace_sd(noise: float, size: int) -> float:
    """The sd of a trace whose entries have independent noise."""
    return noise * math.sqrt(size)
