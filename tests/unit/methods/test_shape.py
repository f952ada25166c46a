"""Coordinates for clipping: less risk than without them."""

from __future__ import annotations

import numpy as np
import pytest
from adaptive_pieces import definite

from dpfda.methods.adaptive import constants
from dpfda.methods.adaptive.covariate_units import Units
from dpfda.methods.adaptive.covariates import assume_uncorrelated
from dpfda.methods.adaptive.matrices import power
from dpfda.methods.adaptive.shape import Coordinates, Spread, choose_column_scales, choose_function_shape


def risk(shape, spread, expected, n, precision):
    """The trace of the posterior covariance, written out."""
    noise = (
        spread / n + (2 * constants.TYPICAL_RADIUS / precision) ** 2 * np.trace(np.linalg.inv(shape) @ spread) * shape
    )
    return np.trace(np.linalg.inv(np.linalg.inv(expected) + np.linalg.inv(noise)))


@pytest.mark.parametrize("precision", [10.0, 100.0, 1000.0])
@pytest.mark.parametrize("decay", [2, 4])
def test_the_shape_has_less_risk_than_a_ball_or_than_none(precision, decay) -> None:
    size, n = 10, 1000.0
    spread, expected = Spread(0.01, 0.02).matrix(size), np.diag(0.1 / (1 + np.arange(size)) ** float(decay))
    found = choose_function_shape(spread, expected, n, precision)
    np.testing.assert_allclose(found, found.T, atol=1e-12 * np.abs(found).max())
    assert np.linalg.eigvalsh(found).min() > 0
    own = risk(found, spread, expected, n, precision)
    assert own <= risk(np.eye(size), spread, expected, n, precision) * (1 + 1e-6)
    assert own <= risk(power(spread, 0.5), spread, expected, n, precision) * 1.02


def test_a_smooth_curve_s_spread_falls_with_the_function() -> None:
    diagonal = np.diag(Spread(0.0, 1.0).matrix(6))
    assert diagonal[0] == 1
    assert (np.diff(diagonal) < 0).all()
    np.testing.assert_allclose(Spread(2.0, 0.0).matrix(3), 2 * np.eye(3))


def test_gradients_have_length_one_and_coordinates_an_inverse() -> None:
    rng = np.random.default_rng(0)
    columns, functions, covariance = definite(rng, 2), definite(rng, 3), definite(rng, 6)
    found = Coordinates.of(columns, functions, covariance)
    np.testing.assert_allclose(found.whitener @ found.inverse, np.eye(6), atol=1e-10)
    assert np.trace(found.whitener @ covariance @ found.whitener.T) == pytest.approx(1)


def test_a_small_group_is_not_stretched_beyond_a_limit() -> None:
    law = assume_uncorrelated(Units(np.zeros(2), np.ones(2), True), np.array([0.0, 9.0]))
    scales = choose_column_scales(law)
    assert np.abs(scales[1, 1]) * 9.0 <= constants.MOST_LEVERAGE * (1 + 1e-12)
    assert scales[0, 0] == pytest.approx(1)
