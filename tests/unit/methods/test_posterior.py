"""Coefficients from measurements, against dense matrices and a loop over the sizes of the prior."""

from __future__ import annotations

import numpy as np
import pytest
from adaptive_pieces import definite

from dpfda.basis.basis import make_basis
from dpfda.methods.adaptive import constants
from dpfda.methods.adaptive.posterior import SIZES, Posterior, Prior, list_sizes, mix_sizes, sobolev_covariance, solve


@pytest.mark.parametrize("columns", [1, 3])
def test_one_decomposition_gives_the_ridge_regressions_of_all_sizes(columns) -> None:
    rng, prior = np.random.default_rng(0), Prior(sobolev_covariance(make_basis("cosine", 4), 2.0), columns, 0.1, 0.3)
    size = 4 * columns
    precision, weighted = 50 * definite(rng, size), 30 * rng.standard_normal(size)
    sizes, odds = np.sqrt(prior.scaled.squares[:, 0]), rng.random(14) + 0.5
    found = mix_sizes(precision, weighted, prior.scaled, odds)
    covariances, means, logs = [], [], []
    for each in sizes:
        root = prior.root(each)
        inner = np.eye(size) + root.T @ precision @ root
        covariances.append(root @ np.linalg.inv(inner) @ root.T)
        means.append(covariances[-1] @ weighted)
        logs.append(0.5 * (weighted @ means[-1] - np.linalg.slogdet(inner)[1]))
    weights = np.exp(np.array(logs) - max(logs)) * odds
    weights /= weights.sum()
    mean = weights @ means
    apart = np.array(means) - mean
    covariance = np.tensordot(weights, covariances, 1) + (apart.T * weights) @ apart
    np.testing.assert_allclose(found.weights, weights, rtol=1e-9)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-9)
    np.testing.assert_allclose(found.covariance, covariance, rtol=1e-8, atol=1e-11)


def test_the_prior_goes_on_with_the_slope_where_data_end() -> None:
    """A line seen on [0, 0.7] only: at 0.85 the fit is nearer to the line than to its last value."""
    basis, grid = make_basis("cosine", 12), np.linspace(0, 0.7, 300)
    features = basis.evaluate_unit(grid)
    gram, target = features.T @ features / 300, features.T @ (grid - 0.5) / 300
    prior = Prior(sobolev_covariance(basis, 2.0), 1, 0.0, 0.3)
    found = solve(target, gram * 1e-6 + 1e-10 * np.eye(12), gram, prior)
    at = basis.evaluate_unit(np.array([0.85]))[0]
    assert abs(at @ found.mean - 0.35) < 0.075
    sd = [float(np.sqrt(phi @ found.covariance @ phi)) for phi in basis.evaluate_unit(np.array([0.4, 1.0]))]
    assert sd[1] > 10 * sd[0]


def solve_slowly(value, covariance, information, prior):
    """The posterior of h = A b + N(0, V) under every size, averaged by the density of h under each, times its odds."""
    means, covariances, logs = [], [], []
    for size in SIZES:
        root = prior.root(size)
        before = root @ root.T
        marginal = information @ before @ information.T + covariance
        gain = before @ information.T @ np.linalg.inv(marginal)
        off = value - information @ prior.start
        means.append(prior.start + gain @ off)
        covariances.append(before - gain @ information @ before)
        density = -0.5 * (np.linalg.slogdet(marginal)[1] + off @ np.linalg.solve(marginal, off))
        logs.append(density - np.log(size / constants.TYPICAL_PRIOR_SIZE) ** 2)
    weights = np.exp(np.array(logs) - max(logs))
    weights /= weights.sum()
    mean = sum(weight * one for weight, one in zip(weights, means, strict=True))
    total = sum(
        weight * (own + np.outer(one - mean, one - mean))
        for weight, one, own in zip(weights, means, covariances, strict=True)
    )
    return mean, total, np.sqrt(sum(weight * size**2 for weight, size in zip(weights, SIZES, strict=True)))


@pytest.mark.parametrize(("basis", "columns"), [("cosine", 1), ("fourier", 1), ("cosine", 3)])
def test_the_posterior_is_that_of_the_obvious_formula(basis, columns) -> None:
    rng, functions = np.random.default_rng(5), make_basis(basis, 5)
    prior = Prior(sobolev_covariance(functions, 2.0), columns, 0.1, 0.3)
    information, covariance = definite(rng, 5 * columns), 0.01 * definite(rng, 5 * columns)
    value = information @ (0.1 * rng.standard_normal(5 * columns))
    found = solve(value, covariance, information, prior)
    mean, total, size = solve_slowly(value, covariance, information, prior)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.covariance, total, rtol=1e-6, atol=1e-9)
    assert found.size == pytest.approx(size, rel=1e-6)


def test_sizes_of_the_prior_have_the_same_ends_on_every_grid() -> None:
    few, many = list_sizes(constants.PRIOR_SIZES), list_sizes(constants.FORECAST_SIZES)
    np.testing.assert_allclose([few[0], few[-1]], [many[0], many[-1]])
    np.testing.assert_array_equal(few, SIZES)


def test_a_shift_moves_the_level_and_adds_its_variance() -> None:
    before = Posterior(np.array([0.5, 0.2]), np.eye(2), 0.1)
    after = before.shifted(0.1, 0.04)
    np.testing.assert_allclose(after.mean, [0.4, 0.2])
    np.testing.assert_allclose(after.covariance, [[1.04, 0.0], [0.0, 1.0]])
