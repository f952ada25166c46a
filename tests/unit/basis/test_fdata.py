"""Splines for scikit-fda, without scikit-fda: what is written to it follows the functions to many digits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import BSpline

from dpfda.basis.fdata import DEGREE, choose_breaks, find_spline_coefficients


@pytest.mark.parametrize("degree", [0, 1, 12, 50])
def test_splines_follow_polynomials_and_their_slopes(degree: int) -> None:
    breaks = choose_breaks(degree)
    wave = np.polynomial.Chebyshev.basis(degree, domain=(0, 1))
    coefficients = find_spline_coefficients(lambda u: np.column_stack([wave(u), 2 * wave(u)]), breaks)
    knots = np.concatenate([np.zeros(DEGREE), breaks, np.ones(DEGREE)])
    spline, u = BSpline(knots, coefficients[0], DEGREE), np.linspace(0, 1, 301)
    np.testing.assert_allclose(spline(u), wave(u), atol=1e-12)
    slopes = wave.deriv()(u)
    np.testing.assert_allclose(spline.derivative()(u), slopes, atol=1e-9 * max(1.0, np.abs(slopes).max()))
    np.testing.assert_allclose(coefficients[1], 2 * coefficients[0], atol=1e-12)
