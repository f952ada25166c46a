"""One pass over the gradients of packed curves, into words of exact totals. Working memory does not depend on n.

`truncated_pass` and `whitened_pass` are the only callers of the compiled loops: they check every size, and make the working
memory and the words themselves.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from dpfda._compile import (
    DOUBLES,
    FLAG,
    REAL,
    REALS,
    REALS_2D,
    WHOLE,
    WHOLES,
    compiled,
    inlined,
    require,
    require_array,
)
from dpfda._typing import Words
from dpfda.privacy.clipping import EllipsoidBound, EntrywiseBound
from dpfda.privacy.exact import MOST_ADDITIONS, Grid, no_words
from dpfda.silo.kernels.bounding import (
    add_outer_products,
    add_shrunk,
    add_truncated,
    collect,
    measure_lengths,
    mix,
    multiply,
    put_gradients,
    put_in_unit_ball,
    true_length,
)
from dpfda.silo.kernels.direct import direct_scores
from dpfda.silo.kernels.frequencies import Frequencies
from dpfda.silo.kernels.moments import gram_scores, moment_scores
from dpfda.silo.kernels.room import POLAR, ROOM, Room, room_for
from dpfda.silo.kernels.simd import fma, load, mul, splat, store
from dpfda.silo.kernels.store import STORE, SealedStore, Store

Floats = Any
Integers = Any
Ball = tuple[float, Floats, Integers, Integers, Integers]
Outer = tuple[Floats, Integers, Integers, Integers]

BALL = REAL, REALS, WHOLES, WHOLES, WHOLES
OUTER = REALS, WHOLES, WHOLES, WHOLES
_WAVES = REAL, WHOLE, FLAG, WHOLE  # rate, harmonics, sines, moments

BLOCK = 4  # groups that a matrix is applied to at once
NO_MIXTURE = np.zeros((0, 0))  # of a basis whose functions are waves themselves, or not made of any


def truncated_pass(
    packed: SealedStore,
    frequencies: Frequencies,
    iterate: Floats,
    scales: Floats,
    bound: EntrywiseBound,
    mixture: Floats = NO_MIXTURE,
) -> Words:
    """The sum of gradients, each entry truncated to its radius; iterate, scales and mixture as `group_scores` wants them."""
    width, wave = check_gradients(packed, frequencies, iterate, scales, mixture)
    require(isinstance(bound, EntrywiseBound) and bound.width == width, "there is one radius for each coefficient")
    words, grid = no_words(width), bound.grid
    room = room_for(width, frequencies.room)
    _truncated_pass(
        packed.arrays,
        0,
        packed.groups,
        room,
        *wave,
        iterate,
        scales,
        mixture,
        np.array(bound.radii),
        grid.magic,
        grid.bits,
        words[0],
        words[1],
    )
    return words


def whitened_pass(
    packed: SealedStore,
    frequencies: Frequencies,
    iterate: Floats,
    scales: Floats,
    whitener: Floats,
    ball: EllipsoidBound,
    outer_products: bool,
    polar: Floats,
    mixture: Floats = NO_MIXTURE,
) -> tuple[Words, Words]:
    """Words of the whitened gradients in the ball, and of outer products if asked for.

    `polar` takes the length of every lane, then every lane's first coordinate, then the second.
    """
    width, wave = check_gradients(packed, frequencies, iterate, scales, mixture)
    targets = check_targets(packed, width, whitener, ball, outer_products, polar)
    _whitened_pass(
        packed.arrays,
        0,
        packed.groups,
        room_for(width, frequencies.room, targets.outer[0].size),
        *wave,
        iterate,
        scales,
        mixture,
        whitener,
        targets.ball,
        targets.outer,
        polar,
    )
    return targets.words


class Targets(NamedTuple):
    """What a pass over whitened gradients adds to: of each sum its bound, its grid and its words."""

    ball: Ball
    outer: Outer
    words: tuple[Words, Words]


def check_targets(
    packed: SealedStore,
    width: int,
    whitener: Floats,
    ball: EllipsoidBound,
    outer_products: bool,
    polar: Floats,
) -> Targets:
    """The targets of a pass over gradients of this width, if all that it is given belongs together."""
    require_array("whitener", whitener, DOUBLES, width, width)
    require(isinstance(ball, EllipsoidBound) and ball.width == width, "the ball is one of coefficients")
    require_array("polar", polar, DOUBLES, POLAR * 8 * packed.groups)
    triangle = _unit_grid(width * (width + 1) // 2 if outer_products else 0)
    total, outer = no_words(width), no_words(triangle.bits.size)
    return Targets(
        (ball.radius, ball.grid.magic, ball.grid.bits, total[0], total[1]),
        (triangle.magic, triangle.bits, outer[0], outer[1]),
        (total, outer),
    )


def check_gradients(
    packed: SealedStore, frequencies: Frequencies, iterate: Floats, scales: Floats, mixture: Floats
) -> tuple[int, tuple[float, int, bool, int]]:
    """What all passes over gradients need; the number of coefficients, and the frequencies as kernels take them."""
    require(isinstance(packed, SealedStore) and isinstance(frequencies, Frequencies), "curves must be packed")
    require(packed.record == frequencies.record, "curves must be packed for this basis")
    require_array("iterate", iterate, DOUBLES, packed.columns, frequencies.functions)
    require_array("scales", scales, DOUBLES, scales.size)
    require(1 <= scales.size <= frequencies.functions, "there is a scale for each function of the basis")
    mixed = (scales.size, frequencies.functions) if mixture.size else (0, 0)
    require_array("mixture", mixture, DOUBLES, *mixed)
    require(frequencies.has_waves or packed.arrays.points.size == 0, "without waves all curves must have records")
    waves = frequencies.rate, frequencies.harmonics, frequencies.sines, frequencies.moments
    return packed.columns * scales.size, waves


@lru_cache(maxsize=4)
def _unit_grid(size: int) -> Grid:
    return Grid.of(np.ones(size))


@inlined
def group_scores(
    packed: Store,
    group: int,
    rate: float,
    harmonics: int,
    sines: bool,
    moments: int,
    iterate: Floats,
    mixture: Floats,
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


@compiled(STORE, WHOLE, WHOLE, ROOM, *_WAVES, REALS_2D, REALS, REALS_2D, REALS, REALS, WHOLES, WHOLES, WHOLES)
def _truncated_pass(
    packed: Store,
    first: int,
    last: int,
    room: Room,
    rate: float,
    harmonics: int,
    sines: bool,
    moments: int,
    iterate: Floats,
    scales: Floats,
    mixture: Floats,
    radii: Floats,
    magic: Floats,
    bits: Integers,
    high: Integers,
    low: Integers,
) -> None:
    """The sum of gradients, each entry truncated to its radius."""
    p, additions = iterate.shape[0], 0
    for group in range(first, last):
        share = group_scores(packed, group, rate, harmonics, sines, moments, iterate, mixture, room)
        add_truncated(packed.design, 8 * p * group, p, share, scales, room.scores, radii, magic, room.lanes)
        additions += 1
        if additions == MOST_ADDITIONS or group == last - 1:
            collect(room.lanes, bits, additions, high, low)
            additions = 0


@compiled(STORE, WHOLE, WHOLE, ROOM, *_WAVES, REALS_2D, REALS, REALS_2D, REALS_2D, BALL, OUTER, REALS)
def _whitened_pass(
    packed: Store,
    first: int,
    last: int,
    room: Room,
    rate: float,
    harmonics: int,
    sines: bool,
    moments: int,
    iterate: Floats,
    scales: Floats,
    mixture: Floats,
    whitener: Floats,
    ball: Ball,
    outer: Outer,
    polar: Floats,
) -> None:
    """The sum of whitened gradients in a ball and, where asked for, of their outer products; where every lane's lies.

    Each sum comes with its grid and the words that it is added to. Without outer products their arrays are empty.
    """
    p, additions = iterate.shape[0], 0
    for block in range(first, last, BLOCK):
        groups = min(BLOCK, last - block)
        if groups < BLOCK:
            room.gradients[:] = 0.0
        for i in range(groups):
            share = group_scores(packed, block + i, rate, harmonics, sines, moments, iterate, mixture, room)
            put_gradients(
                packed.design, 8 * p * (block + i), p, share, scales, room.scores, room.gradients, 8 * i, 8 * BLOCK
            )
        add_block(block, groups, room, whitener, ball, outer, polar)
        additions += BLOCK
        if additions == MOST_ADDITIONS or block + BLOCK >= last:
            collect_all(room, additions, ball, outer)
            additions = 0


@inlined
def add_block(block: int, groups: int, room: Room, whitener: Floats, ball: Ball, outer: Outer, polar: Floats) -> None:
    """Whiten, measure, bound and add the gradients of groups block..block+groups-1."""
    radius, magic, _, _, _ = ball
    outer_magic, outer_bits, _, _ = outer
    size, whitened, lanes = whitener.shape[0], room.whitened, polar.size // POLAR
    second = 8 * BLOCK * min(1, size - 1)
    multiply(whitener, room.gradients, whitened)
    for i in range(BLOCK):
        shape = measure_lengths(whitened, 8 * i, 8 * BLOCK, size)
        add_shrunk(whitened, 8 * i, 8 * BLOCK, size, shape, radius, magic[0], room.lanes)
        if i < groups:
            store(polar, 8 * (block + i), true_length(shape))
            store(polar, lanes + 8 * (block + i), load(whitened, 8 * i))
            store(polar, 2 * lanes + 8 * (block + i), load(whitened, 8 * i + second))
        if outer_bits.size > 0:
            put_in_unit_ball(whitened, 8 * i, 8 * BLOCK, size, shape, radius)
    if outer_bits.size > 0:
        add_outer_products(whitened, size, outer_magic[0], room.outer_lanes)


@inlined
def collect_all(room: Room, additions: int, ball: Ball, outer: Outer) -> None:
    """Move what `add_block` has added to the words of the totals."""
    _, _, bits, high, low = ball
    _, outer_bits, outer_high, outer_low = outer
    collect(room.lanes, bits, additions, high, low)
    collect(room.outer_lanes, outer_bits, additions, outer_high, outer_low)
