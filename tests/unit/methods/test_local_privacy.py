"""Local privacy: every subject is a silo of its own, with the default method and with the published one, full batch."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from dpfda import InvalidInput, NotPrivateWarning, PrivateMean, PublishedConstants, Silo
from dpfda.curves.simulated import simulate_mean

SUBJECTS, EPSILON, DELTA = 40, 6.0, 1e-3
PUBLIC = {"domain": (0, 1), "y_bounds": (-4, 5), "basis": "fourier", "n_basis": 3, "random_state": 1}


def one_subject_each():
    curves = simulate_mean(SUBJECTS, 8, rng=2)
    return [Silo(curves[i], epsilon=EPSILON, delta=DELTA, points_per_curve=8) for i in range(SUBJECTS)]


@pytest.mark.parametrize(
    "method",
    [
        {"method": "adaptive"},
        {"method": "published", "variant": "full-batch", "y_scale": "none", "constants": PublishedConstants(T=8)},
    ],
    ids=["adaptive", "full-batch"],
)
def test_every_subject_spends_its_own_budget_and_there_is_a_curve(method):
    silos = one_subject_each()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = PrivateMean(**PUBLIC, **method).fit(silos)
    assert np.isfinite(fitted.predict(np.linspace(0, 1, 5))).all()
    assert [silo.n for silo in fitted.privacy_.silos] == [1] * SUBJECTS
    for silo in silos:
        assert 0.5 * EPSILON < silo.ledger.spent().epsilon <= EPSILON


def test_sample_splitting_cannot_and_says_what_can():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        with pytest.raises(InvalidInput, match="variant='full-batch'"):
            PrivateMean(**PUBLIC, method="published").fit(one_subject_each())


def test_there_is_a_forecast():
    mean = PrivateMean(EPSILON, DELTA, domain=(0, 1), y_bounds=(-4, 5), basis="fourier", n_basis=3)
    few, many = (mean.forecast(n=1, m=8, S=S, spread=0.5, noise_sd=0.5, signal=0.63).total for S in (40, 160))
    assert many < few
