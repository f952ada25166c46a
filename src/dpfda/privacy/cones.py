"""Bounds for contributions that lie in a cone: histograms and outer products.

Two vectors a, b of length at most R with <a, b> >= 0 differ by ||a - b||^2 = ||a||^2 + ||b||^2 - 2<a, b> <= 2 R^2. Counts of
one curve in a histogram and outer products v v^T have non-negative inner products, so replacing one curve moves their
sum by at most sqrt2 R, where a ball of radius R would have to allow 2R.

| input                          | becomes                                              |
|--------------------------------|------------------------------------------------------|
| bin -1 (a curve without value) | the zero row: nothing is counted                     |
| a bin outside 0..bins-1        | the zero row, too: an error would tell about a curve |
| NaN or infinite vector         | the zero row, as in `clipping`                       |
| no rows at all (n = 0)         | the zero sum, with the same sensitivity              |
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfda import _validate
from dpfda.privacy.clipping import BoundedSum, EllipsoidBound, Sensitivity

Array = NDArray[np.float64]

_ROUNDING = 1e-9  # relative; far more than the roundings of the few operations it covers


@dataclass(frozen=True)
class HistogramBound:
    """Every curve counts once, in one of `bins` bins, or not at all.

    Guarantee: the vector of counts changes by at most sqrt2 in L2 norm when one curve is replaced (one count moves), and
    counts are whole numbers, exact in floating point for n < 2^53.
    """

    bins: int

    def __post_init__(self) -> None:
        _validate.integer("bins", self.bins)

    def sum_chunks(self, chunks: Iterable[NDArray[np.int64]]) -> BoundedSum:
        """Counts over all chunks of bin numbers; a number that is no bin, such as -1, is not counted."""
        total = np.zeros(self.bins)
        for chunk in chunks:
            counted = chunk[(chunk >= 0) & (chunk < self.bins)]
            total += np.bincount(counted, minlength=self.bins)
        return BoundedSum(total, Sensitivity.ellipsoid(np.ones(self.bins), math.sqrt(2) * (1 + _ROUNDING)))


@dataclass(frozen=True)
class OuterProductBound:
    """The matrix v v^T of every curve, with v scaled into the ball of radius R first.

    The matrix is given as its upper triangle, off-diagonal entries times sqrt2, so that lengths are Frobenius norms.

    Guarantee: ||v v^T||_F <= R^2 and <v v^T, w w^T> = <v, w>^2 >= 0, so replacing one curve moves the sum by at most
    sqrt2 R^2 (1 + slack), the slack being that of `EllipsoidBound` for rows of this width.
    """

    size: int
    radius: float

    @property
    def width(self) -> int:
        """Length of the triangle."""
        return self.size * (self.size + 1) // 2

    def sum_chunks(self, chunks: Iterable[ArrayLike]) -> BoundedSum:
        """The sum of the bounded outer products of all rows of all chunks."""
        ball = EllipsoidBound(np.ones(self.size), self.radius)
        matrix, n = np.zeros((self.size, self.size)), 0
        for chunk in chunks:
            rows = ball.clip(chunk)
            matrix += rows.T @ rows
            n += len(rows)
        return BoundedSum(triangle(matrix), self.sensitivity(n))

    def sensitivity(self, n: int) -> Sensitivity:
        """How far replacing one of n rows can move the triangle of the sum."""
        ball = EllipsoidBound(np.ones(self.width), self.radius**2).sensitivity(n)
        slack = ball.scale[0] / (2 * self.radius**2) - 1  # of n rows of this width and length, relative to 2 R^2
        widened = 1 + math.sqrt(2) * slack  # the same error relative to the smaller sqrt2 R^2
        return Sensitivity.ellipsoid(np.ones(self.width), math.sqrt(2) * self.radius**2 * widened * (1 + _ROUNDING))


def triangle(matrix: Array) -> Array:
    """The upper triangle of a symmetric matrix, off-diagonal entries times sqrt2."""
    rows, columns = np.triu_indices(matrix.shape[-1])
    scaled: Array = matrix[rows, columns] * np.where(rows == columns, 1.0, math.sqrt(2))
    return scaled


def from_triangle(values: Array) -> Array:
    """The symmetric matrix of `triangle`."""
    size = (math.isqrt(8 * values.size + 1) - 1) // 2
    rows, columns = np.triu_indices(size)
    matrix = np.zeros((size, size))
    matrix[rows, columns] = values / np.where(rows == columns, 1.0, math.sqrt(2))
    matrix[columns, rows] = matrix[rows, columns]
    return matrix
