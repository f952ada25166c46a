"""What Arrow's memory is looked at for before polars gets it."""

from __future__ import annotations

import pytest

from dpfda.curves.tables.arrow_text import check_texts
from dpfda.errors import InvalidInput

pa = pytest.importorskip("pyarrow")


def make_records(column) -> object:
    return pa.RecordBatch.from_arrays([column], names=["a"])


@pytest.mark.parametrize("tolerant", [False, True])
@pytest.mark.parametrize(
    "column",
    [
        pa.array([86_400 * 10**6, -1]).view(pa.time64("us")),
        pa.array([1000, 2**62]).view(pa.date64()),
        pa.array([2**63 - 1]).view(pa.timestamp("us")),
        pa.array([b"\xff" * 16], pa.binary(16)).view(pa.decimal128(4, 1)),
    ],
    ids=["time", "date", "moment", "decimal"],
)
def test_cells_of_one_length_are_as_they_are(column, tolerant) -> None:
    records = make_records(column)
    assert check_texts(records, "t", tolerant=tolerant).column(0).buffers()[1].equals(column.buffers()[1])


def test_bytes_that_are_no_text_are_replaced_or_refused() -> None:
    records = make_records(pa.array([b"a", b"\xff", None], pa.binary()).view(pa.string()))
    assert check_texts(records, "t", tolerant=True).column(0).to_pylist() == ["a", "\N{REPLACEMENT CHARACTER}", None]
    with pytest.raises(InvalidInput, match=r"not UTF-8"):
        check_texts(records, "t", tolerant=False)
