"""Scratch files without a name, and memory in their place while there is little to keep.

A scratch file is readable by its owner only (mode 0600) and loses its name as soon as it is made. The system gives its
space back when the last handle or map of it is gone: after an exception, Ctrl-C, SIGTERM, even `kill -9` and a crash.
So there is nothing to clean up, and nobody can open it by a path.
"""

from __future__ import annotations

import errno
import os
import tempfile
import uuid
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfda.errors import InvalidInput, SourceError

VARIABLE = "DPFDA_SCRATCH"
_ON_DISK = Path("/var/tmp")  # unlike /tmp, never a piece of memory
_LONGEST_WRITE = 1 << 26


def choose_scratch_folder(chosen: str | os.PathLike[str] | None = None) -> Path:
    """Where scratch files go: `chosen`, else DPFDA_SCRATCH, else TMPDIR, else /var/tmp, else the system's choice."""
    named = chosen or os.environ.get(VARIABLE) or os.environ.get("TMPDIR")
    if named is None:
        usable = _ON_DISK.is_dir() and os.access(_ON_DISK, os.W_OK)
        return _ON_DISK if usable else Path(tempfile.gettempdir())
    folder = Path(named)
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise InvalidInput(
            f"The scratch folder {folder} is not a folder that can be written to; name one with --scratch."
        )
    return folder


class ScratchFile:
    """An append-only file without a name; what was appended can be read by position or mapped."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            self._file = open(folder / f"dpfda-{uuid.uuid4().hex}", "xb+", buffering=0, opener=_opener)  # noqa: SIM115
            if os.name != "nt":
                os.unlink(self._file.name)
        except OSError as error:
            raise _explain(error, folder) from None
        self.size = 0

    def append(self, array: NDArray[Any]) -> int:
        """Add the bytes of an array; returns the position of the first."""
        place, rest = self.size, np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
        while rest:
            try:
                written = os.write(self._file.fileno(), rest[:_LONGEST_WRITE])
            except OSError as error:
                raise _explain(error, self._folder) from None
            rest = rest[written:]
            self.size += written
        return place

    def read_into(self, array: NDArray[Any], place: int) -> None:
        """Fill a contiguous array with the bytes from `place` on."""
        rest = array.reshape(-1).view(np.uint8).data
        while rest:
            count = os.preadv(self._file.fileno(), [rest], place)
            if not count:
                raise SourceError(f"A scratch file in {self._folder} ends too early; check the disk.")
            rest, place = rest[count:], place + count

    def map_array(self, dtype: str, shape: tuple[int, ...]) -> NDArray[Any]:
        """All of it as a read-only array; the file lives as long as the array."""
        if not self.size:
            return np.empty(shape, dtype=dtype)
        return np.memmap(self._file, dtype=dtype, mode="r", shape=shape)

    def fileno(self) -> int:
        """The handle's number."""
        return self._file.fileno()

    def close(self) -> None:
        """Give up the handle; maps stay."""
        self._file.close()


class Stash:
    """What `ScratchFile` is, in memory up to `most` bytes, and in such a file beyond."""

    def __init__(self, folder: Path, most: int) -> None:
        self._folder, self._most = folder, most
        self._memory: NDArray[np.uint8] = np.empty(0, dtype=np.uint8)
        self._file: ScratchFile | None = None
        self.size = 0

    @property
    def on_disk(self) -> bool:
        """Whether it was too much for memory."""
        return self._file is not None

    def append(self, array: NDArray[Any]) -> int:
        """Add the bytes of an array; returns the position of the first."""
        place, end = self.size, self.size + array.nbytes
        if self._file is None and end > self._most:
            self._file = ScratchFile(self._folder)
            self._file.append(self._memory[:place])
            self._memory = self._memory[:0].copy()
        if self._file is not None:
            self._file.append(array)
        elif array.nbytes:
            if not self._memory.size:
                self._memory = np.empty(self._most, dtype=np.uint8)  # the system gives pages as they are written
            self._memory[place:end] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        self.size = end
        return place

    def read_into(self, array: NDArray[Any], place: int) -> None:
        """Fill a contiguous array with the bytes from `place` on."""
        if self._file is not None:
            self._file.read_into(array, place)
        else:
            array.reshape(-1).view(np.uint8)[:] = self._memory[place : place + array.nbytes]

    def map_array(self, dtype: str, shape: tuple[int, ...]) -> NDArray[Any]:
        """All of it as a read-only array, which lives on after `close`."""
        if self._file is not None:
            return self._file.map_array(dtype, shape)
        whole = self._memory[: self.size].view(dtype).reshape(shape)
        whole.flags.writeable = False
        return whole

    def close(self) -> None:
        """Give up the file, if there is one; maps stay."""
        if self._file is not None:
            self._file.close()


def _opener(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_TEMPORARY", 0), 0o600)


def _explain(error: OSError, folder: Path) -> SourceError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return SourceError(f"The scratch folder {folder} is full; name one with more space with --scratch.")
    return SourceError(f"The scratch folder {folder} cannot be used ({error.strerror}); name another with --scratch.")
