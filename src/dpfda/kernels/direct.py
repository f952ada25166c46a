"""Scores of eight curves at a time from their points: for curves that are short against the size of the basis.

A curve's score is sum_j Phi(x_j) {f(x_j) - y_j}, where f = slopes' Phi is its own fitted function. Here Phi is
without its factors sqrt2; callers put them into slopes and results. Points are added in their own order, whatever the
blocking, so a curve's bits do not depend on its neighbours.

Work arrays hold vectors of eight lanes: slopes and scores (1 + 2K or 1 + K of them, in the order of the basis), and
features (2 points of 2K).
"""

from __future__ import annotations

from typing import Any

from dpfda.kernels.jit import inlined
from dpfda.kernels.simd import add, fma, load, mul, splat, store, sub
from dpfda.kernels.trig import cosine_sine, rotated

Floats = Any  # contiguous float64 arrays


@inlined
def _first_harmonic_scores(
    u: Floats, y: Floats, start: int, points: int, rate: float, slopes: Floats, scores: Floats
) -> None:
    """`direct_scores` of 1, cos and sin: as below, in the same order, but in registers."""
    constant, cosine, sine = load(slopes, 0), load(slopes, 8), load(slopes, 16)
    t0, t1, t2 = splat(0.0), splat(0.0), splat(0.0)
    for at in range(start, start + 8 * points, 8):
        c, s = cosine_sine(mul(load(u, at), splat(rate)))
        f = sub(fma(s, sine, fma(c, cosine, constant)), load(y, at))
        t0, t1, t2 = add(t0, f), fma(c, f, t1), fma(s, f, t2)
    store(scores, 0, t0)
    store(scores, 8, t1)
    store(scores, 16, t2)


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
        a1, b1 = cosine_sine(mul(load(u, at), splat(rate)))
        a2, b2 = cosine_sine(mul(load(u, at + 8), splat(rate)))
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
        a1, b1 = cosine_sine(mul(load(u, at), splat(rate)))
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
    """Scores of the eight curves whose points j are at start + 8j; `rate` is turns per unit of u."""
    if sines and harmonics == 1:
        _first_harmonic_scores(u, y, start, points, rate, slopes, scores)
    else:
        _all_harmonics_scores(u, y, start, points, rate, harmonics, sines, slopes, scores, features)
