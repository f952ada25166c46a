"""A keyed fingerprint of curves: which ids and rows stand at which position. It and its key stay with the owner.

Words of 64 bits (of each point x and y; of each curve its number of points, its id's label and its design; where the design
changes within a curve, zeros in its place and the design of each of its points) are cut into halves, each half is
multiplied by a coefficient of its own, and the products are summed modulo 2^64, in two lanes with other coefficients. Sums
of parts add up, so memory, scratch files, chunks and workers give the same fingerprint.

Bound: two data sets that differ in any word have equal lanes with probability at most 2^-66 over uniform coefficients.
(A half differs by d with 0 < abs(d) < 2^32, so at most 2^31 of the 2^64 coefficients solve one lane: 2^-33 for each.)
Numbers of curves, columns and points enter the digest by themselves. Coefficients come from Threefry-4x64 with 12 rounds
under the key: as good as uniform for data that were not chosen with the key in hand, and who has the key has the ledger.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfda._compile import BYTES, FLAGS, WHOLES, WORD, WORDS, WORDS_2D, compiled, inlined, require
from dpfda._typing import Floats, Integers

_PARITY = np.uint64(0x1BD11BDAA9FC1A22)
_LOW_HALF, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
_POINT, _CURVE, _ROW = np.uint64(0), np.uint64(2), np.uint64(4)  # what a pair of words is of; then its second block
_FACTORS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F))
_FOLDS = np.uint64(29), np.uint64(32)
MOST_RANKED = 256  # points of a curve that are compared pair by pair
_AT_ONCE = 2 * MOST_RANKED  # points that are multiplied in one loop, which LLVM turns into code for several at a time

Unsigned = NDArray[np.uint64]
ChangingDesign = tuple[Floats, Floats, NDArray[np.bool_]]


@dataclass(frozen=True)
class Lanes:
    """Sums over some of the curves: parts of one data set add up."""

    first: int
    second: int
    n: int
    points: int
    columns: int
    labelled: bool

    def __add__(self, other: Lanes) -> Lanes:
        return Lanes(
            (self.first + other.first) % 2**64, (self.second + other.second) % 2**64, self.n + other.n,
            self.points + other.points, self.columns, self.labelled and other.labelled,
        )  # fmt: skip

    def digest(self, key: bytes) -> bytes:
        """The fingerprint: 32 bytes that tell nothing without the key."""
        text = f"{self.first} {self.second} {self.n} {self.points} {self.columns} {self.labelled}"
        return hashlib.blake2b(text.encode(), key=_short(key), digest_size=32, person=b"dpfda data").digest()


def sum_lanes(
    x: Floats,
    y: Floats,
    offsets: Integers,
    design: Floats | ChangingDesign,
    labels: Unsigned | None,
    key: bytes,
    position: int = 0,
) -> Lanes:
    """The lanes of curves of which the first stands at `position`. Arrays may be maps of files.

    Points of a curve count by their rank among its points, in the order of their bits, x before y. Where they are more than
    `MOST_RANKED`, and where the design changes, the caller puts them in that order (`point_order.py`). A design that changes
    is one vector for each curve, one for each point, and within which curves it changes.
    """
    n = offsets.size - 1
    design, rows, changes = design if isinstance(design, tuple) else (design, None, None)
    fits = x.ndim == y.ndim == offsets.ndim == 1 and x.size == y.size == offsets[-1] and offsets[0] == 0
    require(fits, "x, y and offsets must fit together")
    complete = design.ndim == 2 and len(design) == n and (labels is None or labels.shape == (n, 2))
    require(complete, "design and labels must have one row for each curve")
    counts = np.diff(offsets)
    require(not (counts < 0).any(), "offsets must not decrease")
    columns = design.shape[1]
    facts = np.zeros((n, 3 + columns + (3 + columns) % 2), dtype=np.uint64)  # in pairs
    facts[:, 0] = counts
    if labels is not None:
        facts[:, 1:3] = labels
    facts[:, 3 : 3 + columns] = np.ascontiguousarray(design).view(np.uint64)
    keys = _expand(key)
    lanes = np.zeros(2, dtype=np.uint64)
    room = np.zeros((2, _AT_ONCE), dtype=np.uint64)
    _add_points(_bits(x), _bits(y), np.ascontiguousarray(offsets), np.uint64(position), keys, room, lanes)
    _add_facts(facts, np.uint64(position), keys, lanes)
    if rows is not None and changes is not None:
        require(rows.shape == (x.size, columns) and changes.shape == (n,), "there must be a design for each point")
        require(changes.dtype == np.bool_, "changes must be flags")
        _add_rows(
            _bits(rows), np.ascontiguousarray(offsets), np.ascontiguousarray(changes), np.uint64(position), keys, lanes
        )
    return Lanes(int(lanes[0]), int(lanes[1]), n, int(x.size), columns, labels is not None)


def label_texts(starts: Integers, content: NDArray[np.uint8]) -> Unsigned:
    """128 bits of every text; text i holds the bytes from starts[i] to starts[i + 1]."""
    labels = np.zeros((starts.size - 1, 2), dtype=np.uint64)
    inside = starts.size < 2 or (starts[0] >= 0 and starts[-1] <= content.size and bool((np.diff(starts) >= 0).all()))
    require(inside, "starts must lie within content and not decrease")
    _label_texts(np.ascontiguousarray(starts), np.ascontiguousarray(content), labels)
    return labels


def label_numbers(values: NDArray[np.int64] | Unsigned | Floats) -> Unsigned:
    """The bits of every number, and its type."""
    kind = {"i": 1, "u": 2, "f": 3}[values.dtype.kind]
    bits = np.ascontiguousarray(values).view(np.uint64)
    return np.column_stack([bits, np.full(bits.size, kind, dtype=np.uint64)])


def _bits(values: Floats) -> Unsigned:
    return np.ascontiguousarray(values, dtype=np.float64).view(np.uint64)


def _short(key: bytes) -> bytes:
    """A key of a length that BLAKE2 takes."""
    if not isinstance(key, bytes) or len(key) < 16:
        raise ValueError("key must be at least 16 bytes")
    return hashlib.blake2b(key, digest_size=64).digest()


def _expand(key: bytes) -> Unsigned:
    seed = hashlib.blake2b(b"coefficients", key=_short(key), digest_size=32, person=b"dpfda data").digest()
    words = np.frombuffer(seed, dtype="<u8").astype(np.uint64)
    return np.append(words, _PARITY ^ np.bitwise_xor.reduce(words))


@compiled(WORDS, WORDS, WHOLES, WORD, WORDS, WORDS_2D, WORDS)
def _add_points(
    x: Unsigned, y: Unsigned, offsets: Integers, position: np.uint64, key: Unsigned, room: Unsigned, lanes: Unsigned
) -> None:
    """`room` has a place and a rank for each of the next points, as many as are multiplied at once."""
    start = filled = 0
    for curve in range(offsets.size - 1):
        begin, end = offsets[curve], offsets[curve + 1]
        short = end - begin <= MOST_RANKED
        if short and filled + end - begin > _AT_ONCE:
            _multiply_points(x, y, start, filled, key, room, lanes)
            start, filled = begin, 0
        if short:
            _rank_points(x, y, begin, end, filled, room)
        for point in range(begin, end):
            if filled == _AT_ONCE:
                _multiply_points(x, y, start, filled, key, room, lanes)
                start, filled = point, 0
            room[0, filled] = position + np.uint64(curve)
            if not short:
                room[1, filled] = np.uint64(point - begin)
            filled += 1
    _multiply_points(x, y, start, filled, key, room, lanes)


@inlined
def _rank_points(x: Unsigned, y: Unsigned, begin: int, end: int, filled: int, room: Unsigned) -> None:
    """Each point against those before it by x alone; if two are equal, all again by x and y. No branch in the loops."""
    tied = False
    for point in range(begin, end):
        before = np.uint64(0)
        for rival in range(begin, point):
            less = np.uint64(x[rival] < x[point])
            tied |= x[rival] == x[point]
            before += less
            room[1, filled + rival - begin] += np.uint64(1) - less
        room[1, filled + point - begin] = before
    if not tied:
        return
    for point in range(begin, end):
        before = np.uint64(0)
        for rival in range(begin, end):
            same = (y[rival] < y[point]) | ((y[rival] == y[point]) & (rival < point))
            before += np.uint64((x[rival] < x[point]) | ((x[rival] == x[point]) & same))
        room[1, filled + point - begin] = before


@inlined
def _multiply_points(
    x: Unsigned, y: Unsigned, start: int, count: int, key: Unsigned, room: Unsigned, lanes: Unsigned
) -> None:
    first = second = np.uint64(0)
    for point in range(count):
        one, other = _pair(key, room[0, point], room[1, point], _POINT, x[start + point], y[start + point])
        first += one
        second += other
    lanes[0] += first
    lanes[1] += second


@compiled(WORDS_2D, WORD, WORDS, WORDS)
def _add_facts(facts: Unsigned, position: np.uint64, key: Unsigned, lanes: Unsigned) -> None:
    first = second = np.uint64(0)
    for curve in range(facts.shape[0]):
        place = position + np.uint64(curve)
        for pair in range(facts.shape[1] // 2):
            words = facts[curve, 2 * pair], facts[curve, 2 * pair + 1]
            one, other = _pair(key, place, np.uint64(pair), _CURVE, words[0], words[1])
            first += one
            second += other
    lanes[0] += first
    lanes[1] += second


@compiled(WORDS_2D, WHOLES, FLAGS, WORD, WORDS, WORDS)
def _add_rows(
    rows: Unsigned, offsets: Integers, changes: Any, position: np.uint64, key: Unsigned, lanes: Unsigned
) -> None:
    first = second = np.uint64(0)
    columns = rows.shape[1]
    pairs = (columns + 1) // 2
    for curve in range(offsets.size - 1):
        if not changes[curve]:
            continue
        place = position + np.uint64(curve)
        for point in range(offsets[curve], offsets[curve + 1]):
            for pair in range(pairs):
                other = rows[point, 2 * pair + 1] if 2 * pair + 1 < columns else np.uint64(0)
                number = np.uint64((point - offsets[curve]) * pairs + pair)
                one, two = _pair(key, place, number, _ROW, rows[point, 2 * pair], other)
                first += one
                second += two
    lanes[0] += first
    lanes[1] += second


@compiled(WHOLES, BYTES, WORDS_2D)
def _label_texts(starts: Integers, content: NDArray[np.uint8], labels: Unsigned) -> None:
    """Words of 8 bytes folded in one after the other; a change within one word always changes the label."""
    for text in range(starts.size - 1):
        first, second = _FACTORS[0], _FACTORS[1]
        place = starts[text]
        while place < starts[text + 1]:
            last = min(place + 8, starts[text + 1])
            word = np.uint64(0)
            for byte in range(place, last):
                word = (word << np.uint64(8)) | np.uint64(content[byte])
            first, second = (first ^ word) * _FACTORS[1], (second ^ word) * _FACTORS[0]
            first, second = first ^ (first >> _FOLDS[0]), second ^ (second >> _FOLDS[1])
            place = last
        length = np.uint64(starts[text + 1] - starts[text])
        labels[text, 0] = (first ^ length) * _FACTORS[0]
        labels[text, 1] = (second ^ length) * _FACTORS[1]


@inlined
def _pair(
    key: Unsigned, place: np.uint64, row: np.uint64, kind: np.uint64, one: np.uint64, other: np.uint64
) -> tuple[np.uint64, np.uint64]:
    """What two words add to the lanes."""
    a, b, c, d = _threefry(key, place, row, kind)
    e, f, g, h = _threefry(key, place, row, kind + np.uint64(1))
    low, high = one & _LOW_HALF, one >> _HALF
    low_other, high_other = other & _LOW_HALF, other >> _HALF
    return a * low + b * high + c * low_other + d * high_other, e * low + f * high + g * low_other + h * high_other


@inlined
def _threefry(
    key: Unsigned, place: np.uint64, row: np.uint64, kind: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    """One block of Threefry-4x64-12 (Salmon and others, 2011) with the counter (place, row, kind, 0)."""
    a, b, c, d = place + key[0], row + key[1], kind + key[2], key[3]
    a, b, c, d = _four_rounds(a, b, c, d, (14, 16, 52, 57, 23, 40, 5, 37))
    a, b, c, d = a + key[1], b + key[2], c + key[3], d + key[4] + np.uint64(1)
    a, b, c, d = _four_rounds(a, b, c, d, (25, 33, 46, 12, 58, 22, 32, 32))
    a, b, c, d = a + key[2], b + key[3], c + key[4], d + key[0] + np.uint64(2)
    a, b, c, d = _four_rounds(a, b, c, d, (14, 16, 52, 57, 23, 40, 5, 37))
    return a + key[3], b + key[4], c + key[0], d + key[1] + np.uint64(3)


@inlined
def _four_rounds(
    a: np.uint64, b: np.uint64, c: np.uint64, d: np.uint64, turns: tuple[int, int, int, int, int, int, int, int]
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    a, c = a + b, c + d
    b, d = _turn(b, turns[0]) ^ a, _turn(d, turns[1]) ^ c
    a, c = a + d, c + b
    d, b = _turn(d, turns[2]) ^ a, _turn(b, turns[3]) ^ c
    a, c = a + b, c + d
    b, d = _turn(b, turns[4]) ^ a, _turn(d, turns[5]) ^ c
    a, c = a + d, c + b
    d, b = _turn(d, turns[6]) ^ a, _turn(b, turns[7]) ^ c
    return a, b, c, d


@inlined
def _turn(word: np.uint64, by: int) -> np.uint64:
    return (word << np.uint64(by)) | (word >> np.uint64(64 - by))
