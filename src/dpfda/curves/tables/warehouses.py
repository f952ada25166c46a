"""Rows of a query on Snowflake or BigQuery as Arrow batches (ADBC), through the door of PostgreSQL.

Neither server could be tried: tests show the sentence for a missing driver, and the rest is the code that PostgreSQL's
batches go through. Neither has read-only transactions: give a login that may only read.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from dpfda.curves.tables.postgres import Choose, NoArrowType, read_reason, run_query
from dpfda.curves.tables.source import Source
from dpfda.errors import InvalidInput, SourceError

if TYPE_CHECKING:
    import polars as pl

WAREHOUSES = ("snowflake", "bigquery")


@contextmanager
def warehouse_batches(
    source: Source, choose: Choose, rows: int, *, any_text: bool = False
) -> Iterator[Iterator[pl.DataFrame]]:
    """The rows of the query in frames of at most `rows`, at least one frame."""
    driver = _import_driver(source.kind)
    try:
        with _connect(driver, source) as connection, connection.cursor() as cursor:
            yield run_query(cursor, source, choose, rows, any_text=any_text)
    except NoArrowType:
        raise InvalidInput("--query returns a column that has no plain type; cast it to text in the query.") from None
    except driver.Error as error:
        raise InvalidInput(f"The database rejected the query ({read_reason(error)}); correct --query.") from None


def _import_driver(kind: str) -> Any:
    try:
        return importlib.import_module(f"adbc_driver_{kind}.dbapi")
    except ImportError:
        raise InvalidInput(
            f"This needs the package 'adbc-driver-{kind}'; install it with `pip install 'dpfda[{kind}]'`."
        ) from None


def _connect(driver: Any, source: Source) -> Any:
    """snowflake://user@account/database/schema?warehouse=w, or bigquery://project/dataset with the machine's credentials."""
    try:
        if source.kind == "snowflake":
            return driver.connect(source.location.split("://", 1)[1])
        return driver.connect(name_dataset(source.location))
    except driver.Error as error:
        raise SourceError(
            f"The database {source.shown} cannot be reached ({read_reason(error)}); check address, name and password."
        ) from None


def name_dataset(url: str) -> dict[str, str]:
    """The options of BigQuery's driver for bigquery://project/dataset."""
    address = urlsplit(url)
    project, dataset = address.netloc, unquote(address.path.strip("/"))
    if not project or not dataset or "/" in dataset or "@" in project or address.query:
        raise InvalidInput(
            "SOURCE on BigQuery must be bigquery://project/dataset; credentials come from the machine's environment."
        )
    return {"adbc.bigquery.sql.project_id": project, "adbc.bigquery.sql.dataset_id": dataset}
