"""A forecast has four parts, whatever is guessed of the curves."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpfda.methods.adaptive.constants import GUESSED_SD
from dpfda.methods.adaptive.forecast import Guesses, forecast
from dpfda.protocol.plans import adaptive_plan
from dpfda.protocol.scaling import Scaling
from dpfda.protocol.terms import SiloTerms

MEAN = Scaling((-1.0, 1.0), ((1.0, 1.0),), 0.0, 1.0)


@pytest.mark.parametrize("n", [100, 10**6])
def test_bias_sampling_privacy_and_signal_are_positive(n) -> None:
    plan = adaptive_plan([SiloTerms("a", n, 1.0, 1e-5)], MEAN, domain=(0.0, 1.0), n_basis=4)
    guesses = Guesses(GUESSED_SD, GUESSED_SD, GUESSED_SD, (lambda x: 0.3 * np.cos(5 * np.pi * x),), None, np.eye(1))
    parts = forecast(plan, 5.0, guesses)
    assert len(parts) == 4
    assert all(math.isfinite(part) and part > 0 for part in parts)
