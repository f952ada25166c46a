"""The law of lengths: probabilities that add up, what a histogram teaches, and what clipping would take."""

from __future__ import annotations

import numpy as np
import pytest

from dpfda.methods.adaptive.lengths import (
    AtBounds,
    LengthLaw,
    carry_weights,
    first_weights,
    free_counts,
    list_laws,
)
from dpfda.privacy.cones import free_weight
from dpfda.protocol.statistics import LENGTH_CELLS
from dpfda.silo.sums import find_octaves

AT = AtBounds(4.0, 0.0)


def histogram(lengths):
    """Exact shares of the octaves."""
    return np.bincount(find_octaves(lengths), minlength=LENGTH_CELLS) / len(lengths)


def learn(lengths, sd=1e-4):
    return LengthLaw.start(first_weights(AT), float(len(lengths)), 2.0**14).observe(histogram(lengths), sd)


def some_lengths(name, rng, size=40_000):
    return {
        "chi": lambda: np.sqrt(rng.chisquare(4, size) / 4),
        "lognormal": lambda: np.exp(0.6 * rng.standard_normal(size)),
        "a second group": lambda: np.where(rng.random(size) < 0.05, 23.0, np.sqrt(rng.chisquare(4, size) / 4)),
    }[name]()


def test_every_law_is_one() -> None:
    laws = list_laws()
    assert (laws.cells >= 0).all()
    np.testing.assert_allclose(laws.cells.sum(axis=(1, 2)), 1.0, atol=1e-9)
    half = laws.cells.reshape(len(laws.cells), -1).cumsum(axis=1)
    alone = laws.share == 0
    at_median = half[alone, np.searchsorted(np.arange(LENGTH_CELLS * 4) / 4 - 7, laws.median[alone]) - 1]
    assert (np.abs(at_median - 0.5) < 0.12).all()  # tails of two bulks move their medians a little


@pytest.mark.parametrize("two_valued", [0.0, 1.0])
def test_weights_add_up_before_and_after_they_are_carried(two_valued) -> None:
    at = AtBounds(3.0, two_valued)
    weights = first_weights(at)
    assert weights.sum() == pytest.approx(1)
    assert weights.min() >= 0
    carried = carry_weights(weights, -1.0, at)
    assert carried.sum() == pytest.approx(1)
    assert carried @ list_laws().median < weights @ list_laws().median


@pytest.mark.parametrize("name", ["chi", "lognormal", "a second group"])
def test_what_clipping_takes_is_found_from_the_octaves(name) -> None:
    """Against the plain means over the lengths themselves."""
    lengths = some_lengths(name, np.random.default_rng(1))
    law, radii = learn(lengths), np.array([0.5, 1.0, 2.0, 8.0])
    found = law.attenuation(radii)
    kept = np.minimum(1, radii / lengths[:, None])
    np.testing.assert_allclose(found.kept, kept.mean(axis=0), atol=0.03)
    np.testing.assert_allclose(found.square, (np.minimum(lengths[:, None], radii) ** 2).mean(axis=0), rtol=0.12)
    assert found.mean == pytest.approx(lengths.mean(), rel=0.12)
    beyond = np.maximum(lengths[:, None] - radii, 0).mean(axis=0)
    np.testing.assert_allclose(law.excess(radii, 0.9)[:2], beyond[:2], rtol=0.25, atol=0.05)


def test_observing_is_bayes_on_a_grid() -> None:
    """Weights of all laws by hand: each cell's share is normal around the law's mass."""
    rng = np.random.default_rng(2)
    start = LengthLaw.start(first_weights(AT), 500.0, 2.0**14)
    shares, sd = histogram(some_lengths("chi", rng)) + 0.02 * rng.standard_normal(LENGTH_CELLS), 0.02
    logs = start.log_weights.copy()
    for cell in range(LENGTH_CELLS):
        variance = sd**2 + start.variance[:, cell]
        logs -= 0.5 * (shares[cell] - start.mass[:, cell]) ** 2 / variance + 0.5 * np.log(variance)
    expected = np.exp(logs - logs.max())
    weights = start.observe(shares, sd).all_weights()
    np.testing.assert_allclose(weights[start.laws] * expected.sum(), expected, atol=1e-3)


def test_noise_leaves_doubt_and_data_take_it_away() -> None:
    lengths = some_lengths("chi", np.random.default_rng(3))
    sure, unsure = learn(lengths, 1e-4), learn(lengths, 0.5)
    assert sure.variance.sum(axis=1).max() < unsure.variance.sum(axis=1).min()
    radii = np.array([1.0, 4.0])
    assert (unsure.excess(radii, 0.95) > sure.excess(radii, 0.95)).all()


def test_excess_and_what_is_kept_go_with_the_radius() -> None:
    law, radii = learn(some_lengths("lognormal", np.random.default_rng(4))), 2.0 ** np.arange(-3, 6.0)
    assert (np.diff(law.excess(radii, 0.9)) <= 1e-12).all()
    found = law.attenuation(radii)
    assert (np.diff(found.kept) >= -1e-12).all()
    assert (found.clipped <= found.kept + 1e-12).all()
    assert found.kept[-1] <= 1 + 1e-9


def test_nothing_is_longer_than_the_bounds_allow() -> None:
    law = LengthLaw.start(first_weights(AT), 100.0, 2.0)
    assert law.excess(np.array([2.0]), 0.99)[0] <= 1e-6
    assert law.cells.sum(axis=2)[:, find_octaves(np.array([4.0]))[0] :].max() == 0


def test_free_counts_are_the_silo_s_weights() -> None:
    """The coordinator models with midpoints of subcells what silos add up."""
    counts, points = free_counts(3.0), 2.0 ** (-7 + (np.arange(LENGTH_CELLS * 4) + 0.5) / 4)
    np.testing.assert_allclose(counts, free_weight(points / 3.0), atol=1e-12)
