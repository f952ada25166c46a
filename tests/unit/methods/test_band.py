"""What a band believes, against dense matrices; and its width, against draws of whole curves."""

from __future__ import annotations

import numpy as np
import pytest
from adaptive_pieces import definite, exact_moments

from dpfda.basis.basis import make_basis
from dpfda.inference.bands import critical_value, half_widths
from dpfda.methods.adaptive.band import extend_covariance, fit_band_posterior, fit_ridge
from dpfda.methods.adaptive.design import fit_density
from dpfda.methods.adaptive.error_parts import SiloCovariances
from dpfda.methods.adaptive.estimate import Estimate
from dpfda.methods.adaptive.geometry import assume_geometry, assume_uncorrelated
from dpfda.methods.adaptive.posterior import Posterior, Prior, sobolev_covariance, solve


def test_a_band_accounts_for_what_the_basis_cannot_track_lengths() -> None:
    basis = make_basis("cosine", 6)
    sloped = np.concatenate([[0.0], 0.1 / np.arange(1, 6) ** 2])  # not level at the left end
    posterior = Posterior(np.tile(sloped, 2), 1e-8 * np.eye(12), 0.1)
    longer = extend_covariance(posterior, basis, 2.0)
    block = longer[: len(longer) // 2, : len(longer) // 2]
    np.testing.assert_array_equal(block[:6, :6], posterior.covariance[:6, :6])
    points = np.array([0.0, 0.5])
    wide, narrow = (half_widths(basis, c, points, 0.95, simultaneous=False) for c in (block, block[:6, :6]))
    assert (wide > 3 * narrow).all()
    assert wide[0] > 2 * wide[1]
    fourier = make_basis("fourier", 3)
    assert extend_covariance(Posterior(np.zeros(3), np.eye(3), 1.0), fourier, 2.0).shape == (3, 3)


def believe_slowly(last, geometry, density, prior, kept):
    """Docs/method.md, "Bands", word by word: dense inverses, a loop over the slopes of A."""
    columns, r = prior.columns, len(density.gram)
    size = max(last.posterior.size, 0.02)
    root = prior.root(2.5 * size)
    before = root @ root.T
    values, vectors = np.linalg.eigh(density.gram)
    thin = np.zeros((r, r))
    for value, vector in zip(values, vectors.T, strict=True):
        sd = np.sqrt(sum((vector @ slope @ vector) ** 2 for slope in density.slopes))
        thin += np.clip(1 - (value - 2 * sd) / 0.3, 0, 1) * np.outer(vector, vector)
    everywhere = np.kron(np.eye(columns), thin)
    away = before
    for _ in range(4):
        reach = away + everywhere @ before @ everywhere.T
        covariance = last.known + sum(slope @ reach @ slope.T for slope in geometry.slopes)
        marginal = geometry.information @ before @ geometry.information.T + covariance
        gain = before @ geometry.information.T @ np.linalg.inv(marginal)
        mean = prior.start + gain @ (last.value - geometry.information @ prior.start)
        away = before - gain @ geometry.information @ before
    off = mean - last.posterior.mean
    return (1.05 + np.sqrt(columns) * (1 - kept)) * away + np.outer(off, off), size


@pytest.mark.parametrize("columns", [1, 2])
def test_a_band_believes_what_the_obvious_formula_says(columns) -> None:
    basis, rng = make_basis("cosine", 5), np.random.default_rng(columns)
    density = fit_density(basis, exact_moments(basis, rng.beta(1, 3, 4000), 0.03))
    geometry = assume_geometry(basis, density, assume_uncorrelated(np.array([1.0, 0.6])[:columns], 1.0, 0.02))
    prior = Prior(sobolev_covariance(basis, 2.0), columns, 0.1, 0.3)
    known, value = 1e-3 * definite(rng, 5 * columns), 0.1 * rng.standard_normal(5 * columns)
    posterior = solve(value, known, geometry.information, prior)
    last = Estimate(posterior, value, known, np.zeros_like(known), SiloCovariances(known[None], known[None]))
    found = fit_band_posterior(last, geometry, density, prior, 0.8)
    covariance, size = believe_slowly(last, geometry, density, prior, 0.8)
    np.testing.assert_allclose(found.covariance, covariance, rtol=1e-6, atol=1e-10)
    np.testing.assert_array_equal(found.mean, posterior.mean)
    assert found.size == size


def test_ridge_regression_is_the_inverse_of_precisions() -> None:
    rng = np.random.default_rng(2)
    precision, root, score = definite(rng, 4), definite(rng, 4), rng.standard_normal(4)
    mean, covariance = fit_ridge(precision, score, root)
    expected = np.linalg.inv(precision + np.linalg.inv(root @ root.T))
    np.testing.assert_allclose(covariance, expected, rtol=1e-8)
    np.testing.assert_allclose(mean, expected @ score, rtol=1e-8)


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
