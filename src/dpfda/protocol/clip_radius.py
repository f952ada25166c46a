"""The clipping radius of the default method: found by each silo from its own released counts.

The rule is a pure function of released and public numbers, so that the coordinator can follow it. The coordinator's hints
(where lengths may start, how far the iterate moved) shift where the silo looks first. Whatever they are, noise is
scaled with the radius, so privacy does not depend on them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from dpfda.protocol.length_filter import LengthFilter
from dpfda.protocol.messages import Release
from dpfda.protocol.plan import Plan
from dpfda.protocol.statistics import ShortShare

CLIP_LEVEL = 0.5  # the radius is this quantile of the lengths, times the silo's public clip factor
SMALLEST_LOG, LARGEST_LOG = math.log(1e-9), math.log(1e9)  # public limits of radii: y is of order 1
_STRIDE = 64


@dataclass(frozen=True)
class SharedCount:
    """A released share of short curves, the sd of its noise, and the number of curves."""

    share: float
    noise_sd: float
    n: int


@dataclass(frozen=True)
class ClipRule:
    """The radius of one round, and the length that its count compares with."""

    radius: float
    threshold: float


def released_count(plan: Plan, index: int, release: Release | None, n: int) -> SharedCount | None:
    """The share of short curves in a release (stored as the mean of +1/2 and -1/2), or None where there is none."""
    place = plan.slice_of(index, ShortShare)
    if release is None or place is None:
        return None
    return SharedCount(float(release.values[place][0]) + 0.5, float(release.noise_sd[place][0]), n)


def clip_rule(lengths: LengthFilter, clip_factor: float) -> ClipRule:
    """Radius and threshold from what is known of the lengths so far."""
    log_radius = lengths.log_quantile(CLIP_LEVEL) + math.log(clip_factor)
    return ClipRule(math.exp(_within(log_radius)), math.exp(_within(lengths.log_median)))


def follow(prior: Sequence[float], moves: Sequence[float], counts: Sequence[SharedCount | None]) -> LengthFilter:
    """What is known of a silo's lengths after its counts so far, and the moves of the iterate after each of them.

    The prior is a log median and its sd, and the share of curves that have points. `counts[k]` is None where the silo did
    not take part in gradient round k; the last one may have no move after it yet.
    """
    start, moved, counted = (float(prior[0]), float(prior[1]), float(prior[2])), tuple(map(float, moves)), tuple(counts)
    for rounds in range(0, len(moved), _STRIDE):  # calls within calls are few, however many rounds there are
        _followed(start, moved[:rounds], counted[:rounds])
    return _followed(start, moved, counted)


@lru_cache(maxsize=512)  # a round goes on from the one before, and silo and coordinator may share a process
def _followed(
    prior: tuple[float, float, float], moves: tuple[float, ...], counts: tuple[SharedCount | None, ...]
) -> LengthFilter:
    if not 0 <= len(counts) - len(moves) <= 1:
        raise ValueError("each move follows a count")
    if not counts:
        return LengthFilter.around(_within(prior[0]), min(max(prior[1], 0.05), 3.0), min(max(prior[2], 0.05), 1.0))
    if len(counts) > len(moves):
        return _learnt(_followed(prior, moves, counts[:-1]), counts[-1])
    return _advanced(_followed(prior, moves[:-1], counts), moves[-1])


def _learnt(lengths: LengthFilter, count: SharedCount | None) -> LengthFilter:
    """With the count of the round that was just released."""
    if count is None:
        return lengths
    return lengths.observe(_within(lengths.log_median), count.share, count.noise_sd, count.n)


def _advanced(lengths: LengthFilter, moved: float) -> LengthFilter:
    """The iterate moved by a squared length `moved`: what is left of the lengths is about sqrt(1 - 0.8 moved/median^2)."""
    floor = 1 / 9 if lengths.sd < 0.3 else 0.6
    left = 1 - 0.8 * max(moved, 0.0) / math.exp(2 * _within(lengths.log_median))
    return lengths.move(math.sqrt(max(left, floor)), blur=0.2)


def _within(log_length: float) -> float:
    return min(max(log_length, SMALLEST_LOG), LARGEST_LOG)
