"""Tables into curves: every format gives the same curves, and what cannot be read is refused with the fix."""

from __future__ import annotations

import gzip
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from dpfda.curves.tables import Covariate, Domain, Reading, find_source, load_curves
from dpfda.curves.tables.postgres import NoArrowType, arrow_result
from dpfda.curves.tables.source import redact_password
from dpfda.errors import InvalidInput, SourceError

pl = pytest.importorskip("polars")

ROWS = {
    "pid": ["b", "a", "a", "c", "b", "c"],
    "age": [50.0, 46.5, 48.0, 62.0, 51.0, 47.25],
    "hdl": [40.0, 55.5, 60.0, 20.0, 41.0, 33.0],
    "bmi": [30.0, 22.0, 22.0, 41.0, 30.0, 41.0],
    "smoker": ["never", "former", "former", "current", "never", "current"],
}
READING = Reading(Domain(46, 63), (0.0, 150.0), id="pid", x="age", y="hdl")


@pytest.fixture
def frame():
    return pl.DataFrame(ROWS)


@pytest.fixture
def expected(frame, tmp_path):
    frame.write_csv(tmp_path / "plain.csv")
    return load_curves(find_source(str(tmp_path / "plain.csv")), READING).curves


def load(path: object, reading: Reading = READING, query: str | None = None):
    return load_curves(find_source(str(path), query), reading)


def test_curves_are_those_of_the_table(expected) -> None:
    assert expected.n == 3
    np.testing.assert_array_equal(expected.x, [46.5, 48.0, 50.0, 51.0, 62.0, 47.25])
    np.testing.assert_array_equal(expected.y, [55.5, 60.0, 40.0, 41.0, 20.0, 33.0])


def as_parquet_folder(frame, folder: Path) -> Path:
    target = folder / "parts" / "year=1"
    target.mkdir(parents=True)
    frame[:4].write_parquet(target / "1.parquet")
    frame[4:].write_parquet(target / "2.parquet")
    return folder / "parts"


def written(frame, path: Path, write: str) -> Path:
    getattr(frame, write)(path)
    return path


def text(frame, path: Path, content: bytes) -> Path:
    path.write_bytes(gzip.compress(content) if path.name.endswith(".gz") else content)
    return path


def csv_of(frame, **options: object) -> str:
    return frame.write_csv(**options)


FORMATS = {
    "gzipped CSV": lambda f, d: text(f, d / "t.csv.gz", csv_of(f).encode()),
    "tabs": lambda f, d: text(f, d / "t.tsv", csv_of(f, separator="\t").encode()),
    "semicolons": lambda f, d: text(f, d / "t.csv", csv_of(f, separator=";").encode()),
    "a BOM": lambda f, d: text(f, d / "t.csv", csv_of(f).encode("utf-8-sig")),
    "Windows line ends": lambda f, d: text(f, d / "t.csv", csv_of(f, line_terminator="\r\n").encode()),
    "mixed line ends": lambda f, d: text(f, d / "t.csv", _mixed(csv_of(f)).encode()),
    "old Mac line ends": lambda f, d: text(f, d / "t.csv", csv_of(f).replace("\n", "\r").encode()),
    "spaces in the header": lambda f, d: text(f, d / "t.csv", csv_of(f).replace("age", " age ", 1).encode()),
    "Parquet": lambda f, d: written(f, d / "t.parquet", "write_parquet"),
    "a folder of Parquet": as_parquet_folder,
    "Feather": lambda f, d: written(f, d / "t.feather", "write_ipc"),
    "an Arrow stream": lambda f, d: written(f, d / "t.arrows", "write_ipc_stream"),
}


def _mixed(content: str) -> str:
    lines = content.split("\n")
    ends = ("\r\n", "\n", "\r")
    return "".join(line + ends[number % 3] for number, line in enumerate(lines) if line)


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_gives_the_same_curves(kind: str, frame, expected, tmp_path) -> None:
    assert load(FORMATS[kind](frame, tmp_path)).curves == expected


