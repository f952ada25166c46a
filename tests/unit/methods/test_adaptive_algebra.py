"""The coordinator's algebra against the formulas that it replaces, written out one matrix at a time."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import nnls
from scipy.special import ndtr

from dpfda.basis.basis import make_basis
from dpfda.basis.moments import moment_features, uniform_moments
from dpfda.methods.adaptive import design as density
from dpfda.methods.adaptive import level
from dpfda.methods.adaptive.evidence import Coordinates, Evidence, Stack
from dpfda.methods.adaptive.pooling import Pooled
from dpfda.methods.adaptive.posterior import Prior, mix_sizes, sobolev_covariance
from dpfda.protocol.clip_radius import SharedCount, follow


def definite(rng, size):
    root = rng.standard_normal((size, size))
    return root @ root.T + 0.3 * np.eye(size)


@pytest.mark.parametrize("columns", [1, 3])
def test_one_decomposition_gives_the_ridge_regressions_of_all_sizes(columns) -> None:
    rng, prior = np.random.default_rng(0), Prior(sobolev_covariance(make_basis("cosine", 4), 2.0), columns, 0.1, 0.3)
    size = 4 * columns
    precision, weighted = 50 * definite(rng, size), 30 * rng.standard_normal(size)
    sizes, odds = np.sqrt(prior.scaled.squares[:, 0]), rng.random(14) + 0.5
    found = mix_sizes(precision, weighted, prior.scaled, odds)
    covariances, means, logs = [], [], []
    for own in sizes:
        root = prior.root(own)
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


def test_rounds_are_weighted_as_if_each_were_inverted() -> None:
    """Two silos, three rounds, the second silo missed one."""
    rng, size = np.random.default_rng(1), 4
    information, centre, extra = definite(rng, size), rng.standard_normal(size), [definite(rng, size) for _ in range(2)]
    shapes = [definite(rng, size) for _ in range(3)]
    coordinates = [Coordinates.of(shape, definite(rng, size)) for shape in shapes]
    iterates = rng.standard_normal((3, size))

    def item(number):
        value = rng.standard_normal(size)
        return Evidence(value, 0.3, iterates[number - 1], coordinates[number - 1], 0.7, 0.4, 0.05, 9.0, 1.0, number)

    evidence = [[item(1), item(2), item(3)], [item(1), item(3)]]
    joint = Stack(evidence, information, np.zeros((0, size, size))).joint(centre, np.stack(extra))
    for silo, items in enumerate(evidence):
        precision, weighted = np.zeros((size, size)), np.zeros(size)
        for each in items:
            shape, known = shapes[each.round - 1], each.coordinates
            step = information @ (centre - each.iterate)
            away = step @ np.linalg.solve(shape, step) + np.trace(np.linalg.solve(shape, extra[silo]))
            far = min(1.0, 2 * away / each.squared_length)
            slopes, vectors = np.linalg.eigh(0.7 * np.eye(size) - (1 - far) * 0.4 * known.directions)
            restore = known.root @ (vectors / np.maximum(slopes, 0.1)) @ vectors.T
            covariance = 0.3**2 * restore @ restore.T + 0.15 * away / size * shape
            precision += np.linalg.inv(covariance)
            weighted += np.linalg.solve(covariance, information @ each.iterate - restore @ each.value)
        np.testing.assert_allclose(joint.precision[silo], precision, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(joint.weighted[silo], weighted, rtol=1e-9)


def test_errors_of_the_information_matrix_are_common_to_rounds_and_silos() -> None:
    """Two silos, two rounds each: the same as one regression on everything, z and the silos' own errors included."""
    rng, size, count = np.random.default_rng(4), 3, 2
    information, centre = definite(rng, size), rng.standard_normal(size)
    errors, sampling = 0.3 * rng.standard_normal((count, size, size)), np.stack([definite(rng, size) for _ in range(2)])
    plain = Coordinates(np.eye(size), np.eye(size), np.eye(size) / size)
    iterates = rng.standard_normal((2, size))
    evidence = [
        [Evidence(rng.standard_normal(size), sd, iterates[k], plain, 1.0, 0.0, -0.1, 1e9, 1.0, k + 1) for k in range(2)]
        for sd in (0.2, 0.5)
    ]  # uncertainty -0.1 takes away the model error: noise alone weighs
    stack = Stack(evidence, information, errors)
    precision, weighted = stack.joint(centre, np.zeros((2, size, size))).blurred(sampling).total().marginal()

    rows, values, noise = [], [], []
    for silo, items in enumerate(evidence):
        for each in items:
            own = np.zeros((size, 2 * size))
            own[:, silo * size : (silo + 1) * size] = np.eye(size)
            rows.append(np.hstack([np.eye(size), (errors @ (centre - each.iterate)).T, own]))
            values.append(information @ each.iterate - each.value)
            noise += [each.noise_sd**2] * size
    rows, values = np.vstack(rows), np.concatenate(values)
    prior = np.zeros((len(rows.T),) * 2)
    prior[size : size + count, size : size + count] = np.eye(count)
    for silo in range(2):
        place = slice(size + count + silo * size, size + count + (silo + 1) * size)
        prior[place, place] = np.linalg.inv(sampling[silo])
    everything = np.linalg.inv(rows.T @ (rows / np.array(noise)[:, None]) + prior)
    found = everything @ rows.T @ (values / np.array(noise))
    np.testing.assert_allclose(np.linalg.inv(precision), everything[:size, :size], rtol=1e-8)
    np.testing.assert_allclose(np.linalg.solve(precision, weighted), found[:size], rtol=1e-8)


