"""After the last round."""

from __future__ import annotations

import numpy as np
from adaptive_pieces import walk

from dpfda.methods.adaptive.finish import finish, widen


def test_a_band_is_wider_than_the_posterior_and_holds_what_the_basis_drops() -> None:
    plan, steps = walk((1000,), epsilon=2.0, n_basis=4)
    state = steps[-1][3]
    result = finish(plan, state)
    np.testing.assert_array_equal(result.posterior.mean, state.posterior.mean)
    assert np.linalg.eigvalsh(result.band_covariance).min() > 0
    beyond = state.posterior.mean[4:]
    tail = result.band_covariance[4:, 4:] - np.outer(beyond, beyond)
    assert np.linalg.eigvalsh(tail).min() > -1e-12


def test_a_wider_prior_is_wider_in_every_direction() -> None:
    prior = np.diag([1.0, 0.2, 0.1, 0.01])
    assert np.linalg.eigvalsh(widen(prior, 0.3, 1.1) - prior).min() > 0
