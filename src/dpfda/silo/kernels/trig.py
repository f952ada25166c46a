"""cos and sin of whole turns, eight at a time.

With t in turns, k = rint(2t) and f = t - k/2 are exact, |f| <= 1/4, and cos(2 pi t) = (-1)^k cos(2 pi f), the same for the
sine. Two polynomials in f^2, interpolated at Chebyshev nodes in 60 digits, then give both within 2.5e-16 (measured in
tests). Higher harmonics come from rotations by the first one, which lose about 1e-16 each.

Numbers that are not finite give NaN, and so do those whose double overflows; other huge ones (only hostile data have
|t| > 1) give a finite value.
"""

from __future__ import annotations

from typing import Any

from dpfda._compile import inlined
from dpfda.silo.kernels.simd import fma, fnma, mul, nearest, root, splat, sub

Lanes = Any  # a numba type, see `simd`

S0, S1, S2, S3, S4 = 6.283185307179586, -41.341702240399755, 81.60524927607362, -76.70585975282492, 42.058693925428685
S5, S6, S7, S8 = -15.0946416761179, 3.8199280942271643, -0.7177337921413454, 0.10089695501646812
C1, C2, C3, C4 = -19.739208802178705, 64.93939402266395, -85.45681720598061, 60.24464131316041
C5, C6, C7, C8 = -26.426254066690255, 7.903462492085097, -1.7132184107005932, 0.2719458494999813


@inlined
def cosine_sine(turns: Lanes) -> tuple[Lanes, Lanes]:
    """cos(2 pi t) and sin(2 pi t)."""
    half_turns = nearest(mul(turns, splat(2.0)))
    f = fma(half_turns, splat(-0.5), turns)
    parity = fma(nearest(mul(half_turns, splat(0.5))), splat(-2.0), half_turns)  # 0, 1 or -1
    sign = fma(mul(parity, splat(-2.0)), parity, splat(1.0))
    w = mul(f, f)
    sine = fma(splat(S8), w, splat(S7))
    cosine = fma(splat(C8), w, splat(C7))
    sine = fma(sine, w, splat(S6))
    cosine = fma(cosine, w, splat(C6))
    sine = fma(sine, w, splat(S5))
    cosine = fma(cosine, w, splat(C5))
    sine = fma(sine, w, splat(S4))
    cosine = fma(cosine, w, splat(C4))
    sine = fma(sine, w, splat(S3))
    cosine = fma(cosine, w, splat(C3))
    sine = fma(sine, w, splat(S2))
    cosine = fma(cosine, w, splat(C2))
    sine = fma(sine, w, splat(S1))
    cosine = fma(cosine, w, splat(C1))
    sine = fma(sine, w, splat(S0))
    cosine = fma(cosine, w, splat(1.0))
    return mul(cosine, sign), mul(sine, mul(f, sign))


@inlined
def wave(u: Lanes, rate: float) -> tuple[Lanes, Lanes]:
    """cos and sin of the angle at u: `rate` turns per unit of u or, if the rate is 0, the angle whose cosine is 1 - 2u.

    The cosines of multiples of that angle are Chebyshev's polynomials of 1 - 2u. Outside [0, 1] its sine is NaN.
    """
    if rate == 0.0:
        half_sine = root(mul(u, sub(splat(1.0), u)))
        return fnma(splat(2.0), u, splat(1.0)), mul(splat(2.0), half_sine)
    return cosine_sine(mul(u, splat(rate)))


@inlined
def rotated(c: Lanes, s: Lanes, c1: Lanes, s1: Lanes) -> tuple[Lanes, Lanes]:
    """cos and sin of the sum of two angles."""
    return fnma(s, s1, mul(c, c1)), fma(c, s1, mul(s, c1))
