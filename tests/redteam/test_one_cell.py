"""Sixth review, R6-0 and R6-1: one property for all loaders.

Whatever one cell holds that is not an id, in any way in which the format can hold it: the table has the same subjects in the
same places, and nobody else's curve changes. Every second subject has one row only, so that a lost row is a lost subject.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpfda.curves.curves import Curves
from dpfda.curves.tables import Covariate, Domain, Reading, find_source, load_curves, text_files

COLUMNS = ("id", "x", "y", "arm", "note")
ROWS = [
    {"id": f"s{subject:02d}", "x": f"{0.1 + 0.3 * visit:.1f}", "y": f"{0.05 * subject:.2f}", "arm": "ab"[subject % 2],
     "note": "fine"}
    for subject in range(10)
    for visit in range(1 + subject % 2)
]  # fmt: skip
ROLES = COLUMNS[1:]
READING = Reading(
    Domain(0.0, 1.0), (-1.0, 1.0), id="id", x="x", y="y", covariates=(Covariate("arm", levels=("a", "b")),),
    rows="never refuse",
)  # fmt: skip

Cell = tuple[int, str, Any]  # row, column and what stands there
Write = Callable[[Path, list[dict[str, Any]]], tuple[str, str | None]]

LETTERS = '"",;\t|\r\n\0\x1a\u2028\x85\x0b\x0c \'\\#1.5e-aé漢\ufeff\ufffd\ufdd0'
FORGED = [
    "x\ns03,0.5,0.9,a,z\ny",
    '"\ns03,0.5,0.9,a,z\n"',
    "\n" * 30,
    "s03",
    '1"5,0',
    '","',
    '"',
    "'\"'",
    "a\r\ns00,1,1,b,c",
]
TEXTS = st.one_of(st.sampled_from(FORGED), st.text(LETTERS, max_size=12), st.text(max_size=5))
NUMBERS = st.one_of(st.floats(), st.integers(-(2**63), 2**63 - 1))
settings.register_profile("one cell", settings.get_profile("repeatable"), max_examples=20, deadline=None,
                          suppress_health_check=[HealthCheck.function_scoped_fixture])  # fmt: skip
one_cell = settings.get_profile("one cell")


def changed(cell: Cell) -> list[dict[str, Any]]:
    row, column, value = cell
    return [*ROWS[:row], {**ROWS[row], column: value}, *ROWS[row + 1 :]]


def load(location: str, query: str | None) -> Curves:
    return load_curves(find_source(location, query), READING).curves


def check(write: Write, folder: Path, cell: Cell, read: Callable[..., Curves] = load) -> None:
    """The same subjects in the same places, and the others' curves as they were."""
    usual, odd = read(*write(folder, ROWS)), read(*write(folder, changed(cell)))
    assert (usual.counts > 0).all()
    assert np.array_equal(odd.labels, usual.labels)
    others = [place for place in range(usual.n) if place != int(ROWS[cell[0]]["id"][1:])]
    assert odd.take(others) == usual.take(others)


def cells_of(values: st.SearchStrategy[Any], roles: tuple[str, ...] = ROLES) -> st.SearchStrategy[Cell]:
    return st.tuples(st.integers(0, len(ROWS) - 1), st.sampled_from(roles), values)


# ------------------------------------------------------------ text files

ORDERS = [COLUMNS, ("x", "note", "id", "y", "arm"), ("note", "arm", "y", "x", "id")]


def by_csv(order: tuple[str, ...], quoting: int, separator: str, end: str, *, zipped: bool = False) -> Write:
    """As Python's own writer has it."""

    def write(folder: Path, rows: list[dict[str, Any]]) -> tuple[str, None]:
        text = io.StringIO()
        made = csv.DictWriter(text, order, quoting=quoting, delimiter=separator, lineterminator=end)
        made.writeheader()
        made.writerows(rows)
        content, path = text.getvalue().encode("utf-8", "surrogatepass"), folder / ("t.csv.gz" if zipped else "t.csv")
        path.write_bytes(gzip.compress(content, 1) if zipped else content)
        return str(path), None

    return write


def by_polars(folder: Path, rows: list[dict[str, Any]]) -> tuple[str, None]:
    pl.DataFrame(rows).write_csv(folder / "t.csv")
    return str(folder / "t.csv"), None


def without_quoting(order: tuple[str, ...], end: bytes = b"\n") -> Write:
    """As a program writes that never heard of quotes; cells may be bytes."""

    def write(folder: Path, rows: list[dict[str, Any]]) -> tuple[str, None]:
        lines = [order, *([row[name] for name in order] for row in rows)]
        cells = ([cell if isinstance(cell, bytes) else cell.encode() for cell in line] for line in lines)
        (folder / "t.csv").write_bytes(b"".join(b",".join(line) + end for line in cells))
        return str(folder / "t.csv"), None

    return write


