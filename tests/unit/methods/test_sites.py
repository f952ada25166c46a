"""The random-effects model over sites against its textbook formula for a scalar."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dpfda.methods.adaptive.prior import Mixture
from dpfda.methods.adaptive.sites import Gaussian, Releases, fit_part, list_shapes


def make_levels(seed, count, anywhere=None, shared=0.0):
    """Scalar measurements of the levels of some sites, and their noise."""
    rng = np.random.default_rng(seed)
    noise, values = rng.uniform(0.1, 1.0, count), rng.normal(size=count)
    releases = Releases(
        tuple("abcdefgh"[:count]),
        [np.eye(1)] * count,
        [np.array([y]) for y in values],
        [np.array([[v]]) for v in noise],
        rng.dirichlet(np.ones(count)),
        anywhere or [0.0] * count,
        np.array([[shared]]),
    )
    return releases, noise, values


def fit_levels(releases, tau):
    shapes = np.zeros((3, 1, 1))
    shapes[0] = 1.0
    return fit_part(np.array([tau, 0.0, 0.0]), shapes, releases, np.array([[100.0]]))


def test_a_part_is_the_textbook_answer_for_levels() -> None:
    """y_s ~ N(b, v_s + tau^2), a wide prior: everything by brute force on the joint law."""
    count, tau = 5, 0.7
    releases, noise, values = make_levels(2, count)
    found, shares = fit_levels(releases, tau), releases.shares
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


def test_an_odd_site_tells_nothing_of_the_others_and_keeps_what_it_measured() -> None:
    releases, _, values = make_levels(3, 5, [0.0] * 4 + [1e8])
    found = fit_levels(releases, 0.5)
    without = dataclasses.replace(
        releases, names=releases.names[:4], matrices=releases.matrices[:4], values=releases.values[:4],
        noises=releases.noises[:4], anywhere=releases.anywhere[:4], shares=releases.shares[:4],
    )  # fmt: skip
    assert found.sites.mean[0] == pytest.approx(fit_levels(without, 0.5).sites.mean[0], abs=1e-5)
    assert found.each[4].mean[0] == pytest.approx(values[4], abs=1e-5)


def test_errors_that_all_sites_share_do_not_average_out() -> None:
    """Sites that are alike: the shared variance is added to that of every curve, but for what the prior takes off."""
    plain, shared = (fit_levels(make_levels(4, 6, shared=size)[0], 0.0) for size in (0.0, 0.3))
    for name in ("subjects", "sites"):
        more = getattr(shared, name).covariance[0, 0] - getattr(plain, name).covariance[0, 0]
        assert more == pytest.approx(0.3, rel=0.01)


def test_a_law_is_carried_to_other_coefficients() -> None:
    law = Gaussian(np.array([1.0, 2.0]), np.diag([1.0, 4.0])).restored(np.array([[1.0, 1.0], [0.0, 2.0]]))
    np.testing.assert_allclose(law.mean, [3.0, 4.0])
    np.testing.assert_allclose(law.covariance, [[5.0, 8.0], [8.0, 16.0]])


def test_a_mixture_of_one_component_is_that_gaussian_and_two_are_averaged_by_evidence() -> None:
    """Straight lines at three sites: the evidence of a part is that of its components, weighed by their odds."""
    rng, shapes = np.random.default_rng(5), list_shapes(2, 1)
    matrices = [np.eye(2) + 0.2 * rng.normal(size=(2, 2)) for _ in range(3)]
    releases = Releases(
        tuple("abc"), matrices, [rng.normal(size=2) for _ in range(3)], [0.3 * np.eye(2)] * 3, np.full(3, 1 / 3),
        [0.0] * 3, np.zeros((2, 2)),
    )  # fmt: skip
    size = np.array([0.4, 0.2, 0.0])

    def mix(slopes, odds):
        none = np.zeros(len(slopes))
        mixture = Mixture(np.zeros((1, 2, 2)), none.astype(int), slopes, none, np.log(odds), none + 1)
        return fit_part(size, shapes, releases, np.eye(2), mixture.scaled(1.0, 2.0))

    plain = [fit_part(size, shapes, releases, np.diag([4.0, slope**2])) for slope in (0.5, 3.0)]
    one = mix(np.array([0.5]), np.ones(1))
    np.testing.assert_allclose(one.subjects.mean, plain[0].subjects.mean)
    np.testing.assert_allclose(one.subjects.covariance, plain[0].subjects.covariance)
    assert one.log_evidence == pytest.approx(plain[0].log_evidence)
    odds = np.array([0.3, 0.7])
    weights = odds * np.exp([part.log_evidence for part in plain])
    two = mix(np.array([0.5, 3.0]), odds)
    assert two.log_evidence == pytest.approx(np.log(weights.sum()))
    mean = weights @ np.array([part.sites.mean for part in plain]) / weights.sum()
    np.testing.assert_allclose(two.sites.mean, mean)
