"""Working memory of a pass, all zero when the pass begins."""

from __future__ import annotations

import itertools
import threading
from typing import Any, NamedTuple

import numpy as np

from dpfda._compile import REALS, WHOLES, Bundle, require

POLAR = 3  # what a pass over whitened gradients leaves of every lane: length, first coordinate, second coordinate


class _RoomFields(NamedTuple):
    slopes: Any
    scores: Any
    work: Any
    gradients: Any
    whitened: Any
    lanes: Any
    outer_lanes: Any
    flags: Any


class Room(_RoomFields, Bundle):
    """Vectors of eight doubles, and lanes of integers for exact sums. No pass finds anything of another one in it."""


_OF_INTEGERS = ("lanes", "outer_lanes")
ROOM = Room(*(WHOLES if name in _OF_INTEGERS else REALS for name in Room._fields))


def aligned_zeros(size: int) -> Any:
    """Zeros that start at a cache line: a vector across two lines is read at half speed."""
    room = np.zeros(size + 8)
    skip = (-room.ctypes.data % 64) // 8
    return room[skip : skip + size]


class _Kept(threading.local):
    shape: tuple[int, int, int] | None = None
    everything: Any = None
    room: Any = None


_kept = _Kept()


def room_for(size: int, harmonics: int, outer_size: int = 0) -> Room:
    """Zeroed room of this thread for vectors of `size` entries per curve and outer products of `outer_size` entries.

    The last one is kept, since rounds of a fit ask for the same many times, and set to zero each time.
    """
    shape = (size, harmonics, outer_size)
    if _kept.shape == shape:
        _kept.everything.fill(0.0)
    else:
        _kept.shape, (_kept.everything, _kept.room) = shape, _new_room(*shape)
    room: Room = _kept.room
    return room


def _new_room(size: int, harmonics: int, outer_size: int) -> tuple[Any, Room]:
    require(size >= 1 and harmonics >= 0 and outer_size >= 0, "room must have a size")
    width = 8 * (2 * harmonics + 1)
    sizes = (width, width, 48 * harmonics + 32, 32 * size, 32 * size, 8 * size, 8 * outer_size, 8)
    everything = aligned_zeros(sum(sizes))
    ends = itertools.accumulate(sizes)
    room = Room(*(everything[end - size : end] for end, size in zip(ends, sizes, strict=True)))
    integers = {name: getattr(room, name).view(np.int64) for name in _OF_INTEGERS}
    return everything, room._replace(**integers)
