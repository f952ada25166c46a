"""Bounding what one curve can add to a sum, and saying by how much the sum can then change.

The sensitivity is returned by the function that bounds; no other code may state one. Neighbouring data sets
replace one curve (one row here), and the number of rows n is public.

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
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfda import _validate
from dpfda.errors import InvalidInput

Array = NDArray[np.float64]

_UNIT_ROUNDOFF = 2.0**-53
_MOST_ROWS = 2**26
_SMALLEST, _LARGEST = 1e-100, 1e100  # radii and weights in this range cannot overflow or vanish when squared


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

    def clip(self, vectors: ArrayLike) -> Array:
        """The rows, each moved inside the bound."""
        ...

    def sensitivity(self, n: int) -> Sensitivity:
        """How far replacing one row can move the sum of n clipped rows."""
        ...


@dataclass(frozen=True, eq=False)
class EntrywiseBound:
    """Truncation of every entry to [-R_l, R_l] (the paper's Pi_R).

    Guarantee: the sum of the clipped rows changes by at most 2 R_l (1 + slack) in entry l when one row is
    replaced; `_slack` says what the slack covers. A number known to lie in [low, high] is bounded by
    R = (high - low)/2 after subtracting the midpoint.
    """

    radii: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "radii", _positive_vector("radii", self.radii))

    def clip(self, vectors: ArrayLike) -> Array:
        """Each entry truncated to [-R_l, R_l]; a row with a non-finite entry becomes zero."""
        clipped: Array = np.clip(_finite_rows(vectors, self.radii.size), -self.radii, self.radii)
        return clipped

    def sensitivity(self, n: int) -> Sensitivity:
        """For a sum of n truncated rows, added in any order: Delta_l = 2 R_l (1 + slack)."""
        return Sensitivity.entrywise(2.0 * self.radii * (1.0 + _slack(n, self.radii.size, 1.0)))

    def sum(self, vectors: ArrayLike) -> BoundedSum:
        """The sum of the truncated rows."""
        return sum_chunks(self, [vectors], width=self.radii.size)


@dataclass(frozen=True, eq=False)
class EllipsoidBound:
    """Shrinkage of a whole row into the ellipsoid sum_l g_l^2 / w_l <= C^2, keeping its direction.

    Guarantee: when one row is replaced, the change d of the sum of the clipped rows has
    sum_l d_l^2 / w_l <= (2 C (1 + slack))^2; `_slack` says what the slack covers.
    """

    weights: Array
    radius: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", _positive_vector("weights", self.weights))
        object.__setattr__(self, "radius", float(_positive_vector("radius", [self.radius])[0]))

    def clip(self, vectors: ArrayLike) -> Array:
        """Rows inside the ellipsoid stay bit for bit; others are scaled onto it, a few roundings inside."""
        rows = _finite_rows(vectors, self.weights.size)
        peak = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
        direction = rows / np.where(peak > 0, peak, 1.0)  # entries in [-1, 1]: nothing below can overflow
        length = np.linalg.norm(direction / np.sqrt(self.weights), axis=1, keepdims=True)
        longest_peak = self.radius / np.where(length > 0, length, 1.0)
        inward = 1.0 - 4 * (self.weights.size + 8) * _UNIT_ROUNDOFF  # so that clipping twice is clipping once
        return np.where(peak <= longest_peak, rows, direction * (longest_peak * inward))

    def sensitivity(self, n: int) -> Sensitivity:
        """For a sum of n shrunk rows, added in any order: the same ellipsoid with radius 2 C (1 + slack)."""
        return Sensitivity.ellipsoid(
            self.weights, 2.0 * self.radius * (1.0 + _slack(n, self.weights.size, math.sqrt(self.weights.size)))
        )

    def sum(self, vectors: ArrayLike) -> BoundedSum:
        """The sum of the shrunk rows."""
        return sum_chunks(self, [vectors], width=self.weights.size)


def sum_chunks(bound: Bound, chunks: Iterable[ArrayLike], *, width: int) -> BoundedSum:
    """The sum of the clipped rows of many chunks, with the sensitivity of all their rows together."""
    total, n = np.zeros(width), 0
    for chunk in chunks:
        rows = bound.clip(chunk)
        total += rows.sum(axis=0)
        n += len(rows)
    return BoundedSum(total, bound.sensitivity(n))


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


def _slack(rows: int, width: int, spread: float) -> float:
    """The relative part of the sensitivity that pays for floating point: a public number of n and q.

    With u = 2^-53, adding n numbers of size at most R in any order errs by at most (n-1)u/(1-(n-1)u) n R
    <= n^2 u R for n <= 2^26 (Higham, Accuracy and Stability, sec. 4.2). Both neighbouring sums err, so the
    change grows from 2R to at most 2R (1 + n^2 u); dividing the sums (at most n R) by the noise sd adds n u.
    These errors are entrywise (spread = 1); in the ellipsoid norm q of them add to sqrt(q) times as much (the
    spread). The last term covers the computed length of a row, the sd and this expression: each errs by
    less than (q + 8) u.
    """
    if rows > _MOST_ROWS:
        raise InvalidInput(f"vectors must have at most {_MOST_ROWS} rows, got {rows}; split them over several silos.")
    return (spread * rows * (rows + 1) + 4 * (width + 8)) * _UNIT_ROUNDOFF


def _positive_vector(name: str, value: ArrayLike) -> Array:
    """A read-only, non-empty vector of numbers in [1e-100, 1e100]."""
    array = _validate.vector(name, value)
    if array.size == 0 or not ((array >= _SMALLEST) & (array <= _LARGEST)).all():
        raise InvalidInput(f"{name} must hold numbers between {_SMALLEST:g} and {_LARGEST:g}, got {value!r}.")
    array.setflags(write=False)
    return array
