"""The radius rule and the filter behind it: public limits, and counts that pull the median to where it is."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpfda.protocol.clip_radius import LARGEST_LOG, SMALLEST_LOG, SharedCount, clip_rule, follow
from dpfda.protocol.length_filter import LengthFilter


@pytest.mark.parametrize("log_median", [-1e6, 1e6])
def test_hints_cannot_push_the_radius_beyond_its_public_limits(log_median) -> None:
    rule = clip_rule(follow((log_median, 0.5, 1.0), (), ()), 1.0)
    assert math.exp(SMALLEST_LOG) <= rule.radius <= math.exp(LARGEST_LOG)
    assert math.exp(SMALLEST_LOG) <= rule.threshold <= math.exp(LARGEST_LOG)


def test_a_clip_factor_scales_the_radius_and_leaves_the_threshold() -> None:
    lengths = follow((0.2, 0.3, 1.0), (), ())
    one, twice = clip_rule(lengths, 1.0), clip_rule(lengths, 2.0)
    assert twice.radius == pytest.approx(2 * one.radius)
    assert twice.threshold == one.threshold == pytest.approx(math.exp(lengths.log_median))


def test_a_silo_that_missed_a_round_learns_nothing_from_it() -> None:
    seen = follow((0.0, 0.5, 1.0), (), [SharedCount(0.9, 0.01, 1000)])
    missed = follow((0.0, 0.5, 1.0), (), [None])
    assert missed.log_median == follow((0.0, 0.5, 1.0), (), ()).log_median
    assert seen.log_median < missed.log_median


def test_exact_counts_lead_the_filter_to_the_median() -> None:
    lengths = math.e * np.abs(np.random.default_rng(0).normal(size=20_000)) / 0.6745  # log median 1
    found = LengthFilter.around(0.0, 1.0)
    for _ in range(8):
        share = float((np.log(lengths) <= found.log_median).mean())
        found = found.observe(found.log_median, share, 0.0, lengths.size)
    assert found.log_median == pytest.approx(1.0, abs=0.1)
    assert found.sd < 0.2
