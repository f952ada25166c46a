"""Small dense matrices: powers, limits of eigenvalues."""

from __future__ import annotations

import numpy as np

from dpfda._typing import Floats
from dpfda.methods.adaptive.constants import (
    LEAST_FITTED,
    MIN_EIGENVALUE_RATIO,
    OTHER_FITTED,
    SINGULAR,
    SMALL_TRIANGLE,
)


def power(matrix: Floats, exponent: float) -> Floats:
    """A power of a symmetric positive matrix, the least eigenvalues lifted."""
    if len(matrix) == 1:
        return np.asarray(matrix**exponent)
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    lifted = np.maximum(values, MIN_EIGENVALUE_RATIO * values[-1])
    return np.asarray((vectors * lifted**exponent) @ vectors.T)


def raise_eigenvalues(matrix: Floats, least: float) -> Floats:
    """The matrix with its eigenvalues lifted to at least this."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.asarray((vectors * np.maximum(values, least)) @ vectors.T)


def kron(first: Floats, second: Floats) -> Floats:
    """The Kronecker product of two matrices: `np.kron`, to the bit, without its cost for any number of axes."""
    products = first[:, None, :, None] * second[None, :, None, :]
    return products.reshape(len(first) * len(second), -1)


def inverse(matrix: Floats) -> Floats:
    """The inverse of a symmetric matrix, symmetric again."""
    found = np.linalg.inv(matrix)
    return np.asarray((found + found.swapaxes(-1, -2)) / 2)


def invert_lower(factors: Floats) -> Floats:
    """Inverses of lower triangular matrices, by halves: most of what a general inverse computes is known to be zero."""
    size = factors.shape[-1]
    if size <= SMALL_TRIANGLE:
        return np.asarray(np.linalg.inv(factors))
    upper, lower = slice(0, size // 2), slice(size // 2, size)
    found: Floats = np.zeros_like(factors)
    found[..., upper, upper] = first = invert_lower(factors[..., upper, upper])
    found[..., lower, lower] = second = invert_lower(factors[..., lower, lower])
    found[..., lower, upper] = -second @ factors[..., lower, upper] @ first
    return found


def fit_two(matrix: Floats, first: Floats, second: Floats) -> tuple[float, float]:
    """Non-negative a, b with matrix ~ a first + b second."""
    a, b, c = (first**2).sum(), (first * second).sum(), (second**2).sum()
    x, y = (matrix * first).sum(), (matrix * second).sum()
    determinant = a * c - b * b
    if determinant > SINGULAR * a * c:
        s, t = (x * c - y * b) / determinant, (y * a - x * b) / determinant
        if s > 0 and t > 0:
            return float(s), float(t)
        if s <= 0 < y:
            return OTHER_FITTED * float(y / c), float(y / c)
    only = float(max(x / a, LEAST_FITTED))
    return only, OTHER_FITTED * only
