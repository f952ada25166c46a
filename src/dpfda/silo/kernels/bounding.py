"""From scores to bounded contributions to exact sums, eight curves at a time.

The order is the same everywhere: is every entry of the curve finite, then clip, then round to the grid (`exact`),
then add. A curve with an entry that is NaN or infinite contributes zero. Comparisons with NaN are false, hence the
test first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dpfda._compile import inlined
from dpfda.silo.kernels.simd import (
    ALL,
    add,
    add_bits,
    add_bits4,
    bits_le,
    div,
    fma,
    least,
    load,
    magnitude,
    most,
    mul,
    root,
    splat,
    store,
    where_le,
)

Floats = Any  # contiguous float64 arrays
Integers = Any  # contiguous int64 arrays

Shape = tuple[Any, Any, Any, bool]
"""(length, shrink, odd, plain) of eight vectors. The length is that of `shrink` times the vector: shrink is 1 or, for huge
entries, 2^-600. `odd` is 0, or NaN for a vector that is not finite. All are `plain` if shrink is 1 and odd is 0 for all.
"""

HUGE = 1e100  # entries beyond it are scaled down before they are squared; no radius is larger
DOWN = 2.0**-600
PLAIN = 1e199  # vectors whose squares add up to no more have neither huge entries nor any that are not finite


@inlined
def collect(lanes: Integers, bits: Integers, additions: int, high: Integers, low: Integers) -> None:
    """Move the lanes' integers to the words of the totals, taking off the bits of M that came with each addition."""
    for entry in range(bits.size):
        for lane in range(8):
            value = lanes[8 * entry + lane] - additions * bits[entry]  # modulo 2^64, as the lanes
            high[entry] += value >> 32
            low[entry] += value & 0xFFFFFFFF
            lanes[8 * entry + lane] = 0


@inlined
def put_gradients(
    design: Floats,
    start: int,
    p: int,
    share: float,
    scales: Floats,
    scores: Floats,
    gradients: Floats,
    at: int,
    stride: int,
) -> None:
    """Gradients G (x) score of eight curves, entry e at `at` + stride * e.

    `scales` are the factors of the functions of the basis, the same for all but the first.
    """
    size = scales.size
    for a in range(p):
        mean = mul(load(design, start + 8 * a), splat(share))
        factor = mul(mean, splat(scales[0]))
        for entry in range(size):
            store(gradients, at + stride * (a * size + entry), mul(factor, load(scores, 8 * entry)))
            factor = mul(mean, splat(scales[size - 1]))


@inlined
def add_truncated(
    design: Floats,
    start: int,
    p: int,
    share: float,
    scales: Floats,
    scores: Floats,
    radii: Floats,
    magic: Floats,
    lanes: Integers,
) -> None:
    """Truncate every entry of G (x) score to [-R_l, R_l] and add."""
    size = scales.size
    odd, peak = splat(0.0), splat(0.0)  # odd: 0, or NaN once a number is not finite
    for a in range(p):
        factor = mul(mul(load(design, start + 8 * a), splat(share)), splat(scales[size - 1]))
        odd = fma(factor, splat(0.0), odd)
        peak = most(magnitude(factor), peak)
    for entry in range(size):
        odd = fma(mul(peak, load(scores, 8 * entry)), splat(0.0), odd)
    odd = magnitude(odd)
    for a in range(p):
        mean = mul(load(design, start + 8 * a), splat(share))
        factor = mul(mean, splat(scales[0]))
        for entry in range(size):
            place = a * size + entry
            value = mul(factor, load(scores, 8 * entry))
            value = most(least(value, splat(radii[place])), splat(-radii[place]))
            value = where_le(odd, splat(0.0), value, splat(0.0))
            add_bits(lanes, 8 * place, add(value, splat(magic[place])))
            factor = mul(mean, splat(scales[size - 1]))


@inlined
def add_truncated_vectors(vectors: Floats, radii: Floats, magic: Floats, lanes: Integers) -> None:
    """Truncate every entry of eight vectors, entry e at 8 e, to [-R_e, R_e] and add."""
    odd = splat(0.0)  # 0, or NaN once an entry is not finite
    for entry in range(radii.size):
        odd = fma(load(vectors, 8 * entry), splat(0.0), odd)
    odd = magnitude(odd)
    for entry in range(radii.size):
        value = most(least(load(vectors, 8 * entry), splat(radii[entry])), splat(-radii[entry]))
        value = where_le(odd, splat(0.0), value, splat(0.0))
        add_bits(lanes, 8 * entry, add(value, splat(magic[entry])))


@inlined
def measure_lengths(vectors: Floats, at: int, stride: int, size: int) -> Shape:
    """The `Shape` of eight vectors, entry e at `at` + stride * e.

    Squares that underflow belong to lengths far below every radius. The bits of a vector's length are the same on both
    paths, whatever its neighbours: 1 times a number is that number.
    """
    squares = splat(0.0)
    for entry in range(size):
        value = load(vectors, at + stride * entry)
        squares = fma(value, value, squares)
    if bits_le(squares, splat(PLAIN)) == ALL:
        return root(squares), splat(1.0), splat(0.0), True
    odd, peak = splat(0.0), splat(0.0)
    for entry in range(size):
        value = load(vectors, at + stride * entry)
        odd = fma(value, splat(0.0), odd)  # 0, or NaN once an entry is not finite
        peak = most(magnitude(value), peak)
    shrink = where_le(peak, splat(HUGE), splat(1.0), splat(DOWN))
    squares = splat(0.0)
    for entry in range(size):
        value = mul(load(vectors, at + stride * entry), shrink)
        squares = fma(value, value, squares)
    return root(squares), shrink, magnitude(odd), False


