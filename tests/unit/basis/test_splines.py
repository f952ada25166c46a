"""Cubic splines against scipy's B-splines."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import make_lsq_spline

from dpfda.basis.splines import BSpline


@pytest.mark.parametrize("size", [4, 5, 9, 16])
def test_they_span_the_cubic_splines_with_these_knots(size: int) -> None:
    basis, u = BSpline(size), np.linspace(0, 1, 400)
    y = np.random.default_rng(size).normal(size=u.size)
    knots = np.concatenate([np.zeros(3), basis.breaks, np.ones(3)])
    theirs = make_lsq_spline(u, y, knots, 3)(u)
    phi = basis.evaluate_unit(u)
    ours = phi @ np.linalg.lstsq(phi, y, rcond=None)[0]
    assert np.allclose(ours, theirs, atol=1e-10)


def test_the_penalty_is_diagonal_and_grows() -> None:
    penalty = BSpline(12).roughness(2)
    assert np.abs(penalty - np.diag(np.diag(penalty))).max() < 1e-9 * penalty.max()
    assert (np.diff(np.diag(penalty)) >= -1e-9).all()


def test_moments_are_as_few_as_products_have_dimensions() -> None:
    for size in (4, 6, 12):
        basis, u = BSpline(size), np.linspace(0, 1, 2000)
        phi = basis.evaluate_unit(u)
        products = (phi[:, :, None] * phi[:, None, :]).reshape(u.size, -1)
        assert np.linalg.matrix_rank(products, tol=1e-8) == basis.moment_count + 1 == 4 * size - 9


def test_a_row_does_not_depend_on_the_others() -> None:
    basis, u = BSpline(9), np.random.default_rng(0).random(501)
    phi, features = basis.evaluate_unit(u), basis.moment_features(u)
    for i in range(0, 501, 17):
        assert np.array_equal(phi[i], basis.evaluate_unit(u[i : i + 1])[0])
        assert np.array_equal(features[i], basis.moment_features(u[i : i + 1])[0])