def test_sqlite(frame, expected, tmp_path) -> None:
    with sqlite3.connect(tmp_path / "clinic.db") as connection:
        connection.execute("CREATE TABLE visits (pid TEXT, age REAL, hdl REAL)")
        connection.executemany("INSERT INTO visits VALUES (?, ?, ?)", frame.select("pid", "age", "hdl").rows())
    url = f"sqlite:///{tmp_path}/clinic.db"
    assert load(url, query="SELECT * FROM visits").curves == expected
    with pytest.raises(InvalidInput, match="rejected the query"):
        load(url, query="DELETE FROM visits")
    with pytest.raises(InvalidInput, match="--query"):
        load(url)


def test_duckdb(frame, expected, tmp_path) -> None:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "clinic.duckdb")) as connection:
        connection.execute("CREATE TABLE visits AS SELECT * FROM frame")
    url = f"duckdb:///{tmp_path}/clinic.duckdb"
    assert load(url, query="SELECT pid, age, hdl FROM visits").curves == expected
    with pytest.raises(InvalidInput, match="rejected the query"):
        load(url, query="SELECT nothing FROM visits")


def test_postgresql(frame, expected, postgres_url) -> None:
    import psycopg

    with psycopg.connect(postgres_url) as connection:
        connection.execute("DROP TABLE IF EXISTS visits")
        connection.execute("CREATE TABLE visits (pid TEXT, age NUMERIC, hdl DOUBLE PRECISION)")
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO visits VALUES (%s, %s, %s)", frame.select("pid", "age", "hdl").rows())
    assert load(postgres_url, query="SELECT * FROM visits").curves == expected
    with pytest.raises(InvalidInput, match="rejected the query"):
        load(postgres_url, query="DROP TABLE visits")


