"""A forecast has four parts, whatever is guessed of the curves."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpfda.basis.basis import make_basis
from dpfda.methods.adaptive.constants import FORECAST_SEED, GUESSED_SD
from dpfda.methods.adaptive.forecast import Guesses, _evaluate_uniform, forecast
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


def test_made_up_points_are_kept_as_they_are_drawn() -> None:
    basis = make_basis("free-ends", 6)
    kept = _evaluate_uniform(basis, (7, 3))
    points = np.random.default_rng(FORECAST_SEED).random((7, 3))
    np.testing.assert_array_equal(kept, np.stack([basis.evaluate_unit(row) for row in points]))
    assert not kept.flags.writeable


def test_a_forecast_with_an_even_density_is_the_one_without() -> None:
    plan = adaptive_plan([SiloTerms("a", 500, 1.0, 1e-5)], MEAN, domain=(0.0, 1.0), n_basis=4)
    sizes = GUESSED_SD, GUESSED_SD, GUESSED_SD, None
    kept = forecast(plan, 5.0, Guesses(*sizes, None, np.eye(1)))
    drawn = forecast(plan, 5.0, Guesses(*sizes, np.ones_like, np.eye(1)))
    np.testing.assert_allclose(drawn, kept, rtol=1e-6)
