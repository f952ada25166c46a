"""Bounding what one curve can add to a sum, and saying by how much the sum can then change.

The sensitivity is returned by the bound that clipped; no other code may state one. Neighbouring data sets
replace one curve (one row here), and the number of rows n is public. Clipped rows are added up as integers (`exact`):
the words of several parts of the rows add, and `total` turns them into numbers. Compiled kernels (`dpfda.silo.kernels`) make
words of the same kind, clipped to the same bound.

Edge cases, the same for every bound:

| input row                           | becomes                                         |
|-------------------------------------|-------------------------------------------------|
| any entry NaN or infinite           | the zero row                                    |
| a curve without points              | the caller passes a zero row; it stays zero     |
| a curve with one point              | a row like any other                            |
| entries up to 1e308                 | clipped without overflow                        |
| no rows at all (n = 0)              | the zero sum, with the same sensitivity         |
| one row (n = 1)                     | its clipped value; replacing it is still covered |
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfda import _validate
from dpfda._typing import Words
from dpfda.errors import InvalidInput
from dpfda.privacy.exact import LARGEST, SMALLEST, UNIT_ROUNDOFF, Grid, no_words, sum_slack

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """How far replacing one curve can move a bounded sum.

    Guarantee: every replace-one change d of the sum, as computed in floating point, has |d_l| <= entries_l
    for each l and sum_l (d_l / scale_l)^2 <= 1. Build it with `entrywise` or `ellipsoid`.
    """

    entries: Array
    scale: Array

    @classmethod
    def entrywise(cls, change: Array) -> Sensitivity:
        """|d_l| <= Delta_l. Lemma 1: scale_l^2 = Delta_l ||Delta||_1, so that sum_l (Delta_l/scale_l)^2 = 1."""
        return cls(change, np.sqrt(change * change.sum()))

    @classmethod
    def ellipsoid(cls, weights: Array, radius: float) -> Sensitivity:
        """sum_l d_l^2 / w_l <= radius^2, hence scale_l = radius sqrt(w_l), which also bounds each |d_l|."""
        scale = radius * np.sqrt(weights)
        return cls(scale, scale)

    def whitening(self, mu: float) -> Array:
        """The noise sd per entry at which the whitened change d/sd has L2 norm at most mu.

        With mu = `lemma1_mu(epsilon, delta)` and an entrywise bound this is Lemma 1:
        sigma_l^2 = 4 log(2/delta) Delta_l ||Delta||_1 / epsilon^2.
        """
        return self.scale / _validate.positive("mu", mu)

    def whitened_norm(self, change: Array) -> float:
        """sqrt(sum_l (d_l / scale_l)^2): at most 1 for a change that the bound allows."""
        return float(np.linalg.norm(change / self.scale))


@dataclass(frozen=True, eq=False)
class BoundedSum:
    """The sum of the clipped rows, and how far replacing one row can move it."""

    total: Array
    sensitivity: Sensitivity


class Bound(Protocol):
    """A public limit on one curve's vector."""

    @property
    def width(self) -> int:
        """The number of entries of a sum."""
        ...

    def words(self, vectors: ArrayLike) -> Words:
        """The sum of the rows, each moved inside the bound first."""
        ...

    def total(self, words: Words, n: int) -> BoundedSum:
        """The sum that n rows have made, with its sensitivity."""
        ...


@dataclass(frozen=True, eq=False)
class EntrywiseBound:
    """Truncation of every entry to [-R_l, R_l] (the paper's Pi_R).

    Guarantee: the sum of the clipped rows changes by at most 2 R_l (1 + slack) in entry l when one row is
    replaced; `exact.sum_slack` says what the slack covers. A number known to lie in [low, high] is bounded by
    R = (high - low)/2 after subtracting the midpoint.
    """

    radii: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "radii", _positive_vector("radii", self.radii))

    @property
    def width(self) -> int:
        return int(self.radii.size)

    @cached_property
    def grid(self) -> Grid:
        """The grid that clipped entries are rounded to before they are added."""
        return Grid.of(self.radii)

    def clip(self, vectors: ArrayLike) -> Array:
        """Each entry truncated to [-R_l, R_l]; a row with a non-finite entry becomes zero."""
        clipped: Array = np.clip(_finite_rows(vectors, self.radii.size), -self.radii, self.radii)
        return clipped

    def sensitivity(self, n: int) -> Sensitivity:
        """For a sum of n truncated rows: Delta_l = 2 R_l (1 + slack)."""
        return Sensitivity.entrywise(2.0 * self.radii * (1.0 + sum_slack(n, self.width)))

    def words(self, vectors: ArrayLike) -> Words:
        """The sum of the truncated rows."""
        return self.grid.words(self.clip(vectors))

    def total(self, words: Words, n: int) -> BoundedSum:
        """The sum that n truncated rows have made, with its sensitivity."""
        return BoundedSum(self.grid.total(words), self.sensitivity(n))

    def sum(self, vectors: ArrayLike) -> BoundedSum:
        """The sum of the truncated rows, with its sensitivity."""
        return sum_chunks(self, [vectors])


