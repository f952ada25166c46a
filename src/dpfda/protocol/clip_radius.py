"""The clipping radius of the default method: found by each silo from its own released counts.

The rule is a pure function of released and public numbers, so that the coordinator can compute it, too. The
coordinator's hints (where lengths may start, how far the iterate moved) shift where the silo looks first. Whatever they
are, noise is scaled with the radius, so privacy does not depend on them.
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
_MIN_PRIOR_SD, _MAX_PRIOR_SD, _MIN_FILLED = 0.05, 3.0, 0.05  # limits of a coordinator's hints
_EXPLAINED = 0.8  # of a displacement's squared length: what the lengths' squared median is taken to fall by
_MIN_LEFT, _MIN_LEFT_UNSURE = 1 / 9, 0.6  # what a squared median keeps at least; more while its log has an sd above:
_UNSURE_SD = 0.3
_BLUR = 0.2  # sd of the log median that a displacement adds
_STRIDE = 64  # rounds between remembered filters


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
    return ClipRule(math.exp(_limit(log_radius)), math.exp(_limit(lengths.log_median)))


def track_lengths(
    prior: Sequence[float], displacements: Sequence[float], counts: Sequence[SharedCount | None]
) -> LengthFilter:
    """What is known of a silo's lengths after its counts so far and the iterate's displacement after each of them.

    The prior is a log median and its sd, and the share of curves that have points. Displacements are squared lengths.
    `counts[k]` is None where the silo did not take part in gradient round k; the last one may have no displacement yet.
    """
    start = float(prior[0]), float(prior[1]), float(prior[2])
    moved, counted = tuple(map(float, displacements)), tuple(counts)
    for rounds in range(0, len(moved), _STRIDE):  # calls within calls are few, however many rounds there are
        _track(start, moved[:rounds], counted[:rounds])
    return _track(start, moved, counted)


@lru_cache(maxsize=512)  # a round goes on from the one before, and silo and coordinator may share a process
def _track(
    prior: tuple[float, float, float], displacements: tuple[float, ...], counts: tuple[SharedCount | None, ...]
) -> LengthFilter:
    if not 0 <= len(counts) - len(displacements) <= 1:
        raise ValueError("each displacement follows a count")
    if not counts:
        sd, filled = min(max(prior[1], _MIN_PRIOR_SD), _MAX_PRIOR_SD), min(max(prior[2], _MIN_FILLED), 1.0)
        return LengthFilter.around(_limit(prior[0]), sd, filled)
    if len(counts) > len(displacements):
        return _learn_count(_track(prior, displacements, counts[:-1]), counts[-1])
    return _displace(_track(prior, displacements[:-1], counts), displacements[-1])


def _learn_count(lengths: LengthFilter, count: SharedCount | None) -> LengthFilter:
    """With the count of the round that was just released."""
    if count is None:
        return lengths
    return lengths.observe(_limit(lengths.log_median), count.share, count.noise_sd, count.n)


def _displace(lengths: LengthFilter, displacement: float) -> LengthFilter:
    """The iterate moved by this squared length: what is left of the lengths is about sqrt(1 - 0.8 displacement/median^2)."""
    floor = _MIN_LEFT if lengths.sd < _UNSURE_SD else _MIN_LEFT_UNSURE
    left = 1 - _EXPLAINED * max(displacement, 0.0) / math.exp(2 * _limit(lengths.log_median))
    return lengths.move(math.sqrt(max(left, floor)), blur=_BLUR)


def _limit(log_length: float) -> float:
    return min(max(log_length, SMALLEST_LOG), LARGEST_LOG)
