"""The covariance of gradients, from the companions of a clipped gradient."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from adaptive_pieces import walk

from dpfda.methods.adaptive.covariate_units import Units
from dpfda.methods.adaptive.covariates import assume_no_covariates, assume_uncorrelated
from dpfda.methods.adaptive.gradient_covariance import Companions, learn_covariance, learn_products, learn_unit
from dpfda.methods.adaptive.information import build_information
from dpfda.methods.adaptive.lengths import Attenuation
from dpfda.methods.adaptive.shape import Coordinates
from dpfda.methods.adaptive.weights import MeanWeight


@pytest.fixture(scope="module")
def state():
    return walk((2000,), epsilon=4.0, n_basis=4)[1][0][3]


def companions(matrix, sd, counts_sd=0.0):
    first, second = np.triu_indices(len(matrix))
    factors = np.where(first == second, 1.0, np.sqrt(2))
    return Companions(matrix[first, second] * factors, sd, np.zeros(len(matrix)), np.zeros(1), counts_sd)


def unclipped(square):
    one = np.ones(1)
    return Attenuation(one, 0 * one, square * one, square, square, 1.0)


def test_second_moments_without_noise_are_found(state) -> None:
    size = 4
    coordinates = Coordinates(np.eye(size), np.eye(size))
    truth = np.diag([0.5, 0.3, 0.2, 0.15])
    found = learn_covariance(state, companions(truth, 1e-9), coordinates, unclipped(float(np.trace(truth))))
    np.testing.assert_allclose(found, truth, rtol=0.05, atol=0.02)


@pytest.mark.parametrize("sd", [1e-3, 0.1, 10.0])
def test_the_covariance_is_definite_whatever_the_noise(state, sd) -> None:
    noise = sd * np.random.default_rng(1).standard_normal((4, 4))
    coordinates = Coordinates(np.eye(4), np.eye(4))
    found = learn_covariance(state, companions(np.eye(4) / 4 + noise + noise.T, sd), coordinates, unclipped(1.0))
    np.testing.assert_allclose(found, found.T, atol=1e-12)
    assert np.linalg.eigvalsh(found).min() > 0


def test_what_clipping_took_is_given_back(state) -> None:
    coordinates, truth = Coordinates(np.eye(4), np.eye(4)), np.eye(4) / 4
    clipped = Attenuation(np.ones(1), np.zeros(1), np.ones(1), 3.0, 3.0, 1.0)
    whole, part = (
        learn_covariance(state, companions(truth, 1e-9), coordinates, law) for law in (unclipped(1.0), clipped)
    )
    np.testing.assert_allclose(part, 3 * whole)


def test_counts_that_are_noise_leave_the_size_as_it_was(state) -> None:
    coordinates, before = Coordinates(np.eye(4), np.eye(4)), float(np.trace(state.covariance))
    sizes = [
        float(
            np.trace(
                learn_covariance(state, companions(100 * before * np.eye(4), 1e-9, sd), coordinates, unclipped(1.0))
            )
        )
        for sd in (0.0, 0.3, 100.0)
    ]
    assert sizes[0] > 50 * before
    np.testing.assert_allclose(sizes[1], np.sqrt(sizes[0] * before), rtol=1e-6)
    np.testing.assert_allclose(sizes[2], before, rtol=1e-3)


@pytest.fixture(scope="module")
def of_two_covariates():
    """A state with two covariates, uncorrelated as far as is known, and coordinates that leave gradients as they are."""
    state = walk((2000,), epsilon=4.0, n_basis=4)[1][0][3]
    law = assume_uncorrelated(Units(np.zeros(3), np.ones(3), True), np.zeros(3))
    longer = state.longer.size
    plan_basis = state.longer.resize(4)
    pooled = build_information(plan_basis, state.longer, state.design, law, MeanWeight.of_share(1.0))
    assert pooled.shape == (4, longer)
    return replace(state, law=law, pooled=pooled), Coordinates(np.eye(12), np.eye(12))


@pytest.mark.parametrize(("sd", "gap"), [(1e-6, 0.15), (10.0, 0.9)])
def test_gradients_show_how_covariates_go_together(of_two_covariates, sd, gap) -> None:
    """Spread the same for all, correlation 0.8: found where there is no noise, left alone where there is nothing else."""
    state, coordinates = of_two_covariates
    alone, _ = state.pooled.covariance_parts
    truth = np.array([[1.0, 0, 0], [0, 1, 0.8], [0, 0.8, 1]])
    second = 0.1 * np.kron(truth, alone[:4, :4])
    found = learn_products(state, companions(second, sd), coordinates)
    assert abs(found.average[1, 2] - 0.8) < gap
    assert np.linalg.eigvalsh(found.average).min() > 0
    np.testing.assert_allclose(found.average[0], [1, 0, 0])
    assert found.loose.max() <= state.law.loose.max()
    np.testing.assert_allclose(found.within[0][1:, 1:], found.average[1:, 1:])


def test_a_size_that_clipping_took_hardly_counts_with_covariates(of_two_covariates) -> None:
    state, _ = of_two_covariates
    covariance = np.eye(12)
    seen, taken = (
        learn_unit(state, covariance, Attenuation(*[np.ones(1)] * 3, full, full, 1.0)) for full in (1.0, 400.0)
    )
    at_first = state.level.sd_of_means
    assert at_first < taken < at_first**0.9
    assert seen > at_first ** (1 - 0.6)
    mean = replace(state, law=assume_no_covariates())
    assert learn_unit(mean, covariance, unclipped(1.0)) == pytest.approx(1 / np.sqrt(state.filled))
