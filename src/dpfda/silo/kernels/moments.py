"""Scores from trigonometric moments: for curves that are long against the size of the basis.

A product of two functions of the basis is a sum of cosines or sines, so that a curve's Gram matrix is Toeplitz +
Hankel in the means C_k of cos(k theta) and S_k of sin(k theta), k = 1..2K, over its points. These and h = mean of Phi
y are all that gradients need: O(r^2) per curve and round, however long the curve is, and less memory than its points.

A curve's record: C_1..C_2K, then S_1..S_2K if the basis has sines, then h (1 + 2K or 1 + K entries), without factors
sqrt2.

For a basis that is not made of waves ALL curves keep a record: the moments of the design, h, and the Gram matrix (the upper
triangle, row by row), as means over the curve's points of numbers that are computed for every point by itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dpfda._compile import inlined
from dpfda.silo.kernels.simd import add, fma, fnma, load, mul, splat, store, sub
from dpfda.silo.kernels.trig import rotated, wave

Floats = Any  # contiguous float64 arrays

SEGMENT = 512  # points; long curves are added up in segments, so that errors do not grow with their length


@inlined
def moment_scores(
    table: Floats, start: int, harmonics: int, sines: bool, slopes: Floats, scores: Floats, signed: Floats
) -> None:
    """Mean scores of the eight curves whose records start at `start`, as `direct.direct_scores` has them.

    `signed` is room for C_j and S_j with j = -K..2K: 16 (3K + 1) numbers.
    """
    top = 2 * harmonics
    h = start + 8 * (2 * top if sines else top)
    middle = 16 * harmonics
    store(signed, middle, splat(1.0))
    store(signed, middle + 8, splat(0.0))
    for k in range(1, top + 1):
        c = load(table, start + 8 * (k - 1))
        s = load(table, start + 8 * (top + k - 1)) if sines else splat(0.0)
        store(signed, middle + 16 * k, c)
        store(signed, middle + 16 * k + 8, s)
        if k <= harmonics:
            store(signed, middle - 16 * k, c)
            store(signed, middle - 16 * k + 8, sub(splat(0.0), s))
    constant = load(slopes, 0)
    total = sub(constant, load(table, h))
    for k in range(1, harmonics + 1):
        if sines:
            total = fma(load(slopes, 16 * k - 8), load(signed, middle + 16 * k), total)
            total = fma(load(slopes, 16 * k), load(signed, middle + 16 * k + 8), total)
        else:
            total = fma(load(slopes, 8 * k), load(signed, middle + 16 * k), total)
    store(scores, 0, total)
    for l in range(1, harmonics + 1):  # noqa: E741
        here = middle + 16 * l
        p, q = splat(0.0), splat(0.0)
        if sines:
            v, w = splat(0.0), splat(0.0)
            for k in range(1, harmonics + 1):
                a, b = load(slopes, 16 * k - 8), load(slopes, 16 * k)
                c_minus, c_plus = load(signed, here - 16 * k), load(signed, here + 16 * k)
                s_minus, s_plus = load(signed, here - 16 * k + 8), load(signed, here + 16 * k + 8)
                p = fnma(b, s_minus, fma(a, c_minus, p))
                q = fma(b, s_plus, fma(a, c_plus, q))
                v = fma(b, c_minus, fma(a, s_minus, v))
                w = fnma(b, c_plus, fma(a, s_plus, w))
            rest = sub(mul(constant, load(signed, here)), load(table, h + 16 * l - 8))
            store(scores, 16 * l - 8, fma(add(p, q), splat(0.5), rest))
            rest = sub(mul(constant, load(signed, here + 8)), load(table, h + 16 * l))
            store(scores, 16 * l, fma(add(v, w), splat(0.5), rest))
        else:
            for k in range(1, harmonics + 1):
                a = load(slopes, 8 * k)
                p = fma(a, load(signed, here - 16 * k), p)
                q = fma(a, load(signed, here + 16 * k), q)
            rest = sub(mul(constant, load(signed, here)), load(table, h + 8 * l))
            store(scores, 8 * l, fma(add(p, q), splat(0.5), rest))


@inlined
def gram_scores(table: Floats, start: int, slopes: Floats, scores: Floats, size: int) -> None:
    """Mean scores A slopes - h of eight curves, whose h and triangles of A begin at `start`."""
    for row in range(size):
        store(scores, 8 * row, sub(splat(0.0), load(table, start + 8 * row)))
    at = start + 8 * size
    for row in range(size):
        slope, total = load(slopes, 8 * row), load(scores, 8 * row)
        total = fma(load(table, at), slope, total)
        at += 8
        for column in range(row + 1, size):
            entry = load(table, at)
            total = fma(entry, load(slopes, 8 * column), total)
            store(scores, 8 * column, fma(entry, slope, load(scores, 8 * column)))
            at += 8
        store(scores, 8 * row, total)


@inlined
def add_gram_record(moments: Floats, features: Floats, y: Floats, first: int, last: int, totals: Floats) -> None:
    """Add points first..last-1 of one curve to `totals`, a record of a basis without waves: moments, h, triangle of A."""
    count, size = moments.shape[1], features.shape[1]
    for point in range(first, last):
        for entry in range(count):
            totals[entry] += moments[point, entry]
        place = count + size
        for row in range(size):
            value = features[point, row]
            totals[count + row] += value * y[point]
            for column in range(row, size):
                totals[place] += value * features[point, column]
                place += 1


@inlined
def add_points(
    u: Floats,
    y: Floats,
    at: int,
    blocks: int,
    weights: Floats,
    weight_step: int,
    rate: float,
    harmonics: int,
    sines: bool,
    sums: Floats,
) -> None:
    """Add `blocks` vectors of points, from `at` on, to the sums of a record, each entry a vector.

    Lanes are curves (and weights one vector of ones, step 0) or points of one curve (and weights 0 beyond its end,
    where y is 0 as well; step 8).
    """
    top = 2 * harmonics
    h = 8 * (2 * top if sines else top)
    for block in range(blocks):
        a, b = wave(load(u, at + 8 * block), rate)
        value, weight = load(y, at + 8 * block), load(weights, weight_step * block)
        store(sums, h, add(load(sums, h), value))
        c, s = a, b
        for k in range(top):
            store(sums, 8 * k, fma(c, weight, load(sums, 8 * k)))
            if sines:
                store(sums, 8 * (top + k), fma(s, weight, load(sums, 8 * (top + k))))
            if k < harmonics:
                if sines:
                    store(sums, h + 16 * k + 8, fma(c, value, load(sums, h + 16 * k + 8)))
                    store(sums, h + 16 * k + 16, fma(s, value, load(sums, h + 16 * k + 16)))
                else:
                    store(sums, h + 8 * k + 8, fma(c, value, load(sums, h + 8 * k + 8)))
            c, s = rotated(c, s, a, b)


@inlined
def add_segments(
    u: Floats,
    y: Floats,
    first: int,
    last: int,
    rate: float,
    harmonics: int,
    sines: bool,
    segment: tuple[Floats, Floats, Floats],
    sums: Floats,
    totals: Floats,
) -> None:
    """Add the points first..last-1 of one curve to `totals`, segment by segment.

    `segment` is room for u, y and weights of SEGMENT points, `sums` for eight records, as `totals` has. A curve may come in
    several calls, each but the last of whole segments.
    """
    some_u, some_y, weights = segment
    for begin in range(first, last, SEGMENT):
        count = min(SEGMENT, last - begin)
        blocks = (count + 7) // 8
        for i in range(8 * blocks):
            inside = i < count
            some_u[i] = u[begin + i] if inside else 0.0
            some_y[i] = y[begin + i] if inside else 0.0
            weights[i] = 1.0 if inside else 0.0
        sums[:] = 0.0
        add_points(some_u, some_y, 0, blocks, weights, 8, rate, harmonics, sines, sums)
        for i in range(sums.size):
            totals[i] += sums[i]


@inlined
def finish_record(totals: Floats, points: int) -> None:
    """The record of a curve with so many points, in the first entries of `totals`."""
    for entry in range(totals.size // 8):
        at = 8 * entry
        left = (totals[at] + totals[at + 1]) + (totals[at + 2] + totals[at + 3])
        right = (totals[at + 4] + totals[at + 5]) + (totals[at + 6] + totals[at + 7])
        totals[entry] = (left + right) / np.float64(points)
