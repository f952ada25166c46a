"""The width of a band, against draws of whole curves."""

from __future__ import annotations

import numpy as np
import pytest
from adaptive_pieces import definite

from dpfda._typing import Floats
from dpfda.basis.basis import Basis, make_basis
from dpfda.inference.curve import ReleasedCurve
from dpfda.inference.form import Form
from dpfda.inference.law import Law


def half_widths(basis: Basis, covariance: Floats, x: Floats, level: float, *, simultaneous: bool) -> Floats:
    """Of the band of a curve that is zero, with this covariance."""
    law = Law(basis, np.zeros((1, basis.size)), covariance)
    return ReleasedCurve((Form(law, {0: np.ones(1)}),)).band(level, x, simultaneous=simultaneous)[1]


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
    np.testing.assert_allclose(joint / pointwise, (joint / pointwise)[0], rtol=1e-9)
