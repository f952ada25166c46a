"""The covariance of gradients behind the clipping."""

from __future__ import annotations

import numpy as np
import pytest
from adaptive_pieces import definite

from dpfda.methods.adaptive.gradient_covariance import fit_mean_square, shrink_covariance


@pytest.mark.parametrize("nu", [1.0, 3.0, 10.0])
def test_the_mean_square_length_is_found_behind_the_clipping(nu) -> None:
    squares = np.random.default_rng(2).chisquare(nu, 200_000)
    squares /= np.median(squares)
    found = fit_mean_square(float(np.minimum(squares, 1.3**2).mean()), 0.003, 1.3)
    assert found == pytest.approx(squares.mean(), rel=0.15)


def test_a_measured_covariance_counts_by_its_noise() -> None:
    """Next to no noise: the measured matrix, scaled; much of it: the assumed one; both with the trace asked for."""
    rng = np.random.default_rng(0)
    measured, assumed = definite(rng, 4), definite(rng, 4)
    directions = assumed / np.trace(assumed)
    sure, unsure = (shrink_covariance(measured, noise, directions, 3.0) for noise in (1e-9, 1e9))
    np.testing.assert_allclose(sure, measured * 3 / np.trace(measured), rtol=1e-6, atol=0.1)
    np.testing.assert_allclose(unsure, 3 * directions, rtol=1e-6, atol=0.1)
    negative = shrink_covariance(-measured, 0.1, directions, 3.0)
    assert np.linalg.eigvalsh(negative).min() > 0
