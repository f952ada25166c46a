"""The Gaussian mechanism: exact calibration, and refusals before anything is drawn."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpfda.errors import InvalidInput
from dpfda.privacy import (
    EllipsoidBound,
    EntrywiseBound,
    GaussianEvent,
    OpenDPNoise,
    SeededNoise,
    lemma1_mu,
    noise_sd,
    release_gaussian,
)
from dpfda.privacy.noise import GRID

BOUNDS = [EntrywiseBound([1.0, 0.3, 0.05]), EllipsoidBound([1.0, 0.3, 0.05], 2.0)]


class NoNoise:
    """A test-only source: shows what would be released without noise, and counts the draws."""

    private = False

    def __init__(self) -> None:
        self.draws = 0

    def stream(self, silo: str, round: int) -> NoNoise:
        return self

    def make_ready(self, size):
        pass

    def standard_normal(self, whitened):
        self.draws += 1
        return whitened.copy()


def worst_whitened_change(bound, sd: np.ndarray) -> float:
    """The whitened change between the two worst rows, plus the rounding of the noise grid."""
    corner = bound.radii if isinstance(bound, EntrywiseBound) else np.eye(3)[0] * bound.radius * np.sqrt(bound.weights)
    change = bound.sum([corner]).total - bound.sum([-corner]).total
    return float(np.linalg.norm(change / sd)) + math.sqrt(3) * GRID


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("mu", [1e-9, 1e-3, 0.4, 30.0])
def test_the_worst_change_is_at_most_mu_and_nearly_attains_it(bound, mu) -> None:
    worst = worst_whitened_change(bound, noise_sd(bound.sensitivity(1), mu))
    assert worst <= mu
    assert worst >= mu * (1 - 1e-12) - 1e-15


def test_lemma_1_noise_multiplier() -> None:
    epsilon, delta = 1.0, 1e-3
    sensitivity = EntrywiseBound([1.0, 0.3]).sensitivity(100)
    sd = noise_sd(sensitivity, lemma1_mu(epsilon, delta))
    multiplier = 1 / np.linalg.norm(sensitivity.entries / sd)
    np.testing.assert_allclose(multiplier, 2 * math.sqrt(math.log(2 / delta)) / epsilon, rtol=1e-10)


def test_without_noise_the_total_comes_back() -> None:
    bounded = BOUNDS[1].sum([[0.1, 0.2, 0.01]])
    release = release_gaussian(bounded.total, bounded.sensitivity, 0.5, NoNoise())
    np.testing.assert_allclose(release.values, bounded.total, rtol=1e-15)


def test_the_release_carries_its_sd_and_its_event() -> None:
    bounded = BOUNDS[0].sum(np.zeros((5, 3)))
    release = release_gaussian(bounded.total, bounded.sensitivity, 0.5, SeededNoise(0), part=2, label="gradient")
    assert release.event == GaussianEvent(0.5, part=2, label="gradient")
    np.testing.assert_array_equal(release.sd, noise_sd(bounded.sensitivity, 0.5))


def test_opendp_release_is_finite_and_random() -> None:
    bounded = BOUNDS[0].sum(np.zeros((5, 3)))
    first, second = (release_gaussian(bounded.total, bounded.sensitivity, 0.5, OpenDPNoise()).values for _ in range(2))
    assert np.isfinite(first).all()
    assert (first != second).any()


@pytest.mark.parametrize(
    ("total", "mu"),
    [
        ([np.nan, 0, 0], 0.5),
        ([np.inf, 0, 0], 0.5),
        ([0, 0], 0.5),
        ([[0, 0, 0]], 0.5),
        ([0, 0, 0], 0.0),
        ([0, 0, 0], float("nan")),
        ([0, 0, 0], 1e-13),
        ([1e308, 0, 0], 1e9),
    ],
)
def test_bad_input_is_refused_before_drawing(total, mu) -> None:
    noise = NoNoise()
    with pytest.raises(InvalidInput):
        release_gaussian(total, BOUNDS[0].sensitivity(1), mu, noise)
    assert noise.draws == 0
