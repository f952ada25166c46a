"""Arrays that are maps of files: which file, and how their memory is given back."""

from __future__ import annotations

import mmap

import numpy as np
from numpy.typing import NDArray


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
