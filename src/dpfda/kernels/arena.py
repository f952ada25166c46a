"""One block of memory for the arrays of a chunk, in memory or in a file without a name.

The file is made by `tempfile.TemporaryFile`: readable by its owner only, and gone when the process ends, however it ends.
"""

from __future__ import annotations

import itertools
import mmap
import tempfile
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_LINE = 8  # doubles in a cache line: a vector across two lines is read at half speed


class Arena:
    """Arrays of `sizes` doubles, all zero, each starting at a cache line."""

    def __init__(self, sizes: Sequence[int], folder: str | None = None) -> None:
        rounded = [-(-size // _LINE) * _LINE for size in sizes]
        self.nbytes = 8 * sum(rounded)
        self._map: mmap.mmap | None = None
        if folder is None or self.nbytes == 0:
            room = np.zeros(sum(rounded) + _LINE)
            skip = (-room.ctypes.data % 64) // 8
        else:
            with tempfile.TemporaryFile(dir=folder) as file:
                file.truncate(self.nbytes)
                self._map = mmap.mmap(file.fileno(), self.nbytes)
            room, skip = np.frombuffer(self._map, dtype=np.float64), 0
        starts = itertools.accumulate(rounded, initial=skip)
        self.parts = tuple(room[start : start + size] for start, size in zip(starts, sizes, strict=False))

    def drop_pages(self) -> None:
        """Let the system take back the memory; what was written stays in the file."""
        if self._map is not None and hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)


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
