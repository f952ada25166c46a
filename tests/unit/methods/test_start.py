"""Round 0: where the gradient rounds begin."""

from __future__ import annotations

import math

import numpy as np
import pytest
from adaptive_pieces import walk

from dpfda.methods.adaptive.start import choose_prior, start


def test_the_first_iterate_is_the_level() -> None:
    plan, steps = walk((2000,), epsilon=8.0, n_basis=5)
    state = start(plan, steps[0][2])
    np.testing.assert_array_equal(state.iterate, [state.level.value, 0, 0, 0, 0])
    assert state.filled == pytest.approx(1.0, abs=0.01)
    assert state.displacements == ()
    assert state.silo_densities == {}
    prior = choose_prior(plan, state.level)
    assert prior.start[0] == state.level.value
    assert prior.level_sd == pytest.approx(math.hypot(state.level.sd_of_means, state.level.sd) + 0.02)


def test_all_silos_begin_with_the_same_lengths() -> None:
    plan, steps = walk((300, 900), n_basis=3)
    state = start(plan, steps[0][2])
    first, second = state.silos.values()
    assert first.lengths.log_median == second.lengths.log_median == pytest.approx(state.length_prior[0])
