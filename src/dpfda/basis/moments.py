"""Trigonometric moments of the design: the few numbers that E[Phi Phi^T] depends on."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from dpfda._typing import Floats
from dpfda.basis.basis import Basis


def moment_features(basis: Basis, u: Floats) -> Floats:
    """cos(k theta) for k = 1..K and, where the basis has sines, sin(k theta): one row per point."""
    cosines, sines = basis.moments(u)
    return np.hstack([cosines[:, 1:], sines[:, 1:]]) if basis.sines else np.ascontiguousarray(cosines[:, 1:])


@lru_cache(maxsize=16)
def uniform_moments(basis: Basis) -> Floats:
    """The moments of a uniform design, by quadrature: public."""
    nodes, weights = np.polynomial.legendre.leggauss(4 * basis.moment_count + 32)
    means: Floats = (weights / 2) @ moment_features(basis, (nodes + 1) / 2)
    means.flags.writeable = False
    return means


def moment_frequencies(basis: Basis) -> Floats:
    """k of every moment feature."""
    k = np.arange(1, basis.moment_count + 1, dtype=np.float64)
    return np.concatenate([k, k]) if basis.sines else k


@lru_cache(maxsize=16)
def moment_bounds(basis: Basis) -> tuple[Floats, float]:
    """Weights w_k = k and a radius C with sum_k (feature - centre)^2 / w_k <= C^2 at every point, hence for their means.

    Weights that grow with k give the low moments, which matter most, less noise. The largest value over a fine grid is
    taken and widened by its slope, so that no point between exceeds it; a row that would is clipped.
    """
    weights = moment_frequencies(basis)
    if weights.size == 0:
        return np.ones(0), 1.0
    grid = np.linspace(0.0, 1.0, 2001)
    lengths = np.sqrt((((moment_features(basis, grid) - uniform_moments(basis)) ** 2) / weights).sum(axis=1))
    slope = basis.angle * np.sqrt((weights**2 / weights).sum())
    weights.flags.writeable = False
    return weights, float(lengths.max() + slope * (grid[1] - grid[0]) / 2)


def gram_matrix(basis: Basis, moments: Floats) -> Floats:
    """E[Phi Phi^T] from the moments k = 1..K; leading axes are kept."""
    count, ones = basis.moment_count, np.ones((*moments.shape[:-1], 1))
    cosines = np.concatenate([ones, moments[..., :count]], axis=-1)
    sines = np.concatenate([0 * ones, moments[..., count:]], axis=-1) if basis.sines else None
    return basis.gram_from_moments(cosines, sines)