PROPER = {
    f"{name}, {place}": by_csv(order, quoting, separator, end, zipped=zipped)
    for place, order in zip(("id first", "id amid", "id last"), ORDERS, strict=True)
    for name, quoting, separator, end, zipped in (
        ("least quotes", csv.QUOTE_MINIMAL, ",", "\r\n", False), ("all quotes", csv.QUOTE_ALL, ";", "\r\n", True),
        ("texts quoted", csv.QUOTE_NONNUMERIC, "\t", "\r\n", False),
    )
} | {"polars": by_polars}  # fmt: skip


@pytest.mark.parametrize(
    ("writer", "block"), [*((writer, 1 << 23) for writer in PROPER), ("least quotes, id first", 37), ("polars", 37)]
)
@one_cell
@given(cell=cells_of(TEXTS.filter(lambda text: not any("\ud800" <= letter <= "\udfff" for letter in text))))
def test_a_cell_of_a_text_file_is_its_subject_s_affair(writer, block, cell, tmp_path) -> None:
    """A patient's diary of 220 lines, in a column that nobody reads, once put out all 200 subjects of a site."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_files, "_BLOCK", block)
        check(PROPER[writer], tmp_path, cell)


LINES = st.one_of(
    st.binary(max_size=8).filter(lambda cell: b"\n" not in cell), st.text('",1.é\r\0 x', max_size=8).map(str.encode)
)


@pytest.mark.parametrize("order", ORDERS[::2], ids=["id first", "id last"])
@one_cell
@given(cell=cells_of(LINES))
def test_an_odd_line_stays_its_subject_s(order, cell, tmp_path) -> None:
    """A stray quote and a separator (1"5,0) once took the line's id away, and all later subjects moved up by one."""
    check(without_quoting(order), tmp_path, cell)


@one_cell
@given(cell=cells_of(LINES.filter(lambda cell: b"," not in cell)))
def test_quotes_before_an_id_do_not_hide_it(cell, tmp_path) -> None:
    check(without_quoting(ORDERS[1]), tmp_path, cell)


def test_a_line_of_many_letters_is_a_line(tmp_path) -> None:
    for cell in (b"9" * 3_000_000, b'"' + b"9" * 3_000_000, b'"' + b"9" * 3_000_000 + b'"'):
        check(without_quoting(COLUMNS), tmp_path, (4, "note", cell))


@given(text=st.text('",\n\r;x', max_size=20), block=st.integers(1, 40))
@one_cell
def test_what_a_proper_writer_wrote_is_read_back(text, block, tmp_path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_files, "_BLOCK", block)
        location, _ = by_csv(COLUMNS, csv.QUOTE_MINIMAL, ",", "\r\n")(tmp_path, changed((3, "note", text)))
        with text_files.open_text(Path(location), None, tolerant=True, id="id") as file:
            found = pl.concat(file.frames(["id", "note"], 100))
    assert found["id"].to_list() == [row["id"] for row in ROWS]
    assert found["note"].fill_null("").to_list() == [row["note"] for row in changed((3, "note", text))]


# ------------------------------------------------------------ typed files


def as_table(rows: list[dict[str, Any]]) -> pa.Table:
    """Texts; a cell that is bytes need not be UTF-8, and polars and Arrow do not look."""
    columns = {}
    for name in COLUMNS:
        content = [row[name] if isinstance(row[name], bytes) else str(row[name]).encode() for row in rows]
        columns[name] = pa.array(content, pa.binary()).view(pa.string())
    return pa.table(columns)


def by_parquet(folder: Path, rows: list[dict[str, Any]]) -> tuple[str, None]:
    pyarrow.parquet.write_table(as_table(rows), folder / "t.parquet")
    return str(folder / "t.parquet"), None


def by_arrow(folder: Path, rows: list[dict[str, Any]]) -> tuple[str, None]:
    table = as_table(rows)
    with pa.OSFile(str(folder / "t.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as made:
        made.write_table(table)
    return str(folder / "t.arrow"), None


def by_folders(folder: Path, rows: list[dict[str, Any]]) -> tuple[str, None]:
    """One file for each row, each with types of its own, below a folder that is named for its arm."""
    root = folder / "t"
    for file in root.rglob("*.parquet"):
        file.unlink()
    for number, row in enumerate(rows):
        place = root / f"arm={quote(str(row['arm']), safe='*?[]{}!~$')[:100]}"
        place.mkdir(parents=True, exist_ok=True)
        frame = pl.DataFrame({name: [value] for name, value in row.items() if name != "arm"}, strict=False)
        frame.write_parquet(place / f"{number:02d}.parquet")
    return str(root), None


PLAIN = TEXTS.filter(lambda text: text.isprintable() and bool(text))
WILD = st.text("*?[]{}!~$ab", min_size=1, max_size=6)
BINARY = st.one_of(TEXTS.filter(lambda text: text.isascii()), st.binary(max_size=6))


@pytest.mark.parametrize("write", [by_parquet, by_arrow])
@one_cell
@given(cell=cells_of(BINARY))
def test_a_cell_of_a_typed_file_is_its_subject_s_affair(write, cell, tmp_path) -> None:
    check(write, tmp_path, cell)


@one_cell
@given(
    cell=cells_of(NUMBERS | PLAIN | st.none() | st.booleans(), ("x", "y", "note")) | cells_of(PLAIN | WILD, ("arm",))
)
def test_a_file_of_a_folder_is_its_subject_s_affair(cell, tmp_path) -> None:
    check(by_folders, tmp_path, cell)


@one_cell
@given(cell=cells_of(NUMBERS, ("x", "y")))
def test_a_number_on_a_worker_is_its_subject_s_affair(cell, tmp_path) -> None:
    """As the workers of a cluster read it: each the rows of its own ids."""
    from dpfda.silo.cluster.shares import divide, recipe

    def write(folder: Path, rows: list[dict[str, Any]]) -> tuple[str, None]:
        frame = pl.DataFrame(rows).with_columns(pl.col("x", "y").cast(pl.Float64, strict=False))
        frame.write_parquet(folder / "t.parquet", row_group_size=3)
        return str(folder / "t.parquet"), None

    def read(location: str, query: str | None) -> Curves:
        source = find_source(location, query)
        division = divide(source, READING, 3)
        parts = [recipe(source, READING, division, number, None)()[0] for number in range(len(division.shares))]
        assert len(parts) == 3
        offsets = np.cumsum([0, *np.concatenate([part.counts for part in parts])])
        stacked = (np.concatenate([getattr(part, name) for part in parts]) for name in ("x", "y"))
        design, labels = (np.concatenate([getattr(part, name) for part in parts]) for name in ("design", "labels"))
        return Curves(*stacked, offsets, design, labels)

    check(write, tmp_path, (cell[0], cell[1], str(cell[2])), read)


# ------------------------------------------------------------ databases and workbooks


def by_sqlite(folder: Path, rows: list[dict[str, Any]]) -> tuple[str, str]:
    path = folder / "t.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("DROP TABLE IF EXISTS visits")
        database.execute(f"CREATE TABLE visits ({', '.join(COLUMNS)})")
        database.executemany("INSERT INTO visits VALUES (?, ?, ?, ?, ?)", [[*row.values()] for row in rows])
    return f"sqlite:///{path}", "SELECT * FROM visits"


def by_duckdb(folder: Path, rows: list[dict[str, Any]]) -> tuple[str, str]:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(folder / "t.duckdb")) as database:
        kinds = "id VARCHAR, x VARCHAR, y VARCHAR, arm VARCHAR, note VARCHAR, stay INTERVAL"
        database.execute(f"CREATE OR REPLACE TABLE visits ({kinds})")
        database.executemany(
            "INSERT INTO visits VALUES (?, ?, ?, ?, ?, INTERVAL 3 DAY)", [[*row.values()] for row in rows]
        )
    return f"duckdb:///{folder / 't.duckdb'}", "SELECT * FROM visits"


def by_workbook(folder: Path, rows: list[dict[str, Any]]) -> tuple[str, None]:
    xlsxwriter = pytest.importorskip("xlsxwriter")
    book = xlsxwriter.Workbook(str(folder / "t.xlsx"), {"nan_inf_to_errors": True})
    sheet = book.add_worksheet()
    sheet.write_row(0, 0, COLUMNS)
    for number, row in enumerate(rows, 1):
        for place, value in enumerate(row.values()):
            sheet.write_string(number, place, value) if isinstance(value, str) else sheet.write(number, place, value)
    book.close()
    return str(folder / "t.xlsx"), None


@one_cell
@given(cell=cells_of(NUMBERS | TEXTS | st.binary(max_size=6) | st.none()))
def test_a_cell_of_sqlite_is_its_subject_s_affair(cell, tmp_path) -> None:
    check(by_sqlite, tmp_path, cell)


@one_cell
@given(cell=cells_of(TEXTS.filter(lambda text: "\0" not in text) | st.none()))
def test_a_cell_of_duckdb_is_its_subject_s_affair(cell, tmp_path) -> None:
    check(by_duckdb, tmp_path, cell)


@one_cell
@given(cell=cells_of(NUMBERS | TEXTS | st.none() | st.booleans()))
def test_a_cell_of_a_workbook_is_its_subject_s_affair(cell, tmp_path) -> None:
    pytest.importorskip("fastexcel")
    check(by_workbook, tmp_path, cell)


@one_cell
@given(cell=cells_of(TEXTS.filter(lambda text: "\0" not in text) | NUMBERS.map(json.dumps) | st.none()))
def test_a_cell_of_a_server_is_its_subject_s_affair(cell, tmp_path, postgres_url) -> None:
    import psycopg

    def write(folder: Path, rows: list[dict[str, Any]]) -> tuple[str, str]:
        with psycopg.connect(postgres_url) as server:
            server.execute("DROP TABLE IF EXISTS one_cell")
            server.execute("CREATE TABLE one_cell (id text, x text, y text, arm text, note text)")
            server.cursor().executemany(
                "INSERT INTO one_cell VALUES (%s, %s, %s, %s, %s)", [[*row.values()] for row in rows]
            )
        return postgres_url, "SELECT * FROM one_cell"

    check(write, tmp_path, cell)
