"""A silo's radius, from its counts so far."""

from __future__ import annotations

import numpy as np

from dpfda.protocol import clip_radius
from dpfda.protocol.clip_radius import SharedCount, track_lengths


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
