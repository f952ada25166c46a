"""Rows of a query on PostgreSQL as Arrow batches (ADBC): several times as fast as a cursor that makes Python objects.

The server streams the result (COPY), so that neither side holds it. The transaction is read-only, which the server
enforces. A result with types that have no Arrow type of their own is left to the cursor (`database`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from dpfda.curves.tables.arrow_text import check_texts
from dpfda.curves.tables.column_types import is_read
from dpfda.curves.tables.source import Source, redact_password
from dpfda.errors import InvalidInput, SourceError

if TYPE_CHECKING:
    import polars as pl

Choose = Callable[[list[str]], list[str]]
_CONNECT_SECONDS = 10


class NoArrowType(Exception):
    """A column that only the cursor can read."""


@contextmanager
def arrow_result(
    source: Source, choose: Choose, rows: int, *, any_text: bool = False
) -> Iterator[Iterator[pl.DataFrame]]:
    """The rows of the query in frames of at most `rows`, at least one frame; ImportError without the driver.

    `choose` gets the names of the columns and says which ones to read; in others no cell is looked at. With `any_text`,
    bytes that are no text (a database of the encoding SQL_ASCII does not check) are replaced.
    """
    import adbc_driver_postgresql.dbapi as driver

    try:
        with driver.connect(_url(source.location)) as connection, connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION READ ONLY")
            yield run_query(cursor, source, choose, rows, any_text=any_text)
    except driver.Error as error:
        raise _explain(error, source) from None


def run_query(cursor: Any, source: Source, choose: Choose, rows: int, *, any_text: bool) -> Iterator[pl.DataFrame]:
    """The rows of a source's query through a cursor of ADBC, in frames of at most `rows`, at least one frame."""
    import pyarrow as pa

    cursor.execute(source.query)
    reader = cursor.fetch_record_batch()
    _check_schema(reader.schema)
    columns = choose(reader.schema.names)
    batches = (
        check_texts(batch.select(columns), "The database", tolerant=any_text)
        for batch in _explain_breaks(reader, source)
    )
    return _make_frames(batches, pa.schema([reader.schema.field(name) for name in columns]), rows)


def _url(location: str) -> str:
    """The URL without the name of another driver, and with a limit to how long connecting may take."""
    url = "postgresql://" + location.split("://", 1)[1]
    if "connect_timeout=" in url:
        return url
    return f"{url}{'&' if '?' in url else '?'}connect_timeout={_CONNECT_SECONDS}"


def _check_schema(schema: Any) -> None:
    """Refuse a result without columns or with two of a name; `NoArrowType` for a column that is not read as Arrow."""
    if not schema.names:
        raise InvalidInput("--query must return rows; begin it with SELECT.")
    if len(set(schema.names)) != len(schema.names):
        raise InvalidInput("--query returns two columns of the same name; rename one with AS.")
    if not all(is_read(kind) or _is_numeric(kind) for kind in schema.types):
        raise NoArrowType


def _is_numeric(kind: Any) -> bool:
    return getattr(kind, "extension_name", "") == "arrow.opaque" and getattr(kind, "type_name", "") == "numeric"


def _explain_breaks(reader: Any, source: Source) -> Iterator[Any]:
    """The batches; what breaks between two of them is the server's word about a row, or a lost connection."""
    import pyarrow as pa

    try:
        yield from reader
    except (OSError, pa.ArrowException) as error:
        raise SourceError(
            f"The database {source.shown} stopped among the rows ({read_reason(error)}); correct --query, or try again."
        ) from None


def _make_frames(batches: Iterator[Any], schema: Any, rows: int) -> Iterator[pl.DataFrame]:
    """Record batches in frames of at most `rows`, at least one frame."""
    empty = True
    for batch in batches:
        for start in range(0, batch.num_rows, rows):
            empty = False
            yield _frame(batch.slice(start, rows))
    if empty:
        yield _frame(schema.empty_table())


def _frame(records: Any) -> pl.DataFrame:
    """NUMERIC as text without trailing zeros of its fraction, a UUID as text."""
    import polars as pl
    import pyarrow as pa

    columns = []
    for name, kind, values in zip(records.schema.names, records.schema.types, records.columns, strict=True):
        extended = isinstance(kind, pa.BaseExtensionType)
        plain = [part.storage for part in getattr(values, "chunks", [values])] if extended else values
        if extended:
            plain = pa.chunked_array(plain, type=kind.storage_type)
        column = cast("pl.Series", pl.from_arrow(plain)).alias(name)
        if extended and _is_numeric(kind):
            column = column.str.replace(r"(\.\d*?)0+$", "$1").str.strip_suffix(".")
        elif extended:
            column = _write_uuids(column)
        columns.append(column)
    return pl.DataFrame(columns)


def _write_uuids(column: pl.Series) -> pl.Series:
    digits = column.bin.encode("hex")
    return digits.str.replace(r"^(.{8})(.{4})(.{4})(.{4})(.{12})$", "$1-$2-$3-$4-$5")


def _explain(error: Any, source: Source) -> Exception:
    reason = read_reason(error)
    if getattr(error, "sqlstate", None) is None:
        return SourceError(
            f"The database {source.shown} cannot be reached ({reason}); check address, name and password."
        )
    return InvalidInput(f"The database rejected the query ({reason}); correct --query.")


def read_reason(error: Exception) -> str:
    """The server's own words in one line, without passwords."""
    lines = [line for line in str(error).split("ERROR:")[-1].strip().splitlines() if line.strip()]
    return redact_password(lines[0].strip() if lines else type(error).__name__).rstrip(".")
