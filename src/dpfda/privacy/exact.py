"""Sums without rounding: contributions become integers, and integers add up exactly in any order.

Entry l of a clipped vector, |v| <= R_l, is rounded once, to a multiple of the grid g_l = 2^(e-50), 2^(e-1) <= R_l <
2^e. In doubles that is one addition: with M = 1.5 * 2^52 g, the bits of v + M, as an integer, are those of M plus
v/g. Lanes of 64-bit integers add them up modulo 2^64, pairs of (high, low) words collect the lanes, words of parts add,
and the total is rounded to a double once.

So the sum depends on the set of contributions alone: not on threads, chunks, batches of a stream, workers of a
cluster or the order of curves; and replacing one curve moves the integers by that curve's two contributions and
nothing else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpfda._typing import Floats, Integers
from dpfda.errors import InvalidInput

UNIT_ROUNDOFF = 2.0**-53
MOST_ADDITIONS = 4096  # to one 64-bit lane between two collections: 4096 * 2^50 (1 + 2^-50) < 2^63
MOST_ROWS = 2**30  # a row adds less than 2^32 to a low word, so that words stay below 2^62
SMALLEST, LARGEST = 1e-100, 1e100  # radii and weights in this range cannot overflow or vanish when squared

_BITS = 50


@dataclass(frozen=True, eq=False)
class Grid:
    """The grids of vectors whose entries are bounded by `radii`."""

    exponents: Integers
    magic: Floats
    bits: Integers

    @classmethod
    def of(cls, radii: Floats) -> Grid:
        """Grids for |v_l| <= radii_l."""
        if not ((radii >= SMALLEST) & (radii <= LARGEST)).all():
            raise InvalidInput(f"radii must lie between {SMALLEST:g} and {LARGEST:g}.")
        exponents = np.frexp(radii)[1].astype(np.int64) - _BITS
        magic = np.ldexp(1.5 * 2.0**52, exponents)
        exponents.flags.writeable = magic.flags.writeable = False
        return cls(exponents, magic, magic.view(np.int64))

    def words(self, rows: Floats) -> Integers:
        """The sum of bounded rows: a row of high and a row of low words. At most 2^30 rows at a time."""
        integers = np.add(rows, self.magic, order="C").view(np.int64) - self.bits
        return np.stack([(integers >> 32).sum(axis=0), (integers & 0xFFFFFFFF).sum(axis=0)])

    def total(self, words: Integers) -> Floats:
        """The doubles nearest to (high 2^32 + low) g."""
        entries = zip(*words.tolist(), self.exponents.tolist(), strict=True)
        return np.array([_scaled((high << 32) + low, exponent) for high, low, exponent in entries], dtype=np.float64)


def no_words(width: int) -> Integers:
    """The sum of nothing."""
    return np.zeros((2, width), dtype=np.int64)


def _scaled(number: int, exponent: int) -> float:
    """number * 2^exponent, rounded once: division of Python integers is correctly rounded."""
    return number / (1 << -exponent) if exponent < 0 else float(number << exponent)


def sum_slack(n: int, width: int) -> float:
    """The relative part of a sensitivity that pays for floating point in exact sums: about 3n 2^-53.

    Let v_i be the rows of q = `width` entries that one curve each determines alone, clipped in floating point to |v_il| <=
    R_l, or to a ball, ||v_i|| <= C (1 + (q+8) u), u = 2^-53 (step 0).

    0. Clipping to a ball. The squares of q entries, none beyond 2^424 after scaling by 2^-600 where one is beyond 1e100, add
       up to a length with relative error at most (q/2 + 2) u; C / length and the product with each entry err by u each. All
       of these are normal doubles, since C >= 1e-100 and the scaled length is at most sqrt(q) 2^424: a product underflows
       only below 2^-1022, which is less than u C. A vector of the ellipsoid is divided by sqrt(w_l): 2u more.
    1. Rounding to the grid. g_l <= 2^-49 R_l, so q_i = round(v_i) has |q_il| <= R_l (1 + 2^-50); in the ball
       ||q_i|| <= C (1 + (q+8) u + sqrt(q) 2^-50), and 2^-50 = 8u.
    2. Adding. Integers: no error while a lane stays below 2^63 (`MOST_ADDITIONS`) and the words below 2^63 (n <=
       2^30: a row adds less than 2^32 to a low word). The exact sums of two data sets that differ in one curve differ by
       q_i - q_i', hence by at most twice the bound in 1.
    3. The total, rounded to doubles: T_l = S_l (1 + d_l), |d_l| <= u. In every norm that grows with |entries| the
       error is at most u ||S|| <= u n C, without a factor sqrt(q), and likewise for entries. Two data sets: 2C
       becomes 2C (1 + n u).
    4. Totals are multiplied by a vector (moments by their weights, triangles by sqrt2) and divided by the noise sd: two
       more roundings of the same kind, 2 n u.

    Together 2C (1 + nu)^3 {1 + (8 sqrt(q) + q + 8) u}; the square of nu and the factor 8 of the last term cover the
    products of these terms and the rounding of scale, sd and of this expression, each below (q + 8) u.

    Outer products and counts beside a clipped vector (`cones.CompanionBound`) err differently; docs/proofs/clipping.md shows
    that sqrt2 times this slack, for the width of all of them, covers what they do.
    """
    if n > MOST_ROWS:
        raise InvalidInput(f"a sum may have at most {MOST_ROWS} rows, got {n}; split them over several silos.")
    rounded = n * UNIT_ROUNDOFF
    return 3 * rounded + 4 * rounded**2 + (8 * math.sqrt(width) + 8 * (width + 8)) * UNIT_ROUNDOFF
