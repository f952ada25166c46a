"""The radius of a round: between noise and what clipping takes."""

from __future__ import annotations

import numpy as np
import pytest
from adaptive_pieces import definite

from dpfda.methods.adaptive import constants
from dpfda.methods.adaptive.lengths import AtBounds, LengthLaw, first_weights
from dpfda.methods.adaptive.radius import choose_radius, weigh_errors
from dpfda.protocol.statistics import LENGTH_CELLS
from dpfda.silo.sums import find_octaves


def law_of(lengths):
    shares = np.bincount(find_octaves(lengths), minlength=LENGTH_CELLS) / len(lengths)
    return LengthLaw.start(first_weights(AtBounds(4.0, 0.0)), float(len(lengths)), 2.0**14).observe(shares, 1e-4)


LENGTHS = np.sqrt(np.random.default_rng(0).chisquare(4, 20_000) / 4)


def test_a_large_budget_clips_less() -> None:
    law, weights = law_of(LENGTHS), (1.0, 1.0, 1.0)
    radii = [choose_radius(law, precision, 1e4, weights, 4.0, 0.6) for precision in (10.0, 100.0, 1e4)]
    assert radii[0] <= radii[1] <= radii[2]
    assert radii[0] < radii[2]


@pytest.mark.parametrize("sd", [1e-4, 0.05, 0.5])
@pytest.mark.parametrize("asymmetry", [0.0, 0.6])
def test_no_other_radius_has_less_risk(sd, asymmetry) -> None:
    """All radii by the formula of docs/method.md, section 9."""
    shares = np.bincount(find_octaves(LENGTHS), minlength=LENGTH_CELLS) / len(LENGTHS)
    law = LengthLaw.start(first_weights(AtBounds(4.0, 0.0)), 1e3, 200.0).observe(shares, sd)
    radii = np.minimum(2.0 ** np.arange(-4.0, 14.25, 0.25), 200.0)
    found, excess = law.attenuation(radii), law.excess(radii, constants.SURE)
    slope = np.maximum(found.kept - found.clipped / 4.0, constants.MIN_JACOBIAN)
    for precision in (5.0, 50.0, 500.0):
        risk = ((2 * radii / precision) ** 2 + (asymmetry * excess) ** 2 + found.square / 1e3) / slope**2
        own = choose_radius(law, precision, 1e3, (1.0, 1.0, 1.0), 4.0, asymmetry)
        assert own == radii[np.argmin(risk)]


def test_without_bias_there_is_less_reason_not_to_clip() -> None:
    law = law_of(LENGTHS)
    biased, free = (choose_radius(law, 200.0, 1e4, (1.0, 1.0, 1.0), 4.0, factor) for factor in (1.0, 0.0))
    assert free <= biased


def test_longer_gradients_have_a_longer_radius() -> None:
    weights = (1.0, 1.0, 1.0)
    short, long = (choose_radius(law_of(scale * LENGTHS), 100.0, 1e4, weights, 4.0, 0.6) for scale in (0.25, 4.0))
    assert long > 4 * short


def test_weights_are_positive_and_noise_matters_less_where_the_prior_is_sure() -> None:
    rng = np.random.default_rng(1)
    shape, spread, bias = definite(rng, 4), 0.1 * definite(rng, 4), np.diag([0.5, 0.3, 0.1, 0.1])
    open_, settled = (weigh_errors(shape, spread, size * np.eye(4), bias, 1e3, 100.0, 1) for size in (1.0, 1e-6))
    assert min(open_) > 0
    assert settled[0] < open_[0]
