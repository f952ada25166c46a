"""The error by source."""

from __future__ import annotations

import numpy as np
import pytest
from adaptive_pieces import walk

from dpfda.methods.adaptive.error_parts import split_error


@pytest.mark.parametrize("sizes", [(600,), (400, 300)])
def test_parts_are_second_moments_and_restored_like_the_estimate(sizes) -> None:
    _, steps = walk(sizes, n_basis=4)
    state = steps[-1][3]
    parts = split_error(state, state.result.posterior, lambda moments: 4 * moments)
    for part in (parts.total, parts.sampling, parts.privacy):
        np.testing.assert_allclose(part, part.T, atol=1e-12)
        assert np.linalg.eigvalsh(part).min() > -1e-12
    np.testing.assert_allclose(parts.total, 4 * state.result.posterior.covariance)
    assert parts.sd_of_means == state.level.sd_of_means


def test_a_small_budget_is_paid_in_privacy_and_a_large_one_leaves_sampling() -> None:
    shares = []
    for epsilon in (0.3, 50.0):
        _, steps = walk((1000,), epsilon=epsilon, n_basis=4)
        state = steps[-1][3]
        parts = split_error(state, state.result.posterior, lambda moments: moments)
        shares.append(np.trace(parts.privacy) / np.trace(parts.privacy + parts.sampling))
    assert shares[0] > shares[1]
