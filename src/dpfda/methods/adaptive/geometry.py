"""The shape of the problem as far as it has been released: information, covariance of gradients, shape for clipping."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpfda._typing import Floats
from dpfda.basis.basis import Basis
from dpfda.methods.adaptive import constants
from dpfda.methods.adaptive.design import DesignDensity
from dpfda.methods.adaptive.matrices import inverse, kron, power, raise_eigenvalues
from dpfda.methods.adaptive.pooling import Pooled
from dpfda.privacy.cones import from_triangle


@dataclass(frozen=True)
class Geometry:
    """The information matrix A = E[G G^T] (x) E[Phi Phi^T] and the covariance of gradients at the truth, up to a factor.

    `steady` is A with thin directions filled up: clipping must not depend on directions in which there are hardly any
    data. Where a shift of the level is given back (see `skewness.py`) it is A as if the design were uniform, so that
    clipping shifts a skewed law alike everywhere: shapes that depended on the design made gradients at thin ends 25 times
    as long as in the middle.
    `slopes` say in which directions A is uncertain: the true one is A + sum_j N(0, 1) slopes[j].
    `misfit` are such directions, too: covariates that depend on x, curves that are clipped more than others.
    """

    information: Floats
    gradient_covariance: Floats
    steady: Floats
    slopes: Floats
    misfit: Floats

    def doubt(self, second_moments: Floats) -> Floats:
        """Covariance of (A - A_true) d for displacements d from the iterate with these second moments."""
        rows, size = self._rows_of_slopes, len(second_moments)
        result: Floats = (rows @ second_moments).reshape(size, -1) @ rows.reshape(size, -1).T
        return result

    @property
    def errors(self) -> Floats:
        """Directions in which A may be wrong, to be estimated from the rounds."""
        return np.concatenate([self.slopes, self.misfit])

    @cached_property
    def _rows_of_slopes(self) -> Floats:
        """Row i of every slope, then row i + 1 of every slope, and so on."""
        return self.slopes.swapaxes(0, 1).reshape(-1, self.slopes.shape[-1])

    @cached_property
    def assumed_shape(self) -> Floats:
        """W as long as no covariance of gradients has been measured."""
        return choose_shape(self, self.gradient_covariance)

    @cached_property
    def steady_inverse(self) -> Floats:
        """The inverse of `steady`."""
        return inverse(self.steady)


def fit_covariate_sizes(squares: Pooled | None, columns: int) -> Floats:
    """Root mean squares of the design columns, the first being 1, under a weak prior."""
    if squares is None:
        return np.ones(columns)
    prior_variance = constants.COVARIATE_SQUARE_SD**2
    mean = (squares.values + constants.COVARIATE_CENTRE) / squares.sd**2 + constants.COVARIATE_SQUARE / prior_variance
    mean /= 1 / squares.sd**2 + 1 / prior_variance
    limited = np.clip(mean, constants.MIN_COVARIATE_SQUARE, constants.MAX_COVARIATE_SQUARE)
    return np.concatenate([[1.0], np.sqrt(limited)])


@dataclass(frozen=True)
class CovariateMatrix:
    """E[G G^T], where G = 0 for curves without points, and directions in which it is uncertain."""

    matrix: Floats
    slopes: Floats


def assume_uncorrelated(sizes: Floats, filled: float, sd: float) -> CovariateMatrix:
    """What is assumed before products are released; the first column is 1 for the share `filled` of curves."""
    first = np.zeros((1, sizes.size, sizes.size))
    first[0, 0, 0] = sd
    return CovariateMatrix(np.diag(np.concatenate([[filled], sizes[1:] ** 2])), first)


def fit_covariate_matrix(products: Pooled, sizes: Floats) -> CovariateMatrix:
    """E[G G^T] from its noisy triangle in units of the column sizes, under a prior around uncorrelated columns."""
    noise = float(products.sd.max())
    weight = constants.CORRELATION_SD**2 / (constants.CORRELATION_SD**2 + noise**2)
    measured = weight * from_triangle(products.values) + (1 - weight) * np.eye(sizes.size)
    scale = np.outer(sizes, sizes)
    slopes = [from_triangle(unit * noise * np.sqrt(weight)) * scale for unit in np.eye(products.sd.size)]
    return CovariateMatrix(raise_eigenvalues(measured, constants.MIN_COVARIATE_EIGENVALUE) * scale, np.stack(slopes))


def random_curve_variances(basis: Basis) -> Floats:
    """The variances of a smooth random curve's coefficients, in units of its level's: most of it is level."""
    frequencies = basis.frequencies.astype(np.float64)
    return np.where(frequencies == 0, 1.0, constants.HARMONIC_VARIANCE * np.maximum(frequencies, 1.0) ** -2.0)


def assume_geometry(
    basis: Basis, density: DesignDensity, covariates: CovariateMatrix, *, even: bool = False
) -> Geometry:
    """Information, and a covariance of gradients partly like independent noise, partly like smooth random curves.

    `even` says that clipping is not to depend on the design.
    """
    gram, smooth = density.gram, constants.SMOOTH_SHARE
    per_curve = (1 - smooth) * gram + smooth * (gram * random_curve_variances(basis)) @ gram
    covariance = kron(covariates.matrix, per_curve)
    steady = np.eye(basis.size) if even else raise_eigenvalues(gram, constants.MIN_STEADY)
    return Geometry(
        information=kron(covariates.matrix, gram),
        gradient_covariance=covariance * (len(covariance) / covariance.trace()),
        steady=kron(covariates.matrix, steady),
        slopes=np.concatenate([kron(covariates.matrix, density.slopes), kron(covariates.slopes, gram)]),
        misfit=_find_misfit(density, covariates),
    )


def _find_misfit(density: DesignDensity, covariates: CovariateMatrix) -> Floats:
    """How A changes if E[G G^T | x], as clipping sees it, waves along x; nothing without covariates."""
    columns, size = len(covariates.matrix), len(density.gram)
    if columns == 1:
        return np.zeros((0, size, size))
    sizes = np.sqrt(np.diag(covariates.matrix)) * math.sqrt(constants.DEPENDENCE / columns)
    entries = [from_triangle(entry) * np.outer(sizes, sizes) for entry in np.eye(columns * (columns + 1) // 2)]
    waves = [density.gram, *density.waves]
    scaled = [wave * constants.WAVE_DECAY**k for k, wave in enumerate(waves)]
    return np.stack([kron(entry, wave) for entry in entries for wave in scaled])


def choose_shape(geometry: Geometry, gradient_covariance: Floats, previous: Floats | None = None) -> Floats:
    """W for the ball |W^-1/2 g| <= C, scaled so that lengths keep their size from one W to the next."""
    in_coefficients = geometry.steady_inverse @ gradient_covariance @ geometry.steady_inverse.T
    shape = least_noise_shape(geometry.steady, in_coefficients)
    size = float(len(gradient_covariance))
    wanted = size if previous is None else float(np.trace(np.linalg.solve(previous, gradient_covariance)))
    return shape * (float(np.trace(np.linalg.solve(shape, gradient_covariance))) / wanted)


def least_noise_shape(information: Floats, coefficient_covariance: Floats) -> Floats:
    """The W that gives least noise in the coefficients: sds in proportion to those that one curve's coefficients have."""
    result: Floats = information @ power(coefficient_covariance, 0.5) @ information
    return result


def assumed_gradient_covariance(geometry: Geometry, filled: float) -> Floats:
    """The covariance of gradients before it is measured, in units of the others' median length squared, zeros included."""
    factor = filled * constants.MEAN_SQUARE_LENGTH / len(geometry.gradient_covariance)
    return geometry.gradient_covariance * factor
