"""The design density from its moments."""

from __future__ import annotations

import numpy as np
import pytest
from adaptive_pieces import exact_moments
from scipy.optimize import nnls

from dpfda.basis.basis import make_basis
from dpfda.basis.moments import uniform_moments
from dpfda.methods.adaptive import design as density
from dpfda.methods.adaptive.design import fit_density, keep_thin_directions
from dpfda.methods.adaptive.pooling import Pooled

BASES = ["cosine", "fourier", "fourier-extension", "free-ends", "bspline"]


@pytest.mark.parametrize("name", BASES)
def test_the_design_density_gives_back_the_gram_matrix(name) -> None:
    basis, u = make_basis(name, 5), np.random.default_rng(0).beta(1, 3, 20_000)
    features = basis.evaluate_unit(u)
    found = fit_density(basis, exact_moments(basis, u, 1e-3))
    assert np.abs(found.gram - features.T @ features / u.size).max() < 0.02
    assert np.linalg.eigvalsh(found.gram).min() > 0


@pytest.mark.parametrize("name", BASES)
def test_pure_noise_still_gives_a_definite_matrix(name) -> None:
    basis = make_basis(name, 7)
    for seed in range(5):
        noise = np.random.default_rng(seed).standard_normal(uniform_moments(basis).size)
        found = fit_density(basis, Pooled(noise, np.ones(noise.size), 100.0))
        assert np.linalg.eigvalsh(found.gram).min() > 0
        assert np.isfinite(found.slopes).all()


def test_an_empty_end_carries_no_information() -> None:
    """Nothing beyond 0.7: a function that lives there is all but invisible to the fitted information matrix."""
    basis = make_basis("cosine", 9)
    found = fit_density(basis, exact_moments(basis, 0.7 * np.random.default_rng(1).random(20_000), 1e-3))
    grid = np.linspace(0, 1, 401)
    bump = np.linalg.lstsq(basis.evaluate_unit(grid), np.maximum(grid - 0.8, 0.0), rcond=None)[0]
    assert bump @ found.gram @ bump < 0.05 * bump @ bump


def test_a_positive_density_is_the_constrained_one() -> None:
    basis = make_basis("fourier", 5)
    features = basis.moment_features(np.random.default_rng(3).random(3000)).mean(axis=0)
    sd = np.full(features.size, 0.02)
    prior = density._solve_without_moments(basis)
    mass, _ = nnls(*prior.with_moments(features, sd))
    found = density.fit_density(basis, Pooled(features - uniform_moments(basis), sd, 3000.0))
    assert mass.min() > 0
    expected = basis.gram_from_moments(mass @ prior.features / mass.sum()) + 1e-4 * np.eye(5)
    np.testing.assert_allclose(found.gram, expected, atol=1e-10)


def test_only_directions_without_data_are_thin() -> None:
    basis, rng = make_basis("cosine", 9), np.random.default_rng(1)
    uniform, half = (
        fit_density(basis, exact_moments(basis, u, 1e-3)) for u in (rng.random(20_000), rng.random(20_000) / 2)
    )
    assert np.abs(keep_thin_directions(uniform)).max() < 1e-6
    assert np.linalg.eigvalsh(keep_thin_directions(half)).max() > 0.9