KINDS = {
    "integers": "k::int4", "small": "(k % 100)::int2", "texts": "'subject-' || k", "uuids": "md5(k::text)::uuid",
    "numerics": "k::numeric(12, 2)", "days": "'2001-01-01'::date + k", "booleans": "k % 2 = 0",
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_postgresql_as_arrow_and_by_a_cursor_gives_the_same_curves(kind, postgres_url, monkeypatch) -> None:
    query = (
        f"SELECT {KINDS[kind]} AS pid, (46 + random() * 17)::numeric(8, 4) AS age, "
        "CASE WHEN k % 7 = 0 THEN NULL ELSE k::float8 / 3 END AS hdl FROM generate_series(1, 999) AS k"
    )
    import psycopg

    with psycopg.connect(postgres_url) as connection:
        connection.execute("DROP TABLE IF EXISTS kinds")
        connection.execute(f"CREATE TABLE kinds AS {query}")
    arrow = load(postgres_url, query="SELECT * FROM kinds").curves
    monkeypatch.setattr("dpfda.curves.tables.database._open_arrow_result", lambda *_, **__: None)
    cursor = load(postgres_url, query="SELECT * FROM kinds").curves
    assert arrow == cursor
    assert arrow.n_points > 800


def test_a_type_without_an_arrow_type_is_left_to_the_cursor(postgres_url) -> None:
    query = "SELECT k AS pid, 50.0 AS age, k::float8 AS hdl, '127.0.0.1'::inet AS place FROM generate_series(1, 5) AS k"
    with pytest.raises(NoArrowType), arrow_result(find_source(postgres_url, query), list, 100):
        pass
    assert load(postgres_url, query=query).curves.n == 5


@pytest.mark.parametrize(
    ("query", "match"),
    [
        ("SELECT nothing", "rejected the query"), ("SHOW work_mem", "rejected the query"),
        ("SELECT 1 AS a, 2 AS a", "same name"),
        ("DELETE FROM pg_class", "rejected the query"), ("SELECT 1 AS pid, 50 AS age, 1/0 AS hdl", "rejected the query"),
    ],
)  # fmt: skip
def test_postgresql_refusals_are_one_sentence(query, match, postgres_url) -> None:
    with pytest.raises(InvalidInput, match=match) as refusal:
        load(postgres_url, query=query)
    assert "\n" not in str(refusal.value)


def test_wide_with_one_row_per_subject(tmp_path) -> None:
    (tmp_path / "w.csv").write_text("pid,hdl_46,hdl_50.5,other\n1,40,,x\n2,,60,x\n3,50,55,x\n")
    reading = Reading(Domain(46, 63), (0.0, 150.0), id="pid", y="hdl", wide=True)
    curves = load(tmp_path / "w.csv", reading).curves
    np.testing.assert_array_equal(curves.counts, [1, 1, 2])
    np.testing.assert_array_equal(curves.x, [46, 50.5, 46, 50.5])


def test_wide_with_one_column_per_subject(tmp_path) -> None:
    (tmp_path / "w.csv").write_text("age,anna,ben\n46,40,\n50,41,60\n")
    curves = load(tmp_path / "w.csv", Reading(Domain(46, 63), (0.0, 150.0), x="age", wide=True)).curves
    np.testing.assert_array_equal(curves.counts, [2, 1])
    np.testing.assert_array_equal(curves.y, [40, 41, 60])


def test_decimal_commas(frame, expected, tmp_path) -> None:
    path = text(frame, tmp_path / "t.csv", csv_of(frame, separator=";").replace(".", ",").encode())
    reading = Reading(READING.domain, READING.y_bounds, id="pid", x="age", y="hdl", decimal="comma")
    assert load(path, reading).curves == expected
    with pytest.raises(InvalidInput, match="--decimal comma"):
        load(path)


@pytest.mark.parametrize("days", [["2020-01-01", "2020-01-11"], ["2020-01-01 00:00:00", "2020-01-11T00:00:00"]])
def test_dates_are_counted_from_the_first_day_of_the_domain(days, tmp_path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"pid,day,hdl\n1,{days[0]},40\n1,{days[1]},50\n")
    domain = Domain.between("2020-01-01", "2020-12-31")
    reading = Reading(domain, (0.0, 150.0), id="pid", x="day", y="hdl")
    np.testing.assert_array_equal(load(path, reading).curves.x, [0.0, 10.0])
    pl.read_csv(path, try_parse_dates=True).write_parquet(tmp_path / "t.parquet")
    np.testing.assert_array_equal(load(tmp_path / "t.parquet", reading).curves.x, [0.0, 10.0])
    with pytest.raises(InvalidInput, match="give --domain as dates"):
        load(path, Reading(Domain(0, 1), (0.0, 150.0), id="pid", x="day", y="hdl"))


def test_covariates_by_bounds_and_levels(frame, tmp_path) -> None:
    frame.write_csv(tmp_path / "t.csv")
    covariates = (Covariate("bmi", bounds=(10, 70)), Covariate("smoker", levels=("never", "former", "current")))
    reading = Reading(READING.domain, READING.y_bounds, id="pid", x="age", y="hdl", covariates=covariates)
    loaded = load(tmp_path / "t.csv", reading)
    assert loaded.functions == ("intercept", "bmi", "smoker: former", "smoker: current")
    np.testing.assert_array_equal(loaded.curves.design, [[1, 22, 1, 0], [1, 30, 0, 0], [1, 41, 0, 1]])


def test_a_level_that_is_not_listed_empties_the_curve_and_is_noted(frame, tmp_path) -> None:
    frame.write_csv(tmp_path / "t.csv")
    covariates = (Covariate("smoker", levels=("never", "former")),)
    reading = Reading(READING.domain, READING.y_bounds, id="pid", x="age", y="hdl", covariates=covariates)
    loaded = load(tmp_path / "t.csv", reading)
    np.testing.assert_array_equal(loaded.curves.counts, [2, 2, 0])
    assert "not in --levels" in loaded.owner_notes[0]


def test_the_owner_is_told_what_was_clamped_and_left_out(tmp_path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("pid,age,hdl\n1,50,500\n2,51,40\n3,99,40\n4,50,NA\n")
    notes = load(path).owner_notes
    assert "1 of 4 rows has no x or no y and was left out" in notes
    assert "1 of 3 points lies outside the domain and was left out" in notes
    assert "2 of 4 subjects have no usable point and contribute nothing" in notes
    assert "1 of 4 subjects had values outside the bounds and was clamped" in notes


def test_no_row_with_an_id_is_dropped_from_the_public_number_of_subjects(tmp_path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("pid,age,hdl\n1,50,5\n2,,\n3,99,40\n")
    assert load(path).curves.n == 3


def test_copies_of_rows_are_refused_dropped_or_kept(tmp_path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("pid,age,hdl\n1,50,5\n1,50,5\n")
    with pytest.raises(InvalidInput, match="--duplicates drop"):
        load(path)
    for choice, count in (("keep", 2), ("drop", 1)):
        reading = Reading(READING.domain, READING.y_bounds, id="pid", x="age", y="hdl", duplicates=choice)
        assert load(path, reading).curves.n_points == count


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is empty"),
        (b"pid,age,hdl\n", "header but no rows"),
        (b"pid,age,hdl\n1,50,high\n", "Row 1 of 'hdl' is 'high', not a number"),
        (b"pid,age,hdl\n,50,4\n", "belong to no subject"),
        (b"pid,age,age,hdl\n1,50,4,4\n", "two columns named 'age'"),
        (b"pid,age,hdl\n1,50,4,7,8\n", "more fields than its header"),
        ("pid,größe,age,hdl\n1,2,50,4\n".encode("latin-1"), "UTF-8"),
        ("pid,age,hdl\n1,50,4\n".encode("utf-16"), "UTF-16"),
        (b"pid,age,hdl\n1,03/04/2019,4\n", "year first"),
        (b"pid,age,hdl\n1,5,4\n", "misses every point"),
        (b"pid,age,hdl\n1,50,4000\n", "misses every value"),
        (b"pid,age,hdl\n1,,\n", "No row has both x and y"),
        (b"pid,years,hdl\n1,50,4\n", "lacks"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(content: bytes, sentence: str, tmp_path) -> None:
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(InvalidInput, match=sentence) as refusal:
        load(tmp_path / "t.csv")
    assert "\n" not in str(refusal.value)


def test_a_wrong_name_brings_the_nearest_right_one(tmp_path) -> None:
    (tmp_path / "t.csv").write_text("pid,ages,hdl\n1,50,4\n")
    with pytest.raises(InvalidInput, match="did you mean 'ages'"):
        load(tmp_path / "t.csv")
    with pytest.raises(InvalidInput, match=r"did you mean t\.csv"):
        load(tmp_path / "tt.csv")


@pytest.mark.parametrize("name", ["t.parquet", "t.feather", "t.csv.gz"])
def test_a_damaged_file_is_refused(name: str, tmp_path) -> None:
    (tmp_path / name).write_bytes(b"\x1f\x8bnot really" * 3)
    with pytest.raises((InvalidInput, SourceError)) as refusal:
        load(tmp_path / name)
    assert "\n" not in str(refusal.value)


def test_an_unreachable_database_is_the_systems_fault() -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(SourceError, match="cannot be reached") as refusal:
        load("postgresql://me:secret@127.0.0.1:9/none", query="SELECT 1")
    assert "secret" not in str(refusal.value)


def test_passwords_are_redacted() -> None:
    shown = redact_password("dpfda fit postgresql://me:s3cr:t@host/db --ledger postgresql://you:p@h/l")
    assert shown == "dpfda fit postgresql://me:***@host/db --ledger postgresql://you:***@h/l"
    assert redact_password("postgresql://me:a/b@host/db") == "postgresql://me:***@host/db"
    assert redact_password("postgresql://me:pa?ss@host/db") == "postgresql://me:***@host/db"
    options = "postgresql://h:5432/db?user=me&options=-cx%3Dy&ledger=trials"
    assert redact_password(f'source = "{options}"') == f'source = "{options}"'.replace("-cx%3Dy", "***")
    assert redact_password("postgresql://h/db?user=me&password=s3cret x") == "postgresql://h/db?user=me&password=*** x"


@pytest.mark.parametrize("url", ["postgresql://me:pa?ss@host/db", "oracle://me:pa#ss@host/db"])
def test_a_password_with_an_odd_letter_is_refused_before_it_is_shown(url) -> None:
    """Review seven: it stood in messages, reports and results, and the user's name became that of the data set."""
    with pytest.raises(InvalidInput, match="SOURCE must not have an @ behind") as refusal:
        find_source(url, "SELECT 1")
    assert "ss@host" not in str(refusal.value)


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        ({}, "--bounds bmi"),
        ({"bounds": (3.0, 1.0)}, "low < high"),
        ({"levels": ("only",)}, "at least two"),
    ],
)
def test_a_covariate_needs_public_facts(facts, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        Covariate("bmi", **facts)
