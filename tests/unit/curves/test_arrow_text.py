"""Bytes that are no text are refused, or replaced in their own cell; nothing else of a record changes."""

from __future__ import annotations

import pyarrow as pa
import pytest

from dpfda.curves.tables.arrow_text import check_texts
from dpfda.errors import InvalidInput


def make_records(*cells: bytes) -> pa.RecordBatch:
    offsets, content = [0], b""
    for cell in cells:
        content += cell
        offsets.append(len(content))
    buffers = [None, pa.array(offsets, pa.int32()).buffers()[1], pa.py_buffer(content)]
    texts = pa.Array.from_buffers(pa.string(), len(cells), buffers)
    return pa.RecordBatch.from_arrays([texts, pa.array(range(len(cells)))], names=["arm", "y"])


def test_good_texts_are_left_alone() -> None:
    records = make_records(b"a", "ä".encode(), b"")
    assert check_texts(records, "visits.arrow", tolerant=False) is records


def test_bytes_that_are_no_text_are_refused_with_the_source_named() -> None:
    with pytest.raises(InvalidInput, match=r"visits\.arrow has a cell that is not UTF-8"):
        check_texts(make_records(b"a", b"\xff"), "visits.arrow", tolerant=False)


def test_they_are_replaced_in_their_own_cell_where_nothing_may_be_refused() -> None:
    found = check_texts(make_records(b"a", b"\xff", b"b"), "visits.arrow", tolerant=True)
    assert found.column("arm").to_pylist() == ["a", "\ufffd", "b"]
    assert found.column("y").to_pylist() == [0, 1, 2]


def test_a_time_of_a_whole_day_is_the_affair_of_its_cell() -> None:
    day = pa.Array.from_buffers(pa.time64("us"), 1, [None, pa.array([86_400_000_000]).buffers()[1]])
    records = pa.RecordBatch.from_arrays([day, pa.array(["x"])], names=["at", "arm"])
    assert check_texts(records, "visits.arrow", tolerant=True) is records
