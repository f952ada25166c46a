"""Packed curves in memory, and the kernels that pack them.

Short curves keep their points: groups of eight curves of the SAME length, point j of lane l of a group at start + 8j
+ l. Long curves keep a record of moments (see `moments`), entry e of lane l at start + 8e + l. Lanes that are left
over in a group have design zero, so that they contribute zero. Curves without points are not stored.

Every index that a kernel follows is made in `lay_out` and checked there or in `SealedStore`; nobody writes to a sealed
store.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from dpfda._compile import (
    DOUBLES,
    FLAG,
    INTEGERS,
    REAL,
    REALS,
    REALS_2D,
    WHOLE,
    WHOLES,
    Bundle,
    KernelError,
    compiled,
    require,
    require_array,
)
from dpfda._typing import Floats, Integers
from dpfda.silo.kernels.arena import Arena
from dpfda.silo.kernels.frequencies import Frequencies
from dpfda.silo.kernels.moments import SEGMENT, add_gram_record, add_segments, finish_record
from dpfda.silo.kernels.room import aligned_zeros


class _StoreFields(NamedTuple):
    u: Any
    y: Any
    table: Any
    start: Any  # per group: where it starts in u and y, or in table
    points: Any  # per group of short curves: the number of points of each of its curves
    design: Any  # 8 p per group
    fill: Any  # per group: how many lanes are curves


class Store(_StoreFields, Bundle):
    """Groups 0..short-1 hold points (in u, y), the others records (in table)."""


_OF_INTEGERS = ("start", "points", "fill")
STORE = Store(*(WHOLES if name in _OF_INTEGERS else REALS for name in Store._fields))


def store_in(arena: Arena) -> Store:
    """The arrays of an arena by name."""
    store = Store(*arena.parts)
    return store._replace(**{name: getattr(store, name).view(np.int64) for name in _OF_INTEGERS})


@dataclass(frozen=True, eq=False)
class Layout:
    """Which curve goes to which lane of which group, as `lay_out` makes it of offsets that it has checked."""

    offsets: Integers
    order: Integers  # per lane: a curve, or -1
    start: Integers
    points: Integers
    empty: int  # curves without points
    columns: int  # of the design
    record: int  # numbers of a long curve

    @property
    def groups(self) -> int:
        return int(self.start.size)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Of the arrays of a `Store`."""
        short = 8 * int(self.points.sum())
        table = 8 * self.record * (self.groups - self.points.size)
        return short, short, table, self.groups, self.points.size, 8 * self.groups * self.columns, self.groups

    def spread(self, values: Floats) -> Floats:
        """One number of each curve at its lane; lanes without a curve have zero."""
        require_array("values", values, DOUBLES, self.offsets.size - 1)
        return np.where(self.order >= 0, values[np.maximum(self.order, 0)], 0.0) if values.size else np.zeros(0)


def lay_out(offsets: Integers, longest: int, columns: int, record: int) -> Layout:
    """Groups of curves of one length up to `longest`, shortest first; then groups of all longer curves."""
    require_array("offsets", offsets, INTEGERS, offsets.size)
    require(offsets.size >= 1 and offsets[0] >= 0 and longest >= 0, "offsets and lengths start at 0 or above")
    require(columns >= 1 and record >= 1, "a curve has a design vector and a record")
    try:
        counts = np.bincount(np.minimum(np.diff(offsets), longest + 1), minlength=longest + 2)
    except ValueError:  # of a negative length
        raise KernelError("Compiled code was called wrongly: offsets must not decrease.") from None
    groups = (counts + 7) // 8
    groups[0] = 0
    slots = 8 * (np.cumsum(groups) - groups)
    order = np.full(8 * int(groups.sum()), -1, dtype=np.int64)
    _place_curves(offsets, longest, slots, order)
    points = np.repeat(np.arange(longest + 1), groups[:-1])
    start = np.concatenate([8 * (np.cumsum(points) - points), 8 * record * np.arange(groups[-1])])
    return Layout(offsets, order, start, points, int(counts[0]), columns, record)


def fill_store(u: Floats, y: Floats, design: Floats, layout: Layout, frequencies: Frequencies) -> Arena:
    """A store with the curves at their places: points of short ones, records of long ones."""
    n = layout.offsets.size - 1
    require_array("u", u, DOUBLES, u.size)
    require_array("y", y, DOUBLES, u.size)
    require_array("design", design, DOUBLES, n, layout.columns)
    require(int(layout.offsets[-1]) <= u.size, "offsets must end within the points")
    require(frequencies.record == layout.record, "the layout must be that of the basis")
    arena = Arena(layout.sizes)
    store = store_in(arena)
    store.start[:], store.points[:] = layout.start, layout.points
    store.fill[:] = (layout.order.reshape(-1, 8) >= 0).sum(axis=1)
    _copy_groups(u, y, layout.offsets, design, layout.order, store, 0, layout.groups)
    if frequencies.has_waves and layout.points.size < layout.groups:
        segment, sums, totals = record_room(layout.record)
        wave = frequencies.rate, frequencies.harmonics, frequencies.sines
        long = layout.points.size, layout.groups
        _make_records(u, y, layout.offsets, layout.order, store, *wave, *long, segment, sums, totals)
    return arena


