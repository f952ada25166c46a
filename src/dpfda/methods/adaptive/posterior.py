"""Coefficients from measurements: ridge regression with a Sobolev prior whose size the measurements choose."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from dpfda._typing import Floats
from dpfda.basis.basis import Basis
from dpfda.methods.adaptive import constants
from dpfda.methods.adaptive.matrices import inverse, power


def list_sizes(count: int) -> Floats:
    """Sizes of the prior, evenly spaced on the log scale."""
    return np.exp(np.linspace(math.log(constants.MIN_PRIOR_SIZE), math.log(constants.MAX_PRIOR_SIZE), count))


def log_odds(sizes: Floats) -> Floats:
    """What is thought of the prior's size before anything is measured."""
    return np.asarray(-(np.log(sizes / constants.TYPICAL_PRIOR_SIZE) ** 2))


SIZES = list_sizes(constants.PRIOR_SIZES)
_SIZE_ODDS = np.exp(log_odds(SIZES))


@dataclass(frozen=True)
class Posterior:
    """Coefficients (flat), their covariance, and the size of prior that the measurements preferred."""

    mean: Floats
    covariance: Floats
    size: float

    def shifted(self, shift: float, variance: float) -> Posterior:
        """The same with the level moved down by a shift that is itself uncertain."""
        mean, covariance = self.mean.copy(), self.covariance.copy()
        mean[0] -= shift
        covariance[0, 0] += variance
        return Posterior(mean, covariance, self.size)


def sobolev_decay(basis: Basis, alpha: float) -> Floats:
    """k^-alpha for every function's frequency k, 1 for the level."""
    return np.asarray(np.maximum(basis.frequencies.astype(np.float64), 1.0) ** -alpha)


@lru_cache(maxsize=64)
def sobolev_covariance(basis: Basis, alpha: float) -> Floats:
    """Prior covariance of one function's coefficients, in units of the prior's size squared; the level has none."""
    covariance = basis.prior_covariance(alpha, constants.COHERENT_SHARE)
    covariance.flags.writeable = False
    return covariance


@dataclass(frozen=True)
class Prior:
    """b ~ N(level e_1, size^2 K) for every coefficient function, level for the first only, whose level has an sd apart.

    The levels of the others have twice the size for a standard deviation: a covariate may well have no effect.
    """

    kernel: Floats
    columns: int
    level: float
    level_sd: float

    @cached_property
    def _unit(self) -> Floats:
        """The square root for size 1, without the first level's sd."""
        half = power(self.kernel, 0.5)
        root = np.zeros((self.columns, len(half), self.columns, len(half)))
        for column in range(self.columns):
            root[column, :, column] = half
            root[column, 0, column, 0] += constants.COVARIATE_LEVEL * (column > 0)
        return root.reshape(self.columns * len(half), -1)

    def root(self, size: float) -> Floats:
        """A square root of the prior covariance."""
        root = self._unit * size
        root[0, 0] += self.level_sd
        return root

    @cached_property
    def scaled(self) -> ScaledRoots:
        """Square roots of the prior covariance for all sizes that are averaged over."""
        levels = SIZES * float(self._unit[0, 0]) + self.level_sd  # the first level stands alone: the kernel has none
        return ScaledRoots(self._unit[1:, 1:], levels**2, SIZES[:, None] ** 2)

    @cached_property
    def start(self) -> Floats:
        """The prior mean."""
        mean = np.zeros(self.columns * len(self.kernel))
        mean[0] = self.level
        return mean


@dataclass(frozen=True)
class ScaledRoots:
    """Prior covariances, one for each k: levels_k for the first entry, squares_k root root^T for the others."""

    root: Floats
    levels: Floats
    squares: Floats


def solve(value: Floats, covariance: Floats, information: Floats, prior: Prior) -> Posterior:
    """h = A b + N(0, V), averaged over sizes of the prior by their evidence."""
    precision, score = measure_coefficients(value, covariance, information, prior)
    fit = mix_sizes(precision, score, prior.scaled, _SIZE_ODDS)
    return Posterior(prior.start + fit.mean, fit.covariance, math.sqrt(float(fit.weights @ SIZES**2)))


def measure_coefficients(value: Floats, covariance: Floats, information: Floats, prior: Prior) -> tuple[Floats, Floats]:
    """Precision of b, and precision times mean of its distance from the prior mean, if h = A b + N(0, V)."""
    weighted = information.T @ inverse(covariance)
    return weighted @ information, weighted @ (value - information @ prior.start)


@dataclass(frozen=True)
class Mixture:
    """Mean and covariance over priors of several sizes, and the weights that the measurements gave them."""

    mean: Floats
    covariance: Floats
    weights: Floats


def mix_sizes(precision: Floats, score: Floats, roots: ScaledRoots, odds: Floats) -> Mixture:
    """Ridge regressions under several priors, averaged by their evidence; what they differ by counts as doubt.

    `score` is precision times mean. One eigendecomposition serves all sizes: it makes everything diagonal but the first row
    and column, the level's, which its Schur complement takes care of.
    """
    size, root = len(score), roots.root
    values, vectors = np.linalg.eigh(root.T @ precision[1:, 1:] @ root)
    axes = np.zeros((size, size))
    axes[0, 0], axes[1:, 1:] = 1.0, root @ vectors
    score, border = score @ axes, precision[0] @ axes
    level_score, shape_score, corner, border = score[0], score[1:], border[0], border[1:]
    gains = roots.squares * np.maximum(values, 0.0) + 1
    within = roots.squares / gains
    drawn = within * border
    level_gain = roots.levels * (corner - drawn @ border) + 1
    level_within = roots.levels / level_gain
    level_mean = level_within * (level_score - drawn @ shape_score)
    logs = within @ shape_score**2 + level_mean**2 / level_within - np.log(level_gain) - np.log(gains).sum(axis=1)
    weights = np.exp((logs - logs.max()) / 2) * odds
    weights /= weights.sum()
    means, shared = np.empty((2, len(logs), size))
    means[:, 0], means[:, 1:] = level_mean, within * shape_score - level_mean[:, None] * drawn
    shared[:, 0], shared[:, 1:] = 1.0, -drawn
    mean = weights @ means
    means -= mean
    covariance = (means.T * weights) @ means + (shared.T * (weights * level_within)) @ shared
    covariance.flat[size + 1 :: size + 1] += weights @ within
    return Mixture(axes @ mean, axes @ covariance @ axes.T, weights)
