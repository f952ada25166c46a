"""The shape of the problem as far as it has been released: information, spread of gradients, coordinates for clipping."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpfda._typing import Floats
from dpfda.basis.basis import Basis
from dpfda.methods.adaptive.design import DesignDensity
from dpfda.methods.adaptive.matrices import inverse, kron, power, with_floor
from dpfda.methods.adaptive.pooling import Pooled
from dpfda.privacy.cones import from_triangle

_CORRELATION = 0.4  # prior sd of an entry of E[G G^T], columns being of about one size
_STEADY = 0.2  # smallest eigenvalue that the coordinates for clipping see
_DEPENDENCE = 0.3  # prior sd of the slowest wave of E[G G^T | x] along x, in those units and of the whole matrix
_FLATTEST = 0.05  # smallest eigenvalue of E[G G^T] in those units


@dataclass(frozen=True)
class Geometry:
    """The information matrix A = E[G G^T] (x) E[Phi Phi^T] and the covariance of gradients at the truth, up to a factor.

    `steady` is A with thin directions filled up: clipping must not follow what hardly any curve tells about. Where a shift
    of the level is given back (see `skew.py`) it is A as if the design were uniform, so that clipping shifts a skewed law
    alike everywhere: shapes that followed the design made gradients at thin ends 25 times as long as in the middle.
    `slopes` say in which directions A is uncertain: the true one is A + sum_j N(0, 1) slopes[j].
    `misfit` are such directions, too: covariates that depend on x, curves that are clipped more than others.
    """

    information: Floats
    spread: Floats
    steady: Floats
    slopes: Floats
    misfit: Floats

    def doubt(self, displacement: Floats) -> Floats:
        """Covariance of (A - A_true) d for displacements d from the iterate with second moments `displacement`."""
        rows, size = self._rows_of_slopes, len(displacement)
        result: Floats = (rows @ displacement).reshape(size, -1) @ rows.reshape(size, -1).T
        return result

    @property
    def errors(self) -> Floats:
        """Directions in which A may be wrong, for the rounds to tell about."""
        return np.concatenate([self.slopes, self.misfit])

    @cached_property
    def _rows_of_slopes(self) -> Floats:
        """Row i of every slope, then row i + 1 of every slope, and so on."""
        return self.slopes.swapaxes(0, 1).reshape(-1, self.slopes.shape[-1])

    @cached_property
    def assumed_shape(self) -> Floats:
        """W as long as no spread of gradients has been measured."""
        return clipping_shape(self, self.spread)

    @cached_property
    def steady_inverse(self) -> Floats:
        """The inverse of `steady`."""
        return inverse(self.steady)


def covariate_sizes(squares: Pooled | None, columns: int) -> Floats:
    """Root mean squares of the design columns, the first being 1; weak prior E G^2 = 1/3 with sd 0.2."""
    if squares is None:
        return np.ones(columns)
    mean = (squares.values + 0.5) / squares.sd**2 + 0.33 / 0.2**2
    mean /= 1 / squares.sd**2 + 1 / 0.2**2
    return np.concatenate([[1.0], np.sqrt(np.clip(mean, 0.003, 1.0))])


@dataclass(frozen=True)
class CovariateMatrix:
    """E[G G^T], where G = 0 for curves without points, and directions in which it is uncertain."""

    matrix: Floats
    slopes: Floats


def uncorrelated(sizes: Floats, filled: float, sd: float) -> CovariateMatrix:
    """What is assumed before products are released; the first column is 1 for the share `filled` of curves."""
    first = np.zeros((1, sizes.size, sizes.size))
    first[0, 0, 0] = sd
    return CovariateMatrix(np.diag(np.concatenate([[filled], sizes[1:] ** 2])), first)


def covariate_matrix(products: Pooled, sizes: Floats) -> CovariateMatrix:
    """E[G G^T] from its noisy triangle in units of the column sizes, under a prior around uncorrelated columns."""
    noise = float(products.sd.max())
    weight = _CORRELATION**2 / (_CORRELATION**2 + noise**2)
    measured = weight * from_triangle(products.values) + (1 - weight) * np.eye(sizes.size)
    scale = np.outer(sizes, sizes)
    slopes = [from_triangle(unit * noise * np.sqrt(weight)) * scale for unit in np.eye(products.sd.size)]
    return CovariateMatrix(with_floor(measured, _FLATTEST) * scale, np.stack(slopes))


def assumed_geometry(
    basis: Basis, density: DesignDensity, covariates: CovariateMatrix, *, even: bool = False
) -> Geometry:
    """Information, and a spread of gradients half like independent noise, half like smooth random curves.

    `even` says that clipping is not to follow the design.
    """
    gram = density.gram
    frequencies = basis.frequencies.astype(np.float64)
    smooth = np.where(frequencies == 0, 1.0, 0.25 * np.maximum(frequencies, 1.0) ** -2.0)
    spread = kron(covariates.matrix, 0.5 * gram + 0.5 * (gram * smooth) @ gram)
    return Geometry(
        information=kron(covariates.matrix, gram),
        spread=spread * (len(spread) / spread.trace()),
        steady=kron(covariates.matrix, np.eye(basis.size) if even else with_floor(gram, _STEADY)),
        slopes=np.concatenate([kron(covariates.matrix, density.slopes), kron(covariates.slopes, gram)]),
        misfit=_misfit(density, covariates),
    )


def _misfit(density: DesignDensity, covariates: CovariateMatrix) -> Floats:
    """How A changes if E[G G^T | x], as clipping sees it, waves along x; nothing without covariates."""
    columns, size = len(covariates.matrix), len(density.gram)
    if columns == 1:
        return np.zeros((0, size, size))
    sizes = np.sqrt(np.diag(covariates.matrix)) * math.sqrt(_DEPENDENCE / columns)
    entries = [from_triangle(entry) * np.outer(sizes, sizes) for entry in np.eye(columns * (columns + 1) // 2)]
    waves = [density.gram, *density.waves]
    return np.stack([kron(entry, wave * 0.7**k) for entry in entries for k, wave in enumerate(waves)])


def clipping_shape(geometry: Geometry, spread: Floats, previous: Floats | None = None) -> Floats:
    """W for the ball |W^-1/2 g| <= C: the shape that gives least noise in the coefficients (sd in proportion to spread).

    Scaled so that lengths keep their size from one W to the next.
    """
    in_coefficients = geometry.steady_inverse @ spread @ geometry.steady_inverse.T
    shape = geometry.steady @ power(in_coefficients, 0.5) @ geometry.steady
    wanted = float(len(spread)) if previous is None else float(np.trace(np.linalg.solve(previous, spread)))
    return shape * (float(np.trace(np.linalg.solve(shape, spread))) / wanted)
