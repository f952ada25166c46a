"""Bounds by geometry that a ball does not see: histograms, and companions of a clipped vector.

A curve counts in one cell of a histogram or in none, so that replacing one curve moves the counts by at most sqrt2, where
a ball of radius 1 would have to allow 2. Only long vectors use up the sensitivity of their ball; what short ones leave is
given to companions, which are then free.

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
from dpfda._typing import Words
from dpfda.privacy.clipping import BoundedSum, EllipsoidBound, Sensitivity
from dpfda.privacy.exact import Grid, sum_slack

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
        """Counts of bin numbers, one column for each histogram; a number outside every bin is not counted."""
        each = [HistogramBound(self.bins).words(column) for column in np.asarray(places).T]
        return np.concatenate(each, axis=1)

    def total(self, words: Words, n: int) -> BoundedSum:
        """The counts of n curves, with their sensitivity."""
        counts = ((words[0] << 32) + words[1]).astype(np.float64)
        scale = math.sqrt(2 * self.histograms) * (1 + _ROUNDING)
        return BoundedSum(counts, Sensitivity.ellipsoid(np.ones(self.width), scale))


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
    """How much a vector of this length, in radii, counts beside itself: sqrt(1 - length^2), and 0 beyond 1 or for NaN."""
    weight: Array = np.sqrt(np.maximum(1.0 - np.fmin(lengths, 1.0) ** 2, 0.0))
    return weight


def from_triangle(values: Array) -> Array:
    """The symmetric matrix whose upper triangle this is, off-diagonal entries times sqrt2."""
    size = (math.isqrt(8 * values.size + 1) - 1) // 2
    rows, columns = np.triu_indices(size)
    matrix = np.zeros((size, size))
    matrix[rows, columns] = values / _triangle_factors(size)
    matrix[columns, rows] = matrix[rows, columns]
    return matrix


def _triangle_factors(size: int) -> Array:
    rows, columns = np.triu_indices(size)
    return np.where(rows == columns, 1.0, math.sqrt(2))
