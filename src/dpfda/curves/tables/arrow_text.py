"""Texts in Arrow's memory that are no UTF-8: Arrow does not look at them, and polars would read beyond them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from dpfda.curves.tables.column_types import is_bytes, is_text
from dpfda.errors import InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa


def check_texts(records: pa.RecordBatch, name: str, *, tolerant: bool) -> pa.RecordBatch:
    """The records of a source, every cell of which has been looked at; bytes that are no text are refused or replaced.

    With `tolerant` they are replaced each in its own cell, and what is damaged otherwise raises an `ArrowException`. Of the
    schema only names and types are left, and categories are written out.
    """
    import pyarrow as pa

    try:
        records.validate()
        columns = [_check(column, tolerant=tolerant) for column in records.columns]
    except pa.ArrowException:
        if tolerant:
            raise
        raise InvalidInput(f"{name} has a cell that is not UTF-8, or is damaged; export it again.") from None
    return pa.RecordBatch.from_arrays(columns, names=records.schema.names)


def _check(column: Any, *, tolerant: bool) -> Any:
    """A column of a type that is read; raises where reading would leave its memory, or a text is none.

    Cells of one length lie in their places whatever stands in them. Arrow has more to say about them (a time must be less
    than a day, a decimal must have its digits), which is the affair of the cell alone, and not looked at.
    """
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        levels = _check(column.dictionary, tolerant=tolerant)
        if _has_one_length(levels.type) or not (is_text(levels.type) or is_bytes(levels.type)):
            return levels.take(column.indices)  # fails at one that is none
        return _point_to(levels, column.indices)
    if _has_one_length(column.type):
        return column
    if tolerant and is_text(column.type):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            return mend_texts(column)
        return column
    column.validate(full=True)
    return column


def _point_to(levels: Any, indices: Any) -> Any:
    """Texts or bytes, each of which is kept once: a long one that many rows have would be more than Arrow's arrays hold."""
    import polars as pl
    import pyarrow as pa

    places = pa.array(range(len(levels)), pa.uint32()).take(indices)  # fails at one that is none
    cells = cast("pl.Series", pl.from_arrow(levels)).gather(cast("pl.Series", pl.from_arrow(places)))
    return cells.to_arrow(compat_level=pl.CompatLevel.newest())


def _has_one_length(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_primitive(kind) or pa.types.is_decimal(kind) or pa.types.is_fixed_size_binary(kind))


def mend_texts(column: Any) -> Any:
    """Texts, or bytes, with what is no text replaced, each in its own cell."""
    import pyarrow as pa

    content = column.cast(pa.large_binary())
    content.validate(full=True)  # where texts begin and end
    texts = [None if value is None else value.decode(errors="replace") for value in content.to_pylist()]
    return pa.array(texts, type=pa.large_string())
