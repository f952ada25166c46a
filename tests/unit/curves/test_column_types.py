"""Which types of columns are read, by Arrow's names and by those of polars."""

from __future__ import annotations

import polars as pl
import pytest

from dpfda.curves.tables.column_types import UnreadType, find_unread, is_read, is_read_in_frames, refuse_unread

pa = pytest.importorskip("pyarrow")

READ = [
    pa.int8(), pa.uint64(), pa.float16(), pa.float64(), pa.bool_(), pa.string(), pa.large_string(), pa.string_view(),
    pa.binary(), pa.binary(16), pa.uuid(), pa.date32(), pa.date64(), pa.time64("us"), pa.timestamp("s", "Europe/Berlin"),
    pa.decimal128(38, 2), pa.null(), pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int8(), pa.int64()),
]  # fmt: skip
NOT_READ = [
    pa.list_(pa.int8()), pa.struct([("a", pa.int8())]), pa.map_(pa.string(), pa.int8()), pa.decimal256(10, 2),
    pa.decimal128(4, -2), pa.duration("s"), pa.month_day_nano_interval(), pa.bool8(), pa.json_(), pa.timestamp("us", "Mars"),
    pa.run_end_encoded(pa.int32(), pa.int8()), pa.dictionary(pa.int8(), pa.list_(pa.int8())),
]  # fmt: skip


@pytest.mark.parametrize("kind", READ, ids=str)
def test_plain_types_are_read_by_both_names(kind) -> None:
    assert is_read(kind)
    empty = pl.from_arrow(pa.RecordBatch.from_arrays([pa.nulls(0, kind)], names=["a"]))
    assert is_read_in_frames(empty["a"].dtype)


@pytest.mark.parametrize("kind", NOT_READ, ids=str)
def test_no_other_type_is_read(kind) -> None:
    assert not is_read(kind)
    with pytest.raises(UnreadType, match=r"The column 'a' has the type .* which is not read; make it text"):
        refuse_unread(["a"], find_unread(pa.schema({"a": kind})))


@pytest.mark.parametrize("kind", [pl.List(pl.Int8), pl.Struct({"a": pl.Int8}), pl.Duration, pl.Int128, pl.Object])
def test_no_other_type_of_polars_is_read(kind) -> None:
    assert not is_read_in_frames(pl.Series([], dtype=kind).dtype)


def test_an_extension_that_arrow_does_not_know_is_one() -> None:
    noted = pa.field("a", pa.string(), metadata={"ARROW:extension:name": "mine"})
    assert find_unread(pa.schema([noted, ("b", pa.string())])) == {"a": "extension<mine>"}


def test_columns_that_are_not_asked_for_refuse_nothing() -> None:
    refuse_unread(["b"], {"a": pa.list_(pa.int8())})
