"""The width of a band, against draws of whole curves."""

from __future__ import annotations

import numpy as np
import pytest
from adaptive_pieces import definite

from dpfda.basis.basis import make_basis
from dpfda.inference.bands import critical_value, half_widths


def test_half_widths_hold_the_stated_share_of_random_curves() -> None:
    """Curves drawn from the covariance, one by one: 90% lie within a simultaneous band, 90% at each point of the other."""
    basis, rng = make_basis("cosine", 4), np.random.default_rng(6)
    covariance, grid = 0.01 * definite(rng, 4), np.linspace(0, 1, 201)
    features, factor = basis.evaluate_unit(grid), np.linalg.cholesky(covariance)
    joint, pointwise = (half_widths(basis, covariance, grid, 0.9, simultaneous=both) for both in (True, False))
    held, at_points = 0, np.zeros(grid.size)
    for _ in range(4000):
        curve = np.abs(features @ (factor @ rng.standard_normal(4)))
        held += bool((curve <= joint).all())
        at_points += curve <= pointwise
    assert held / 4000 == pytest.approx(0.9, abs=0.02)
    assert np.abs(at_points / 4000 - 0.9).max() < 0.03
    np.testing.assert_allclose(joint / pointwise * 1.6448536, critical_value(basis, covariance, 0.9), rtol=1e-6)


def test_a_covariance_of_more_functions_makes_a_band_of_all_of_them() -> None:
    basis, points = make_basis("cosine", 3), np.array([0.0, 0.5])
    longer = np.diag([1e-4] * 3 + [1e-2] * 4)
    wide, narrow = (half_widths(basis, c, points, 0.95, simultaneous=False) for c in (longer, longer[:3, :3]))
    assert (wide > 3 * narrow).all()