@dataclass(frozen=True, eq=False)
class EllipsoidBound:
    """Shrinkage of a whole row into the ellipsoid sum_l g_l^2 / w_l <= C^2, keeping its direction.

    Guarantee: when one row is replaced, the change d of the sum of the clipped rows has
    sum_l d_l^2 / w_l <= (2 C (1 + slack))^2; `exact.sum_slack` says what the slack covers. Words hold d_l / sqrt(w_l).
    """

    weights: Array
    radius: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", _positive_vector("weights", self.weights))
        object.__setattr__(self, "radius", float(_positive_vector("radius", [self.radius])[0]))

    @property
    def width(self) -> int:
        return int(self.weights.size)

    @cached_property
    def grid(self) -> Grid:
        """The grid that clipped entries, divided by sqrt(w_l), are rounded to before they are added."""
        return Grid.of(np.full(self.width, self.radius))

    @cached_property
    def roots(self) -> Array:
        """sqrt(w_l)."""
        return np.sqrt(self.weights)

    def clip(self, vectors: ArrayLike) -> Array:
        """Rows inside the ellipsoid stay bit for bit; others are scaled onto it, a few roundings inside."""
        rows = _finite_rows(vectors, self.weights.size)
        peak = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
        direction = rows / np.where(peak > 0, peak, 1.0)  # entries in [-1, 1]: nothing below can overflow
        length = np.linalg.norm(direction / self.roots, axis=1, keepdims=True)
        longest_peak = self.radius / np.where(length > 0, length, 1.0)
        inward = 1.0 - 4 * (self.weights.size + 8) * UNIT_ROUNDOFF  # so that clipping twice is clipping once
        return np.where(peak <= longest_peak, rows, direction * (longest_peak * inward))

    def sensitivity(self, n: int) -> Sensitivity:
        """For a sum of n shrunk rows: the same ellipsoid with radius 2 C (1 + slack)."""
        return Sensitivity.ellipsoid(self.weights, 2.0 * self.radius * (1.0 + sum_slack(n, self.width)))

    def words(self, vectors: ArrayLike) -> Words:
        """The sum of the shrunk rows, each entry divided by sqrt(w_l)."""
        return self.grid.words(self.clip(vectors) / self.roots)

    def total(self, words: Words, n: int) -> BoundedSum:
        """The sum that n shrunk rows have made, with its sensitivity."""
        return BoundedSum(self.grid.total(words) * self.roots, self.sensitivity(n))

    def sum(self, vectors: ArrayLike) -> BoundedSum:
        """The sum of the shrunk rows, with its sensitivity."""
        return sum_chunks(self, [vectors])


def sum_chunks(bound: Bound, chunks: Iterable[ArrayLike]) -> BoundedSum:
    """The sum of the clipped rows of many chunks, with the sensitivity of all their rows together."""
    words, n = no_words(bound.width), 0
    for chunk in chunks:
        rows = np.asarray(chunk)
        words += bound.words(rows)
        n += len(rows)
    return bound.total(words, n)


def combine(sums: Sequence[BoundedSum], mus: Sequence[float]) -> BoundedSum:
    """Several bounded sums of the same curves as one, to be released together at mu = sqrt(sum_j mu_j^2).

    Guarantee: scale_j is multiplied by mu/mu_j, so that a change d = (d_1, d_2, ...) has
    sum_j sum_l (d_jl / scale_jl)^2 (mu_j/mu)^2 <= sum_j mu_j^2 / mu^2 = 1, and the noise sd of part j, scale_j/mu_j, is
    what part j alone would have at mu_j.
    """
    mu = math.hypot(*mus)
    scale = [part.sensitivity.scale * (mu / own) for part, own in zip(sums, mus, strict=True)]
    entries = np.concatenate([part.sensitivity.entries for part in sums])
    return BoundedSum(np.concatenate([part.total for part in sums]), Sensitivity(entries, np.concatenate(scale)))


def _finite_rows(vectors: ArrayLike, width: int) -> Array:
    """The rows as a float matrix, each row with a non-finite entry replaced by zeros."""
    rows = _validate.numeric("vectors", vectors)
    if rows.ndim != 2 or rows.shape[1] != width:
        raise InvalidInput(f"vectors must have shape (n, {width}), got {rows.shape}.")
    finite = np.isfinite(rows).all(axis=1, keepdims=True)  # before any comparison: NaN passes min and max
    return np.where(finite, rows, 0.0)


def _positive_vector(name: str, value: ArrayLike) -> Array:
    """A read-only, non-empty vector of numbers in [1e-100, 1e100]."""
    array = _validate.vector(name, value)
    if array.size == 0 or not ((array >= SMALLEST) & (array <= LARGEST)).all():
        raise InvalidInput(f"{name} must hold numbers between {SMALLEST:g} and {LARGEST:g}, got {value!r}.")
    array.setflags(write=False)
    return array
