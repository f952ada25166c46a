"""What every database must do, on those that run here; of the others, the sentences that can be seen without a server."""

from __future__ import annotations

import datetime
import sqlite3
from collections.abc import Callable
from decimal import Decimal

import numpy as np
import polars as pl
import pytest

from dpfda.curves.tables import Domain, Reading, find_source, load_curves
from dpfda.curves.tables.database import query_batches, read_query_columns, write_cell
from dpfda.curves.tables.source import DATABASES
from dpfda.curves.tables.warehouses import name_dataset
from dpfda.errors import InvalidInput, SourceError

ROWS = 25_000
KEY = bytes(32)
READING = Reading(Domain(0, 1), (-3.0, 3.0), id="pid", x="x", y="y")
NAMES = ("pid", "name", "x", "y", "unused")
Database = Callable[[str], object]


def table() -> pl.DataFrame:
    rng = np.random.default_rng(8)
    numbers = rng.integers(-400, 400, ROWS)
    y = [None if k % 11 == 0 else float(value) for k, value in enumerate(rng.normal(size=ROWS))]
    texts = [f"Ö'{number}" for number in numbers]
    return pl.DataFrame({"pid": numbers, "name": texts, "x": rng.random(ROWS), "y": y, "unused": ["?"] * ROWS})


@pytest.fixture(scope="module")
def frame() -> pl.DataFrame:
    return table()


def make_sqlite(frame, folder, request) -> str:
    with sqlite3.connect(folder / "clinic.db") as made:
        made.execute("CREATE TABLE visits (pid INTEGER, name TEXT, x REAL, y REAL, unused TEXT)")
        made.executemany("INSERT INTO visits VALUES (?, ?, ?, ?, ?)", frame.rows())
    made.close()
    return f"sqlite:///{folder}/clinic.db"


def make_duckdb(frame, folder, request) -> str:
    import duckdb

    with duckdb.connect(str(folder / "clinic.duckdb")) as made:
        made.execute("CREATE TABLE visits AS SELECT * FROM frame")
    return f"duckdb:///{folder}/clinic.duckdb"


def make_postgres(frame, folder, request) -> str:
    import psycopg

    url = request.getfixturevalue("postgres_url")
    with psycopg.connect(url) as made:
        made.execute("DROP TABLE IF EXISTS visits")
        made.execute("CREATE TABLE visits (pid BIGINT, name TEXT, x FLOAT8, y FLOAT8, unused TEXT)")
        with made.cursor().copy("COPY visits FROM STDIN") as copy:
            for row in frame.rows():
                copy.write_row(row)
    return url


MAKERS = {
    "sqlite": make_sqlite, "duckdb": make_duckdb, "postgresql by ADBC": make_postgres,
    "postgresql by a cursor": make_postgres,
}  # fmt: skip


@pytest.fixture(scope="module", params=MAKERS)
def filled(request, frame, tmp_path_factory) -> tuple[str, str]:
    return request.param, MAKERS[request.param](frame, tmp_path_factory.mktemp("database"), request)


@pytest.fixture
def url(filled, monkeypatch) -> str:
    how, found = filled
    if how.endswith("cursor"):
        monkeypatch.setattr("dpfda.curves.tables.database._open_arrow_result", lambda *_, **__: None)
    return found


@pytest.mark.parametrize("id_", ["pid", "name"])
def test_a_query_gives_the_curves_of_the_file(url, frame, tmp_path, id_) -> None:
    frame.write_parquet(tmp_path / "visits.parquet")
    reading = Reading(Domain(0, 1), (-3.0, 3.0), id=id_, x="x", y="y")
    expected = load_curves(find_source(str(tmp_path / "visits.parquet")), reading).curves
    found = load_curves(find_source(url, "SELECT * FROM visits"), reading, rows_at_once=4096).curves
    assert found == expected
    assert found.fingerprint(KEY) == expected.fingerprint(KEY)


