"""What is known after a round cannot be changed."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from adaptive_pieces import walk

from dpfda.methods.adaptive.state import State


def test_a_state_is_frozen_and_ends_with_a_result() -> None:
    _, steps = walk((300,), n_basis=3)
    first, last = steps[0][3], steps[-1][3]
    assert isinstance(first, State)
    with pytest.raises(dataclasses.FrozenInstanceError):
        first.iterate = np.zeros(3)
    assert first.result is None
    assert last.result is not None
    assert first.question.radius is None
