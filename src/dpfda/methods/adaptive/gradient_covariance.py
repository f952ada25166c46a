"""The covariance of whitened gradients, from released outer products of the clipped ones."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from scipy.special import gammainc, gammaincinv

from dpfda._typing import Floats
from dpfda.methods.adaptive.matrices import with_floor
from dpfda.protocol.plan import Plan

_SHAPES = np.exp(np.linspace(math.log(0.6), math.log(20.0), 24))  # chi_nu lengths, heavy tails first
_ODDS = np.exp(-0.5 * (np.log(_SHAPES / 2.3) / 1.0) ** 2)  # one point per curve has nu = 1, many have more
_MODEL_ERROR = 0.02
_SHAPE_ERROR = 0.5  # relative sd of an entry of the assumed directions


def pool_scaled(plan: Plan, scaled: Mapping[str, tuple[Floats, Floats]]) -> tuple[Floats, float]:
    """One matrix from all silos, weights 1 / (noise variance + 0.3/n_s), and the sd of its noise."""
    n = np.array([plan.terms(name).n for name in scaled], dtype=np.float64)
    sd = np.array([float(noise[0]) for _, noise in scaled.values()])
    weights = 1 / (sd**2 + 0.3 / n)
    weights /= weights.sum()
    total = sum(weight * value for weight, (value, _) in zip(weights, scaled.values(), strict=True))
    return np.asarray(total), float(np.sqrt((weights**2 * sd**2).sum()))


def mean_square(clipped: float, sd: float, cut: float) -> float:
    """E L^2 from a noisy E min(L, cut)^2, lengths in units of their median and like chi_nu with unknown nu.

    Clipping hides the tail: for one point per curve E L^2 is 2.2 where two thirds of the lengths lie below 1.4. Bands that
    took it for 1.2 covered 60%.
    """
    median = 2 * gammaincinv(_SHAPES / 2, 0.5)
    limit = cut**2 * median / 2
    inside = _SHAPES / median * gammainc(_SHAPES / 2 + 1, limit)
    expected = inside + cut**2 * (1 - gammainc(_SHAPES / 2, limit))
    logs = -0.5 * (clipped - expected) ** 2 / (sd**2 + (_MODEL_ERROR * expected) ** 2)
    weights = np.exp(logs - logs.max()) * _ODDS
    return math.exp(float(weights @ np.log(_SHAPES / median) / weights.sum()))


def shrunk_spread(matrix: Floats, noise: float, directions: Floats, trace: float) -> Floats:
    """The measured shape, scaled to this trace, against the assumed one: Wiener weights of noise and assumption."""
    size, measured = len(matrix), float(np.trace(matrix))
    signal = (_SHAPE_ERROR * trace / size) ** 2
    weight = signal / (signal + 2 * noise**2)
    matrix = matrix * (trace / max(measured, 0.3 * trace)) if measured > 0 else np.zeros_like(matrix)
    return with_floor(trace * directions * (1 - weight) + weight * matrix, 0.1 * trace / size)


def trace_sd(noise: float, size: int) -> float:
    """The sd of a trace whose entries have independent noise."""
    return noise * math.sqrt(size)