@pytest.mark.parametrize("bins", [8, 64])
def test_the_misfit_of_a_histogram_is_that_of_every_cell(bins) -> None:
    cells = np.random.default_rng(2).dirichlet(np.ones(bins))
    found = level._misfit(cells, 0.01, 500.0)
    edges = np.linspace(-1.0, 1.0, bins + 1)
    for place, scale in ((0, 0), (100, 7), (256, 19)):
        below = ndtr((edges - level._LOCATIONS[place]) / level._SCALES[scale])
        below[0], below[-1] = 0.0, 1.0
        share = np.diff(below)
        variance = 0.01**2 + (0.02 + share) / 500 + (0.1 * share) ** 2
        assert found[place, scale] == pytest.approx(
            ((cells - share) ** 2 / variance + np.log(variance)).sum(), rel=1e-9
        )


def test_a_positive_density_is_the_constrained_one() -> None:
    basis = make_basis("fourier", 5)
    features = moment_features(basis, np.random.default_rng(3).random(3000)).mean(axis=0)
    sd = np.full(features.size, 0.02)
    prior = density._prior(basis)
    mass, _ = nnls(*prior.with_moments(features, sd))
    found = density.fit_density(basis, Pooled(features - uniform_moments(basis), sd, 3000.0))
    assert mass.min() > 0
    expected = density.gram_matrix(basis, mass @ prior.features / mass.sum()) + 1e-4 * np.eye(5)
    np.testing.assert_allclose(found.gram, expected, atol=1e-10)


def test_what_is_known_of_lengths_does_not_depend_on_the_way() -> None:
    """Round by round, with and without what was remembered, also where a silo was absent."""
    counts = [SharedCount(0.4, 0.05, 200), None, SharedCount(0.6, 0.05, 200)]
    whole = follow((0.3, 0.6, 1.0), (0.1, 0.2, 0.05), counts)
    from dpfda.protocol import clip_radius as radius

    radius._followed.cache_clear()
    fresh = follow((0.3, 0.6, 1.0), (0.1, 0.2, 0.05), counts)
    assert (whole.log_median, whole.sd) == (fresh.log_median, fresh.sd)
    assert follow((0.3, 0.6, 1.0), (0.1, 0.2), counts).sd < follow((0.3, 0.6, 1.0), (0.1, 0.2), counts[:2]).sd


def test_lengths_are_followed_through_as_many_rounds_as_a_plan_may_have() -> None:
    """Also at once, by a silo that was started anew or is given other hints than before."""
    count = SharedCount(0.5, 0.1, 300)
    assert np.isfinite(follow((0.0, 0.5, 1.0), (0.01,) * 2000, [count] * 2000).log_median)
