"""Coefficients from measurements: ridge regression with a Sobolev prior whose size the measurements choose."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpfda.basis import Basis
from dpfda.engine.adaptive.matrices import power

Floats = NDArray[np.float64]

_SIZES = np.exp(np.linspace(math.log(0.002), math.log(1.5), 14))  # sd of a first-harmonic coefficient, y in [-1, 1]

_TAIL = 24  # functions beyond the basis that a band accounts for


@dataclass(frozen=True)
class Posterior:
    """Coefficients (flat), their covariance, and the size of prior that the measurements preferred."""

    mean: Floats
    covariance: Floats
    size: float


def sobolev_covariance(basis: Basis, alpha: float) -> Floats:
    """Prior covariance of one function's coefficients, in units of the prior's size squared; the level has none.

    Standard deviations fall like k^-alpha. Without sines the coefficients of a curve that is not level at an end fall like
    1/k^2 with one sign (right end: alternating), whatever its smoothness: such coherent parts make up half of the prior
    there, so that curves go on with their slope where data end (cosine coefficients alone would level off).
    """
    k = basis.frequencies.astype(np.float64)
    fall = np.where(k > 0, np.maximum(k, 1.0) ** -alpha, 0.0)
    covariance: Floats = np.diag(fall**2)
    if not basis.sines:
        turned = fall * (-1.0) ** k
        covariance = 0.5 * covariance + 0.5 * (np.outer(fall, fall) + np.outer(turned, turned))
    return covariance


@dataclass(frozen=True)
class Prior:
    """b ~ N(level e_1, level_sd^2 e_1 e_1^T + size^2 K) for every coefficient function, level for the first only."""

    kernel: Floats
    columns: int
    level: float
    level_sd: float

    def root(self, size: float) -> Floats:
        """A square root of the prior covariance."""
        own = power(self.kernel, 0.5) * size
        own[0, 0] += self.level_sd
        return np.asarray(np.kron(np.eye(self.columns), own), dtype=np.float64)

    def start(self) -> Floats:
        """The prior mean."""
        mean = np.zeros(self.columns * len(self.kernel))
        mean[0] = self.level
        return mean


def solve(value: Floats, covariance: Floats, information: Floats, prior: Prior) -> Posterior:
    """h = A b + N(0, V), averaged over sizes of the prior by their evidence."""
    start, inverse = prior.start(), np.linalg.inv(covariance)
    precision = information.T @ inverse @ information
    weighted = information.T @ inverse @ (value - information @ start)
    fit = mix_sizes(precision, weighted, [prior.root(size) for size in _SIZES])
    return Posterior(start + fit.mean, fit.covariance, math.sqrt(float(fit.weights @ _SIZES**2)))


def with_tail(posterior: Posterior, basis: Basis, alpha: float) -> Floats:
    """The covariance for a longer basis: what was not estimated has mean zero and its prior covariance.

    A curve that the basis cannot follow lies outside a band of the estimated coefficients alone, at every n. Periodic
    functions are taken to lie in the span that was chosen: their coefficients fall faster than any prior can know.
    """
    if basis.sines:
        return posterior.covariance
    r, longer = basis.size, basis.size + _TAIL
    columns = len(posterior.mean) // r
    tail = posterior.size**2 * sobolev_covariance(basis.resized(longer), alpha)
    tail[:r], tail[:, :r] = 0.0, 0.0
    covariance = np.asarray(np.kron(np.eye(columns), tail), dtype=np.float64)
    estimated = (np.arange(columns)[:, None] * longer + np.arange(r)).ravel()
    covariance[np.ix_(estimated, estimated)] = posterior.covariance
    return covariance


@dataclass(frozen=True)
class Mixture:
    """Mean and covariance over priors of several sizes, and the weights that the measurements gave them."""

    mean: Floats
    covariance: Floats
    weights: Floats


def mix_sizes(precision: Floats, weighted: Floats, roots: Sequence[Floats], odds: Floats | None = None) -> Mixture:
    """Ridge regressions under several priors, averaged by their evidence; what they differ by counts as doubt."""
    fits = [_ridge(precision, weighted, root) for root in roots]
    logs = np.array([evidence for _, _, evidence in fits])
    weights = np.exp(logs - logs.max()) * (1.0 if odds is None else odds)
    weights /= weights.sum()
    means, within = np.stack([fit[0] for fit in fits]), np.stack([fit[1] for fit in fits])
    mean = weights @ means
    covariance = np.tensordot(weights, within, 1) + (means - mean).T @ (weights[:, None] * (means - mean))
    return Mixture(mean, covariance, weights)


def _ridge(precision: Floats, weighted: Floats, root: Floats) -> tuple[Floats, Floats, float]:
    """Posterior mean, covariance and log evidence for the prior N(0, root root^T)."""
    factor = np.linalg.cholesky(np.eye(len(root)) + root.T @ precision @ root)
    spread = np.linalg.solve(factor, root.T)
    whitened = spread @ weighted
    evidence = 0.5 * float(whitened @ whitened) - float(np.log(np.diag(factor)).sum())
    return spread.T @ whitened, spread.T @ spread, evidence
