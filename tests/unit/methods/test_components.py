"""All components at once against one after the other, by the textbook."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from dpfda.basis.basis import make_basis
from dpfda.methods.adaptive.components import Components
from dpfda.methods.adaptive.prior import make_mixture

MIXTURES = {
    "free ends": make_mixture(make_basis("free-ends", 7), 2.0).scaled(0.3, 0.5),
    "an effect": make_mixture(make_basis("free-ends", 7), 2.0).scaled(0.3, 0.5, 1.0),
    "cosines": make_mixture(make_basis("cosine", 7), 2.0).scaled(0.3, 0.5),
    "one function": make_mixture(make_basis("free-ends", 1), 2.0).scaled(0.3, 0.5),
}


@pytest.mark.parametrize("rows", [1, 5, 9])
@pytest.mark.parametrize("name", MIXTURES)
def test_every_component_has_its_evidence_mean_and_covariance(name, rows) -> None:
    rng, mixture = np.random.default_rng(rows), MIXTURES[name]
    matrix, y = 3 * rng.normal(size=(rows, mixture.mixture.shapes.shape[1])), rng.normal(size=rows)
    found = Components.measure(y, matrix, mixture)
    for k in range(len(mixture.log_odds)):
        prior = mixture.covariances(np.array([k]))[0]
        total = matrix @ prior @ matrix.T + np.eye(rows)
        gain = prior @ matrix.T @ np.linalg.inv(total)
        expected = multivariate_normal.logpdf(y, np.zeros(rows), total) + rows / 2 * np.log(2 * np.pi)
        assert found.log_evidence[k] == pytest.approx(expected, abs=1e-9)
        mean, covariance, own = found.average(np.array([k]), np.ones(1))
        np.testing.assert_allclose(own, prior, atol=1e-14)
        np.testing.assert_allclose(mean, gain @ y, atol=1e-10)
        np.testing.assert_allclose(covariance, prior - gain @ matrix @ prior, atol=1e-10)


def test_an_average_over_some_is_that_of_their_laws() -> None:
    rng, mixture = np.random.default_rng(3), MIXTURES["free ends"]
    matrix, y = 3 * rng.normal(size=(5, 7)), rng.normal(size=5)
    found, keep = Components.measure(y, matrix, mixture), np.array([0, 3, 50, 140, 141, 200])
    weights = rng.dirichlet(np.ones(keep.size))
    parts = [found.average(np.array([k]), np.ones(1)) for k in keep]
    means = np.array([mean for mean, _, _ in parts])
    apart = means - weights @ means
    mean, covariance, prior = found.average(keep, weights)
    np.testing.assert_allclose(mean, weights @ means, atol=1e-12)
    spread = (apart.T * weights) @ apart
    np.testing.assert_allclose(covariance, np.tensordot(weights, [own for _, own, _ in parts], 1) + spread, atol=1e-12)
    np.testing.assert_allclose(prior, np.tensordot(weights, [own for _, _, own in parts], 1), atol=1e-14)
