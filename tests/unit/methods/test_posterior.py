"""The posterior against brute force: every component by the textbook, averaged by its evidence."""

from __future__ import annotations

import numpy as np
import pytest
from adaptive_pieces import definite
from scipy.stats import multivariate_normal

from dpfda.basis.basis import make_basis
from dpfda.methods.adaptive.posterior import Data, fit_posterior, fit_weighted, fit_wider
from dpfda.methods.adaptive.prior import make_mixture


def problem(size=6, rows=5, seed=0):
    rng = np.random.default_rng(seed)
    mixture = make_mixture(make_basis("free-ends", size), 2.0).scaled(0.3, 0.5)
    start, matrix = rng.normal(size=size) * 0.1, rng.normal(size=(rows, size)) * 3
    return Data(matrix @ start + 0.5 * rng.normal(size=rows), matrix), start, mixture


def brute_force(data, start, mixture):
    """Mean and covariance of the mixture's posterior, component by component."""
    count = len(mixture.log_odds)
    odds = np.exp(mixture.log_odds - mixture.log_odds.max())
    logs, means, covariances = [], [], []
    for k in range(count):
        prior = mixture.covariances(np.array([k]))[0]
        total = data.rows @ prior @ data.rows.T + np.eye(len(data.y))
        logs.append(np.log(odds[k]) + multivariate_normal.logpdf(data.y, data.rows @ start, total))
        gain = prior @ data.rows.T @ np.linalg.inv(total)
        means.append(start + gain @ (data.y - data.rows @ start))
        covariances.append(prior - gain @ data.rows @ prior)
    weights = np.exp(np.array(logs) - max(logs))
    weights /= weights.sum()
    mean = weights @ np.array(means)
    apart = np.array(means) - mean
    return mean, np.tensordot(weights, np.array(covariances), 1) + (apart.T * weights) @ apart, weights


@pytest.mark.parametrize("seed", range(4))
def test_one_function_is_the_exact_mixture(seed) -> None:
    data, start, mixture = problem(seed=seed)
    found, (mean, covariance, weights) = fit_posterior(data, start, [mixture]), brute_force(*problem(seed=seed))
    scale = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose(found.weights[0], weights, atol=1e-8)
    assert (np.abs(found.mean - mean) < 0.05 * scale).all()  # components of next to no weight are left out
    np.testing.assert_allclose(found.covariance, covariance, atol=0.05 * scale.max() ** 2)
    assert np.linalg.eigvalsh(found.covariance).min() > 0


def test_two_functions_that_do_not_meet_are_two_posteriors() -> None:
    first, second = problem(seed=5), problem(seed=6)
    rows = np.zeros((10, 12))
    rows[:5, :6], rows[5:, 6:] = first[0].rows, second[0].rows
    both = Data(np.concatenate([first[0].y, second[0].y]), rows)
    found = fit_posterior(both, np.concatenate([first[1], second[1]]), [first[2], second[2]])
    for k, (data, start, mixture) in enumerate((first, second)):
        alone = fit_posterior(data, start, [mixture])
        np.testing.assert_allclose(found.weights[k], alone.weights[0], atol=1e-6)
        here = slice(6 * k, 6 * (k + 1))
        assert (np.diag(found.covariance)[here] > 0).all()
        scale = np.sqrt(np.diag(alone.covariance))
        assert (np.abs(found.mean[here] - alone.mean) < scale).all()


def test_functions_that_are_hard_to_tell_apart_add_up_to_what_was_measured() -> None:
    """Rows of two functions are nearly alike: their sum is known to 0.3%, their difference is not, and is shrunk."""
    data, _, mixture = problem(size=6, rows=6, seed=8)
    sharp = 300 * np.linalg.qr(data.rows)[0]
    rows = np.concatenate([np.hstack([sharp, sharp]), 0.001 * np.hstack([sharp, -sharp])])
    truth = 0.2 * np.random.default_rng(9).normal(size=12)
    found = fit_posterior(Data(rows @ truth, rows), np.zeros(12), [mixture, mixture])
    total, known = found.mean[:6] + found.mean[6:], truth[:6] + truth[6:]
    assert np.abs(total - known).max() < 0.02
    apart = found.mean[:6] - found.mean[6:]
    assert np.linalg.norm(apart) < np.linalg.norm(truth[:6] - truth[6:])


def test_data_of_information_is_its_likelihood() -> None:
    """y = rows theta + N(0, I) has the precision rows' rows and the score rows' y."""
    rng = np.random.default_rng(7)
    precision, score = definite(rng, 5), rng.normal(size=5)
    data = Data.of_information(precision, score)
    np.testing.assert_allclose(data.rows.T @ data.rows, precision, atol=1e-10)
    np.testing.assert_allclose(data.rows.T @ data.y, score, atol=1e-10)


def test_directions_without_information_are_left_out() -> None:
    data = Data.of_information(np.diag([1.0, 1.0, 0.0]), np.array([1.0, 0.0, 0.0]))
    assert data.rows.shape == (2, 3)


def test_a_gaussian_prior_gives_the_textbook_posterior() -> None:
    rng = np.random.default_rng(8)
    priors, rows, y, start = (
        [definite(rng, 2), definite(rng, 2)],
        rng.normal(size=(3, 4)),
        rng.normal(size=3),
        np.ones(4),
    )
    mean, covariance = fit_wider(Data(y, rows), start, priors)
    joined = np.zeros((4, 4))
    joined[:2, :2], joined[2:, 2:] = priors
    expected = np.linalg.inv(np.linalg.inv(joined) + rows.T @ rows)
    np.testing.assert_allclose(covariance, expected, atol=1e-10)
    np.testing.assert_allclose(mean, start + expected @ rows.T @ (y - rows @ start), atol=1e-10)


def test_weights_that_are_given_stand_whatever_the_evidence() -> None:
    rng = np.random.default_rng(9)
    mixture = make_mixture(make_basis("free-ends", 5), 2.0).scaled(0.3, 0.5)
    rows, y, start = rng.normal(size=(6, 5)), rng.normal(size=6), np.zeros(5)
    one = np.zeros(len(mixture.log_odds))
    one[7] = 1.0
    mean, covariance = fit_weighted(Data(y, rows), start, mixture, one)
    expected = fit_wider(Data(y, rows), start, [mixture.covariances(np.array([7]))[0]])
    np.testing.assert_allclose(mean, expected[0], atol=1e-10)
    np.testing.assert_allclose(covariance, expected[1], atol=1e-10)
