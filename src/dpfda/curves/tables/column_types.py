"""The types of columns that are read: a closed list, looked at in the schema before any cell.

Numbers, truth values, texts, bytes, UUIDs, dates, times, moments, decimals of up to 38 digits, and categories of these.
Whatever else Arrow and Parquet can hold (lists, structures, maps, unions, extensions, intervals, decimals of more digits) is
not read: compiled readers disagree about it, and some give up at single cells of it. A type stands in the schema, and no row
changes it, so a file with such a column among those that are asked for is refused, with the fix.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dpfda.errors import InvalidInput

_LONGEST = 60  # letters of a type in a sentence
_EXTENSION, _UUID = b"ARROW:extension:name", b"arrow.uuid"


class UnreadType(InvalidInput):
    """A column that is asked for has a type that is not read: its schema says so, and no row."""


def find_unread(schema: Any) -> dict[str, object]:
    """The columns of an Arrow schema that are not read, with their types.

    An extension that Arrow does not know has its storage's type; its name stands beside it, and other readers go by that.
    """
    unread: dict[str, object] = {}
    for each in schema:
        extension = (each.metadata or {}).get(_EXTENSION, _UUID)
        if extension != _UUID or not is_read(each.type):
            unread[each.name] = each.type if extension == _UUID else f"extension<{extension.decode(errors='replace')}>"
    return unread


def is_read(kind: Any) -> bool:
    """Whether columns of an Arrow type are read."""
    import pyarrow as pa

    known = pa.types
    if known.is_dictionary(kind):
        return not known.is_dictionary(kind.value_type) and is_read(kind.value_type)
    if known.is_decimal(kind):
        return not known.is_decimal256(kind) and 0 <= kind.scale <= kind.precision
    if known.is_primitive(kind):  # of one length; intervals and spans of time are, too
        return not (known.is_interval(kind) or known.is_duration(kind)) and _is_known_zone(kind)
    return bool(known.is_null(kind) or is_text(kind) or is_bytes(kind) or is_uuid(kind))


def is_uuid(kind: Any) -> bool:
    """Whether it is the one extension that is read: 16 bytes."""
    return getattr(kind, "extension_name", "").encode() == _UUID


def is_text(kind: Any) -> bool:
    """Whether it is one of Arrow's types of texts."""
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_bytes(kind: Any) -> bool:
    """Whether it is one of Arrow's types of bytes."""
    import pyarrow as pa

    known = pa.types
    long = known.is_large_binary(kind) or known.is_binary_view(kind)
    return bool(known.is_binary(kind) or known.is_fixed_size_binary(kind) or long)


def _is_known_zone(kind: Any) -> bool:
    """Whether polars knows the time zone of a moment; any other type has none."""
    import polars as pl

    try:
        pl.Series([], dtype=pl.Datetime("us", getattr(kind, "tz", None)))
    except pl.exceptions.PolarsError:
        return False
    return True


def is_read_in_frames(kind: Any) -> bool:
    """Whether columns of a type of polars are read: those that the same list makes. None of another library's is."""
    import polars as pl

    if not isinstance(kind, pl.DataType):
        return False
    if kind.is_numeric():
        return kind not in (pl.Int128, pl.UInt128)
    return kind in (
        pl.Boolean, pl.String, pl.Categorical, pl.Enum, pl.Binary, pl.Date, pl.Datetime, pl.Time, pl.Null,
    )  # fmt: skip


def refuse_unread(columns: Iterable[str], unread: Mapping[str, object]) -> None:
    """Refuse a table in which one of these columns is among those of a type that is not read."""
    for column in columns:
        if column in unread:
            kind = " ".join(str(unread[column]).split())
            raise UnreadType(
                f"The column {column!r} has the type {kind[:_LONGEST]}, which is not read; make it text, a number or a date "
                "before you save the table."
            )
