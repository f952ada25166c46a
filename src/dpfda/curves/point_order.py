"""Points of each curve in the order of their bits, for the fingerprint: the order of rows, which no database promises, does
not count there. What is computed from curves keeps the order of rows.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dpfda._typing import Floats, Integers

_POINTS_AT_ONCE = 1 << 20
_MOST_POINTS = 1 << 26  # of one curve; a longer one is taken in the order of its rows


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
    keys = [np.ascontiguousarray(values, dtype=np.float64).view(np.uint64) for values in (x, y)]
    begins = np.zeros(x.size, dtype=np.bool_)
    begins[offsets[:-1][offsets[:-1] < x.size]] = True
    if bool((begins[1:] | (keys[0][1:] > keys[0][:-1])).all()):
        return None
    owners = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
    columns = [] if rows is None else list(np.ascontiguousarray(rows).view(np.uint64).T)
    return np.lexsort([*columns, keys[1], keys[0], owners])
