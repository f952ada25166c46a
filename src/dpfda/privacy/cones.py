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
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfda import _validate
from dpfda._typing import Integers, Words
from dpfda.privacy.clipping import BoundedSum, EllipsoidBound, Sensitivity
from dpfda.privacy.exact import Grid, sum_slack

Array = NDArray[np.float64]

_PIECE = 128  # rows that are added one after the other
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

    @property
    def width(self) -> int:
        return self.bins

    def words(self, places: ArrayLike) -> Words:
        """Counts of bin numbers; a number that is no bin, such as -1, is not counted."""
        numbers = np.asarray(places)
        counts = np.bincount(numbers[(numbers >= 0) & (numbers < self.bins)], minlength=self.bins)
        return np.stack([np.zeros(self.bins, dtype=np.int64), counts])

    def total(self, words: Words, n: int) -> BoundedSum:
        """The counts of n curves, with their sensitivity."""
        counts = ((words[0] << 32) + words[1]).astype(np.float64)
        return BoundedSum(counts, Sensitivity.ellipsoid(np.ones(self.bins), math.sqrt(2) * (1 + _ROUNDING)))


@dataclass(frozen=True)
class OuterProductBound:
    """The matrix v v^T of every curve, with v scaled into the ball of radius R first.

    The matrix is given as its upper triangle, off-diagonal entries times sqrt2, so that lengths are Frobenius norms. Words
    hold the triangle without that factor.

    Guarantee: ||v v^T||_F <= R^2 and <v v^T, w w^T> = <v, w>^2 >= 0, so replacing one curve moves the sum by at most
    sqrt2 R^2 (1 + slack), the slack being that of `exact.sum_slack` for rows of this width.
    """

    size: int
    radius: float

    @property
    def width(self) -> int:
        """Length of the triangle."""
        return self.size * (self.size + 1) // 2

    @cached_property
    def grid(self) -> Grid:
        """The grid that products are rounded to before they are added."""
        return Grid.of(np.full(self.width, self.radius**2))

    def words(self, vectors: ArrayLike) -> Words:
        """The sum of the bounded outer products of rows."""
        rows = EllipsoidBound(np.ones(self.size), self.radius).clip(vectors)
        first, second = np.triu_indices(self.size)
        return self.grid.words(rows[:, first] * rows[:, second])

    def mean_words(self, vectors: ArrayLike, starts: Integers) -> Words:
        """The sum over contributors of the MEAN of their bounded outer products; contributor i has the rows from starts[i].

        A mean of matrices v v^T is as short as one of them, and its inner products are not negative either: see
        docs/proofs/clipping.md. `starts` begins at 0 and grows, so that everybody has a row.
        """
        rows = EllipsoidBound(np.ones(self.size), self.radius).clip(vectors)
        first, second = np.triu_indices(self.size)
        counts = np.diff(np.append(starts, len(rows)))
        return self.grid.words(_sum_runs(rows[:, first] * rows[:, second], starts) / counts[:, None])

    def total(self, words: Words, n: int) -> BoundedSum:
        """The triangle that n rows have made, with its sensitivity."""
        return BoundedSum(self.grid.total(words) * _triangle_factors(self.size), self.sensitivity(n))

    def sensitivity(self, n: int) -> Sensitivity:
        """How far replacing one of n rows can move the triangle of the sum."""
        widened = (1 + math.sqrt(2) * sum_slack(n, self.width)) * (1 + _ROUNDING)
        return Sensitivity.ellipsoid(np.ones(self.width), math.sqrt(2) * self.radius**2 * widened)


def _sum_runs(rows: Array, starts: Integers) -> Array:
    """Sums over the runs of rows that begin at `starts`, each by itself, within 600 u of the sum of absolute values.

    Runs are added in pieces of at most 128 rows, then pieces of pieces, four times for 2^28 rows: errors of 127 u each.
    """
    while len(rows) > len(starts):
        counts = np.diff(np.append(starts, len(rows)))
        pieces = -(-counts // _PIECE)
        first = np.concatenate([[0], np.cumsum(pieces)[:-1]])
        number = np.arange(pieces.sum()) - np.repeat(first, pieces)
        rows = np.add.reduceat(rows, np.repeat(starts, pieces) + _PIECE * number, axis=0)
        starts = first
    return rows


def triangle(matrix: Array) -> Array:
    """The upper triangle of a symmetric matrix, off-diagonal entries times sqrt2."""
    scaled: Array = matrix[np.triu_indices(matrix.shape[-1])] * _triangle_factors(matrix.shape[-1])
    return scaled


def from_triangle(values: Array) -> Array:
    """The symmetric matrix of `triangle`."""
    size = (math.isqrt(8 * values.size + 1) - 1) // 2
    rows, columns = np.triu_indices(size)
    matrix = np.zeros((size, size))
    matrix[rows, columns] = values / _triangle_factors(size)
    matrix[columns, rows] = matrix[rows, columns]
    return matrix


def _triangle_factors(size: int) -> Array:
    rows, columns = np.triu_indices(size)
    return np.where(rows == columns, 1.0, math.sqrt(2))
