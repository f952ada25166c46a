"""The coordinator holds a plan, a state and visits that another outcome learnt of, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from adaptive_pieces import walk

from dpfda.methods.adaptive.coordinator import AdaptiveCoordinator


def test_the_coordinator_goes_the_way_of_the_functions() -> None:
    plan, steps = walk((300,), n_basis=4)
    coordinator = AdaptiveCoordinator(plan)
    assert vars(coordinator).keys() == {"plan", "state", "_visits"}
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
