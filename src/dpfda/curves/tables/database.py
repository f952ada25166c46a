"""Rows of a query in batches: SQLite, SQL Server, Oracle by SQLAlchemy, DuckDB by itself, PostgreSQL by ADBC where it can.

SQLite, DuckDB and PostgreSQL are opened so that a query cannot change rows. Oracle is asked for the same, and of SQL Server,
which has no such mode, nothing is committed; neither could be tried here, so give them a login that may only read. Snowflake
and BigQuery are in `warehouses`.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import date
from decimal import Decimal
from types import NoneType
from typing import TYPE_CHECKING, Any, cast

from dpfda.curves.tables.arrow_text import check_texts
from dpfda.curves.tables.parquet_files import take_columns
from dpfda.curves.tables.postgres import Choose, NoArrowType, arrow_result
from dpfda.curves.tables.postgres_cells import CLIENT_ENCODING, read_as_text
from dpfda.curves.tables.source import Source, redact_password
from dpfda.curves.tables.warehouses import WAREHOUSES, warehouse_batches
from dpfda.errors import InvalidInput, SourceError

if TYPE_CHECKING:
    import polars as pl

_FETCHED = 100_000  # rows as Python objects, which are large
_CONNECT_SECONDS = 10
_FOREIGN_CELLS = {"mssql": "pymssql", "oracle": "oracledb"}  # read by a cursor whose objects are the driver's own
_NO_ROWS = {
    "mssql": "SELECT TOP 0 * FROM ({}\n) AS dpfda_rows",
    "oracle": "SELECT * FROM ({}\n) WHERE 1 = 0",
}
_PLAIN = (bool, int, float, str, bytes, date)
_AS_ARROW = (
    "boolean", "tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger", "ubigint", "hugeint",
    "float", "double", "decimal", "varchar", "uuid", "enum", "blob", "date", "time", "timestamp", "timestamp_s",
    "timestamp_ms", "timestamp_ns", "timestamp with time zone", "null",
)  # types of DuckDB  # fmt: skip
_EXTRAS = {"postgresql": "postgres", "mssql": "mssql", "oracle": "oracle"}


@contextmanager
def query_batches(
    source: Source, choose: Choose, rows: int, *, any_text: bool = False
) -> Iterator[Iterator[pl.DataFrame]]:
    """The rows of the query in frames of about `rows`, at least one frame; nothing is committed.

    `choose` gets the names of the columns and says which ones to read.
    The server keeps the result: SQLite computes rows as they are fetched, PostgreSQL holds a cursor. With `any_text`,
    bytes that are no text in a text (SQLite does not check, nor does PostgreSQL with the encoding SQL_ASCII) are replaced.
    """
    if source.kind == "duckdb":
        with _duckdb_batches(source, choose, rows, any_text=any_text) as frames:
            yield frames
        return
    if source.kind in WAREHOUSES:
        with warehouse_batches(source, choose, rows, any_text=any_text) as frames:
            yield frames
        return
    if source.kind == "postgresql":
        with ExitStack() as held:
            batches = _open_arrow_result(source, choose, rows, held, any_text=any_text)
            if batches is not None:
                yield batches
                return
    with _connect(source) as connection:
        if any_text and source.kind == "sqlite":
            connection.connection.driver_connection.text_factory = _decode
        options = {"stream_results": True, "max_row_buffer": rows}
        result = connection.execution_options(**options).exec_driver_sql(source.query)
        if not result.returns_rows:
            raise InvalidInput("--query must return rows; begin it with SELECT.")
        names = list(result.keys())
        if len(set(names)) != len(names):
            raise InvalidInput("--query returns two columns of the same name; rename one with AS.")
        columns = choose(names)
        fetched = _fetch(result, names, min(rows, _FETCHED), source.kind in _FOREIGN_CELLS)
        yield (frame.select(take_columns(columns)) for frame in fetched)


def read_query_columns(source: Source) -> list[str]:
    """The names of the query's columns; the database looks at the query and fetches no row."""
    query = _NO_ROWS.get(source.kind, "SELECT * FROM ({}\n) AS dpfda_rows LIMIT 0")
    query = query.format(str(source.query).rstrip().rstrip(";"))
    if source.kind == "duckdb":
        with _duckdb_result(replace(source, query=query)) as result:
            return list(result.columns)  # without a frame: polars does not have every type of DuckDB
    if source.kind in WAREHOUSES:
        with query_batches(replace(source, query=query), list, 1) as frames:
            return next(frames).columns
    with _connect(source) as connection:
        return list(connection.exec_driver_sql(query).keys())


