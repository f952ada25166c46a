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
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_LINE = 8  # doubles in a cache line: a vector across two lines is read at half speed
_HUGE = 1 << 21  # bytes of a huge page: one fault in place of 512


class Arena:
    """Arrays of `sizes` doubles, all zero, each starting at a cache line."""

    def __init__(self, sizes: Sequence[int], folder: str | None = None) -> None:
        rounded = [-(-size // _LINE) * _LINE for size in sizes]
        self.nbytes = 8 * sum(rounded)
        self._in_file = folder is not None
        # not from the heap, which would keep it when it is freed
        self._map, start = _in_memory(self.nbytes) if folder is None else (_in_file(self.nbytes, folder), 0)
        room = np.frombuffer(self._map, dtype=np.float64, offset=start)
        starts = itertools.accumulate(rounded, initial=0)
        self.parts = tuple(room[start : start + size] for start, size in zip(starts, sizes, strict=False))

    def drop_pages(self) -> None:
        """Let the system take back the memory of a file; what was written stays in it."""
        if self._in_file and hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)


def _in_memory(nbytes: int) -> tuple[mmap.mmap, int]:
    """A map and where in it to begin: at a huge page, where the system has them."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    whole = nbytes // _HUGE * _HUGE
    if not whole or not hasattr(mmap, "MADV_HUGEPAGE"):
        return mmap.mmap(-1, max(nbytes, 64), flags=flags), 0
    memory = mmap.mmap(-1, nbytes + _HUGE, flags=flags)
    start = -np.frombuffer(memory, dtype=np.uint8).ctypes.data % _HUGE
    with contextlib.suppress(OSError):  # a system without huge pages
        memory.madvise(mmap.MADV_HUGEPAGE, start, whole)
    return memory, start


def _in_file(nbytes: int, folder: str) -> mmap.mmap:
    with tempfile.TemporaryFile(dir=folder) as file:
        file.truncate(max(nbytes, 64))
        return mmap.mmap(file.fileno(), max(nbytes, 64))


def file_of(array: NDArray[np.generic]) -> str | None:
    """The file that an array is a map of, or None."""
    part: object = array
    while isinstance(part, np.ndarray):
        if isinstance(part, np.memmap) and part.filename is not None:
            return str(part.filename)
        part = part.base
    return None


def drop_pages(array: NDArray[np.generic]) -> None:
    """Let the system take back the memory of a part of a mapped file; other arrays are left alone."""
    part: object = array
    while isinstance(part, np.ndarray):
        part = part.base
    if not isinstance(part, mmap.mmap) or not array.nbytes or not hasattr(mmap, "MADV_DONTNEED"):
        return
    begin = array.ctypes.data - np.frombuffer(part, dtype=np.uint8).ctypes.data
    first = begin // mmap.PAGESIZE * mmap.PAGESIZE
    part.madvise(mmap.MADV_DONTNEED, first, min(begin + array.nbytes, len(part)) - first)
