"""Packed curves in memory, and the kernels that pack them.

Short curves keep their points: groups of eight curves of the SAME length, point j of lane l of a group at start + 8j
+ l. Long curves keep a record of moments (see `moments`), entry e of lane l at start + 8e + l. Lanes that are left
over in a group have design zero, so that they contribute zero. Curves without points are not stored.
"""

from __future__ import annotations

import itertools
import threading
from typing import Any, NamedTuple

import numpy as np

from dpfda._compile import compiled
from dpfda.silo.kernels.arena import Arena
from dpfda.silo.kernels.moments import curve_record, gram_record


class Store(NamedTuple):
    """Groups 0..short-1 hold points (in u, y), the others records (in table)."""

    u: Any
    y: Any
    table: Any
    start: Any  # per group: where it starts in u and y, or in table
    points: Any  # per group of short curves: the number of points of each of its curves
    design: Any  # 8 p per group
    fill: Any  # per group: how many lanes are curves


def store_in(arena: Arena) -> Store:
    """The arrays of an arena by name."""
    store = Store(*arena.parts)
    return store._replace(**{name: getattr(store, name).view(np.int64) for name in ("start", "points", "fill")})


class Room(NamedTuple):
    """Working memory of a pass: vectors of eight doubles, and lanes of integers for exact sums.

    Between passes the lanes are zero (`bounding.collect` leaves them so); of the rest, a pass reads what it wrote itself.
    """

    slopes: Any
    scores: Any
    work: Any
    gradients: Any
    whitened: Any
    lanes: Any
    outer_lanes: Any
    remainder_lanes: Any
    flags: Any


def aligned_zeros(size: int) -> Any:
    """Zeros that start at a cache line: a vector across two lines is read at half speed."""
    room = np.zeros(size + 8)
    skip = (-room.ctypes.data % 64) // 8
    return room[skip : skip + size]


class _Kept(threading.local):
    shape: tuple[int, int, int] | None = None
    room: Any = None


_kept = _Kept()


def room_for(size: int, harmonics: int, outer_size: int = 0) -> Room:
    """Room of this thread for vectors of `size` entries per curve and outer products of `outer_size` entries.

    The last one is kept: rounds of a fit ask for the same many times.
    """
    shape = (size, harmonics, outer_size)
    if _kept.shape != shape:
        _kept.shape, _kept.room = shape, _new_room(*shape)
    room: Room = _kept.room
    return room


def _new_room(size: int, harmonics: int, outer_size: int) -> Room:
    width = 8 * (2 * harmonics + 1)
    sizes = (width, width, 48 * harmonics + 32, 32 * size, 32 * size, 8 * size, 8 * outer_size, 8, 8)
    everything = aligned_zeros(sum(sizes))
    ends = itertools.accumulate(sizes)
    room = Room(*(everything[end - size : end] for end, size in zip(ends, sizes, strict=True)))
    integers = {name: getattr(room, name).view(np.int64) for name in ("lanes", "outer_lanes", "remainder_lanes")}
    return room._replace(**integers)


@compiled
def place_curves(offsets: Any, longest: int, slots: Any, order: Any) -> None:
    """Write each curve's number into the next slot of its length (entry longest + 1 of `slots`: all longer ones)."""
    for curve in range(offsets.size - 1):
        points = offsets[curve + 1] - offsets[curve]
        if points > 0:
            kind = min(points, longest + 1)
            order[slots[kind]] = curve
            slots[kind] += 1


@compiled
def copy_groups(u: Any, y: Any, offsets: Any, design: Any, order: Any, store: Store, first: int, last: int) -> None:
    """Copy design vectors of groups first..last-1 and, for short curves, their points."""
    p = design.shape[1]
    for group in range(first, last):
        for lane in range(8):
            curve = order[8 * group + lane]
            if curve < 0:
                continue
            for a in range(p):
                store.design[8 * (p * group + a) + lane] = design[curve, a]
            if group < store.points.size:
                place = store.start[group] + lane
                for point in range(offsets[curve], offsets[curve + 1]):
                    store.u[place] = u[point]
                    store.y[place] = y[point]
                    place += 8


@compiled
def make_records(
    u: Any,
    y: Any,
    offsets: Any,
    order: Any,
    store: Store,
    rate: float,
    harmonics: int,
    sines: bool,
    first: int,
    last: int,
    segment: tuple[Any, Any, Any],
    sums: Any,
    totals: Any,
) -> None:
    """Fill the table for groups first..last-1, all of long curves; the last arguments are room for `curve_record`."""
    for group in range(first, last):
        for lane in range(8):
            curve = order[8 * group + lane]
            if curve < 0:
                continue
            curve_record(u, y, offsets[curve], offsets[curve + 1], rate, harmonics, sines, segment, sums, totals)
            for entry in range(totals.size // 8):
                store.table[store.start[group] + 8 * entry + lane] = totals[entry]


@compiled
def make_gram_records(
    moments: Any, features: Any, y: Any, offsets: Any, order: Any, store: Store, first: int, last: int, totals: Any
) -> None:
    """Fill the table for groups first..last-1 with records of a basis that is not made of waves; one row for each point."""
    for group in range(first, last):
        for lane in range(8):
            curve = order[8 * group + lane]
            if curve < 0:
                continue
            gram_record(moments, features, y, offsets[curve], offsets[curve + 1], totals)
            for entry in range(totals.size):
                store.table[store.start[group] + 8 * entry + lane] = totals[entry]
