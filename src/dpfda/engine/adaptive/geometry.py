"""The shape of the problem as far as it has been released: information, spread of gradients, coordinates for clipping."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpfda.basis import Basis
from dpfda.engine.adaptive.matrices import power, with_floor
from dpfda.engine.adaptive.pooling import Pooled
from dpfda.engine.moments import gram_matrix, moment_frequencies, uniform_moments
from dpfda.privacy.cones import from_triangle

Floats = NDArray[np.float64]

_DENSITY_VARIATION = 0.25  # prior sd of a design moment at frequency 1, falling with the frequency
_THINNEST = 0.02  # smallest eigenvalue that the information may have


@dataclass(frozen=True)
class Geometry:
    """The information matrix A = E[G G^T] (x) E[Phi Phi^T] and the covariance of gradients at the truth, up to a factor."""

    information: Floats
    spread: Floats


def design_gram(basis: Basis, moments: Pooled | None) -> Floats:
    """E[Phi Phi^T] from noisy moments: each shrunk towards the uniform design by its known noise, then made definite."""
    uniform = uniform_moments(basis)
    if moments is None:
        return basis.gram()
    cycles = moment_frequencies(basis) * basis.angle / (2 * np.pi)
    variation = (_DENSITY_VARIATION / np.maximum(cycles, 0.5)) ** 2
    shrunk = uniform + moments.values * variation / (variation + moments.sd**2)  # released as differences from uniform
    noise = float(np.sqrt((moments.sd**2).mean()))
    return with_floor(gram_matrix(basis, shrunk), float(np.clip(noise, _THINNEST, 0.5)))


def covariate_sizes(squares: Pooled | None, columns: int) -> Floats:
    """Root mean squares of the design columns, the first being 1; weak prior E G^2 = 1/3 with sd 0.2."""
    if squares is None:
        return np.ones(columns)
    mean = (squares.values + 0.5) / squares.sd**2 + 0.33 / 0.2**2
    mean /= 1 / squares.sd**2 + 1 / 0.2**2
    return np.concatenate([[1.0], np.sqrt(np.clip(mean, 0.003, 1.0))])


def covariate_matrix(products: Pooled, sizes: Floats) -> Floats:
    """E[G G^T] from its noisy triangle in units of the column sizes, made definite at the level of its noise."""
    noise = float(products.sd.max())
    matrix = with_floor(from_triangle(products.values), max(0.05, noise * np.sqrt(sizes.size)))
    result: Floats = matrix * np.outer(sizes, sizes)
    return result


def assumed_geometry(basis: Basis, gram: Floats, covariates: Floats) -> Geometry:
    """Information, and a spread of gradients half like independent noise, half like smooth random curves."""
    information = np.kron(covariates, gram)
    frequencies = basis.frequencies.astype(np.float64)
    smooth = np.where(frequencies == 0, 1.0, 0.25 * np.maximum(frequencies, 1.0) ** -2.0)
    coefficients = np.kron(np.linalg.inv(covariates), 0.5 * np.linalg.inv(gram) + 0.5 * np.diag(smooth))
    spread = information @ coefficients @ information
    return Geometry(information, spread * (len(spread) / np.trace(spread)))


def clipping_shape(geometry: Geometry, spread: Floats, previous: Floats | None = None) -> Floats:
    """W for the ball |W^-1/2 g| <= C: the shape that gives least noise in the coefficients (sd in proportion to spread).

    Scaled so that lengths keep their size from one W to the next.
    """
    inverse = np.linalg.inv(geometry.information)
    in_coefficients = inverse @ spread @ inverse.T
    shape = geometry.information @ power(in_coefficients, 0.5) @ geometry.information
    wanted = float(len(spread)) if previous is None else float(np.trace(np.linalg.solve(previous, spread)))
    return shape * (float(np.trace(np.linalg.solve(shape, spread))) / wanted)
