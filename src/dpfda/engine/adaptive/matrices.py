"""Small symmetric matrices."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def power(matrix: Floats, exponent: float) -> Floats:
    """A symmetric power of a positive matrix; eigenvalues below 1e-12 of the largest are lifted to that."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    values = np.maximum(values, 1e-12 * values.max())
    result: Floats = (vectors * values**exponent) @ vectors.T
    return result


def with_floor(matrix: Floats, lowest: float) -> Floats:
    """The nearest symmetric matrix whose eigenvalues are at least `lowest`."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    result: Floats = (vectors * np.maximum(values, lowest)) @ vectors.T
    return result
