"""The polynomial cosine and sine against 40 digits, and rotations against libm."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from dpfda._compile import compiled
from dpfda.silo.kernels.simd import load, store
from dpfda.silo.kernels.trig import cosine_sine, rotated


@compiled
def evaluate(turns, harmonics, cosines, sines):
    for i in range(0, turns.size, 8):
        a, b = cosine_sine(load(turns, i))
        c, s = a, b
        for _ in range(harmonics - 1):
            c, s = rotated(c, s, a, b)
        store(cosines, i, c)
        store(sines, i, s)


def trig(turns, harmonics=1):
    cosines, sines = np.empty(turns.size), np.empty(turns.size)
    evaluate(turns, harmonics, cosines, sines)
    return cosines, sines


@pytest.fixture(scope="module")
def turns():
    rng = np.random.default_rng(1)
    corners = np.arange(9) / 8
    near = np.concatenate(
        [np.nextafter(corners, 2), np.nextafter(corners, -1), corners, [5e-324, 1e-300, 1e-17, -0.0, 1 / 3]]
    )
    return np.concatenate([near, rng.random(4000 - near.size), [-7.3, 1000.123, -0.25, 2.5, 1.75, -1.0, 12.0, 0.125]])


def exact(turns, harmonics=1):
    with mpmath.workdps(40):
        angles = [2 * mpmath.pi * harmonics * mpmath.mpf(float(t)) for t in turns]
        return np.array([[float(f(angle)) for angle in angles] for f in (mpmath.cos, mpmath.sin)])


def test_first_harmonic(turns):
    np.testing.assert_allclose(trig(turns), exact(turns), rtol=0, atol=2.5e-16)


@pytest.mark.parametrize(("harmonics", "error"), [(2, 1e-15), (7, 3e-15), (50, 2e-14)])
def test_rotations(turns, harmonics, error):
    inside = np.abs(turns) <= 1
    some = np.resize(turns[inside], 4000)
    np.testing.assert_allclose(trig(some, harmonics), exact(some, harmonics), rtol=0, atol=error)


def test_not_finite_and_huge():
    cosines, sines = trig(np.array([np.nan, np.inf, -np.inf, 8e307, -8e307, 1e17, 2.0**53, 0.0]))
    assert np.isnan(cosines[:3]).all()
    assert np.isnan(sines[:3]).all()
    assert (np.hypot(cosines[3:], sines[3:]) <= 1 + 1e-15).all()
