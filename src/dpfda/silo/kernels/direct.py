"""Scores of eight curves at a time from their points: for curves that are short against the size of the basis.

A curve's score is sum_j Phi(x_j) {f(x_j) - y_j}, where f = slopes' Phi is its own fitted function. Here Phi is
without its factors sqrt2; callers put them into slopes and results. Points are added in their own order, whatever the
blocking, so a curve's bits do not depend on its neighbours.

Work arrays hold vectors of eight lanes: slopes and scores (1 + 2K or 1 + K of them, in the order of the basis), and
features (2 points of 2K).
"""

from __future__ import annotations

from typing import Any

from dpfda._compile import inlined
from dpfda.silo.kernels.simd import add, fma, fms, load, mul, splat, store, sub
from dpfda.silo.kernels.trig import rotated, wave

Floats = Any  # contiguous float64 arrays

FEW = 32
"""The most harmonics by the fast recurrence: up to there its error stays below 1e-13 of the size of the terms (tests).

Moments of the design go to twice the frequency: 2.5e-13. Curves are bounded afterwards: privacy does not rest on it.
"""


@inlined
def _first_harmonic_scores(
    u: Floats, y: Floats, start: int, points: int, rate: float, slopes: Floats, scores: Floats
) -> None:
    """`direct_scores` of 1, cos and sin: as below, in the same order, but in registers."""
    constant, cosine, sine = load(slopes, 0), load(slopes, 8), load(slopes, 16)
    t0, t1, t2 = splat(0.0), splat(0.0), splat(0.0)
    for at in range(start, start + 8 * points, 8):
        c, s = wave(load(u, at), rate)
        f = sub(fma(s, sine, fma(c, cosine, constant)), load(y, at))
        t0, t1, t2 = add(t0, f), fma(c, f, t1), fma(s, f, t2)
    store(scores, 0, t0)
    store(scores, 8, t1)
    store(scores, 16, t2)


@inlined
def _add_point(u: Floats, y: Floats, at: int, rate: float, harmonics: int, slopes: Floats, scores: Floats) -> None:
    """Add the scores of one point of each curve, for a basis with sines."""
    cosine, sine = wave(load(u, at), rate)
    twice = add(cosine, cosine)
    c1, c2, s1, s2 = splat(0.0), splat(0.0), splat(0.0), splat(0.0)
    for k in range(harmonics, 0, -1):
        c1, c2 = fma(twice, c1, sub(load(slopes, 16 * k - 8), c2)), c1
        s1, s2 = fma(twice, s1, sub(load(slopes, 16 * k), s2)), s1
    f = sub(fma(s1, sine, fma(c1, cosine, sub(load(slopes, 0), c2))), load(y, at))
    store(scores, 0, add(load(scores, 0), f))
    c1, c2, s1, s2 = mul(f, cosine), f, mul(f, sine), splat(0.0)
    for k in range(1, harmonics + 1):
        store(scores, 16 * k - 8, add(load(scores, 16 * k - 8), c1))
        store(scores, 16 * k, add(load(scores, 16 * k), s1))
        c1, c2 = fms(twice, c1, c2), c1
        s1, s2 = fms(twice, s1, s2), s1


@inlined
def _add_two_points(u: Floats, y: Floats, at: int, rate: float, harmonics: int, slopes: Floats, scores: Floats) -> None:
    """`_add_point` twice, with the same bits, but side by side: each recurrence waits for its own last step."""
    cosine_a, sine_a = wave(load(u, at), rate)
    cosine_b, sine_b = wave(load(u, at + 8), rate)
    twice_a, twice_b = add(cosine_a, cosine_a), add(cosine_b, cosine_b)
    c1, c2, s1, s2 = splat(0.0), splat(0.0), splat(0.0), splat(0.0)
    d1, d2, t1, t2 = splat(0.0), splat(0.0), splat(0.0), splat(0.0)
    for k in range(harmonics, 0, -1):
        slope = load(slopes, 16 * k - 8)
        c1, c2 = fma(twice_a, c1, sub(slope, c2)), c1
        d1, d2 = fma(twice_b, d1, sub(slope, d2)), d1
        slope = load(slopes, 16 * k)
        s1, s2 = fma(twice_a, s1, sub(slope, s2)), s1
        t1, t2 = fma(twice_b, t1, sub(slope, t2)), t1
    constant = load(slopes, 0)
    f = sub(fma(s1, sine_a, fma(c1, cosine_a, sub(constant, c2))), load(y, at))
    g = sub(fma(t1, sine_b, fma(d1, cosine_b, sub(constant, d2))), load(y, at + 8))
    store(scores, 0, add(add(load(scores, 0), f), g))
    c1, c2, s1, s2 = mul(f, cosine_a), f, mul(f, sine_a), splat(0.0)
    d1, d2, t1, t2 = mul(g, cosine_b), g, mul(g, sine_b), splat(0.0)
    for k in range(1, harmonics + 1):
        store(scores, 16 * k - 8, add(add(load(scores, 16 * k - 8), c1), d1))
        store(scores, 16 * k, add(add(load(scores, 16 * k), s1), t1))
        c1, c2 = fms(twice_a, c1, c2), c1
        d1, d2 = fms(twice_b, d1, d2), d1
        s1, s2 = fms(twice_a, s1, s2), s1
        t1, t2 = fms(twice_b, t1, t2), t1


