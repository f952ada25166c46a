"""What is known after a round cannot be changed."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from adaptive_pieces import walk

from dpfda.methods.adaptive.state import State


def test_a_state_is_frozen_and_uses_the_measured_covariance_once_there_is_one() -> None:
    _, steps = walk((300,), n_basis=3)
    first, last = steps[0][3], steps[-1][3]
    assert isinstance(first, State)
    with pytest.raises(dataclasses.FrozenInstanceError):
        first.iterate = np.zeros(3)
    assumed = first.covariance_of_gradients()
    np.testing.assert_allclose(np.trace(assumed), 1.2 * first.filled)
    assert last.covariance_of_gradients() is last.gradient_covariance
