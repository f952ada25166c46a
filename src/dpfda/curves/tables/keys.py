"""Ids as 64-bit keys in the same order, and a division of the keys into ranges of about equal numbers of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

FAN = 480  # ranges that are aimed at; at most 2 FAN + 3 result
_CELLS = 1 << 16
_SIGN = np.uint64(1 << 63)
_MANY = 100_000  # texts
_WORD = 7  # bytes of a text in a key: one is left for texts that sort before and after the prefix


@dataclass(frozen=True)
class Ranges:
    """Which range an id falls into: a function that never decreases in the order of ids."""

    prefix: bytes
    low: np.uint64
    high: np.uint64
    shift: np.uint64
    table: NDArray[np.uint16]

    @classmethod
    def from_sample(cls, ids: pl.Series) -> Ranges:
        """Ranges that share out a sample evenly. One very frequent id has a range of its own."""
        prefix = _find_common_prefix(ids)
        sample = np.sort(make_keys(ids, prefix))
        cut = sample.size // 1000
        low, high = sample[cut], sample[sample.size - 1 - cut]
        shift = np.uint64(max(0, int(high - low).bit_length() - 16))
        inside = sample[(sample >= low) & (sample <= high)]
        cells = np.bincount(((inside - low) >> shift).astype(np.int64), minlength=_CELLS)
        table, number, size, target = np.ones(_CELLS, dtype=np.uint16), 1, 0, inside.size / FAN
        used = np.flatnonzero(cells)
        for cell, count in zip(used.tolist(), cells[used].tolist(), strict=True):
            if size and size + count > target:
                number, size = number + 1, 0
                table[cell:] = number
            size += count
        return cls(prefix, low, high, shift, table)

    @property
    def count(self) -> int:
        """The number of ranges; the first is below the sample and the last above."""
        return int(self.table[-1]) + 2

    def of(self, ids: pl.Series) -> NDArray[np.uint16]:
        """The range of every id."""
        keys = make_keys(ids, self.prefix)
        cells = np.minimum((np.maximum(keys, self.low) - self.low) >> self.shift, np.uint64(_CELLS - 1))
        numbers: NDArray[np.uint16] = self.table[cells]
        numbers[keys < self.low] = 0
        numbers[keys > self.high] = self.count - 1
        return numbers

    def key_bounds(self, first: int, last: int) -> tuple[int, int]:
        """The keys of the ranges first..last-1 are those between these two, both included."""
        return self._first_key(first), self._first_key(last) - 1

    def _first_key(self, number: int) -> int:
        """No key of this range or of a later one is less."""
        if number == 0:
            return 0
        if number >= self.count - 1:
            return int(self.high) + 1 if number == self.count - 1 else 1 << 64
        return int(self.low) + (int(np.searchsorted(self.table, number)) << int(self.shift))


def make_keys(ids: pl.Series, prefix: bytes = b"") -> NDArray[np.uint64]:
    """Keys that never decrease in the order of the ids. Of a text, the bytes after the prefix; else it is exact."""
    import polars as pl

    if ids.dtype == pl.String:
        return _make_text_keys(ids, prefix)
    values = ids.to_numpy()
    if values.dtype == np.uint64:
        return values
    bits: NDArray[np.uint64] = values.view(np.uint64)
    if values.dtype == np.int64:
        return bits ^ _SIGN
    negative = (bits & _SIGN).astype(bool)
    return np.where(negative, ~bits, bits | _SIGN)


def split_texts(ids: pl.Series) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Where each text starts (and the last ends), and the bytes of all."""
    if len(ids) > _MANY:
        return _split_by_arrow(ids)
    offsets = np.zeros(len(ids) + 1, dtype=np.int64)
    np.cumsum(ids.str.len_bytes().to_numpy(), out=offsets[1:])
    return offsets, np.frombuffer(str(ids.str.join("").item()).encode(), dtype=np.uint8)


def _split_by_arrow(ids: pl.Series) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """The same in a sixth of the time, for 26 MB of a library that a site with a small table does not load."""
    import pyarrow as pa

    array = ids.to_arrow(compat_level=None)
    if not pa.types.is_large_string(array.type):
        array = array.cast(pa.large_string())
    _, starts, data = array.buffers()
    offsets = np.frombuffer(starts, dtype=np.int64, count=len(array) + 1 + array.offset)[array.offset :]
    content = np.frombuffer(data, dtype=np.uint8) if data is not None else np.empty(0, dtype=np.uint8)
    return offsets - offsets[0], content[offsets[0] : offsets[-1]]


def join_texts(offsets: NDArray[np.int64], content: NDArray[np.uint8]) -> pl.Series:
    """The inverse of `split_texts`."""
    import polars as pl
    import pyarrow as pa

    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(content)]
    return pl.Series(pa.Array.from_buffers(pa.large_string(), len(offsets) - 1, buffers))


def _make_text_keys(ids: pl.Series, prefix: bytes) -> NDArray[np.uint64]:
    offsets, content = split_texts(ids)
    starts, lengths = offsets[:-1] + len(prefix), np.diff(offsets) - len(prefix)
    padded = np.concatenate([content, np.zeros(len(prefix) + 8, dtype=np.uint8)])
    words = np.ndarray(padded.size - 7, dtype=">u8", buffer=padded, strides=(1,))
    surplus = (8 * (_WORD - np.clip(lengths, 0, _WORD))).astype(np.uint64)
    keys: NDArray[np.uint64] = words[starts].astype(np.uint64) >> np.uint64(8)
    keys = ((keys >> surplus) << surplus) + np.uint64(1)
    if prefix:
        text = prefix.decode()
        foreign = ~ids.str.starts_with(text).to_numpy()
        if foreign.any():
            keys[foreign] = np.where((ids < text).to_numpy()[foreign], np.uint64(0), np.uint64((1 << 56) + 1))
    return keys


def _find_common_prefix(ids: pl.Series) -> bytes:
    import polars as pl

    if ids.dtype != pl.String:
        return b""
    least, greatest = str(ids.min()), str(ids.max())
    length = next((place for place, (a, b) in enumerate(zip(least, greatest, strict=False)) if a != b), len(least))
    return least[:length].encode()