@inlined
def _add_cosine_point(
    u: Floats, y: Floats, at: int, rate: float, harmonics: int, slopes: Floats, scores: Floats
) -> None:
    """`_add_point` for a basis without sines."""
    cosine, _ = wave(load(u, at), rate)
    twice = add(cosine, cosine)
    c1, c2 = splat(0.0), splat(0.0)
    for k in range(harmonics, 0, -1):
        c1, c2 = fma(twice, c1, sub(load(slopes, 8 * k), c2)), c1
    f = sub(fma(c1, cosine, sub(load(slopes, 0), c2)), load(y, at))
    store(scores, 0, add(load(scores, 0), f))
    c1, c2 = mul(f, cosine), f
    for k in range(1, harmonics + 1):
        store(scores, 8 * k, add(load(scores, 8 * k), c1))
        c1, c2 = fms(twice, c1, c2), c1


@inlined
def _add_four_cosine_points(
    u: Floats, y: Floats, at: int, rate: float, harmonics: int, slopes: Floats, scores: Floats
) -> None:
    """`_add_cosine_point` four times, in the same order and with the same bits, but side by side."""
    cosine_a, _ = wave(load(u, at), rate)
    cosine_b, _ = wave(load(u, at + 8), rate)
    cosine_c, _ = wave(load(u, at + 16), rate)
    cosine_d, _ = wave(load(u, at + 24), rate)
    twice_a, twice_b = add(cosine_a, cosine_a), add(cosine_b, cosine_b)
    twice_c, twice_d = add(cosine_c, cosine_c), add(cosine_d, cosine_d)
    a1, a2, b1, b2 = splat(0.0), splat(0.0), splat(0.0), splat(0.0)
    c1, c2, d1, d2 = splat(0.0), splat(0.0), splat(0.0), splat(0.0)
    for k in range(harmonics, 0, -1):
        slope = load(slopes, 8 * k)
        a1, a2 = fma(twice_a, a1, sub(slope, a2)), a1
        b1, b2 = fma(twice_b, b1, sub(slope, b2)), b1
        c1, c2 = fma(twice_c, c1, sub(slope, c2)), c1
        d1, d2 = fma(twice_d, d1, sub(slope, d2)), d1
    constant = load(slopes, 0)
    a2 = sub(fma(a1, cosine_a, sub(constant, a2)), load(y, at))
    b2 = sub(fma(b1, cosine_b, sub(constant, b2)), load(y, at + 8))
    c2 = sub(fma(c1, cosine_c, sub(constant, c2)), load(y, at + 16))
    d2 = sub(fma(d1, cosine_d, sub(constant, d2)), load(y, at + 24))
    store(scores, 0, add(add(add(add(load(scores, 0), a2), b2), c2), d2))
    a1, b1, c1, d1 = mul(a2, cosine_a), mul(b2, cosine_b), mul(c2, cosine_c), mul(d2, cosine_d)
    for k in range(1, harmonics + 1):
        store(scores, 8 * k, add(add(add(add(load(scores, 8 * k), a1), b1), c1), d1))
        a1, a2 = fms(twice_a, a1, a2), a1
        b1, b2 = fms(twice_b, b1, b2), b1
        c1, c2 = fms(twice_c, c1, c2), c1
        d1, d2 = fms(twice_d, d1, d2), d1


@inlined
def _few_harmonics_scores(
    u: Floats,
    y: Floats,
    start: int,
    points: int,
    rate: float,
    harmonics: int,
    sines: bool,
    slopes: Floats,
    scores: Floats,
) -> None:
    """`direct_scores` by the recurrence v_k = 2 cos(theta) v_(k-1) - v_(k-2).

    Clenshaw's sum, downwards in k, gives f; then f cos(k theta) and f sin(k theta) obey it upwards. Nothing is kept per
    point, but errors grow as the square of the highest frequency: see `FEW`.
    """
    for entry in range(1 + (2 * harmonics if sines else harmonics)):
        store(scores, 8 * entry, splat(0.0))
    end, side_by_side = start + 8 * points, 2 if sines else 4
    for at in range(start, end - 8 * (side_by_side - 1), 8 * side_by_side):
        if sines:
            _add_two_points(u, y, at, rate, harmonics, slopes, scores)
        else:
            _add_four_cosine_points(u, y, at, rate, harmonics, slopes, scores)
    for at in range(end - 8 * (points % side_by_side), end, 8):
        if sines:
            _add_point(u, y, at, rate, harmonics, slopes, scores)
        else:
            _add_cosine_point(u, y, at, rate, harmonics, slopes, scores)


