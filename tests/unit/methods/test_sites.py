"""The random-effects model over sites against its textbook formula for a scalar."""

from __future__ import annotations

import numpy as np
import pytest

from dpfda.methods.adaptive.sites import Gaussian, _fit


def test_a_part_is_the_textbook_answer_for_levels() -> None:
    """y_s ~ N(b, v_s + tau^2), a wide prior: everything by brute force on the joint law."""
    rng, count, tau = np.random.default_rng(2), 5, 0.7
    noise, values = rng.uniform(0.1, 1.0, count), rng.normal(size=count)
    shares = rng.dirichlet(np.ones(count))
    shapes = np.zeros((3, 1, 1))
    shapes[0] = 1.0
    matrices, noises = [np.eye(1)] * count, [np.array([[v]]) for v in noise]
    prior = np.array([[100.0]])
    found = _fit(np.array([tau, 0.0, 0.0]), shapes, matrices, [np.array([y]) for y in values], noises, prior, shares)
    joint = tau**2 * np.eye(count) + 100.0 * np.ones((count, count))  # of the sites' true levels
    gain = joint @ np.linalg.inv(joint + np.diag(noise))
    mean, covariance = gain @ values, joint - gain @ joint
    np.testing.assert_allclose([each.mean[0] for each in found.each], mean, atol=1e-5)
    np.testing.assert_allclose([each.covariance[0, 0] for each in found.each], np.diag(covariance), atol=1e-4)
    assert found.subjects.mean[0] == pytest.approx(shares @ mean, abs=1e-5)
    assert found.subjects.covariance[0, 0] == pytest.approx(shares @ covariance @ shares, abs=1e-4)
    weights = np.append(1 / (noise + tau**2), 1 / 100)  # the prior counts like a site that measured 0
    assert found.sites.mean[0] == pytest.approx(weights[:-1] @ values / weights.sum(), abs=1e-5)
    assert found.new_site.covariance[0, 0] == pytest.approx(1 / weights.sum() + tau**2, abs=1e-4)


def test_a_law_is_carried_to_other_coefficients() -> None:
    law = Gaussian(np.array([1.0, 2.0]), np.diag([1.0, 4.0])).restored(np.array([[1.0, 1.0], [0.0, 2.0]]))
    np.testing.assert_allclose(law.mean, [3.0, 4.0])
    np.testing.assert_allclose(law.covariance, [[5.0, 8.0], [8.0, 16.0]])
