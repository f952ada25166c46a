"""Rows put into groups by counting, compiled: several times as fast as sorting numbers of groups and then picking rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dpfda._compile import (
    DOUBLES,
    FLAG,
    INTEGERS,
    REALS,
    SHORTS,
    SMALLS,
    WHOLE,
    WHOLES,
    compiled,
    require,
    require_array,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]
    Floats = NDArray[np.float64]

LONGEST = 64  # points of a curve that are compared pair by pair


def order_rows(codes: Integers, x: Floats, y: Floats) -> tuple[Integers, Floats, Floats]:
    """The rows in the order of `codes`, which start at 0, and within a code in their own order."""
    codes, x, y = np.ascontiguousarray(codes), np.ascontiguousarray(x), np.ascontiguousarray(y)
    require_array("codes", codes, INTEGERS, codes.size)
    require_array("x", x, DOUBLES, codes.size)
    require_array("y", y, DOUBLES, codes.size)
    require(codes.size > 0 and int(codes.min()) >= 0, "codes must start at 0")
    starts = np.zeros(int(codes.max()) + 2, dtype=np.int64)
    _count(codes, starts[1:])
    np.cumsum(starts, out=starts)
    moved = np.zeros(codes.size, dtype=np.int64), np.zeros(codes.size), np.zeros(codes.size)
    _move(codes, x, y, starts, *moved)
    return moved


def group_points(ids: Integers, low: int, span: int, x: Floats, y: Floats) -> tuple[Integers, Floats, Floats]:
    """How often each of the ids low..low+span-1 occurs, and the points in the order of ids, of one id in their own."""
    require_array("ids", ids, INTEGERS, ids.size)
    require_array("x", x, DOUBLES, ids.size)
    require_array("y", y, DOUBLES, ids.size)
    inside = ids.size > 0 and span > 0 and int(ids.min()) >= low and int(ids.max()) < low + span
    require(inside, "ids must lie between the least and the greatest")
    starts = np.zeros(span + 1, dtype=np.int64)
    _count_ids(ids, low, starts[1:])
    counts = starts[1:].copy()
    np.cumsum(starts, out=starts)
    moved = np.empty(ids.size), np.empty(ids.size)
    _move_points(ids, low, x, y, starts, *moved)
    return counts, *moved


def split_columns(
    numbers: NDArray[np.uint16], counts: Integers, columns: list[NDArray[np.generic]]
) -> list[NDArray[np.generic]]:
    """Columns of 8-byte entries in the order of `numbers`, each number in its own order; `counts` says how often each is."""
    require_array("numbers", numbers, SHORTS, numbers.size)
    counted = np.bincount(numbers, minlength=counts.size)
    require(np.array_equal(counted, counts), "counts must be those of the numbers")
    starts = np.cumsum(counts) - counts
    moved = []
    for column in columns:
        integers, out = np.ascontiguousarray(column).view(np.int64), np.zeros(numbers.size, dtype=np.int64)
        require_array("column", integers, INTEGERS, numbers.size)
        _move_column(numbers, integers, starts.copy(), out)
        moved.append(out.view(column.dtype))
    return moved


def may_hold_copies(x: Floats, y: Floats, offsets: Integers) -> bool:
    """False only if no curve has two points that are the same; x and y are finite."""
    require_array("x", x, DOUBLES, x.size)
    require_array("y", y, DOUBLES, x.size)
    require_array("offsets", offsets, INTEGERS, offsets.size)
    require(offsets.size > 0 and offsets[0] >= 0 and offsets[-1] <= x.size, "offsets must lie within the points")
    require(not bool((offsets[1:] < offsets[:-1]).any()), "offsets must not decrease")
    return bool(_may_hold_copies(x, y, offsets))


@compiled(WHOLES, WHOLES)
def _count(codes: Integers, counts: Integers) -> None:
    for i in range(codes.size):
        counts[codes[i]] += 1


@compiled(WHOLES, REALS, REALS, WHOLES, WHOLES, REALS, REALS)
def _move(
    codes: Integers, x: Floats, y: Floats, starts: Integers, codes_out: Integers, x_out: Floats, y_out: Floats
) -> None:
    for i in range(codes.size):
        place = starts[codes[i]]
        starts[codes[i]] = place + 1
        codes_out[place] = codes[i]
        x_out[place] = x[i]
        y_out[place] = y[i]


@compiled(WHOLES, WHOLE, WHOLES)
def _count_ids(ids: Integers, low: int, counts: Integers) -> None:
    for i in range(ids.size):
        counts[ids[i] - low] += 1


@compiled(WHOLES, WHOLE, REALS, REALS, WHOLES, REALS, REALS)
def _move_points(ids: Integers, low: int, x: Floats, y: Floats, starts: Integers, x_out: Floats, y_out: Floats) -> None:
    for i in range(ids.size):
        place = starts[ids[i] - low]
        starts[ids[i] - low] = place + 1
        x_out[place] = x[i]
        y_out[place] = y[i]


@compiled(SMALLS, WHOLES, WHOLES, WHOLES)
def _move_column(numbers: NDArray[np.uint16], column: Integers, starts: Integers, out: Integers) -> None:
    for i in range(numbers.size):
        place = starts[numbers[i]]
        starts[numbers[i]] = place + 1
        out[place] = column[i]


@compiled(REALS, REALS, WHOLES, returns=FLAG)
def _may_hold_copies(x: Floats, y: Floats, offsets: Integers) -> bool:
    for curve in range(offsets.size - 1):
        first, last = offsets[curve], offsets[curve + 1]
        if last - first > LONGEST:
            return True
        for i in range(first + 1, last):
            same = False
            for j in range(first, i):
                same |= (x[i] == x[j]) & (y[i] == y[j])
            if same:
                return True
    return False
