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
class HistogramsBound:
    """Several histograms at once: every curve counts once in each, or not at all.

    Guarantee: a curve's counts have length at most sqrt(histograms) and are not negative, so replacing it moves all counts
    together by at most sqrt(2 histograms).
    """

    histograms: int
    bins: int

    @property
    def width(self) -> int:
        return self.histograms * self.bins

    def words(self, places: ArrayLike) -> Words:
        """Counts of bin numbers, one column for each histogram; a number that is no bin is not counted."""
        each = [HistogramBound(self.bins).words(column) for column in np.asarray(places).T]
        return np.concatenate(each, axis=1)

    def total(self, words: Words, n: int) -> BoundedSum:
        """The counts of n curves, with their sensitivity."""
        counts = ((words[0] << 32) + words[1]).astype(np.float64)
        scale = math.sqrt(2 * self.histograms) * (1 + _ROUNDING)
        return BoundedSum(counts, Sensitivity.ellipsoid(np.ones(self.width), scale))


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


@dataclass(frozen=True)
class CompanionBound:
    """A vector within the ball of radius R, and two companions that the ball's own sensitivity pays for.

    With u the clipped vector in units of R, a curve contributes R times (u, u u^T / sqrt2, sqrt(1 - |u|^2) in one of
    `cells` cells): the vector, its outer product and a count by length, in which long vectors count less.

    Guarantee: replacing one curve moves the sum by at most 2 R (1 + slack), as for the vector alone. Let a, b be the lengths
    of u, u', and s = -<u, u'>, |s| <= a b. The squared distance is at most a^2 + b^2 + 2 s, plus (a^4 + b^4 - 2 s^2) / 2 of
    the outer products, plus (1 - a^2) + (1 - b^2) of the counts: 2 + 2 s - s^2 + (a^4 + b^4) / 2. It grows with s as s <= 1,
    so it is at most 2 + 2 a b + (a^2 - b^2)^2 / 2; that grows with the larger of a and b, and at a = 1 with b, up to 4.
    """

    size: int
    radius: float
    cells: int

    @property
    def width(self) -> int:
        """Entries of the vector, of the triangle of its outer product, and cells."""
        return self.size + self.size * (self.size + 1) // 2 + self.cells

    @cached_property
    def ball(self) -> EllipsoidBound:
        """The bound of the vector alone, whose grid its entries are rounded to."""
        return EllipsoidBound(np.ones(self.size), self.radius)

    @cached_property
    def unit_grid(self) -> Grid:
        """The grid of the companions, in units of the radius."""
        return Grid.of(np.ones(self.width - self.size))

    def words(self, vectors: ArrayLike, places: ArrayLike) -> Words:
        """The sum over rows; `places` are their cells, and a number that is no cell, such as -1, is not counted."""
        rows, numbers = self.ball.clip(vectors), np.asarray(places)
        unit = rows / self.radius
        first, second = np.triu_indices(self.size)
        counts = np.zeros((len(rows), self.cells))
        inside = (numbers >= 0) & (numbers < self.cells)
        lengths = np.sqrt((unit**2).sum(axis=1))
        counts[np.flatnonzero(inside), numbers[inside]] = free_weight(lengths[inside])
        companions = np.concatenate([unit[:, first] * unit[:, second], counts], axis=1)
        return np.concatenate([self.ball.grid.words(rows), self.unit_grid.words(companions)], axis=1)

    def total(self, words: Words, n: int) -> BoundedSum:
        """Vector, triangle and counts that n rows have made, with their common sensitivity."""
        vector, companions = self.ball.grid.total(words[:, : self.size]), self.unit_grid.total(words[:, self.size :])
        companions[: companions.size - self.cells] *= _triangle_factors(self.size) / math.sqrt(2)
        return BoundedSum(np.concatenate([vector, self.radius * companions]), self.sensitivity(n))

    def sensitivity(self, n: int) -> Sensitivity:
        """How far replacing one of n rows can move all entries together."""
        widened = (1 + math.sqrt(2) * sum_slack(n, self.width)) * (1 + _ROUNDING)
        return Sensitivity.ellipsoid(np.ones(self.width), 2 * self.radius * widened)


def free_weight(lengths: Array) -> Array:
    """How much a vector of this length, in radii, counts in the companion counts: sqrt(1 - length^2), none beyond 1."""
    weight: Array = np.sqrt(np.maximum(1.0 - np.minimum(lengths, 1.0) ** 2, 0.0))
    return weight


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
