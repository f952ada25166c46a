"""Free ends: precision, nesting, and how near they are to the functions that they stand for."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from dpfda.basis.free_ends import FreeEnds, polynomials_below


def beam_functions(u: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The eigenfunctions of f'''' with free ends and their beta (eigenvalues beta^4), by the textbook formula."""
    s, columns, betas = u - 0.5, [np.ones_like(u), math.sqrt(12) * (u - 0.5)], [0.0, 0.0]
    for k in range(1, size - 1):
        middle = (k + 0.5) * math.pi
        b = brentq(lambda z: math.cos(z) - 1 / math.cosh(z), middle - 0.1, middle + 0.1, xtol=1e-15)
        right, left = np.exp(-b * (0.5 - s)), np.exp(-b * (0.5 + s))
        if k % 2:
            columns.append(np.cos(b * s) / math.cos(b / 2) + (right + left) / (1 + math.exp(-b)))
        else:
            columns.append(np.sin(b * s) / math.sin(b / 2) + (right - left) / (1 - math.exp(-b)))
        betas.append(b)
    values = np.stack(columns[:size], -1)
    return values * np.where(columns and values[-1] < 0, -1, 1), np.array(betas[:size])


def test_they_follow_the_functions_of_a_free_beam() -> None:
    u, size = np.linspace(0, 1, 2001), 12
    exact, beta = beam_functions(u, size)
    ours = FreeEnds(size).evaluate_unit(u)
    assert np.abs(ours - exact)[:, :4].max() < 0.03
    shared = np.linalg.svd(np.linalg.qr(exact)[0].T @ np.linalg.qr(ours)[0], compute_uv=False)
    assert shared.min() > 0.99
    penalty = FreeEnds(size).roughness(2)
    assert (np.diag(penalty)[2:] >= beta[2:] ** 4 * (1 - 1e-9)).all()
    assert (np.diag(penalty)[2:] <= beta[2:] ** 4 * 1.25).all()


@pytest.mark.parametrize("size", [16, 40, 64])
def test_large_ones_stay_orthonormal(size: int) -> None:
    basis = FreeEnds(size)
    points, weights = basis.quadrature()
    phi = basis.evaluate_unit(points)
    assert np.abs(phi.T @ (weights[:, None] * phi) - np.eye(size)).max() < 5e-14
    assert basis.leverage() < 4 * size
    assert basis.sup().max() < 2.4


def test_values_against_sixty_digits() -> None:
    mpmath = pytest.importorskip("mpmath")
    basis = FreeEnds(40)
    rows = basis.mixture()
    for u in (0.0, 1e-9, 0.013, 0.31, 0.5, 0.77, 0.999999, 1.0):
        values, slopes = basis.evaluate_unit(np.array([u]))[0], basis.evaluate_unit(np.array([u]), 1)[0]
        with mpmath.workdps(60):
            t = 1 - 2 * mpmath.mpf(u)
            waves = [mpmath.chebyt(j, t) for j in range(rows.shape[1])]
            turns = [-2 * j * mpmath.chebyu(j - 1, t) if j else 0 for j in range(rows.shape[1])]
            for k in range(40):
                exact = sum(mpmath.mpf(float(m)) * w for m, w in zip(rows[k], waves, strict=True))
                slope = sum(mpmath.mpf(float(m)) * w for m, w in zip(rows[k], turns, strict=True))
                assert abs(values[k] - exact) < 1e-12
                assert abs(slopes[k] - slope) < 1e-12 * (40 * polynomials_below(40)) ** 1.5


def test_nested_bit_for_bit() -> None:
    u = np.linspace(0, 1, 101)
    large = FreeEnds(40)
    for size in (1, 2, 3, 9, 24, 39):
        small = FreeEnds(size)
        assert np.array_equal(small.evaluate_unit(u), large.evaluate_unit(u)[:, :size])
        assert np.array_equal(small.mixture(), large.mixture()[:size, : small.harmonics + 1])


def test_a_row_does_not_depend_on_the_others() -> None:
    u = np.random.default_rng(0).random(1001)
    together = FreeEnds(12).evaluate_unit(u)
    assert all(np.array_equal(together[i], FreeEnds(12).evaluate_unit(u[i : i + 1])[0]) for i in range(0, 1001, 37))
