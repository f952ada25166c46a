"""One number from many silos."""

from __future__ import annotations

import numpy as np
from adaptive_pieces import walk

from dpfda.methods.adaptive.pooling import Pooled, pool, pool_if_released, weigh_silos
from dpfda.protocol.statistics import CovariateHistograms, LevelHistogram


def test_a_pooled_statistic_is_the_mean_weighted_by_public_variances() -> None:
    plan, steps = walk((200, 800), n_basis=3)
    releases, place = steps[0][2], plan.slice_of(0, LevelHistogram)
    found = pool(plan, 0, LevelHistogram, releases)
    sd = [releases[name].noise_sd[place][0] for name in ("s0", "s1")]
    weights = [1 / (one**2 + 0.3 / n) for one, n in zip(sd, (200, 800), strict=True)]
    values = sum(weight * releases[name].values[place] for weight, name in zip(weights, ("s0", "s1"), strict=True))
    np.testing.assert_allclose(found.values, values / sum(weights))
    np.testing.assert_allclose(found.sd[0], np.hypot(weights[0] * sd[0], weights[1] * sd[1]) / sum(weights))
    assert 200 < found.n <= 1000
    assert pool_if_released(plan, 0, CovariateHistograms, releases) is None


def test_a_silo_that_is_alone_is_pooled_to_what_it_released() -> None:
    plan, steps = walk((200, 800), n_basis=3)
    place, release = plan.slice_of(0, LevelHistogram), steps[0][2]["s1"]
    found = pool(plan, 0, LevelHistogram, {"s1": release}, {"s1": 0.25})
    assert found.values.tobytes() == release.values[place].tobytes()
    np.testing.assert_allclose(found.sd, release.noise_sd[place], rtol=1e-15)
    assert found.n == 800


def test_weights_add_up_and_scaling_leaves_the_number_of_curves() -> None:
    weights = weigh_silos(np.array([1e-4, 1e9]), np.array([100.0, 100.0]))
    assert weights.sum() == 1
    assert weights[1] < 1e-9
    scaled = Pooled(np.ones(2), np.ones(2), 7.0).scaled(3.0)
    assert (scaled.values[0], scaled.sd[0], scaled.n) == (3.0, 3.0, 7.0)
