"""Points of each curve in the order of their bits, for the fingerprint: the order of rows, which no database promises, does
not count there. What is computed from curves keeps the order of rows.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dpfda._compile import WHOLES, WORDS, WORDS_2D, compiled, inlined, require
from dpfda._typing import Floats, Integers

_POINTS_AT_ONCE = 1 << 20
_MOST_POINTS = 1 << 26  # of one curve; a longer one is taken in the order of its rows
_FEW_POINTS = 64  # of a curve, up to which putting one point after the other in its place is quick

Unsigned = NDArray[np.uint64]


def cut_curves(offsets: Integers) -> Iterator[tuple[int, int]]:
    """Consecutive curves, from the first to before the last, of which the points together are put in order in memory."""
    first, n = 0, offsets.size - 1
    while first < n:
        last = int(np.searchsorted(offsets, offsets[first] + _POINTS_AT_ONCE, side="right")) - 1
        last = min(n, max(first + 1, last))
        yield first, last
        first = last


def order_points(x: Floats, y: Floats, rows: Floats | None, offsets: Integers) -> NDArray[np.int64] | None:
    """How to put the points of each curve in order; None where they are."""
    if not 2 <= x.size <= _MOST_POINTS:
        return None
    one, other = (np.ascontiguousarray(values, dtype=np.float64).view(np.uint64) for values in (x, y))
    columns = np.zeros((x.size, 0), dtype=np.uint64) if rows is None else np.ascontiguousarray(rows).view(np.uint64)
    require(one.shape == other.shape == (len(columns),), "x, y and rows must fit together")
    whole = offsets[0] == 0 and offsets[-1] == x.size and not (np.diff(offsets) < 0).any()
    require(bool(whole), "offsets must cover the points and not decrease")
    order = np.arange(x.size)
    _order_few(one, other, columns, np.ascontiguousarray(offsets), order)
    for curve in np.flatnonzero(np.diff(offsets) > _FEW_POINTS):
        points = slice(offsets[curve], offsets[curve + 1])
        order[points] = offsets[curve] + np.lexsort([*columns[points].T, other[points], one[points]])
    return None if bool((order[1:] > order[:-1]).all()) else order


@compiled(WORDS, WORDS, WORDS_2D, WHOLES, WHOLES)
def _order_few(one: Unsigned, other: Unsigned, columns: Unsigned, offsets: Integers, order: Integers) -> None:
    """Points of the short curves, each put in its place among those before it; equal ones stay in the order of rows."""
    for curve in range(offsets.size - 1):
        begin = offsets[curve]
        if offsets[curve + 1] - begin > _FEW_POINTS:
            continue
        for point in range(begin + 1, offsets[curve + 1]):
            place = point
            while place > begin and _is_before(one, other, columns, point, order[place - 1]):
                order[place] = order[place - 1]
                place -= 1
            order[place] = point


@inlined
def _is_before(one: Unsigned, other: Unsigned, columns: Unsigned, point: int, rival: int) -> bool:
    if one[point] != one[rival]:
        return bool(one[point] < one[rival])
    if other[point] != other[rival]:
        return bool(other[point] < other[rival])
    for column in range(columns.shape[1] - 1, -1, -1):
        if columns[point, column] != columns[rival, column]:
            return bool(columns[point, column] < columns[rival, column])
    return False
