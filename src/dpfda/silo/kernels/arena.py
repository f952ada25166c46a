"""One block of memory for the arrays of a chunk, in memory or in a file without a name.

The file is made by `tempfile.TemporaryFile`: readable by its owner only, and gone when the process ends, however it ends.
"""

from __future__ import annotations

import contextlib
import itertools
import mmap
import tempfile
from collections.abc import Sequence

import numpy as np

_LINE = 8  # doubles in a cache line: a vector across two lines is read at half speed
_HUGE = 1 << 21  # bytes of a huge page: one fault in place of 512
_SMALL = 1 << 18  # bytes up to which a map of its own costs more than it gains


class Arena:
    """Arrays of `sizes` doubles, all zero, each starting at a cache line."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self._sizes = tuple(sizes)
        self._in_file = False
        self._hold(*_in_memory(self.nbytes))  # much of it not from the heap, which would keep it when it is freed

    @property
    def nbytes(self) -> int:
        """Memory of all arrays."""
        return 8 * sum(map(_rounded, self._sizes))

    def move_to_file(self, folder: str) -> None:
        """Go on as a map of a file. Written at once, which is cheaper than page by page as arrays are filled."""
        here = np.frombuffer(self._map, dtype=np.uint8, count=self.nbytes, offset=self._start)
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            rest = here.data
            while rest:
                rest = rest[file.write(rest) :]
            file.truncate(max(self.nbytes, 64))
            # private: nothing is written any more, and arrays that could be written to need no other compiled code
            self._hold(mmap.mmap(file.fileno(), max(self.nbytes, 64), flags=mmap.MAP_PRIVATE), 0)
        self._in_file = True

    def _hold(self, memory: mmap.mmap | bytearray, start: int) -> None:
        self._map, self._start = memory, start
        room = np.frombuffer(memory, dtype=np.float64, count=self.nbytes // 8, offset=start)
        starts = itertools.accumulate(map(_rounded, self._sizes), initial=0)
        self.parts = tuple(room[begin : begin + size] for begin, size in zip(starts, self._sizes, strict=False))

    def drop_pages(self) -> None:
        """Let the system take back the memory of a file; what was written stays in it."""
        if isinstance(self._map, mmap.mmap) and self._in_file and hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)


def _rounded(size: int) -> int:
    return -(-size // _LINE) * _LINE


def _in_memory(nbytes: int) -> tuple[mmap.mmap | bytearray, int]:
    """Zeros and where in them to begin: at a cache line or, of many, at a huge page, where the system has them."""
    if nbytes <= _SMALL:
        few = bytearray(nbytes + 8 * _LINE)
        return few, -np.frombuffer(few, dtype=np.uint8).ctypes.data % (8 * _LINE)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    whole = nbytes // _HUGE * _HUGE
    if not whole or not hasattr(mmap, "MADV_HUGEPAGE"):
        return mmap.mmap(-1, max(nbytes, 64), flags=flags), 0
    memory = mmap.mmap(-1, nbytes + _HUGE, flags=flags)
    start = -np.frombuffer(memory, dtype=np.uint8).ctypes.data % _HUGE
    with contextlib.suppress(OSError):  # a system without huge pages
        memory.madvise(mmap.MADV_HUGEPAGE, start, whole)
    return memory, start
