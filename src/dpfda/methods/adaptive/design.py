"""The design density from noisy moments, and what its error does to the fit.

A density is not negative. Fitted under that constraint, the moments give an information matrix that is nearly singular
exactly where there are hardly any data; a floor under its eigenvalues would claim data there, and the curve would run
back to the level with a narrow band (nlswork beyond 18 years: -0.9 of log wage, band +-0.03).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dpfda._typing import Floats
from dpfda.basis.basis import Basis
from dpfda.basis.moments import gram_matrix, moment_features, moment_frequencies, uniform_moments
from dpfda.methods.adaptive.pooling import Pooled

_VARIATION = 0.2  # prior sd of a design moment at frequency 1, falling with the frequency
_GRID = 96
_UNEVENNESS = 5.0  # prior sd of a grid cell's mass around the uniform design's; makes the fit unique
_POSITIVE = 0.75  # what positivity leaves of the moments' sd
_TOTAL = 1e3  # weight of total mass 1
_UNSURE = 2.0  # sds of an eigenvalue: a band takes it for that much smaller
_WAVES = 3
_THIN = 0.3  # eigenvalues below begin to count as thin
_THINNEST = 1e-4  # eigenvalues below are rounding and fit error, not data


@dataclass(frozen=True)
class DesignDensity:
    """E[Phi Phi^T], and directions in which it is uncertain: the true one is gram + sum_j N(0, 1) slopes[j].

    `waves` are E[sqrt2 cos(k pi u) Phi Phi^T] for k = 1, 2, 3.
    """

    gram: Floats
    slopes: Floats
    waves: Floats


def fit_density(basis: Basis, moments: Pooled | None) -> DesignDensity:
    """The non-negative density that fits the released moments best, under a prior around the uniform design."""
    if moments is None:
        return DesignDensity(basis.gram(), np.zeros((0, basis.size, basis.size)), _waves(basis, np.ones(_GRID)))
    prior = _prior(basis)
    sure, found = prior.covariance + np.diag(moments.sd**2), uniform_moments(basis) + moments.values
    mass = prior.mass + prior.to_mass @ np.linalg.solve(sure, found - prior.mass @ prior.features)
    if mass.min() < 0:
        mass = _not_negative(*prior.with_moments(found, moments.sd), mass)
    left = moments.sd[:, None] ** 2 * np.linalg.solve(sure, prior.covariance)
    gram = gram_matrix(basis, mass @ prior.features / mass.sum()) + _THINNEST * np.eye(basis.size)
    return DesignDensity(gram, _POSITIVE * _slopes(basis, left), _waves(basis, mass))


def _not_negative(rows: Floats, wanted: Floats, mass: Floats) -> Floats:
    """The best masses that are not negative; where the solver gives up on nearly dependent rows, `mass` cut off at zero."""
    from scipy.optimize import nnls  # slow to import

    try:
        return np.asarray(nnls(rows, wanted, maxiter=30 * _GRID)[0], dtype=np.float64)
    except RuntimeError:
        return np.maximum(mass, 0.0)


def _waves(basis: Basis, mass: Floats) -> Floats:
    points = (np.arange(_GRID) + 0.5) / _GRID
    features = basis.evaluate_unit(points)
    waves = np.sqrt(2) * np.cos(np.pi * np.arange(1, _WAVES + 1)[:, None] * points) * (mass / mass.sum())
    return np.asarray(features.T @ (waves[:, :, None] * features))


@dataclass(frozen=True)
class _Prior:
    """A least squares problem in the masses of the grid's cells, and what follows from it before moments are known.

    That is the best masses, the covariance of their moments, and how masses follow moments: H^-1 F, if the problem's
    normal matrix is H and F are the moment features of the cells.
    """

    features: Floats
    rows: Floats
    wanted: Floats
    mass: Floats
    to_mass: Floats
    covariance: Floats

    def with_moments(self, found: Floats, sd: Floats) -> tuple[Floats, Floats]:
        """The problem with noisy moments added."""
        return np.vstack([self.rows, (self.features / sd).T]), np.hstack([self.wanted, found / sd])


@lru_cache(maxsize=64)
def _prior(basis: Basis) -> _Prior:
    """Moments near the uniform design's, total mass 1, and about as much mass in every cell."""
    cycles = moment_frequencies(basis) * basis.angle / (2 * np.pi)
    sd = _VARIATION / np.maximum(cycles, 0.5)
    features = moment_features(basis, (np.arange(_GRID) + 0.5) / _GRID)
    rows = np.vstack([(features / sd).T, np.full((1, _GRID), _TOTAL), _GRID / _UNEVENNESS * np.eye(_GRID)])
    wanted = np.hstack([uniform_moments(basis) / sd, _TOTAL, np.full(_GRID, 1 / _UNEVENNESS)])
    solved = np.linalg.solve(rows.T @ rows, np.column_stack([rows.T @ wanted, features]))
    return _Prior(features, rows, wanted, solved[:, 0], solved[:, 1:], features.T @ solved[:, 1:])


def thin_directions(density: DesignDensity) -> Floats:
    """A matrix that keeps the directions about which perhaps hardly any curve tells, and takes away the others."""
    values, vectors = np.linalg.eigh(density.gram)
    along = np.einsum("av,jab,bv->jv", vectors, density.slopes, vectors)
    sd = np.sqrt((along**2).sum(axis=0))
    least = values - _UNSURE * sd
    result: Floats = (vectors * np.clip(1 - least / _THIN, 0.0, 1.0)) @ vectors.T
    return result


def _slopes(basis: Basis, covariance: Floats) -> Floats:
    """How the moments' remaining covariance moves E[Phi Phi^T]: one matrix per direction that matters."""
    values, vectors = np.linalg.eigh(covariance)
    matters = values > 1e-4 * values[-1]
    directions = (vectors * np.sqrt(np.maximum(values, 0.0))).T[matters]
    return gram_matrix(basis, directions) - gram_matrix(basis, np.zeros(len(covariance)))
