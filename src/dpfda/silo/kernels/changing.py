"""Packed curves whose design changes from point to point, and the kernels that pack them.

They are laid out as other curves are (`store`): short ones keep their points, long ones the record that moments of the
design and levels of y are read from. Beside it stand, for short ones, a design vector for each point, entry a of point j of
lane l of a group at p (start + 8j) + 8a + l; and for long ones the weights of nodes (`nodes`), channel c of node q at
8 (channels q + c) + l from where the group begins. Channels are the pairs a <= b of design columns, row by row, then
the columns with y.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

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
    compiled,
    inlined,
    require,
    require_array,
)
from dpfda._typing import Floats
from dpfda.silo.kernels.arena import Arena
from dpfda.silo.kernels.moments import SEGMENT
from dpfda.silo.kernels.nodes import Nodes, channel_count, product_features
from dpfda.silo.kernels.room import aligned_zeros
from dpfda.silo.kernels.simd import add, fma, load, store
from dpfda.silo.kernels.store import Layout, SealedStore
from dpfda.silo.kernels.trig import rotated, wave

if TYPE_CHECKING:
    from dpfda.basis.basis import Basis
    from dpfda.silo.kernels.frequencies import Frequencies


class Design(NamedTuple):
    """The design of every point of the short curves, and weights at nodes of the long ones."""

    rows: Any
    weights: Any


DESIGN = Design(REALS, REALS)
_WAVES = REAL, WHOLE, FLAG  # rate, the highest frequency, sines
_WEIGHT_ROOM = (REALS, REALS), REALS, REALS_2D  # segment, sums, totals


class SealedDesign:
    """A `Design` of the curves of a sealed store, read-only from then on; passes take no other."""

    __slots__ = ("arrays", "nodes")

    def __init__(self, design: Design, packed: SealedStore, nodes: int) -> None:
        require(isinstance(packed, SealedStore) and nodes >= 1, "curves must be packed")
        p, long = packed.columns, packed.groups - packed.arrays.points.size
        require_array("rows", design.rows, DOUBLES, p * packed.arrays.u.size)
        require_array("weights", design.weights, DOUBLES, 8 * long * nodes * channel_count(p))
        for array in design:
            array.flags.writeable = False
        self.arrays, self.nodes = design, nodes


def fill_design(u: Floats, y: Floats, rows: Floats, layout: Layout, frequencies: Frequencies, basis: Basis) -> Arena:
    """The `Design` of curves at their places; u, y and rows are those that the layout was made of."""
    nodes, p, short = Nodes.of(basis), layout.columns, layout.points.size
    require_array("u", u, DOUBLES, u.size)
    require_array("y", y, DOUBLES, u.size)
    require_array("rows", rows, DOUBLES, u.size, p)
    require(int(layout.offsets[-1]) <= u.size, "offsets must end within the points")
    require(frequencies.record == layout.record, "the layout must be that of the basis")
    record = nodes.count * channel_count(p)
    arena = Arena((p * layout.sizes[0], 8 * record * (layout.groups - short)))
    design = Design(*arena.parts)
    require_array("order", layout.order, INTEGERS, 8 * layout.groups)
    require_array("start", layout.start, INTEGERS, layout.groups)
    _copy_rows(rows, layout.offsets, layout.order, layout.start, short, design.rows)
    if short < layout.groups:
        features = _features(basis, u)
        require_array("features", features, DOUBLES, u.size, 0 if frequencies.has_waves else nodes.features)
        waves = frequencies.rate, 2 * frequencies.harmonics, frequencies.sines
        room = weight_room(nodes, p)
        _make_weights(
            u, y, rows, features, layout.offsets, layout.order, short, *waves, nodes.turns, *room, design.weights
        )
    return arena


class RunningWeights:
    """The weights of one curve with very many points, which come in pieces: the bits that all at once would give."""

    def __init__(self, basis: Basis, frequencies: Frequencies, columns: int) -> None:
        self._basis, self._frequencies, self._columns = basis, frequencies, columns
        self._nodes = Nodes.of(basis)
        self._segment, self._sums, self._totals = weight_room(self._nodes, columns)
        self._kept = np.zeros(0), np.zeros(0), np.zeros((0, columns))  # less than a segment
        self.points = 0

    def add(self, u: Floats, y: Floats, rows: Floats) -> None:
        """The next points of the curve."""
        self.points += u.size
        u, y, rows = (np.concatenate(parts) for parts in zip(self._kept, (u, y, rows), strict=True))
        whole = u.size // SEGMENT * SEGMENT
        self._add(u[:whole], y[:whole], rows[:whole])
        self._kept = u[whole:].copy(), y[whole:].copy(), rows[whole:].copy()

    def finish(self) -> Floats:
        """The record of all points, of which there is at least one."""
        self._add(*self._kept)
        record = np.zeros(self._nodes.count * channel_count(self._columns))
        require(self.points >= 1 and record.size >= 1, "there must be a point")
        _finish(self._totals, self.points, self._nodes.turns, record, 0, 1)
        return record

    def _add(self, u: Floats, y: Floats, rows: Floats) -> None:
        features = _features(self._basis, u)
        require_array("u", u, DOUBLES, u.size)
        require_array("y", y, DOUBLES, u.size)
        require_array("rows", rows, DOUBLES, u.size, self._columns)
        width = 0 if self._frequencies.has_waves else self._nodes.features
        require_array("features", features, DOUBLES, u.size, width)
        waves = self._frequencies.rate, 2 * self._frequencies.harmonics, self._frequencies.sines
        _add_part(u, y, rows, features, *waves, self._segment, self._sums, self._totals)


def store_weights(record: Floats) -> Arena:
    """The `Design` of one long curve."""
    arena = Arena((0, 8 * record.size))
    Design(*arena.parts).weights[::8] = record
    return arena


def weight_room(nodes: Nodes, columns: int) -> tuple[tuple[Any, Any], Any, Any]:
    """Zeroed room for making weights: two segments of points, one set of sums, and one for each channel."""
    width = 8 * nodes.features
    return (aligned_zeros(SEGMENT), aligned_zeros(SEGMENT)), aligned_zeros(width), _zeros(columns, width)


def _zeros(columns: int, width: int) -> Any:
    return aligned_zeros(channel_count(columns) * width).reshape(-1, width)


def _features(basis: Basis, u: Floats) -> Floats:
    return product_features(basis, u) if basis.harmonics < 0 else np.zeros((u.size, 0))


@compiled(REALS_2D, WHOLES, WHOLES, WHOLES, WHOLE, REALS)
def _copy_rows(rows: Any, offsets: Any, order: Any, start: Any, short: int, out: Any) -> None:
    p = rows.shape[1]
    for group in range(short):
        for lane in range(8):
            curve = order[8 * group + lane]
            if curve < 0:
                continue
            place = p * start[group] + lane
            for point in range(offsets[curve], offsets[curve + 1]):
                for a in range(p):
                    out[place] = rows[point, a]
                    place += 8


@compiled(REALS, REALS, REALS_2D, REALS_2D, WHOLES, WHOLES, WHOLE, *_WAVES, REALS_2D, *_WEIGHT_ROOM, REALS)
def _make_weights(
    u: Any,
    y: Any,
    rows: Any,
    features: Any,
    offsets: Any,
    order: Any,
    short: int,
    rate: float,
    top: int,
    sines: bool,
    turns: Any,
    segment: tuple[Any, Any],
    sums: Any,
    totals: Any,
    weights: Any,
) -> None:
    """The weights of all long curves; `segment`, `sums` and `totals` are `weight_room`."""
    size = 8 * turns.shape[0] * totals.shape[0]
    for slot in range(8 * short, order.size):
        curve = order[slot]
        if curve < 0:
            continue
        totals[:, :] = 0.0
        begin, end = offsets[curve], offsets[curve + 1]
        _add_channels(u, y, rows, features, begin, end, rate, top, sines, segment, sums, totals)
        _turn_into_weights(totals, end - begin, turns, weights, (slot // 8 - short) * size + slot % 8, 8)


@compiled(REALS, REALS, REALS_2D, REALS_2D, *_WAVES, *_WEIGHT_ROOM)
def _add_part(
    u: Any,
    y: Any,
    rows: Any,
    features: Any,
    rate: float,
    top: int,
    sines: bool,
    segment: tuple[Any, Any],
    sums: Any,
    totals: Any,
) -> None:
    _add_channels(u, y, rows, features, 0, u.size, rate, top, sines, segment, sums, totals)


@compiled(REALS_2D, WHOLE, REALS_2D, REALS, WHOLE, WHOLE)
def _finish(totals: Any, points: int, turns: Any, record: Any, start: int, step: int) -> None:
    _turn_into_weights(totals, points, turns, record, start, step)


@inlined
def _add_channels(
    u: Any,
    y: Any,
    rows: Any,
    features: Any,
    first: int,
    last: int,
    rate: float,
    top: int,
    sines: bool,
    segment: tuple[Any, Any],
    sums: Any,
    totals: Any,
) -> None:
    """Add points first..last-1 of one curve to every channel, segment by segment (see `moments.add_segments`)."""
    some_u, some_values = segment
    p = rows.shape[1]
    for begin in range(first, last, SEGMENT):
        count = min(SEGMENT, last - begin)
        blocks = (count + 7) // 8
        for i in range(8 * blocks):
            some_u[i] = u[begin + i] if i < count else 0.0
        channel = 0
        for a in range(p + 1):
            for b in range(a if a < p else 0, p):
                for i in range(8 * blocks):
                    value = 0.0
                    if i < count:
                        value = rows[begin + i, b] * (rows[begin + i, a] if a < p else y[begin + i])
                    some_values[i] = value
                if features.shape[1] > 0:
                    for i in range(count):
                        for entry in range(features.shape[1]):
                            totals[channel, 8 * entry] += some_values[i] * features[begin + i, entry]
                else:
                    sums[:] = 0.0
                    _add_waves(some_u, some_values, blocks, rate, top, sines, sums)
                    for i in range(sums.size):
                        totals[channel, i] += sums[i]
                channel += 1


@inlined
def _add_waves(u: Any, values: Any, blocks: int, rate: float, top: int, sines: bool, sums: Any) -> None:
    """Add values times 1 and all waves up to frequency `top`; lanes are points of one curve."""
    for block in range(blocks):
        a, b = wave(load(u, 8 * block), rate)
        value = load(values, 8 * block)
        store(sums, 0, add(load(sums, 0), value))
        c, s = a, b
        for k in range(top):
            if sines:
                store(sums, 16 * k + 8, fma(c, value, load(sums, 16 * k + 8)))
                store(sums, 16 * k + 16, fma(s, value, load(sums, 16 * k + 16)))
            else:
                store(sums, 8 * k + 8, fma(c, value, load(sums, 8 * k + 8)))
            c, s = rotated(c, s, a, b)


@inlined
def _turn_into_weights(totals: Any, points: int, turns: Any, weights: Any, start: int, step: int) -> None:
    """Weights of nodes from the sums of a curve with so many points; of channel c and node q at start + step (C q + c)."""
    channels = totals.shape[0]
    for channel in range(channels):
        for entry in range(turns.shape[1]):
            at = 8 * entry
            left = (totals[channel, at] + totals[channel, at + 1]) + (totals[channel, at + 2] + totals[channel, at + 3])
            right = (totals[channel, at + 4] + totals[channel, at + 5]) + (
                totals[channel, at + 6] + totals[channel, at + 7]
            )
            totals[channel, entry] = (left + right) / np.float64(points)
        for node in range(turns.shape[0]):
            weight = 0.0
            for entry in range(turns.shape[1]):
                weight += turns[node, entry] * totals[channel, entry]
            weights[start + step * (channels * node + channel)] = weight