@inlined
def true_length(shape: Shape) -> Any:
    """The length itself; infinite for a vector that is not finite."""
    length, shrink, odd, _ = shape
    return where_le(odd, splat(0.0), div(length, shrink), splat(np.inf))


@inlined
def ball_factor(shape: Shape, radius: float) -> Any:
    """What takes `shrink` times a vector into the ball: 1 inside, else radius / length.

    Applied after the shrinking, never multiplied with it first: their product can be denormal, with few bits left. A huge
    vector is always outside, as no radius exceeds `HUGE`; where rounding says otherwise, a tiny multiple of it is taken.
    """
    length, shrink, _, _ = shape
    return where_le(length, mul(splat(radius), shrink), splat(1.0), div(splat(radius), length))


@inlined
def add_shrunk(
    vectors: Floats,
    at: int,
    stride: int,
    size: int,
    shape: Shape,
    radius: float,
    magic: float,
    lanes: Integers,
) -> None:
    """Scale each vector into the ball of this radius and add; `shape` is what `measure_lengths` returned."""
    _, shrink, odd, plain = shape
    factor = ball_factor(shape, radius)
    if plain:
        for entry in range(size):
            value = mul(load(vectors, at + stride * entry), factor)
            add_bits(lanes, 8 * entry, add(value, splat(magic)))
        return
    for entry in range(size):
        value = mul(mul(load(vectors, at + stride * entry), shrink), factor)
        value = where_le(odd, splat(0.0), value, splat(0.0))
        add_bits(lanes, 8 * entry, add(value, splat(magic)))


@inlined
def put_in_unit_ball(vectors: Floats, at: int, stride: int, size: int, shape: Shape, radius: float) -> None:
    """Replace each vector by vector / max(radius, length), or by zero if it is not finite."""
    length, shrink, odd, plain = shape
    factor = where_le(length, mul(splat(radius), shrink), splat(1.0 / radius), div(splat(1.0), length))
    if plain:
        for entry in range(size):
            store(vectors, at + stride * entry, mul(load(vectors, at + stride * entry), factor))
        return
    for entry in range(size):
        value = mul(mul(load(vectors, at + stride * entry), shrink), factor)
        store(vectors, at + stride * entry, where_le(odd, splat(0.0), value, splat(0.0)))


@inlined
def add_outer_products(vectors: Floats, size: int, magic: float, lanes: Integers) -> None:
    """Add the upper triangles of v v^T for 32 vectors, entry e of vector i at 32 e + i."""
    offset = splat(magic)
    place = 0
    for row in range(size):
        a, b = load(vectors, 32 * row), load(vectors, 32 * row + 8)
        c, d = load(vectors, 32 * row + 16), load(vectors, 32 * row + 24)
        for column in range(row, size):
            at = 32 * column
            add_bits4(
                lanes,
                place,
                fma(a, load(vectors, at), offset),
                fma(b, load(vectors, at + 8), offset),
                fma(c, load(vectors, at + 16), offset),
                fma(d, load(vectors, at + 24), offset),
            )
            place += 8


@inlined
def multiply(matrix: Floats, vectors: Floats, products: Floats) -> None:
    """matrix @ vector for 32 vectors, entry e of vector i at 32 e + i; each sum goes through the columns in order."""
    size = matrix.shape[0]
    for first in range(0, size, 2):
        second = min(first + 1, size - 1)
        a0, a1, a2, a3 = splat(0.0), splat(0.0), splat(0.0), splat(0.0)
        b0, b1, b2, b3 = splat(0.0), splat(0.0), splat(0.0), splat(0.0)
        for column in range(size):
            v0, v1 = load(vectors, 32 * column), load(vectors, 32 * column + 8)
            v2, v3 = load(vectors, 32 * column + 16), load(vectors, 32 * column + 24)
            entry = splat(matrix[first, column])
            a0, a1, a2, a3 = fma(entry, v0, a0), fma(entry, v1, a1), fma(entry, v2, a2), fma(entry, v3, a3)
            entry = splat(matrix[second, column])
            b0, b1, b2, b3 = fma(entry, v0, b0), fma(entry, v1, b1), fma(entry, v2, b2), fma(entry, v3, b3)
        store(products, 32 * second, b0)
        store(products, 32 * second + 8, b1)
        store(products, 32 * second + 16, b2)
        store(products, 32 * second + 24, b3)
        store(products, 32 * first, a0)
        store(products, 32 * first + 8, a1)
        store(products, 32 * first + 16, a2)
        store(products, 32 * first + 24, a3)


@inlined
def mix(matrix: Floats, vectors: Floats, products: Floats) -> None:
    """matrix @ vector for eight vectors, entry e of vector i at 8 e + i; entries of unlike parity are zero and left out.

    Four rows of one parity at a time; each sum goes through the columns in order.
    """
    size, columns = matrix.shape
    for parity in range(min(size, 2)):
        last = size - 1 - (size - 1 - parity) % 2
        for a in range(parity, size, 8):
            b, c, d = min(a + 2, last), min(a + 4, last), min(a + 6, last)
            v, w, x, y = splat(0.0), splat(0.0), splat(0.0), splat(0.0)
            for column in range(parity, columns, 2):
                entry = load(vectors, 8 * column)
                v, w = fma(splat(matrix[a, column]), entry, v), fma(splat(matrix[b, column]), entry, w)
                x, y = fma(splat(matrix[c, column]), entry, x), fma(splat(matrix[d, column]), entry, y)
            store(products, 8 * d, y)
            store(products, 8 * c, x)
            store(products, 8 * b, w)
            store(products, 8 * a, v)
