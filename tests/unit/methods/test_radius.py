"""The radius of a round: between noise and what clipping takes."""

from __future__ import annotations

import numpy as np
import pytest
from adaptive_pieces import definite

from dpfda.methods.adaptive import constants
from dpfda.methods.adaptive.asymmetry import Asymmetry, Bias
from dpfda.methods.adaptive.lengths import AtBounds, LengthLaw, first_weights
from dpfda.methods.adaptive.radius import Weights, choose_radius, weigh_errors
from dpfda.protocol.statistics import LENGTH_CELLS
from dpfda.silo.sums import find_octaves


def law_of(lengths):
    shares = np.bincount(find_octaves(lengths), minlength=LENGTH_CELLS) / len(lengths)
    return LengthLaw.start(first_weights(AtBounds(4.0, 0.0)), float(len(lengths)), 2.0**14).observe(shares, 1e-4)


def asymmetry_of(law, part):
    """Nothing is seen of sides; `part` multiplies sizes of the bias."""
    return Asymmetry(law, None, np.array([0.4, 0.2]), np.array([0.5, 0.4]), part, np.inf)


WEIGHTS = Weights(1.0, 1.0, 1.0, np.array([1.0, 1.0]), np.array([0.4, 0.2]))
LENGTHS = np.sqrt(np.random.default_rng(0).chisquare(4, 20_000) / 4)


def test_a_large_budget_clips_less() -> None:
    law = law_of(LENGTHS)
    radii = [
        choose_radius(law, precision, 1e4, WEIGHTS, 4.0, asymmetry_of(law, 1.0)) for precision in (10.0, 100.0, 1e4)
    ]
    assert radii[0] <= radii[1] <= radii[2]
    assert radii[0] < radii[2]


@pytest.mark.parametrize("sd", [1e-4, 0.05, 0.5])
@pytest.mark.parametrize("part", [0.0, 1.0])
def test_no_other_radius_has_less_risk(sd, part) -> None:
    """All radii by the formula of docs/method.md, section 9, where nothing is seen of sides."""
    shares = np.bincount(find_octaves(LENGTHS), minlength=LENGTH_CELLS) / len(LENGTHS)
    law = LengthLaw.start(first_weights(AtBounds(4.0, 0.0)), 1e3, 200.0).observe(shares, sd)
    radii = np.minimum(2.0 ** np.arange(-4.0, 14.25, 0.25), 200.0)
    found, asymmetry = law.attenuation(radii), asymmetry_of(law, part)
    bias = np.array([each.size**2 for each in asymmetry.find_biases(radii, constants.SURE)])
    slope = np.maximum(found.kept - found.clipped / 4.0, constants.MIN_JACOBIAN)
    for precision in (5.0, 50.0, 500.0):
        risk = ((2 * radii / precision) ** 2 + bias + found.square / 1e3) / slope**2
        own = choose_radius(law, precision, 1e3, WEIGHTS, 4.0, asymmetry)
        assert own == pytest.approx(radii[np.argmin(risk)])


def test_without_bias_there_is_less_reason_not_to_clip() -> None:
    law = law_of(LENGTHS)
    biased, free = (choose_radius(law, 200.0, 1e4, WEIGHTS, 4.0, asymmetry_of(law, part)) for part in (1.0, 0.0))
    assert free <= biased


def test_longer_gradients_have_a_longer_radius() -> None:
    laws = [law_of(scale * LENGTHS) for scale in (0.25, 4.0)]
    short, long = (choose_radius(law, 100.0, 1e4, WEIGHTS, 4.0, asymmetry_of(law, 1.0)) for law in laws)
    assert long > 4 * short


def test_weights_are_positive_and_noise_matters_less_where_the_prior_is_sure() -> None:
    rng = np.random.default_rng(1)
    shape, spread, bias = definite(rng, 4), 0.1 * definite(rng, 4), np.diag([0.5, 0.3, 0.1, 0.1])
    open_, settled = (weigh_errors(shape, spread, size * np.eye(4), bias, 1e3, 100.0, 1) for size in (1.0, 1e-6))
    assert min(open_.noise, open_.bias, open_.sampling, *open_.along) > 0
    assert settled.noise < open_.noise


def test_a_bias_of_which_nothing_is_known_weighs_as_all_of_it() -> None:
    rng = np.random.default_rng(2)
    bias = np.diag([0.5, 0.3, 0.1, 0.1])
    weights = weigh_errors(np.diag([1.0, 2.0, 3.0, 4.0]), 0.1 * definite(rng, 4), np.eye(4), bias, 1e3, 100.0, 1)
    whole = Bias(np.zeros(2), 0.3 * np.sqrt(weights.shares), 0.3)
    assert weights.weigh_bias(whole) == pytest.approx(0.3**2 * weights.bias)
    assert weights.weigh_bias(Bias(np.ones(2), np.zeros(2), 0.3)) < weights.weigh_bias(whole)