def test_rows_come_in_batches_of_the_columns_that_were_chosen(url, frame) -> None:
    with query_batches(find_source(url, "SELECT * FROM visits"), lambda names: ["y", "pid"], 1000) as batches:
        parts = list(batches)
    assert max(part.height for part in parts) <= 2048  # DuckDB gives its own vectors
    assert pl.concat(parts).equals(frame.select("y", "pid"))


def test_a_query_without_rows_still_has_columns(url) -> None:
    source = find_source(url, "SELECT * FROM visits WHERE x > 2;")
    assert read_query_columns(source) == list(NAMES)
    with query_batches(source, lambda names: names, 1000) as batches:
        assert [(part.height, part.columns) for part in batches] == [(0, list(NAMES))]
    with pytest.raises(InvalidInput, match="no rows"):
        load_curves(source, READING)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT nothing FROM visits", "rejected the query"), ("SELEC", "rejected the query"),
        ("DELETE FROM visits", "rejected the query|must return rows"),
        ("DROP TABLE visits", "rejected the query|must return"),
        ("SELECT pid, x, x AS y FROM visits WHERE x < 0", "no rows"),
        ("SELECT pid, x AS age, y FROM visits", "names the column 'x'"),
    ],
)  # fmt: skip
def test_what_a_database_refuses_is_one_sentence_and_nothing_changes(url, frame, query, words) -> None:
    with pytest.raises(InvalidInput, match=words) as refusal:
        load_curves(find_source(url, query), READING)
    assert "\n" not in str(refusal.value)
    with query_batches(find_source(url, "SELECT count(*) AS n FROM visits"), list, 10) as batches:
        assert next(batches)["n"].to_list() == [ROWS]


MISSING = {
    "mssql": "pymssql",
    "oracle": "oracledb",
    "snowflake": "adbc_driver_snowflake",
    "bigquery": "adbc_driver_bigquery",
}
URLS = {
    "mssql": "mssql://me:s3cret@127.0.0.1:9/clinic", "oracle": "oracle://me:s3cret@127.0.0.1:9/?service_name=clinic",
    "snowflake": "snowflake://me:s3cret@account/clinic/public", "bigquery": "bigquery://project/dataset",
}  # fmt: skip


def test_every_database_is_in_this_suite() -> None:
    assert {name.split()[0] for name in MAKERS} | MISSING.keys() == set(DATABASES)


@pytest.mark.parametrize("kind", MISSING)
def test_a_missing_driver_is_named_with_its_extra(kind, monkeypatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, MISSING[kind], None)
    monkeypatch.setitem(__import__("sys").modules, f"{MISSING[kind]}.dbapi", None)
    with pytest.raises(InvalidInput, match=rf"pip install 'dpfda\[{kind}\]'") as refusal:
        load_curves(find_source(URLS[kind], "SELECT 1"), READING)
    assert "s3cret" not in str(refusal.value)


@pytest.mark.parametrize("kind", ["mssql", "oracle"])
def test_the_real_drivers_of_sql_server_and_oracle_say_that_nobody_is_there(kind) -> None:
    """They are installed, a server is not: what is seen here is that the door leads to them, and how it closes."""
    with pytest.raises(SourceError, match="cannot be reached") as refusal:
        load_curves(find_source(URLS[kind], "SELECT 1"), READING)
    assert "s3cret" not in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_cells_of_a_drivers_own_types_are_written_one_by_one() -> None:
    day = datetime.date(2001, 2, 3)
    cells = [None, True, 7, 0.5, "a", b"b", day, Decimal("1.500"), Decimal("100"), Decimal("1E+3"), Decimal("NaN")]
    written = [None, True, 7, 0.5, "a", b"b", day, "1.5", "100", "1000", "NaN"]
    assert list(map(write_cell, cells)) == written
    assert write_cell(datetime.timedelta(hours=1)) == "1:00:00"


def test_bigquery_takes_a_project_and_a_dataset_and_no_credentials() -> None:
    assert list(name_dataset("bigquery://project/dataset").values()) == ["project", "dataset"]
    for url in ("bigquery://project", "bigquery://me@project/d", "bigquery://p/d/t", "bigquery://p/d?credentials=x"):
        with pytest.raises(InvalidInput, match="bigquery://project/dataset"):
            name_dataset(url)
