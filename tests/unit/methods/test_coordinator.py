"""The coordinator holds a plan, a state, visits that another outcome learnt of, and whether a band is asked for."""

from __future__ import annotations

import numpy as np
import pytest
from adaptive_pieces import walk

from dpfda.methods.adaptive.coordinator import AdaptiveCoordinator


def test_the_coordinator_goes_the_way_of_the_functions() -> None:
    plan, steps = walk((300,), n_basis=4)
    coordinator = AdaptiveCoordinator(plan)
    assert vars(coordinator).keys() == {"plan", "state", "_visits", "_with_band"}
    for index, (_, question, releases, _) in enumerate(steps):
        with pytest.raises(RuntimeError, match="last round"):
            coordinator.coefficients()
        asked = coordinator.question(index)
        assert asked.keys() == question.keys()
        assert all(np.array_equal(asked[name], question[name]) for name in asked)
        coordinator.learn(index, releases)
    result = steps[-1][3].result
    np.testing.assert_array_equal(coordinator.coefficients(), result.estimate)
    np.testing.assert_allclose(coordinator.covariance, result.band_covariance)
    parts = coordinator.error_parts
    assert np.trace(parts.total) > 0
    assert np.trace(parts.sampling) > 0
    assert np.trace(parts.privacy) > 0


@pytest.mark.parametrize("sizes", [(300,), (300, 150, 200)])
def test_an_estimate_does_not_depend_on_whether_a_band_is_asked_for(sizes) -> None:
    plan, steps = walk(sizes, n_basis=4)
    with_band, without = AdaptiveCoordinator(plan), AdaptiveCoordinator(plan, with_band=False)
    for index, (_, _, releases, _) in enumerate(steps):
        for coordinator in (with_band, without):
            coordinator.learn(index, releases)
    np.testing.assert_array_equal(without.coefficients(), with_band.coefficients())
    np.testing.assert_array_equal(without.error_parts.total, with_band.error_parts.total)
    assert with_band.covariance is not None
    assert without.covariance is None