def _open_arrow_result(
    source: Source, choose: Choose, rows: int, held: ExitStack, *, any_text: bool
) -> Iterator[pl.DataFrame] | None:
    """None without the driver, or if a column has no Arrow type: then a cursor reads."""
    try:
        return held.enter_context(arrow_result(source, choose, rows, any_text=any_text))
    except (ImportError, NoArrowType):
        return None


def _fetch(result: Any, names: list[str], rows: int, foreign: bool) -> Iterator[pl.DataFrame]:
    empty = True
    for batch in result.partitions(rows):
        empty = False
        yield _frame(names, [tuple(map(write_cell, row)) for row in batch] if foreign else batch)
    if empty:
        yield _frame(names, [])


def write_cell(value: Any) -> Any:
    """A cell of a driver's own type as text, a decimal without trailing zeros: no other row can change how it is written."""
    if value is None or isinstance(value, _PLAIN):
        return value
    if isinstance(value, Decimal) and value.is_finite():
        text = f"{value:f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    return str(value)


def _decode(content: bytes) -> str:
    return content.decode(errors="replace")


def _frame(names: list[str], rows: Any) -> pl.DataFrame:
    """Rows of Python objects as a frame. SQLite may mix types in a column: such a one keeps its objects.

    Nothing is made of one type because a cell of another row has it: how a cell is written, and so which level it is, would
    depend on other subjects.
    """
    import polars as pl

    values = [tuple(row) for row in rows]
    try:
        columns = pl.DataFrame(values, schema=names, orient="row", infer_schema_length=None).get_columns()
    except (Exception, pl.exceptions.PanicException):  # numbers beside bytes, and what else polars cannot put together
        columns = [_column(name, [row[place] for row in values]) for place, name in enumerate(names)]
    return pl.DataFrame([_unmix(column, [row[place] for row in values]) for place, column in enumerate(columns)])


def _column(name: str, values: list[Any]) -> pl.Series:
    import polars as pl

    try:
        return pl.DataFrame({name: values}, strict=True, infer_schema_length=None)[name]
    except (Exception, pl.exceptions.PanicException):
        return pl.Series(name, values, dtype=pl.Object)


def _unmix(column: pl.Series, values: list[Any]) -> pl.Series:
    """The column, with the objects themselves if they are not all of its own type."""
    import polars as pl

    own = {pl.String: str, pl.Binary: bytes, pl.Float64: float}.get(column.dtype.base_type())
    if own is None or all(isinstance(value, own | NoneType) for value in values):
        return column
    return pl.Series(column.name, values, dtype=pl.Object)


@contextmanager
def _connect(source: Source) -> Iterator[Any]:
    alchemy = import_optional("sqlalchemy", "cli")
    try:
        engine = alchemy.create_engine(
            _engine_url(source), poolclass=alchemy.NullPool, connect_args=_connect_args(source)
        )
        with _open(engine, source) as connection:
            if source.kind == "oracle":
                connection.exec_driver_sql("SET TRANSACTION READ ONLY")
            if source.kind == "postgresql":
                connection.exec_driver_sql("SET TRANSACTION READ ONLY")
                read_as_text(connection)
            yield connection
    except ModuleNotFoundError as error:
        raise explain_missing_driver(error, _EXTRAS[source.kind]) from None
    except alchemy.exc.ArgumentError:
        raise InvalidInput(
            f"{source.shown} is not a database URL; write it as {source.kind}://user@host/database."
        ) from None
    except (alchemy.exc.ProgrammingError, alchemy.exc.OperationalError, alchemy.exc.DatabaseError) as error:
        raise _explain(error, source) from None


def _open(engine: Any, source: Source) -> Any:
    """A connection; of SQL Server and Oracle, all that goes wrong here is that there is none."""
    alchemy = import_optional("sqlalchemy", "cli")
    try:
        return engine.connect()
    except alchemy.exc.DBAPIError as error:
        if source.kind not in _FOREIGN_CELLS:
            raise
        raise _explain_absence(source, describe_reason(error)) from None


def _engine_url(source: Source) -> str:
    if source.kind == "sqlite":
        assert source.path is not None
        return f"sqlite:///file:{source.path.absolute()}?mode=ro&uri=true"
    if source.kind in _FOREIGN_CELLS:
        return f"{source.kind}+{_FOREIGN_CELLS[source.kind]}://" + source.location.split("://", 1)[1]
    return postgres_url(source.location)


