"""Bytes from anywhere: decoding gives a message or `ProtocolError`, nothing else, and never much memory."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpfda.errors import ProtocolError
from dpfda.protocol.messages import MAX_ENTRIES, MAX_NAME, Query, Release

CORPUS = Path(__file__).parents[2] / "corpus" / "messages"
HEADER = struct.Struct("<5sBI")


def framed(text: bytes, body: bytes = b"") -> bytes:
    return HEADER.pack(b"dpfda", 1, len(text)) + text + body


def decode_or_refuse(data: bytes) -> None:
    for kind in (Query, Release):
        try:
            message = kind.decode(data)
        except ProtocolError:
            continue
        assert 0 < len(message.run) <= MAX_NAME
        message.run.encode()
        again = kind.decode(message.encode())
        assert (again.run, again.round) == (message.run, message.round)


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*.bin")), ids=lambda path: path.stem)
def test_the_corpus_of_nasty_messages(path) -> None:
    decode_or_refuse(path.read_bytes())


def test_the_corpus_is_there() -> None:
    assert len(list(CORPUS.glob("*.bin"))) >= 20


@given(st.binary(max_size=300))
@settings(max_examples=300, deadline=None)
def test_any_bytes(data) -> None:
    decode_or_refuse(data)
    decode_or_refuse(framed(data))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
FIELD = st.one_of(JSON, st.just("run"), st.integers(0, 3))


@given(
    kind=st.sampled_from(["query", "release", "x"]), run=FIELD, round_=FIELD,
    arrays=st.one_of(JSON, st.lists(st.tuples(st.text(max_size=5), st.integers(-3, 5)), max_size=4)),
    body=st.binary(max_size=64),
)  # fmt: skip
@settings(max_examples=400, deadline=None)
@example(kind="query", run="\ud800", round_=0, arrays=[], body=b"")
def test_any_header(kind, run, round_, arrays, body) -> None:
    header = {"type": kind, "run": run, "round": round_, "arrays": arrays, "silo": run, "private": True}
    decode_or_refuse(framed(json.dumps(header).encode(), body))


@given(st.integers(0, 200), st.integers(0, 255), st.integers(0, 200))
@settings(max_examples=300, deadline=None)
def test_a_good_message_with_a_wrong_byte_or_cut_short(place, value, length) -> None:
    good = Query("run", 3, {"iterate": np.arange(4.0), "radius": np.zeros(2)}).encode()
    changed = bytearray(good)
    changed[place % len(good)] = value
    decode_or_refuse(bytes(changed))
    decode_or_refuse(good[: length % len(good)])
    decode_or_refuse(good + bytes(length))


@given(st.dictionaries(st.text(max_size=20), st.lists(st.floats(allow_nan=True), max_size=6), max_size=4))
@settings(max_examples=200, deadline=None)
def test_what_was_encoded_is_decoded_bit_for_bit(arrays) -> None:
    query = Query("run", 7, {name: np.array(values, dtype=np.float64) for name, values in arrays.items()})
    again = Query.decode(query.encode())
    assert {name: array.tobytes() for name, array in again.arrays.items()} == {
        name: array.tobytes() for name, array in query.arrays.items()
    }
    assert again.digest() == query.digest()


def test_a_message_beyond_the_size_limit_is_refused_before_it_is_parsed() -> None:
    with pytest.raises(ProtocolError, match="length"):
        Query.decode(bytes(8 * MAX_ENTRIES + 65537))
