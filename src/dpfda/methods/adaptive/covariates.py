"""How covariates go together, and along x: E[G G^T | x] as a polynomial in x, from released products.

Covariates are centred at their released means, so that the first function is the curve of average covariates and the
others are deviations from it; `Centring` takes coefficients and gradients there and back.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpfda._typing import Floats
from dpfda.methods.adaptive import constants
from dpfda.methods.adaptive.design import Design
from dpfda.methods.adaptive.matrices import raise_eigenvalues
from dpfda.methods.adaptive.pooling import Pooled
from dpfda.protocol.statistics import DEGREES


@dataclass(frozen=True)
class Centring:
    """theta* = matrix theta: the first function becomes the curve at the covariates' means."""

    matrix: Floats

    @classmethod
    def at(cls, means: Floats) -> Centring:
        """Means of all columns but the first, which is constant."""
        matrix = np.eye(means.size + 1)
        matrix[0, 1:] = means
        return cls(matrix)

    @property
    def back(self) -> Floats:
        """theta = back theta*."""
        return np.asarray(np.linalg.inv(self.matrix))

    def centre_gradients(self, size: int) -> Floats:
        """What takes gradients with respect to theta to those with respect to theta*, `size` functions a column."""
        return np.asarray(np.kron(self.back.T, np.eye(size)))

    def restore(self, coefficients: Floats) -> Floats:
        """Coefficients theta from theta*, one row a column."""
        return np.asarray(self.back @ coefficients)


@dataclass(frozen=True)
class CovariateLaw:
    """E[G* G*^T | x] = sum_q products[q] T_q(1 - 2u), its variances, the means, and which columns have two values."""

    products: Floats  # (DEGREES, d, d)
    variances: Floats  # the same shape
    centring: Centring
    leverage: Floats  # the largest |G*| of columns that look two-valued; 0 for the others

    @property
    def columns(self) -> int:
        return int(self.products.shape[1])

    @property
    def average(self) -> Floats:
        """The constant part, positive definite."""
        least = constants.MIN_COVARIATE_EIGENVALUE * float(np.diag(self.products[0]).min())
        return raise_eigenvalues(self.products[0], max(least, 1e-6))


NO_COVARIATES = CovariateLaw(
    np.concatenate([np.ones((1, 1, 1)), np.zeros((DEGREES - 1, 1, 1))]),
    np.zeros((DEGREES, 1, 1)),
    Centring(np.eye(1)),
    np.zeros(1),
)


def fit_covariates(moments: Pooled | None, design: Design, columns: int, *, intercept: bool) -> CovariateLaw:
    """The posterior of the products' coefficients under weak priors, centred."""
    if moments is None:
        return NO_COVARIATES
    products, variances = _fit_products(moments, design, columns, intercept=intercept)
    leverage = np.zeros(columns)
    squares = np.clip(np.diagonal(products[0]), 0.0, 1.0)
    if not intercept:
        return CovariateLaw(_keep_definite(products, design), variances, Centring(np.eye(columns)), leverage)
    means = np.clip(products[0][0, 1:], -constants.MOST_MEAN, constants.MOST_MEAN)
    centring = Centring.at(means)
    back = centring.back
    centred = np.einsum("ja,qjk,kb->qab", back, products, back)
    spread = variances.copy()
    spread[:, 1:, 1:] += means[:, None] ** 2 * variances[:, 0, None, 1:] + variances[:, 0, 1:, None] * means**2
    leverage[1:] = np.where(squares[1:] > constants.TWO_VALUED_SQUARE, 1 + np.abs(means), 0.0)
    return CovariateLaw(_keep_definite(centred, design), spread, centring, leverage)


def _fit_products(moments: Pooled, design: Design, columns: int, *, intercept: bool) -> tuple[Floats, Floats]:
    """Coefficients of every product and their variances, before centring."""
    first, second = np.triu_indices(columns)
    first, second = first[int(intercept) :], second[int(intercept) :]
    degrees = evaluate_degrees(design.nodes.u)
    mass = design.mass / design.mass.sum()
    gram = (degrees * mass[:, None]).T @ degrees
    products, variances = np.zeros((DEGREES, columns, columns)), np.zeros((DEGREES, columns, columns))
    if intercept:
        products[0, 0, 0] = 1.0
    values, sds = moments.values.reshape(-1, DEGREES), moments.sd.reshape(-1, DEGREES)
    for j, k, value, sd in zip(first, second, values, sds, strict=True):
        square = constants.COVARIATE_SQUARE if j == k else 0.0
        centre = np.array([square, 0.0, 0.0, 0.0])
        prior = np.array([constants.PRODUCT_SD, *(constants.WAVE_SD / degree for degree in range(1, DEGREES))]) ** 2
        noise = sd**2 + constants.SAMPLING_VARIANCE / moments.n
        precision = np.diag(1 / prior) + gram.T @ (gram / noise[:, None])
        covariance = np.linalg.inv(precision)
        found = centre + covariance @ gram.T @ ((value - gram @ centre) / noise)
        products[:, j, k] = products[:, k, j] = found
        variances[:, j, k] = variances[:, k, j] = np.diag(covariance)
    return products, variances


def evaluate_degrees(u: Floats) -> Floats:
    """T_0 ... T_3 at 1 - 2u."""
    t = 1 - 2 * u
    return np.column_stack([np.ones_like(t), t, 2 * t * t - 1, t * (4 * t * t - 3)])


def _keep_definite(products: Floats, design: Design) -> Floats:
    """Shrink what depends on x until E[G G^T | x] is positive definite where there are data."""
    found = products.copy()
    diagonal = np.diag(found[0])
    sizes = np.sqrt(np.maximum(diagonal, constants.MIN_COVARIATE_SQUARE))
    correlation = raise_eigenvalues(found[0] / np.outer(sizes, sizes), constants.MIN_COVARIATE_EIGENVALUE)
    found[0] = correlation * np.outer(sizes, sizes)
    here = design.mass > constants.SEEN_MASS * design.nodes.uniform
    degrees = evaluate_degrees(design.nodes.u[here])[:, 1:]
    for _ in range(constants.DEFINITE_PASSES):
        waves = np.tensordot(degrees, found[1:], 1)
        values = np.linalg.eigvalsh((found[0] + waves) / np.outer(sizes, sizes))
        if values.size == 0 or values.min() > constants.MIN_COVARIATE_EIGENVALUE / 2:
            return found
        found[1:] *= constants.DEFINITE_STEP
    return found
