"""The shift that clipping makes in a skewed law."""

from __future__ import annotations

import numpy as np
import pytest

from dpfda.methods.adaptive.coordinates import Coordinates
from dpfda.methods.adaptive.evidence import Evidence, MeasuredRemainder
from dpfda.methods.adaptive.skewness import find_level_direction, fit_shift, share_within_reach


def remainder_evidence(value, sd, size=3):
    identity = np.eye(size)
    coordinates = Coordinates(identity, identity, identity / size)
    remainder = MeasuredRemainder(value, sd, find_level_direction(identity, identity), share_within_reach(1.5, 1.3))
    return Evidence(np.zeros(size), 0.1, np.zeros(size), coordinates, 0.8, 0.2, 0.0, 1.0, 1.3, 2, remainder)


@pytest.mark.parametrize("true", [0.06, -0.1])
def test_a_clear_shift_is_found_in_full(true) -> None:
    kept = share_within_reach(1.5, 1.3)
    shift, variance = fit_shift([remainder_evidence(true * kept, 0.004)], np.eye(3), np.zeros(3))
    assert shift == pytest.approx(true, rel=0.1)
    assert (shift - true) ** 2 < 4 * variance


def test_a_shift_within_the_noise_is_mostly_left_out() -> None:
    shift, _ = fit_shift([remainder_evidence(0.02, 0.03)], np.eye(3), np.zeros(3))
    assert 0 < shift < 0.3 * 0.02 / share_within_reach(1.5, 1.3)
    assert fit_shift([], np.eye(3), np.zeros(3)) == (0.0, 0.0)
