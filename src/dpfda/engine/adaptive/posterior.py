"""Coefficients from measurements: ridge regression with a Sobolev prior whose size the measurements choose."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpfda.basis import Basis

Floats = NDArray[np.float64]

_SIZES = np.exp(np.linspace(math.log(0.002), math.log(1.5), 14))  # sd of a first-harmonic coefficient, y in [-1, 1]


@dataclass(frozen=True)
class Posterior:
    """Coefficients (flat), their covariance, and the size of prior that the measurements preferred."""

    mean: Floats
    covariance: Floats
    size: float


def sobolev_decay(basis: Basis, columns: int, alpha: float) -> Floats:
    """Prior standard deviations k^-alpha of all coefficients, in units of the prior's size."""
    return np.tile(np.maximum(basis.frequencies.astype(np.float64), 1.0) ** -alpha, columns)


def solve(
    measurements: Sequence[tuple[Floats, Floats]],
    information: Floats,
    level: float,
    level_sd: float,
    decay: Floats,
) -> Posterior:
    """h_s = A b + N(0, V_s) for every silo, b ~ N(level e_1, size^2 decay^2), averaged over sizes by their evidence."""
    start = np.zeros(len(decay))
    start[0] = level
    precision, weighted = np.zeros((len(decay),) * 2), np.zeros(len(decay))
    for value, covariance in measurements:
        inverse = np.linalg.inv(covariance)
        precision += information.T @ inverse @ information
        weighted += information.T @ inverse @ (value - information @ start)
    fit = mix_sizes(precision, weighted, [_prior_sd(size, decay, level_sd) for size in _SIZES])
    return Posterior(start + fit.mean, fit.covariance, float(fit.weights @ _SIZES))


@dataclass(frozen=True)
class Mixture:
    """Mean and covariance over priors of several sizes, and the weights that the measurements gave them."""

    mean: Floats
    covariance: Floats
    weights: Floats


def mix_sizes(precision: Floats, weighted: Floats, prior_sds: Sequence[Floats], odds: Floats | None = None) -> Mixture:
    """Ridge regressions under several priors, averaged by their evidence; what they differ by counts as doubt."""
    fits = [_ridge(precision, weighted, prior_sd) for prior_sd in prior_sds]
    logs = np.array([evidence for _, _, evidence in fits])
    weights = np.exp(logs - logs.max()) * (1.0 if odds is None else odds)
    weights /= weights.sum()
    means, within = np.stack([fit[0] for fit in fits]), np.stack([fit[1] for fit in fits])
    mean = weights @ means
    covariance = np.tensordot(weights, within, 1) + (means - mean).T @ (weights[:, None] * (means - mean))
    return Mixture(mean, covariance, weights)


def _prior_sd(size: float, decay: Floats, level_sd: float) -> Floats:
    scale = size * decay
    scale[0] = level_sd
    return scale


def _ridge(precision: Floats, weighted: Floats, prior_sd: Floats) -> tuple[Floats, Floats, float]:
    """Posterior mean, covariance and log evidence for one prior."""
    scaled = np.eye(len(prior_sd)) + prior_sd[:, None] * precision * prior_sd
    factor = np.linalg.cholesky(scaled)
    whitened = np.linalg.solve(factor, prior_sd * weighted)
    evidence = 0.5 * float(whitened @ whitened) - float(np.log(np.diag(factor)).sum())
    inverse = np.linalg.inv(scaled)
    covariance: Floats = prior_sd[:, None] * inverse * prior_sd
    return prior_sd * (inverse @ (prior_sd * weighted)), covariance, evidence