def _connect_args(source: Source) -> dict[str, Any]:
    if source.kind == "mssql":
        return {"login_timeout": _CONNECT_SECONDS}
    if source.kind == "oracle":
        return {"tcp_connect_timeout": _CONNECT_SECONDS}
    if source.kind != "postgresql":
        return {}
    return {"connect_timeout": _CONNECT_SECONDS, "client_encoding": CLIENT_ENCODING}


def postgres_url(url: str) -> str:
    """The URL with the driver that this package brings."""
    return "postgresql+psycopg://" + url.split("://", 1)[1]


def _explain(error: Any, source: Source) -> Exception:
    reason = describe_reason(error)
    unreachable = source.kind == "postgresql" and getattr(error.orig, "sqlstate", None) is None
    if unreachable or "unable to open" in reason or "is locked" in reason:
        return _explain_absence(source, reason)
    return InvalidInput(f"The database rejected the query ({reason}); correct --query.")


def _explain_absence(source: Source, reason: str) -> SourceError:
    return SourceError(f"The database {source.shown} cannot be reached ({reason}); check address, name and password.")


def describe_reason(error: Any) -> str:
    """The driver's own words in one line, without passwords."""
    words = str(getattr(error, "orig", None) or error).strip().splitlines()
    return redact_password(words[0] if words else type(error).__name__).rstrip(".")


@contextmanager
def _duckdb_batches(source: Source, choose: Choose, rows: int, *, any_text: bool) -> Iterator[Iterator[pl.DataFrame]]:
    """As Arrow; a column of a type that is not read so (`column_types`) as the texts that DuckDB writes."""
    with _duckdb_result(source) as result:
        columns = choose(list(result.columns))
        kinds = dict(zip(result.columns, (kind.id for kind in result.types), strict=True))
        chosen = result.project(", ".join(_take_from_duckdb(name, kinds[name]) for name in columns))
        read = getattr(chosen, "to_arrow_reader", None) or chosen.fetch_record_batch  # the name up to DuckDB 1
        with read(rows) as reader:  # an error that is kept would keep it open, and opening the file again waits
            yield _read_records(reader, columns, any_text=any_text)


def _take_from_duckdb(name: str, kind: str) -> str:
    quoted = '"' + name.replace('"', '""') + '"'
    return quoted if kind in _AS_ARROW else f"CAST({quoted} AS VARCHAR) AS {quoted}"


@contextmanager
def _duckdb_result(source: Source) -> Iterator[Any]:
    """The query's result, of which nothing has been read."""
    duckdb = import_optional("duckdb", "duckdb")
    try:
        with duckdb.connect(str(source.path), read_only=True) as connection:
            connection.execute("SET arrow_large_buffer_size = true")  # texts of a batch may be more than 2 GB
            result = connection.sql(source.query)
            if result is None:
                raise InvalidInput("--query must return rows; begin it with SELECT.")
            yield result
    except duckdb.IOException as error:
        raise SourceError(f"The database {source.shown} cannot be opened ({describe_reason(error)}).") from None
    except duckdb.Error as error:
        raise InvalidInput(f"The database rejected the query ({describe_reason(error)}); correct --query.") from None


def _read_records(reader: Any, columns: list[str], *, any_text: bool) -> Iterator[pl.DataFrame]:
    import polars as pl

    empty = True
    for batch in _stream(reader):
        empty = False
        checked = check_texts(batch.select(columns), "The database", tolerant=any_text)
        yield cast("pl.DataFrame", pl.from_arrow(checked))
    if empty:
        yield cast("pl.DataFrame", pl.from_arrow(reader.schema.empty_table().select(columns)))


def _stream(reader: Any) -> Iterator[Any]:
    """The records; where a query fails at a row behind the first ones, Arrow has an error as of the disk for it."""
    try:
        yield from reader
    except OSError as error:
        raise InvalidInput(f"The database rejected the query ({describe_reason(error)}); correct --query.") from None


def import_optional(module: str, extra: str) -> Any:
    """An optional module, or a sentence that says how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise InvalidInput(
            f"This needs the package {module!r}; install it with `pip install 'dpfda[{extra}]'`."
        ) from None


def explain_missing_driver(error: ModuleNotFoundError, extra: str = "postgres") -> InvalidInput:
    """The sentence for a database without its driver."""
    return InvalidInput(
        f"This database needs the package {error.name!r}; install it with `pip install 'dpfda[{extra}]'`."
    )
