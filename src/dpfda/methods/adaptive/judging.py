"""Which sites are odd, from all that has been released so far: the traits of `odd_sites.py`, round by round."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from dpfda.methods.adaptive import constants
from dpfda.methods.adaptive.level import fit_filled, fit_level
from dpfda.methods.adaptive.odd_sites import (
    FirstTraits,
    LongShares,
    Oddness,
    add_counts,
    add_lengths,
    find_distances,
    judge_sites,
    read_functions,
    read_levels,
    read_shares,
)
from dpfda.methods.adaptive.pooling import Pooled, pool, pool_each
from dpfda.methods.adaptive.state import Question, State
from dpfda.protocol.messages import Release
from dpfda.protocol.plan import Plan
from dpfda.protocol.statistics import (
    LENGTH_CELLS,
    ClippedGradient,
    LengthHistogram,
    LevelHistogram,
    SharesAtBounds,
)


def judge_first(plan: Plan, releases: Mapping[str, Release]) -> tuple[FirstTraits | None, Oddness]:
    """Which sites are unlike all others in the level or the spread of their curves' means."""
    if len(releases) < constants.FEWEST_SITES:
        return None, Oddness()
    levels, shares = [], []
    for name in releases:
        own = {name: releases[name]}
        histogram = pool(plan, 0, LevelHistogram, own)
        levels.append(fit_level(histogram, fit_filled(histogram)))
        shares.append(pool(plan, 0, SharesAtBounds, own))
    traits = (*read_levels(levels), read_shares(shares))
    names = tuple(releases)
    return FirstTraits(names, traits), judge_sites(names, traits, robust=plan.assumptions.robust_sites)


def judge(plan: Plan, state: State) -> Oddness:
    """Which sites are unlike all others in their functions, lengths of gradients, spread or values at the bounds.

    Functions are noisy at first: where all sites have one design, what tells of an odd site without them stands.
    """
    first = state.first_traits
    if first is None:
        return state.oddness
    names = tuple(state.measured) or first.names
    if len(names) < constants.FEWEST_SITES:
        return state.oddness
    level, *others = first.keep(names)
    robust, away, functions = plan.assumptions.robust_sites, np.zeros(len(names)), []
    if state.measured:
        unit = min(state.unit, first.unit)
        functions = read_functions(state.measured, state.informations, state.open_now[0], unit)
        away = find_distances(functions)
    others = [state.long.read(names, away), state.clipped.read(names, away), *others]
    found = judge_sites(names, [level, *others], robust=robust)
    if not functions:
        return found
    # functions tell of the level whatever the design, the histogram does not
    level = dataclasses.replace(level, most=constants.MOST_BY_LEVEL, usual=1.0)
    again = judge_sites(names, [level, *others, *functions], robust=robust)
    if state.own_designs:
        return again
    return max(found, again, key=lambda each: max(each.probability.values()))


def count_long(
    plan: Plan, long: LongShares, index: int, releases: Mapping[str, Release], asked: Question
) -> LongShares:
    """With the shares of long gradients that a round of histograms tells of."""
    assert asked.radius is not None
    return add_lengths(long, pool_each(plan, index, LengthHistogram, releases), asked.radius, asked.longest)


def count_clipped(
    plan: Plan, clipped: LongShares, index: int, releases: Mapping[str, Release], radius: float
) -> LongShares:
    """With the shares of clipped gradients that the companions of a gradient round tell of."""
    counts = {}
    for name, each in pool_each(plan, index, ClippedGradient, releases).items():
        scaled = each.scaled(1 / radius)
        counts[name] = Pooled(scaled.values[-LENGTH_CELLS:], scaled.sd[-LENGTH_CELLS:], each.n)
    return add_counts(clipped, counts, radius)