@inlined
def add_cosines_and_sines(u: Floats, start: int, points: int, rate: float, top: int, sines: bool, sums: Floats) -> None:
    """Add cos(k theta), k = 1..top, of every point to `sums`, and then sin(k theta); by the recurrence above."""
    for j in range(0, points - 1, 2):
        at = start + 8 * j
        c1, s1 = wave(load(u, at), rate)
        d1, t1 = wave(load(u, at + 8), rate)
        twice_a, twice_b = add(c1, c1), add(d1, d1)
        c2, s2, d2, t2 = splat(1.0), splat(0.0), splat(1.0), splat(0.0)
        for k in range(top):
            store(sums, 8 * k, add(add(load(sums, 8 * k), c1), d1))
            c1, c2 = fms(twice_a, c1, c2), c1
            d1, d2 = fms(twice_b, d1, d2), d1
            if sines:
                store(sums, 8 * (top + k), add(add(load(sums, 8 * (top + k)), s1), t1))
                s1, s2 = fms(twice_a, s1, s2), s1
                t1, t2 = fms(twice_b, t1, t2), t1
    if points % 2 == 1:
        c1, s1 = wave(load(u, start + 8 * (points - 1)), rate)
        twice, c2, s2 = add(c1, c1), splat(1.0), splat(0.0)
        for k in range(top):
            store(sums, 8 * k, add(load(sums, 8 * k), c1))
            c1, c2 = fms(twice, c1, c2), c1
            if sines:
                store(sums, 8 * (top + k), add(load(sums, 8 * (top + k)), s1))
                s1, s2 = fms(twice, s1, s2), s1


@inlined
def _all_harmonics_scores(
    u: Floats,
    y: Floats,
    start: int,
    points: int,
    rate: float,
    harmonics: int,
    sines: bool,
    slopes: Floats,
    scores: Floats,
    features: Floats,
) -> None:
    """`direct_scores` of any basis, two points at a time."""
    step = 16 if sines else 8
    for entry in range(1 + harmonics * step // 8):
        store(scores, 8 * entry, splat(0.0))
    for j in range(0, points - 1, 2):
        at = start + 8 * j
        a1, b1 = wave(load(u, at), rate)
        a2, b2 = wave(load(u, at + 8), rate)
        c1, s1, c2, s2 = a1, b1, a2, b2
        f1 = load(slopes, 0)
        f2 = f1
        for k in range(harmonics):
            store(features, 32 * k, c1)
            store(features, 32 * k + 8, c2)
            slope = load(slopes, step * k + 8)
            f1 = fma(c1, slope, f1)
            f2 = fma(c2, slope, f2)
            if sines:
                store(features, 32 * k + 16, s1)
                store(features, 32 * k + 24, s2)
                slope = load(slopes, step * k + 16)
                f1 = fma(s1, slope, f1)
                f2 = fma(s2, slope, f2)
            if k + 1 < harmonics:
                c1, s1 = rotated(c1, s1, a1, b1)
                c2, s2 = rotated(c2, s2, a2, b2)
        f1 = sub(f1, load(y, at))
        f2 = sub(f2, load(y, at + 8))
        store(scores, 0, add(add(load(scores, 0), f1), f2))
        for k in range(harmonics):
            t = fma(load(features, 32 * k), f1, load(scores, step * k + 8))
            store(scores, step * k + 8, fma(load(features, 32 * k + 8), f2, t))
            if sines:
                t = fma(load(features, 32 * k + 16), f1, load(scores, step * k + 16))
                store(scores, step * k + 16, fma(load(features, 32 * k + 24), f2, t))
    if points % 2 == 1:
        at = start + 8 * (points - 1)
        a1, b1 = wave(load(u, at), rate)
        c1, s1 = a1, b1
        f1 = load(slopes, 0)
        for k in range(harmonics):
            store(features, 32 * k, c1)
            store(features, 32 * k + 16, s1)
            f1 = fma(c1, load(slopes, step * k + 8), f1)
            if sines:
                f1 = fma(s1, load(slopes, step * k + 16), f1)
            c1, s1 = rotated(c1, s1, a1, b1)
        f1 = sub(f1, load(y, at))
        store(scores, 0, add(load(scores, 0), f1))
        for k in range(harmonics):
            store(scores, step * k + 8, fma(load(features, 32 * k), f1, load(scores, step * k + 8)))
            if sines:
                store(scores, step * k + 16, fma(load(features, 32 * k + 16), f1, load(scores, step * k + 16)))


@inlined
def direct_scores(
    u: Floats,
    y: Floats,
    start: int,
    points: int,
    rate: float,
    harmonics: int,
    sines: bool,
    slopes: Floats,
    scores: Floats,
    features: Floats,
) -> None:
    """Scores of the eight curves whose points j are at start + 8j; for `rate` see `trig.wave`."""
    if sines and harmonics == 1:
        _first_harmonic_scores(u, y, start, points, rate, slopes, scores)
    elif harmonics <= FEW:
        _few_harmonics_scores(u, y, start, points, rate, harmonics, sines, slopes, scores)
    else:
        _all_harmonics_scores(u, y, start, points, rate, harmonics, sines, slopes, scores, features)
