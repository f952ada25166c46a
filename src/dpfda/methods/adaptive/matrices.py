"""Small symmetric matrices."""

from __future__ import annotations

import numpy as np

from dpfda._typing import Floats
from dpfda.methods.adaptive.constants import MIN_EIGENVALUE_RATIO


def power(matrix: Floats, exponent: float) -> Floats:
    """A symmetric power of a positive matrix; eigenvalues below a tiny share of the largest are lifted to that."""
    return powers(matrix, exponent)[0]


def powers(matrix: Floats, *exponents: float) -> list[Floats]:
    """Several such powers of one matrix."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    values = np.maximum(values, MIN_EIGENVALUE_RATIO * values.max())
    return [(vectors * values**exponent) @ vectors.T for exponent in exponents]


def raise_eigenvalues(matrix: Floats, lowest: float) -> Floats:
    """The nearest symmetric matrix whose eigenvalues are at least `lowest`."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    result: Floats = (vectors * np.maximum(values, lowest)) @ vectors.T
    return result


def inverse(matrix: Floats) -> Floats:
    """The inverse of a matrix, or of each of a stack."""
    return np.asarray(np.linalg.inv(matrix), dtype=np.float64)


def kron(left: Floats, right: Floats) -> Floats:
    """The Kronecker product of two matrices, or of each of a stack with the other."""
    product = left[..., :, None, :, None] * right[..., None, :, None, :]
    rows, columns = left.shape[-2] * right.shape[-2], left.shape[-1] * right.shape[-1]
    return product.reshape(*product.shape[:-4], rows, columns)
