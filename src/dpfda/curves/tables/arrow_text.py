"""Texts in Arrow's memory that are no UTF-8: Arrow does not look at them, and polars would read beyond them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dpfda.errors import InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa


def check_texts(records: pa.RecordBatch, name: str, *, tolerant: bool) -> pa.RecordBatch:
    """The records of a source, every cell of which has been looked at; bytes that are no text are refused or replaced.

    With `tolerant` they are replaced each in its own cell, and what is damaged otherwise raises an `ArrowException`.
    """
    import pyarrow as pa

    try:
        _validate(records)
    except pa.ArrowInvalid:
        if not tolerant:
            raise InvalidInput(f"{name} has a cell that is not UTF-8, or is damaged; export it again.") from None
    else:
        return records
    mended = pa.RecordBatch.from_arrays([_mend(column) for column in records.columns], names=records.schema.names)
    _validate(mended)
    return mended


def _validate(records: pa.RecordBatch) -> None:
    """Raise where reading would leave a column's memory, or a text is none.

    Cells of one length lie in their places whatever stands in them. Arrow has more to say about them (a time must be less
    than a day, a decimal must have its digits), which is the affair of the cell alone, and not looked at.
    """
    records.validate()
    for column in records.columns:
        if not _has_one_length(column.type):
            column.validate(full=True)


def _has_one_length(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_primitive(kind) or pa.types.is_decimal(kind) or pa.types.is_fixed_size_binary(kind))


def _mend(column: Any) -> Any:
    """A column of texts with what is none replaced; any other as it is."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type) and _is_text(column.type.value_type):
        column = column.cast(column.type.value_type)  # looks whether each cell is one of the levels
    if not _is_text(column.type):
        return column
    content = column.cast(pa.large_binary())
    content.validate(full=True)  # where texts begin and end
    texts = [None if value is None else value.decode(errors="replace") for value in content.to_pylist()]
    return pa.array(texts, type=pa.large_string())


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
