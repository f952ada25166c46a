"""The radius of a round: between noise and what clipping takes."""

from __future__ import annotations

import numpy as np
from adaptive_pieces import definite

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
