"""The radius rule and the filter behind it: public limits, and counts that pull the median to where it is."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpfda.protocol import clip_radius
from dpfda.protocol.clip_radius import LARGEST_LOG, SMALLEST_LOG, SharedCount, clip_rule, track_lengths
from dpfda.protocol.length_filter import LengthFilter


@pytest.mark.parametrize("log_median", [-1e6, 1e6])
def test_hints_cannot_push_the_radius_beyond_its_public_limits(log_median) -> None:
    rule = clip_rule(track_lengths((log_median, 0.5, 1.0), (), ()), 1.0)
    assert math.exp(SMALLEST_LOG) <= rule.radius <= math.exp(LARGEST_LOG)
    assert math.exp(SMALLEST_LOG) <= rule.threshold <= math.exp(LARGEST_LOG)


def test_a_clip_factor_scales_the_radius_and_leaves_the_threshold() -> None:
    lengths = track_lengths((0.2, 0.3, 1.0), (), ())
    one, twice = clip_rule(lengths, 1.0), clip_rule(lengths, 2.0)
    assert twice.radius == pytest.approx(2 * one.radius)
    assert twice.threshold == one.threshold == pytest.approx(math.exp(lengths.log_median))


def test_a_silo_that_missed_a_round_learns_nothing_from_it() -> None:
    seen = track_lengths((0.0, 0.5, 1.0), (), [SharedCount(0.9, 0.01, 1000)])
    missed = track_lengths((0.0, 0.5, 1.0), (), [None])
    assert missed.log_median == track_lengths((0.0, 0.5, 1.0), (), ()).log_median
    assert seen.log_median < missed.log_median


def test_exact_counts_lead_the_filter_to_the_median() -> None:
    lengths = math.e * np.abs(np.random.default_rng(0).normal(size=20_000)) / 0.6745  # log median 1
    found = LengthFilter.around(0.0, 1.0)
    for _ in range(8):
        share = float((np.log(lengths) <= found.log_median).mean())
        found = found.observe(found.log_median, share, 0.0, lengths.size)
    assert found.log_median == pytest.approx(1.0, abs=0.1)
    assert found.sd < 0.2


def test_what_is_known_of_lengths_does_not_depend_on_the_way() -> None:
    """Round by round, with and without what was remembered, also where a silo was absent."""
    counts = [SharedCount(0.4, 0.05, 200), None, SharedCount(0.6, 0.05, 200)]
    whole = track_lengths((0.3, 0.6, 1.0), (0.1, 0.2, 0.05), counts)
    clip_radius._track.cache_clear()
    fresh = track_lengths((0.3, 0.6, 1.0), (0.1, 0.2, 0.05), counts)
    assert (whole.log_median, whole.sd) == (fresh.log_median, fresh.sd)
    assert (
        track_lengths((0.3, 0.6, 1.0), (0.1, 0.2), counts).sd
        < track_lengths((0.3, 0.6, 1.0), (0.1, 0.2), counts[:2]).sd
    )


def test_lengths_are_track_through_as_many_rounds_as_a_plan_may_have() -> None:
    """Also at once, by a silo that was started anew or is given other hints than before."""
    count = SharedCount(0.5, 0.1, 300)
    assert np.isfinite(track_lengths((0.0, 0.5, 1.0), (0.01,) * 2000, [count] * 2000).log_median)
