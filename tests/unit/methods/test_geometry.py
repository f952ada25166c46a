"""Information, covariance of gradients, and the shape for clipping."""

from __future__ import annotations

import numpy as np
import pytest
from adaptive_pieces import definite

from dpfda.basis.basis import make_basis
from dpfda.methods.adaptive.design import fit_density
from dpfda.methods.adaptive.geometry import (
    assume_geometry,
    assume_uncorrelated,
    choose_shape,
    fit_covariate_matrix,
    fit_covariate_sizes,
    least_noise_shape,
)
from dpfda.methods.adaptive.pooling import Pooled


def test_without_covariates_the_product_cannot_be_wrong() -> None:
    basis = make_basis("cosine", 4)
    assert len(assume_geometry(basis, fit_density(basis, None), assume_uncorrelated(np.ones(1), 1.0, 0.0)).misfit) == 0


def test_the_shape_for_clipping_gives_least_noise() -> None:
    """Noise of a ball that holds the gradients: tr(A^-1 W A^-1) tr(W^-1 S) is least at the chosen W, among many."""
    rng = np.random.default_rng(0)
    information, covariance = definite(rng, 4), definite(rng, 4)
    back = np.linalg.inv(information)

    def noise(shape):
        return np.trace(back @ shape @ back) * np.trace(np.linalg.solve(shape, covariance))

    best = least_noise_shape(information, back @ covariance @ back)
    assert all(noise(best) < noise(best + 0.1 * definite(rng, 4)) for _ in range(50))


def test_lengths_keep_their_size_when_the_shape_changes() -> None:
    basis, rng = make_basis("cosine", 4), np.random.default_rng(1)
    geometry = assume_geometry(basis, fit_density(basis, None), assume_uncorrelated(np.ones(1), 1.0, 0.0))
    covariance = definite(rng, 4)
    previous = definite(rng, 4)
    found = choose_shape(geometry, covariance, previous)
    before, after = (np.trace(np.linalg.solve(shape, covariance)) for shape in (previous, found))
    assert after == pytest.approx(before)


def test_covariates_are_found_without_noise() -> None:
    sizes = fit_covariate_sizes(Pooled(np.array([0.25 - 0.5, 0.09 - 0.5]), np.full(2, 1e-4), 1e4), 3)
    np.testing.assert_allclose(sizes, [1.0, 0.5, 0.3], rtol=1e-3)
    moments = np.array([[1.0, 0.2, 0.0], [0.2, 1.0, -0.4], [0.0, -0.4, 1.0]])
    triangle = (moments * (np.sqrt(2) - (np.sqrt(2) - 1) * np.eye(3)))[np.triu_indices(3)]  # a triangle keeps lengths
    products = Pooled(triangle, np.full(6, 1e-5), 1e4)
    np.testing.assert_allclose(
        fit_covariate_matrix(products, sizes).matrix, moments * np.outer(sizes, sizes), atol=1e-6
    )
