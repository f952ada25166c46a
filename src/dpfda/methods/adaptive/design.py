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
from dpfda.basis.moments import uniform_moments
from dpfda.methods.adaptive import constants
from dpfda.methods.adaptive.constants import CELL_SD, DESIGN_CELLS, TOTAL_WEIGHT
from dpfda.methods.adaptive.pooling import Pooled


@dataclass(frozen=True)
class DesignDensity:
    """E[Phi Phi^T], and directions in which it is uncertain: the true one is gram + sum_j N(0, 1) slopes[j].

    `waves` are E[sqrt2 cos(k pi u) Phi Phi^T] for k = 1, 2, ...
    """

    gram: Floats
    slopes: Floats
    waves: Floats


def fit_density(basis: Basis, moments: Pooled | None) -> DesignDensity:
    """The non-negative density that fits the released moments best, under a prior around the uniform design."""
    if moments is None:
        return DesignDensity(
            basis.gram(), np.zeros((0, basis.size, basis.size)), _weigh_waves(basis, np.ones(DESIGN_CELLS))
        )
    prior = _solve_without_moments(basis)
    sure, found = prior.covariance + np.diag(moments.sd**2), uniform_moments(basis) + moments.values
    mass = prior.mass + prior.to_mass @ np.linalg.solve(sure, found - prior.mass @ prior.features)
    if mass.min() < 0:
        mass = _solve_positive(*prior.with_moments(found, moments.sd), mass)
    left = moments.sd[:, None] ** 2 * np.linalg.solve(sure, prior.covariance)
    gram = basis.gram_from_moments(mass @ prior.features / mass.sum()) + constants.GRAM_MARGIN * np.eye(basis.size)
    return DesignDensity(gram, constants.POSITIVE_SD * _find_slopes(basis, left), _weigh_waves(basis, mass))


def _solve_positive(rows: Floats, wanted: Floats, mass: Floats) -> Floats:
    """The best masses that are not negative; where the solver gives up on nearly dependent rows, `mass` cut off at zero."""
    from scipy.optimize import nnls  # slow to import

    try:
        return np.asarray(nnls(rows, wanted, maxiter=constants.SOLVER_STEPS * DESIGN_CELLS)[0], dtype=np.float64)
    except RuntimeError:
        return np.maximum(mass, 0.0)


def _cell_centres() -> Floats:
    return np.asarray((np.arange(DESIGN_CELLS) + 0.5) / DESIGN_CELLS)


def _weigh_waves(basis: Basis, mass: Floats) -> Floats:
    """E[sqrt2 cos(k pi u) Phi Phi^T] under these masses."""
    points = _cell_centres()
    features = basis.evaluate_unit(points)
    waves = np.sqrt(2) * np.cos(np.pi * np.arange(1, constants.WAVES + 1)[:, None] * points) * (mass / mass.sum())
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
def _solve_without_moments(basis: Basis) -> _Prior:
    """Moments near the uniform design's, total mass 1, and about as much mass in every cell."""
    sd = constants.MOMENT_SD / np.maximum(basis.moment_cycles, constants.MIN_CYCLES)
    features = basis.moment_features(_cell_centres())
    total, even = np.full((1, DESIGN_CELLS), TOTAL_WEIGHT), DESIGN_CELLS / CELL_SD * np.eye(DESIGN_CELLS)
    rows = np.vstack([(features / sd).T, total, even])
    wanted = np.hstack([uniform_moments(basis) / sd, TOTAL_WEIGHT, np.full(DESIGN_CELLS, 1 / CELL_SD)])
    solved = np.linalg.solve(rows.T @ rows, np.column_stack([rows.T @ wanted, features]))
    return _Prior(features, rows, wanted, solved[:, 0], solved[:, 1:], features.T @ solved[:, 1:])


def keep_thin_directions(density: DesignDensity) -> Floats:
    """A matrix that keeps the directions in which there may be hardly any data, and takes away the others."""
    values, vectors = np.linalg.eigh(density.gram)
    along = np.einsum("av,jab,bv->jv", vectors, density.slopes, vectors)
    sd = np.sqrt((along**2).sum(axis=0))
    least = values - constants.THIN_SDS * sd
    result: Floats = (vectors * np.clip(1 - least / constants.MAX_THIN, 0.0, 1.0)) @ vectors.T
    return result


def _find_slopes(basis: Basis, covariance: Floats) -> Floats:
    """How the moments' remaining covariance moves E[Phi Phi^T]: one matrix per direction that matters."""
    values, vectors = np.linalg.eigh(covariance)
    matters = values > constants.MIN_MOMENT_VARIANCE * values[-1]
    directions = (vectors * np.sqrt(np.maximum(values, 0.0))).T[matters]
    return basis.gram_from_moments(directions) - basis.gram_from_moments(np.zeros(len(covariance)))
