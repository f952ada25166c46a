"""One pass over packed curves for what needs no iterate: moments of the design, and levels of y.

`moment_pass` and `level_pass` are the only callers of the compiled loops: they check every size, and make the working memory
and the words themselves.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dpfda._compile import DOUBLES, FLAG, REAL, REALS, WHOLE, WHOLES, compiled, require, require_array
from dpfda._typing import Words
from dpfda.privacy.clipping import EllipsoidBound
from dpfda.privacy.exact import MOST_ADDITIONS, no_words
from dpfda.silo.kernels.bounding import add_shrunk, collect, measure_lengths
from dpfda.silo.kernels.direct import FEW, add_cosines_and_sines
from dpfda.silo.kernels.frequencies import Frequencies
from dpfda.silo.kernels.moments import add_points
from dpfda.silo.kernels.room import ROOM, Room, room_for
from dpfda.silo.kernels.simd import load, mul, splat, store, sub
from dpfda.silo.kernels.store import STORE, SealedStore, Store

Floats = Any
Integers = Any

MOST_BINS = 1 << 20


def moment_pass(
    packed: SealedStore, frequencies: Frequencies, centre: Floats, weights: Floats, bound: EllipsoidBound
) -> Words:
    """The sum of each curve's moments minus `centre`, times the weight of its lane, within the ellipsoid."""
    _check(packed, frequencies)
    size = frequencies.moments
    require(isinstance(bound, EllipsoidBound) and bound.width == size >= 1, "there is one weight for each moment")
    require_array("centre", centre, DOUBLES, size)
    require_array("weights", weights, DOUBLES, 8 * packed.groups)
    words, grid = no_words(size), bound.grid
    _moment_pass(
        packed.arrays,
        0,
        packed.groups,
        room_for(2 * size, frequencies.room),
        frequencies.rate,
        frequencies.harmonics,
        frequencies.sines,
        centre,
        1.0 / bound.roots,
        weights,
        bound.radius,
        grid.magic,
        grid.bits,
        words[0],
        words[1],
    )
    return words


def level_pass(packed: SealedStore, frequencies: Frequencies, bins: int) -> Integers:
    """How many curves have their own mean of y in each of `bins` equal bins of [-1, 1]."""
    _check(packed, frequencies)
    require(type(bins) is int and 1 <= bins <= MOST_BINS, "there must be a bin")
    counts = np.zeros(bins, dtype=np.int64)
    _level_pass(packed.arrays, 0, packed.groups, frequencies.moments, counts)
    return counts


def _check(packed: SealedStore, frequencies: Frequencies) -> None:
    require(isinstance(packed, SealedStore) and isinstance(frequencies, Frequencies), "curves must be packed")
    require(packed.record == frequencies.record, "curves must be packed for this basis")
    require(frequencies.has_waves or packed.arrays.points.size == 0, "without waves all curves must have records")


@compiled(STORE, WHOLE, WHOLE, ROOM, REAL, WHOLE, FLAG, REALS, REALS, REALS, REAL, REALS, WHOLES, WHOLES, WHOLES)
def _moment_pass(
    packed: Store,
    first: int,
    last: int,
    room: Room,
    rate: float,
    harmonics: int,
    sines: bool,
    centre: Floats,
    scales: Floats,
    weights: Floats,
    radius: float,
    magic: Floats,
    bits: Integers,
    high: Integers,
    low: Integers,
) -> None:
    """The sum of (moments - centre) scales weights in a ball; moments are the first entries of a record."""
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
            store(sums, 8 * entry, mul(mul(value, splat(scales[entry])), load(weights, 8 * group)))
        for lane in range(packed.fill[group], 8):
            for entry in range(size):
                sums[8 * entry + lane] = 0.0
        add_shrunk(sums, 0, 8, size, measure_lengths(sums, 0, 8, size), radius, magic[0], room.lanes)
        additions += 1
        if additions == MOST_ADDITIONS or group == last - 1:
            collect(room.lanes, bits, additions, high, low)
            additions = 0


@compiled(STORE, WHOLE, WHOLE, WHOLE, WHOLES)
def _level_pass(packed: Store, first: int, last: int, values_before: int, counts: Integers) -> None:
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
                place = np.int64(min(max(np.floor((mean + 1.0) / 2.0 * bins), 0.0), bins - 1.0))
                if 0 <= place < bins:
                    counts[place] += 1
