"""The forecast uses the method's own functions; what it adds to them is checked here."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpfda.basis.basis import make_basis
from dpfda.methods.adaptive.constants import GUESSED_SD
from dpfda.methods.adaptive.forecast import Guesses, attenuate_chi, forecast
from dpfda.protocol.length_filter import LengthFilter, squared_chi_median
from dpfda.protocol.plans import adaptive_plan
from dpfda.protocol.scaling import Scaling
from dpfda.protocol.terms import SiloTerms

MEAN = Scaling((-1.0, 1.0), ((1.0, 1.0),), 0.0, 1.0)


@pytest.mark.parametrize("nu", [1.0, 2.3, 9.0])
def test_attenuation_is_the_mean_over_chi_lengths(nu) -> None:
    lengths = np.sqrt(np.random.default_rng(0).chisquare(nu, 200_000))
    kept, inside = attenuate_chi(1.2, nu)
    assert kept == pytest.approx(np.minimum(1, 1.2 / lengths).mean(), abs=0.003)
    assert inside == pytest.approx((lengths <= 1.2).mean(), abs=0.004)


def test_attenuation_agrees_with_the_filter_that_knows_the_median() -> None:
    """The filter averages over its shapes; at a radius of one median all of them keep about as much."""
    shrinkage, clipped, _ = LengthFilter.around(0.0, 0.05).attenuation(0.0)
    at_median = [attenuate_chi(math.sqrt(float(squared_chi_median(nu))), nu) for nu in (1.0, 2.0, 4.0, 8.0, 20.0)]
    weights = np.array([0.1, 0.25, 0.3, 0.25, 0.1])
    assert shrinkage == pytest.approx(weights @ [kept for kept, _ in at_median], abs=0.005)
    assert clipped == pytest.approx(weights @ [kept - inside for kept, inside in at_median], abs=0.005)


def test_many_curves_and_a_large_budget_leave_what_the_basis_cannot_show() -> None:
    plan = adaptive_plan([SiloTerms("a", 10**7, 50.0, 1e-5)], MEAN, domain=(0.0, 1.0), n_basis=4)

    def wave(x):
        return 0.3 * math.sqrt(2) * np.cos(5 * np.pi * x)

    guesses = Guesses(GUESSED_SD, GUESSED_SD, GUESSED_SD, (wave,), None, np.eye(1))
    bias, sampling, privacy, signal = forecast(plan, 5.0, guesses)
    assert make_basis("cosine", 4).size == 4
    assert bias == pytest.approx(0.09, rel=1e-3)
    assert signal == pytest.approx(0.09, rel=1e-6)
    assert 0 < privacy < sampling < 1e-5
