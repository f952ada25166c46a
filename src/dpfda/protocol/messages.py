"""Query and Release: all that ever crosses a silo's border.

Both encode to plain bytes (a JSON header and raw little-endian float64 arrays): versioned, bounded in size, no pickle.
A Query carries what a silo needs to know to answer the next planned round. It cannot carry a budget, a noise level,
a radius or a batch: those follow from the silo's own copy of the plan.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfda.errors import ProtocolError

VERSION = 1
MAX_ENTRIES = 1_000_000
MAX_NAME, MAX_HEADER, MAX_ARRAYS = 200, 8192, 8
FIELDS = {
    "query": {"type", "run", "round", "arrays"},
    "release": {"type", "run", "round", "silo", "private", "head", "arrays"},
}
_MAGIC = b"dpfda"
_HEADER = struct.Struct("<5sBI")
_HEAD = re.compile(r"(0|[1-9][0-9]{0,8}):[0-9a-f]{64}")

Arrays = dict[str, NDArray[np.float64]]


@dataclass(frozen=True)
class Query:
    """The coordinator's question in one round: where to evaluate, never how privately.

    `arrays` holds public vectors that the round's kind asks for, such as the iterate of the descent.
    """

    run: str
    round: int
    arrays: Arrays = field(default_factory=dict)

    def encode(self) -> bytes:
        return _encode({"type": "query", "run": self.run, "round": self.round}, self.arrays)

    @staticmethod
    def decode(data: bytes) -> Query:
        header, arrays = _decode(data, "query")
        return Query(run=_text(header, "run"), round=_count(header, "round"), arrays=arrays)

    def digest(self) -> str:
        """Identifies the question: a silo answers one digest per (run, round), ever."""
        return hashlib.sha256(self.encode()).hexdigest()


@dataclass(frozen=True)
class Release:
    """A silo's privatised answer: noisy values and the public standard deviation of their noise.

    `head` is the head of the run in the silo's ledger BEFORE this answer: how many answers of the run precede it, and the
    SHA-256 of the last of them (`3:9f...`). It is made of public values; empty where no ledger wrote the answer.
    """

    run: str
    round: int
    silo: str
    values: NDArray[np.float64]
    noise_sd: NDArray[np.float64]
    private: bool
    head: str = ""

    def encode(self) -> bytes:
        header = {
            "type": "release", "run": self.run, "round": self.round, "silo": self.silo, "private": self.private,
            "head": self.head,
        }  # fmt: skip
        return _encode(header, {"values": self.values, "noise_sd": self.noise_sd})

    @staticmethod
    def decode(data: bytes) -> Release:
        header, arrays = _decode(data, "release")
        if set(arrays) != {"values", "noise_sd"} or arrays["values"].shape != arrays["noise_sd"].shape:
            raise ProtocolError("A release must hold values and noise_sd of one length.")
        if not isinstance(header.get("private"), bool):
            raise ProtocolError("A release must say whether it is private.")
        return Release(
            run=_text(header, "run"),
            round=_count(header, "round"),
            silo=_text(header, "silo"),
            values=arrays["values"],
            noise_sd=arrays["noise_sd"],
            private=header["private"],
            head=_head(header),
        )

    def follows(self, earlier: Release) -> bool:
        """Whether a ledger that gave `earlier` can have given this answer to a later round of the same run.

        Answers that were lost on the way leave a gap, which is allowed. False: the silo's ledger is older than `earlier`.
        """
        if not earlier.head:  # no ledger wrote it
            return True
        before, then = _count_of(earlier.head), _count_of(self.head)
        if then == before + 1:
            return self.head.partition(":")[2] == hashlib.sha256(earlier.encode()).hexdigest()
        return then > before


def _encode(header: dict[str, Any], arrays: Arrays) -> bytes:
    names = sorted(arrays)
    blocks = [np.ascontiguousarray(arrays[name], dtype="<f8").ravel() for name in names]
    header = {**header, "arrays": [[name, block.size] for name, block in zip(names, blocks, strict=True)]}
    text = _write_header(header)
    return _HEADER.pack(_MAGIC, VERSION, len(text)) + text + b"".join(block.tobytes() for block in blocks)


def _decode(data: bytes, expected: str) -> tuple[dict[str, Any], Arrays]:
    """Parse defensively: every length is checked before it is used."""
    if len(data) < _HEADER.size or len(data) > 8 * MAX_ENTRIES + 65536:
        raise ProtocolError("The message has an impossible length.")
    magic, version, length = _HEADER.unpack_from(data)
    if magic != _MAGIC or version != VERSION:
        raise ProtocolError(f"The message is not a dpfda message of version {VERSION}.")
    if length > MAX_HEADER:
        raise ProtocolError("The message header has an impossible length.")
    header, sizes = _read_header(data[_HEADER.size : _HEADER.size + length])
    if header.get("type") != expected or header.keys() != FIELDS[expected]:
        raise ProtocolError(f"Expected a {expected} message.")
    start = _HEADER.size + length
    if len(data) != start + 8 * sum(size for _, size in sizes):
        raise ProtocolError("The message body does not match its header.")
    arrays: Arrays = {}
    for name, size in sizes:
        arrays[name] = np.frombuffer(data, dtype="<f8", count=size, offset=start).astype(np.float64)
        start += 8 * size
    if len(arrays) != len(sizes):
        raise ProtocolError("The message names an array twice.")
    return header, arrays


def _read_header(text: bytes) -> tuple[dict[str, Any], list[tuple[str, int]]]:
    """The header and the arrays that it announces; only its canonical form is read."""
    try:
        header = json.loads(text.decode())
        canonical = _write_header(header) == text
        sizes = [(name, size) for name, size in header["arrays"]]
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        raise ProtocolError("The message header cannot be read.") from None
    sound = type(header["arrays"]) is list
    sound = sound and all(type(name) is str and type(size) is int and 0 <= size <= MAX_ENTRIES for name, size in sizes)
    sound = sound and [name for name, _ in sizes] == sorted(name for name, _ in sizes)
    if not canonical or not sound or len(sizes) > MAX_ARRAYS or any(len(name) > MAX_NAME for name, _ in sizes):
        raise ProtocolError("The message header is malformed.")
    return header, sizes


def _write_header(header: dict[str, Any]) -> bytes:
    return json.dumps(header, sort_keys=True, separators=(",", ":")).encode()


def _text(header: dict[str, Any], key: str) -> str:
    value = header.get(key)
    if not isinstance(value, str) or not 0 < len(value) <= MAX_NAME or not _is_unicode(value):
        raise ProtocolError(f"The message field {key} is missing or malformed.")
    return value


def _head(header: dict[str, Any]) -> str:
    value = header.get("head")
    if not isinstance(value, str) or (value and not _HEAD.fullmatch(value)):
        raise ProtocolError("The message field head is missing or malformed.")
    return value


def _count_of(head: str) -> int:
    return int(head.partition(":")[0] or -1)


def _is_unicode(text: str) -> bool:
    """Whether it can be written down: JSON allows half a surrogate pair, no file or database does."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def _count(header: dict[str, Any], key: str) -> int:
    value = header.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**31:
        raise ProtocolError(f"The message field {key} is missing or malformed.")
    return value
