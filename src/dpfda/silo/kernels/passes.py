"""One pass over packed curves: groups first..last-1, into words of exact totals. Working memory does not depend on n."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpfda._compile import compiled, inlined
from dpfda.privacy.exact import MOST_ADDITIONS
from dpfda.silo.kernels.bounding import (
    add_outer_products,
    add_remainder,
    add_shrunk,
    add_truncated,
    collect,
    count_short,
    measure_lengths,
    mix,
    multiply,
    put_gradients,
    put_in_unit_ball,
    true_length,
)
from dpfda.silo.kernels.direct import FEW, add_cosines_and_sines, direct_scores
from dpfda.silo.kernels.moments import add_points, gram_scores, moment_scores
from dpfda.silo.kernels.simd import fma, load, mul, splat, store, sub
from dpfda.silo.kernels.store import Room, Store

Floats = Any
Integers = Any

_BLOCK = 4  # groups that a matrix is applied to at once


@inlined
def group_scores(
    packed: Store,
    group: int,
    rate: float,
    harmonics: int,
    sines: bool,
    moments: int,
    mixture: Floats,
    iterate: Floats,
    room: Room,
) -> float:
    """Scores of the eight curves of a group, in `room.scores`; the number returned makes means of them.

    `iterate` (p rows) has the factors sqrt2 of the basis in it, and a column of zeros where the last sine is not in the
    basis. With a `mixture` it is in terms of plain cosines, and the scores are turned by the mixture. Without waves
    (harmonics < 0) all curves have records, in which `moments` entries come first.
    """
    p = iterate.shape[0]
    for entry in range(iterate.shape[1]):
        slope = mul(load(packed.design, 8 * p * group), splat(iterate[0, entry]))
        for a in range(1, p):
            slope = fma(load(packed.design, 8 * (p * group + a)), splat(iterate[a, entry]), slope)
        store(room.slopes, 8 * entry, slope)
    start = packed.start[group]
    share = 1.0
    if harmonics < 0:
        gram_scores(packed.table, start + 8 * moments, room.slopes, room.scores, iterate.shape[1])
    elif group >= packed.points.size:
        moment_scores(packed.table, start, harmonics, sines, room.slopes, room.scores, room.work)
    else:
        points = packed.points[group]
        direct_scores(packed.u, packed.y, start, points, rate, harmonics, sines, room.slopes, room.scores, room.work)
        share = 1.0 / float(points)
    if mixture.size > 0:
        mix(mixture, room.scores, room.slopes)
        for entry in range(mixture.shape[0]):
            store(room.scores, 8 * entry, load(room.slopes, 8 * entry))
    return share


@compiled
def truncated_pass(
    packed: Store,
    first: int,
    last: int,
    room: Room,
    rate: float,
    harmonics: int,
    sines: bool,
    moments: int,
    mixture: Floats,
    iterate: Floats,
    scales: Floats,
    radii: Floats,
    magic: Floats,
    bits: Integers,
    high: Integers,
    low: Integers,
) -> None:
    """The sum of gradients, each entry truncated to its radius."""
    p, additions = iterate.shape[0], 0
    for group in range(first, last):
        share = group_scores(packed, group, rate, harmonics, sines, moments, mixture, iterate, room)
        add_truncated(packed.design, 8 * p * group, p, share, scales, room.scores, radii, magic, room.lanes)
        additions += 1
        if additions == MOST_ADDITIONS or group == last - 1:
            collect(room.lanes, bits, additions, high, low)
            additions = 0


@compiled
def whitened_pass(
    packed: Store,
    first: int,
    last: int,
    room: Room,
    rate: float,
    harmonics: int,
    sines: bool,
    moments: int,
    mixture: Floats,
    iterate: Floats,
    scales: Floats,
    whitener: Floats,
    ball: tuple[float, Floats, Integers, Integers, Integers],
    threshold: float,
    outer: tuple[Floats, Integers, Integers, Integers],
    remainder: tuple[Floats, float, Floats, Integers, Integers, Integers],
    norms: Floats,
) -> int:
    """The sum of whitened gradients in a ball and, where asked for, of their outer products and of what the ball takes.

    Each of these comes with its grid and the words that it is added to. Returns how many curves are at most `threshold`
    long. Without outer products or a remainder their arrays are empty; `norms` is empty or takes the length of every lane.
    """
    radius, magic, bits, high, low = ball
    outer_magic, outer_bits, outer_high, outer_low = outer
    direction, limit, remainder_magic, remainder_bits, remainder_high, remainder_low = remainder
    size, p = whitener.shape[0], iterate.shape[0]
    gradients, whitened = room.gradients, room.whitened
    short, additions = 0, 0
    for block in range(first, last, _BLOCK):
        groups = min(_BLOCK, last - block)
        if groups < _BLOCK:
            gradients[:] = 0.0
        for i in range(groups):
            share = group_scores(
                packed, block + i, rate, harmonics, sines, moments, mixture, iterate, room
            )
            put_gradients(
                packed.design, 8 * p * (block + i), p, share, scales, room.scores, gradients, 8 * i, 8 * _BLOCK
            )
        multiply(whitener, gradients, whitened)
        for i in range(_BLOCK):
            shape = measure_lengths(whitened, 8 * i, 8 * _BLOCK, size)
            add_shrunk(whitened, 8 * i, 8 * _BLOCK, size, shape, radius, magic[0], room.lanes)
            fill = packed.fill[block + i] if i < groups else 0
            short += count_short(shape, threshold, fill)
            if norms.size > 0 and i < groups:
                store(norms, 8 * (block - first + i), true_length(shape))
            if direction.size > 0:
                add_remainder(
                    whitened,
                    8 * i,
                    8 * _BLOCK,
                    direction,
                    shape,
                    radius,
                    limit,
                    remainder_magic[0],
                    room.remainder_lanes,
                )
            if outer_bits.size > 0:
                put_in_unit_ball(whitened, 8 * i, 8 * _BLOCK, size, shape, radius)
        if outer_bits.size > 0:
            add_outer_products(whitened, size, outer_magic[0], room.outer_lanes)
        additions += _BLOCK
        if additions == MOST_ADDITIONS or block + _BLOCK >= last:
            collect(room.lanes, bits, additions, high, low)
            collect(room.outer_lanes, outer_bits, additions, outer_high, outer_low)
            collect(room.remainder_lanes, remainder_bits, additions, remainder_high, remainder_low)
            additions = 0
    return short


@compiled
def moment_pass(
    packed: Store,
    first: int,
    last: int,
    room: Room,
    rate: float,
    harmonics: int,
    sines: bool,
    centre: Floats,
    scales: Floats,
    radius: float,
    magic: Floats,
    bits: Integers,
    high: Integers,
    low: Integers,
) -> None:
    """The sum of (moments - centre) scales in a ball; moments are the first entries of a record."""
    size = centre.size
    sums = room.whitened
    room.flags[:] = 1.0
    additions = 0
    for group in range(first, last):
        start = packed.start[group]
        if group < packed.points.size:
            points = packed.points[group]
            for entry in range(size + size // 2 + 1):  # of a record
                store(sums, 8 * entry, splat(0.0))
            if harmonics <= FEW:
                add_cosines_and_sines(packed.u, start, points, rate, 2 * harmonics, sines, sums)
            else:
                add_points(packed.u, packed.y, start, points, room.flags, 0, rate, harmonics, sines, sums)
            share = splat(1.0 / points)
            for entry in range(size):
                store(sums, 8 * entry, mul(load(sums, 8 * entry), share))
        else:
            for entry in range(size):
                store(sums, 8 * entry, load(packed.table, start + 8 * entry))
        for entry in range(size):
            value = sub(load(sums, 8 * entry), splat(centre[entry]))
            store(sums, 8 * entry, mul(value, splat(scales[entry])))
        for lane in range(packed.fill[group], 8):
            for entry in range(size):
                sums[8 * entry + lane] = 0.0
        add_shrunk(sums, 0, 8, size, measure_lengths(sums, 0, 8, size), radius, magic[0], room.lanes)
        additions += 1
        if additions == MOST_ADDITIONS or group == last - 1:
            collect(room.lanes, bits, additions, high, low)
            additions = 0


@compiled
def level_pass(packed: Store, first: int, last: int, values_before: int, counts: Integers) -> None:
    """Count curves by the bin of [-1, 1] that their own mean of y is in: h_0, entry `values_before` of a record.

    Means beyond the ends count in the outer bins; a mean that is not finite is not counted.
    """
    bins = counts.size
    for group in range(first, last):
        start = packed.start[group]
        for lane in range(packed.fill[group]):
            if group < packed.points.size:
                points = packed.points[group]
                mean = 0.0
                for j in range(points):
                    mean += packed.y[start + 8 * j + lane]
                mean /= points
            else:
                mean = packed.table[start + 8 * values_before + lane]
            if np.isfinite(mean):
                counts[np.int64(min(max(np.floor((mean + 1.0) / 2.0 * bins), 0.0), bins - 1.0))] += 1