def fill_gram_records(
    moments: Floats, features: Floats, y: Floats, layout: Layout, frequencies: Frequencies, store: Store
) -> None:
    """Make the records of a basis that is not made of waves, from one row of moment features and of functions per point."""
    require(not frequencies.has_waves and layout.points.size == 0, "all curves must have records")
    require(frequencies.record == layout.record, "the layout must be that of the basis")
    require_array("moments", moments, DOUBLES, y.size, frequencies.moments)
    require_array("features", features, DOUBLES, y.size, frequencies.functions)
    require_array("y", y, DOUBLES, y.size)
    require(int(layout.offsets[-1]) <= y.size, "offsets must end within the points")
    require_array("table", store.table, DOUBLES, layout.sizes[2])
    require_array("start", store.start, INTEGERS, layout.groups)
    totals = np.zeros(layout.record)
    _make_gram_records(moments, features, y, layout.offsets, layout.order, store, 0, layout.groups, totals)


def record_room(record: int) -> tuple[tuple[Any, ...], Any, Any]:
    """Zeroed room for making records: three segments of points, and two times eight records."""
    return tuple(aligned_zeros(SEGMENT) for _ in range(3)), aligned_zeros(8 * record), aligned_zeros(8 * record)


class SealedStore:
    """A `Store` whose indices all lie within its arrays, which are read-only from then on; passes take no other."""

    __slots__ = ("arrays", "columns", "groups", "record")

    def __init__(self, store: Store, columns: int, record: int) -> None:
        start, points, fill = store.start, store.points, store.fill
        groups, short = start.size, points.size
        sizes = (store.u.size, store.u.size, store.table.size, groups, short, 8 * columns * groups, groups)
        for name, array, size in zip(Store._fields, store, sizes, strict=True):
            require_array(name, array, INTEGERS if name in _OF_INTEGERS else DOUBLES, size)
        require(short <= groups and columns >= 1 and record >= 1, "the parts of a store must fit together")
        require(
            _all_inside(start, points, fill, store.u.size, store.table.size, record), "groups must lie in the store"
        )
        for array in store:
            array.flags.writeable = False
        self.arrays, self.columns, self.record, self.groups = store, columns, record, int(groups)


@compiled(WHOLES, WHOLES, WHOLES, WHOLE, WHOLE, WHOLE, returns=FLAG)
def _all_inside(start: Any, points: Any, fill: Any, u_size: int, table_size: int, record: int) -> bool:
    """Whether every group of short curves lies within u_size numbers, and every other within table_size."""
    for group in range(start.size):
        short = group < points.size
        if short and not 1 <= points[group] <= u_size:  # a product below cannot overflow
            return False
        size, room = (8 * points[group], u_size) if short else (8 * record, table_size)
        if not (0 <= start[group] <= room - size and 0 <= fill[group] <= 8):
            return False
    return True


@compiled(WHOLES, WHOLE, WHOLES, WHOLES)
def _place_curves(offsets: Any, longest: int, slots: Any, order: Any) -> None:
    """Write each curve's number into the next slot of its length (entry longest + 1 of `slots`: all longer ones)."""
    for curve in range(offsets.size - 1):
        points = offsets[curve + 1] - offsets[curve]
        if points > 0:
            kind = min(points, longest + 1)
            order[slots[kind]] = curve
            slots[kind] += 1


@compiled(REALS, REALS, WHOLES, REALS_2D, WHOLES, STORE, WHOLE, WHOLE)
def _copy_groups(u: Any, y: Any, offsets: Any, design: Any, order: Any, store: Store, first: int, last: int) -> None:
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


@compiled(REALS, REALS, WHOLES, WHOLES, STORE, REAL, WHOLE, FLAG, WHOLE, WHOLE, (REALS, REALS, REALS), REALS, REALS)
def _make_records(
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
    """Fill the table for groups first..last-1, all of long curves; the last arguments are `record_room`."""
    for group in range(first, last):
        for lane in range(8):
            curve = order[8 * group + lane]
            if curve < 0:
                continue
            totals[:] = 0.0
            begin, end = offsets[curve], offsets[curve + 1]
            add_segments(u, y, begin, end, rate, harmonics, sines, segment, sums, totals)
            finish_record(totals, end - begin)
            for entry in range(totals.size // 8):
                store.table[store.start[group] + 8 * entry + lane] = totals[entry]


@compiled(REALS_2D, REALS_2D, REALS, WHOLES, WHOLES, STORE, WHOLE, WHOLE, REALS)
def _make_gram_records(
    moments: Any, features: Any, y: Any, offsets: Any, order: Any, store: Store, first: int, last: int, totals: Any
) -> None:
    """Fill the table for groups first..last-1 with records of a basis that is not made of waves."""
    for group in range(first, last):
        for lane in range(8):
            curve = order[8 * group + lane]
            if curve < 0:
                continue
            totals[:] = 0.0
            begin, end = offsets[curve], offsets[curve + 1]
            add_gram_record(moments, features, y, begin, end, totals)
            for entry in range(totals.size):
                store.table[store.start[group] + 8 * entry + lane] = totals[entry] / np.float64(end - begin)
