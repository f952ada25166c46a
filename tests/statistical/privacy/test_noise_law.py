"""The law of the noise: its size, its independence of the value in the last bits, and broken versions that must fail.

Chi-square test: N = 4,000 whitened coordinates, two-sided level 1e-6. Under noise that is 30% too small,
sum z^2 / 0.49 is chi-square, and the power is above 1 - 1e-12 (computed below; the spread test needs only
some 200 coordinates for 99%).
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dpfda.privacy import EllipsoidBound, EntrywiseBound, OpenDPNoise, SeededNoise, release_gaussian

COORDINATES, LEVEL = 4000, 1e-6
LOW, HIGH = stats.chi2.ppf([LEVEL / 2, 1 - LEVEL / 2], COORDINATES)
BOUNDS = [EntrywiseBound(np.geomspace(1, 0.01, 40)), EllipsoidBound(np.geomspace(1, 0.01, 40), 3.0)]


class Shrunk:
    """A broken mechanism: noise of the wrong size."""

    private = False

    def __init__(self, factor: float) -> None:
        self._factor = factor
        self._noise = SeededNoise(1)

    def stream(self, silo: str, round: int):
        return self

    def make_ready(self, size):
        pass

    def standard_normal(self, whitened):
        return whitened + self._factor * (self._noise.standard_normal(whitened) - whitened)


def whitened_noise(bound, noise, mu: float = 0.3) -> np.ndarray:
    """Noise of repeated releases of one sum, divided by the sd that the release declares."""
    bounded = bound.sum(np.random.default_rng(0).normal(size=(25, 40)))
    releases = [release_gaussian(bounded.total, bounded.sensitivity, mu, noise) for _ in range(COORDINATES // 40)]
    return np.concatenate([(release.values - bounded.total) / release.sd for release in releases])


def has_unit_variance(z: np.ndarray) -> bool:
    return bool(LOW <= np.sum(z**2) <= HIGH)


@pytest.mark.parametrize("bound", BOUNDS, ids=["entrywise", "ellipsoid"])
@pytest.mark.parametrize("noise", [OpenDPNoise(), SeededNoise(7)], ids=["opendp", "seeded"])
def test_whitened_noise_is_standard_normal(bound, noise) -> None:
    z = whitened_noise(bound, noise)
    assert has_unit_variance(z)
    assert stats.kstest(z, "norm").pvalue > LEVEL
    assert abs(z.mean()) * np.sqrt(z.size) < stats.norm.isf(LEVEL / 2)
    lag = np.corrcoef(z[:-1], z[1:])[0, 1] * np.sqrt(z.size)  # neighbouring coordinates are uncorrelated
    assert abs(lag) < stats.norm.isf(LEVEL / 2)


@pytest.mark.parametrize("factor", [0.7, 1.3])
def test_the_chi_square_test_fails_noise_of_the_wrong_size(factor) -> None:
    law = stats.chi2(COORDINATES, scale=factor**2)
    missed = law.cdf(HIGH) - law.cdf(LOW)
    assert missed < 1e-12  # the stated power
    assert not has_unit_variance(whitened_noise(BOUNDS[0], Shrunk(factor)))


def share_off_the_grid(noise, value: float, draws: int = 24_000) -> tuple[int, int]:
    """Among outputs below 1/4 in size: how many are no multiple of 2^-53, and how many there are."""
    size = 400
    outputs = np.concatenate([noise.standard_normal(np.full(size, value)) for _ in range(draws // size)])
    near = outputs[np.abs(outputs) < 0.25]
    scaled = near * 2.0**53
    return int(np.sum(scaled != np.round(scaled))), near.size


def low_bits_differ(noise) -> bool:
    """Fisher's exact test, level 1e-6: do the last bits tell the value 0 from the value 1?"""
    (off0, all0), (off1, all1) = share_off_the_grid(noise, 0.0), share_off_the_grid(noise, 1.0)
    table = [[off0, all0 - off0], [off1, all1 - off1]]
    return bool(stats.fisher_exact(table).pvalue < LEVEL)


def test_the_last_bits_of_opendp_noise_do_not_depend_on_the_value() -> None:
    assert not low_bits_differ(OpenDPNoise())


def test_the_last_bits_of_plain_floating_point_addition_do() -> None:
    """Which is why the seeded source is marked as not private; it also shows that the test can fail."""
    assert low_bits_differ(SeededNoise(3))
