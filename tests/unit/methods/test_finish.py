"""After the last round."""

from __future__ import annotations

import numpy as np
from adaptive_pieces import walk

from dpfda.methods.adaptive.finish import finish
from dpfda.methods.adaptive.skewness import fit_shift


def test_the_shift_is_given_back_to_the_estimate_and_to_its_band() -> None:
    _, steps = walk((3000,), epsilon=4.0, n_basis=4)
    state = steps[-1][3]
    evidence = state.silos["s0"].evidence
    assert evidence[-1].remainder is not None
    shift, variance = fit_shift(evidence, state.geometry.information, state.estimate.posterior.mean)
    result = finish(state, state.estimate)
    moved = state.estimate.posterior.mean - result.posterior.mean
    np.testing.assert_allclose(moved, [shift, 0, 0, 0], atol=1e-15)
    np.testing.assert_array_equal(result.band_posterior.mean, result.posterior.mean)
    assert result.posterior.covariance[0, 0] == state.estimate.posterior.covariance[0, 0] + variance


def test_without_a_measured_remainder_nothing_is_given_back() -> None:
    _, steps = walk((100,), epsilon=0.5, n_basis=3)
    state = steps[-1][3]
    result = finish(state, state.estimate)
    np.testing.assert_array_equal(result.posterior.mean, state.estimate.posterior.mean)
