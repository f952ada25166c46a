"""Reviews three to six, from rows to curves: cells decide about their own subject's curve and nothing else.

Neither whether a site answers, nor what the curves of others are, depends on the cells of one subject.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
import subprocess
import sys
import time
import tracemalloc
import zipfile
from collections.abc import Callable
from contextlib import closing
from datetime import date
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest

pytest.importorskip("cryptography")

from hospital import BASE, Hospital, N, open_consortium, with_values, write_csv

from dpfda.curves.curves import Curves
from dpfda.curves.tables import (
    Covariate,
    Domain,
    Reading,
    database,
    find_source,
    load_curves,
    odd_lines,
    text_files,
    workbook,
)
from dpfda.curves.tables import loading as table_loading
from dpfda.curves.tables.parquet_files import find_names, list_parquet, scan_parquet
from dpfda.errors import InvalidInput
from dpfda.federation.policy import SitePolicy

ARABIC, NAGARI, WIDE = "2019-01-31 ١٢:٣٠", "2019-01-31 १२:३०", "２０１９-０１-３１ １２:３０"


@pytest.fixture(scope="module")
def make_site(tmp_path_factory):
    return partial(Hospital, open_consortium(tmp_path_factory.mktemp("consortium")))


def load(location: str, query: str | None = None, **how) -> Curves:
    """The curves of a site's table, as its silo gets them."""
    options = {"id": "id", "x": "x", "y": "y", "rows": "never refuse"} | how
    return load_curves(find_source(location, query), Reading(Domain(0.0, 1.0), (-1.0, 1.0), **options), n=N).curves


def others_are_unchanged(one: Curves, other: Curves, subject: int = 0) -> bool:
    kept = [place for place in range(N) if place != subject]
    return one.n == other.n == N and one.take(kept) == other.take(kept)


# ------------------------------------------------------------ single cells


@pytest.mark.parametrize("cell", [ARABIC, NAGARI, WIDE, "2019-01-31 1२:30:٣٠", "٣١.١٢.٢٠١٩"])
def test_digits_of_other_scripts_refuse_nothing(cell, make_site, tmp_path) -> None:
    rows = with_values(BASE, range(1), 1, lambda _: cell)
    site = make_site(tmp_path / "a", write_csv(tmp_path / "a", rows))
    assert site.codes() == ("ok", "ok"), site.log()[-1]
    usual = load(write_csv(tmp_path / "b", BASE)["source"])
    assert others_are_unchanged(load(str(tmp_path / "a" / "table.csv")), usual)
    table = pl.DataFrame({name: [row[place] for row in rows] for place, name in enumerate(("id", "x", "y"))})
    table.write_parquet(tmp_path / "t.parquet")
    assert others_are_unchanged(load(str(tmp_path / "t.parquet")), usual)


def test_a_blank_x_is_a_blank_whether_or_not_another_subject_has_a_date(tmp_path) -> None:
    """Rows that are read together once decided together what a blank means."""
    days = Domain.between("2019-01-01", "2019-12-31")
    reading = Reading(days, (-1.0, 1.0), id="id", x="x", y="y", rows="never refuse")

    def count_points(cell: str) -> list[int]:
        rows = [["a", "NA", "0.1"], ["b", cell, "0.1"], ["a", "2019-03-01", "0.2"], ["b", "2019-03-01", "0.2"]]
        path = tmp_path / "t.csv"
        path.write_text("\n".join(",".join(row) for row in [["id", "x", "y"], *rows]) + "\n")
        return load_curves(find_source(str(path)), reading, rows_at_once=2, n=2).curves.counts.tolist()

    assert count_points("2019-02-01") == [1, 2]
    assert count_points("soon") == [1, 0]


# ------------------------------------------------------------ lines of text files

HEADER = ["id", "ward", "x", "y", "comment"]
LINES = [[row[0], '"Ward 3, East"', f'"{row[1]}"', row[2], "ok"] for row in BASE]
STRAY = [
    '"', '"5', '5" scar', '"a"b', 'a""', '"""', '"5, 6', '"1\n2"', '"\n"', "1\r2", "\r", "\0", "1;2", "\x1a",
]  # fmt: skip


def write_lines(path: Path, changes: dict[tuple[int, int], str], end: str = "\n") -> str:
    lines = [[changes.get((line, cell), old) for cell, old in enumerate(row)] for line, row in enumerate(LINES)]
    text = "".join(",".join(row) + end for row in [HEADER, *lines])
    path.write_bytes(text.encode())
    return str(path)


@pytest.mark.parametrize(
    ("stray", "end"),
    [(stray, end) for stray in STRAY for end in ("\n", "\r\n", "\r") if end != "\r" or "\r" not in stray],
)
def test_a_stray_quote_is_the_affair_of_its_line(stray, end, tmp_path) -> None:
    """One stray quote once turned every quoted comma of the file into a separator: 118 times what was paid for."""
    usual = load(write_lines(tmp_path / "usual.csv", {}, end))
    assert (usual.counts == 2).all()
    for cell in (1, 2, 3, 4):
        for line in (0, 1):
            odd = write_lines(tmp_path / "odd.csv", {(line, cell): stray}, end)
            assert others_are_unchanged(load(odd), usual), (line, cell)


def test_rows_between_two_stray_quotes_are_not_taken_for_a_text_unasked(tmp_path) -> None:
    """No proper writer writes such a file: the owner is told. At a site the rows are one text, as known limits say."""
    rows = sorted(([row[0], row[1], row[2], "ok"] for row in BASE), key=lambda row: row[1])
    mine = [place for place, row in enumerate(rows) if row[0] == "s00"]
    for place in (mine[0], mine[-1]):
        rows[place][3] = '"'
    path = tmp_path / "t.csv"
    path.write_text("".join(",".join(row) + "\n" for row in [["id", "x", "y", "comment"], *rows]))
    with pytest.raises(InvalidInput, match=r"Line 3 of t\.csv looks like a row and stands between two quotes"):
        load(str(path), rows="refuse")
    assert load(str(path)).n == N


def test_blocks_and_batches_do_not_matter(tmp_path, monkeypatch) -> None:
    changes = {(5, 4): '"5', (9, 4): '"a ""b"" c"', (12, 1): "plain"}
    path = write_lines(tmp_path / "t.csv", changes)
    whole = load(path)
    assert (whole.counts == 2).all()
    for size in (7, 50, 200):
        monkeypatch.setattr(text_files, "_BLOCK", size)
        assert load(path) == whole


def test_a_cell_of_several_lines_is_one_cell(tmp_path) -> None:
    usual = load(write_lines(tmp_path / "usual.csv", {}), rows="refuse")
    for rows in ("refuse", "never refuse"):
        assert load(write_lines(tmp_path / "t.csv", {(3, 1): '"Ward 3,\n\nEast ""x""\n"'}), rows=rows) == usual


def test_the_owner_is_told_of_a_row_with_a_quote_and_too_many_cells(tmp_path) -> None:
    path = write_lines(tmp_path / "t.csv", {(3, 3): '1"5,0'})
    with pytest.raises(InvalidInput, match=r"Line 5 of t\.csv begins a row of 6 cells where the header has 5"):
        load(path, rows="refuse")


# ------------------------------------------------------------ workbooks

_TYPES = "http://schemas.openxmlformats.org"
_PARTS = {
    "[Content_Types].xml": f'<Types xmlns="{_TYPES}/package/2006/content-types"><Default Extension="rels" ContentType='
    '"application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/>'
    '<Override PartName="/xl/workbook.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.'
    'main+xml"/><Override PartName="/xl/worksheets/sheet1.xml" ContentType="application/vnd.openxmlformats-officedocument.'
    'spreadsheetml.worksheet+xml"/></Types>',
    "_rels/.rels": f'<Relationships xmlns="{_TYPES}/package/2006/relationships"><Relationship Id="r1" Type="{_TYPES}/'
    'officeDocument/2006/relationships/officeDocument" Target="xl/workbook.xml"/></Relationships>',
    "xl/workbook.xml": f'<workbook xmlns="{_TYPES}/spreadsheetml/2006/main" xmlns:r="{_TYPES}/officeDocument/2006/'
    'relationships"><sheets><sheet name="S" sheetId="1" r:id="r1"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_TYPES}/package/2006/relationships"><Relationship Id="r1" Type='
    f'"{_TYPES}/officeDocument/2006/relationships/worksheet" Target="worksheets/sheet1.xml"/><Relationship Id="r2" Type="'
    f'{_TYPES}/officeDocument/2006/relationships/sharedStrings" Target="sharedStrings.xml"/></Relationships>',
}
_SHARED = {
    "xl/sharedStrings.xml": f'<sst xmlns="{_TYPES}/spreadsheetml/2006/main"><si ><t>one</t></si><si xml:space="preserve">'
    "<t>two</t></si></sst>"
}


def write_workbook(path: Path, odd: str | None, spell: Callable[[str], str] = str) -> str:
    """The usual table; the y of the first row is the XML of a cell, and the sheet's XML is spelt in some way."""
    lines = []
    for number, row in enumerate([["id", "x", "y"], *BASE], 1):
        cells = [f'<c r="{"ABC"[k]}{number}" t="inlineStr"><is><t>{row[k]}</t></is></c>' for k in range(3)]
        if number == 2 and odd is not None:
            cells[2] = odd.replace("@", "C2")
        lines.append(f'<row r="{number}">{"".join(cells)}</row>')
    sheet = f'<worksheet xmlns="{_TYPES}/spreadsheetml/2006/main"><sheetData>{"".join(lines)}</sheetData></worksheet>'
    with zipfile.ZipFile(path, "w") as book:
        for name, content in (_PARTS | _SHARED | {"xl/worksheets/sheet1.xml": spell(sheet)}).items():
            book.writestr(name, '<?xml version="1.0"?>' + content)
    return str(path)


ODD_CELLS = [
    f'<c r="@" t="e"><v>{error}</v></c>' for error in ("#SPILL!", "#CALC!", "#GETTING_DATA", "Err:502", "#N/A")
]
ODD_CELLS += ['<c r="@" t="n"><v>1</v><v>,</v></c>', '<c r="@" t="n"><v>1,5</v></c>', '<c r="@" t="n"><v>1_0</v></c>']
LAST_CELL = f'<c r="C{len(BASE) + 1}" t="inlineStr"><is><t>{BASE[-1][2]}</t></is></c>'
UNKNOWN = f'<c r="C{len(BASE) + 1}" t="e"><v>#SPILL!</v></c>'
ODD_CELLS += ['<c r="@" t="s"><v>99</v></c>', '<c r="@" t="zzz"><v>5</v></c>', '<c r="@" t="e"><f>1/0</f></c>']


def spell_with_prefix(sheet: str) -> str:
    """As the Open XML SDK writes XML: every name with a prefix."""
    return re.sub(r"<(/?)(\w)", r"<\1x:\2", sheet).replace(" xmlns=", " xmlns:x=")


SPELLINGS = {
    "a prefix": spell_with_prefix,
    "single quotes": lambda sheet: sheet.replace('"', "'"),
    "spaces": lambda sheet: sheet.replace(' t="', '  t = "'),
    "another attribute": lambda sheet: sheet.replace("<c ", '<c note="a>b" '),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_it_does_not_matter_how_a_workbook_s_xml_is_spelt(spelling, tmp_path) -> None:
    """An error that the reader does not know emptied all curves wherever the XML was not spelt as Excel does."""
    pytest.importorskip("fastexcel")
    usual = load(write_workbook(tmp_path / "usual.xlsx", None, SPELLINGS[spelling]))
    assert (usual.counts > 0).all()
    for odd in ODD_CELLS:
        read = load(write_workbook(tmp_path / "odd.xlsx", odd, SPELLINGS[spelling]))
        assert others_are_unchanged(read, usual), odd


READABLE = [
    '<c r="@"><v>abc</v></c>', '<c r="@" t="n"><v>1e999</v></c>', '<c r="@" t="n"><v></v></c>',
    '<c r="@" t="b"><v>7</v></c>', '<c r="@" t="s"><v>-1</v></c>', '<c r="@" t="s"><v>1.0</v></c>',
    '<c r="@" t="s"><v>١</v></c>', '<c r="@" t="s"><v>99999999999999999999</v></c>', '<c r="@" t="e"><v>#N/A</v></c>',
    '<c r="@" t="d"><v>2019-13-45</v></c>', '<c r="@" t="str"><v>é</v></c>',
    '<c r="@" t="inlineStr"><is><t>0.5</t></is></c>',
]  # fmt: skip


@pytest.mark.parametrize("cell", READABLE)
def test_a_cell_that_can_be_read_stays_as_it_is_when_another_cannot(cell, tmp_path) -> None:
    pytest.importorskip("fastexcel")
    alone = load(write_workbook(tmp_path / "one.xlsx", cell))
    beside = load(write_workbook(tmp_path / "two.xlsx", cell, lambda sheet: sheet.replace(LAST_CELL, UNKNOWN)))
    assert others_are_unchanged(alone, beside, N - 1)
    assert alone.counts[-1] > beside.counts[-1]


@pytest.mark.parametrize("odd", ODD_CELLS)
def test_an_odd_cell_of_a_workbook_is_the_affair_of_its_subject(odd, make_site, tmp_path) -> None:
    pytest.importorskip("fastexcel")
    usual = load(write_workbook(tmp_path / "usual.xlsx", None))
    assert (usual.counts > 0).all()
    assert others_are_unchanged(load(write_workbook(tmp_path / "odd.xlsx", odd)), usual)
    site = make_site(tmp_path / "a", {"source": str(tmp_path / "odd.xlsx")})
    assert site.codes() == ("ok", "ok"), site.log()[-1]


FORMATS = {
    "xl/styles.xml": f'<styleSheet xmlns="{_TYPES}/spreadsheetml/2006/main"><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/>'
    '<xf numFmtId="2"/></cellXfs></styleSheet>'
}
FAR_CELLS = [f'<c r="@" s="{style}"><v>{number}</v></c>' for style in (0, 1, 2) for number in ("-2e11", "-1.06e11")]


@pytest.mark.parametrize("odd", FAR_CELLS)
def test_a_number_that_is_no_date_is_the_affair_of_its_cell(odd, tmp_path, monkeypatch) -> None:
    """A number of this size with the format of dates made the reader panic, and all curves were empty."""
    pytest.importorskip("fastexcel")
    relation = f'<Relationship Id="r3" Type="{_TYPES}/officeDocument/2006/relationships/styles" Target="styles.xml"/>'
    relations = _PARTS["xl/_rels/workbook.xml.rels"].replace("</Relationships>", relation + "</Relationships>")
    monkeypatch.setitem(_PARTS, "xl/_rels/workbook.xml.rels", relations)
    monkeypatch.setitem(_PARTS, "xl/styles.xml", FORMATS["xl/styles.xml"])
    usual = load(write_workbook(tmp_path / "usual.xlsx", None))
    alone = load(write_workbook(tmp_path / "odd.xlsx", odd))
    assert others_are_unchanged(alone, usual)
    assert alone.counts[0] == (1 if 's="1"' in odd else 2)
    panics = LAST_CELL.partition(" t=")[0] + ' s="1"><v>-3e11</v></c>'
    beside = load(write_workbook(tmp_path / "two.xlsx", odd, lambda sheet: sheet.replace(LAST_CELL, panics)))
    assert others_are_unchanged(beside, alone, N - 1)
    assert beside.counts[-1] == 1


@pytest.mark.parametrize("place", ["ZZZZZZ2", "XFE2", "zzzz2", "C1048577", "C99999999999"])
@pytest.mark.parametrize("spelling", ["a prefix", "single quotes"])
def test_a_cell_at_a_place_that_no_sheet_has_is_not_read(place, spelling, tmp_path, monkeypatch) -> None:
    """The reader asked for room for all cells up to it, hundreds of GB, and the process ended."""
    pytest.importorskip("fastexcel")
    for block in (1 << 20, 64):
        monkeypatch.setattr(workbook, "_BLOCK", block)
        path = write_workbook(tmp_path / "t.xlsx", f'<c s="0" r="{place}"><v>1</v></c>', SPELLINGS[spelling])
        with pytest.raises(InvalidInput, match=f"a cell at {place[:20]}, which no sheet has"):
            load(path, rows="refuse")
        assert load(path).n_points == 0


def test_a_text_about_a_place_is_a_text(tmp_path) -> None:
    pytest.importorskip("fastexcel")
    usual = load(write_workbook(tmp_path / "usual.xlsx", None))
    for text in (' r="ZZZZZZ2" ', '&lt;c r="ZZZZZZ2"'):
        odd = f'<c r="@" t="inlineStr"><is><t>{text}</t></is></c>'
        assert others_are_unchanged(load(write_workbook(tmp_path / "odd.xlsx", odd)), usual)


# ------------------------------------------------------------ PostgreSQL

CELLS_OF_A_SERVER = [
    "y = 'NaN'", "y = 'Infinity'", "y = ('0.' || repeat('1', 50))::numeric", "y = repeat('9', 40)::numeric",
    "seen = 'infinity'", "born = '-infinity'", "seen = '0044-03-15 BC'", "born = '5874897-01-01'", "x = 'NaN'",
    "zoned = '0044-03-15 BC'", "span = '178000000 years'", "day = '24:00:00'", "raw = 'a'", "many = '{NULL,\"a\"}'",
    "note = '[1e400]'",
]  # fmt: skip
COLUMNS = (
    "id text, x double precision, y numeric, seen timestamp, born date, zoned timestamptz, span interval, day time, "
    "raw bytea, many text[], note json"
)


def fill_server(url: str, change: str | None) -> dict[str, str]:
    import psycopg

    with psycopg.connect(url) as server:
        server.execute("DROP TABLE IF EXISTS odd_visits")
        server.execute(f"CREATE TABLE odd_visits ({COLUMNS})")
        server.cursor().executemany(
            "INSERT INTO odd_visits (id, x, y, seen, born) VALUES (%s, %s, %s, '2019-01-01', '1960-01-01')",
            [row[:3] for row in BASE],
        )
        if change is not None:
            server.execute(f"UPDATE odd_visits SET {change} WHERE id = 's00'")
    return {"source": url, "query": "SELECT * FROM odd_visits"}


@pytest.mark.parametrize("change", CELLS_OF_A_SERVER)
def test_a_cell_of_a_server_is_the_affair_of_its_subject(change, make_site, tmp_path, postgres_url) -> None:
    """A column of JSON makes a cursor read the rows, whose driver has conversions that fail."""
    usual = load(*fill_server(postgres_url, None).values())
    assert (usual.counts == 2).all()
    data = fill_server(postgres_url, change)
    assert others_are_unchanged(load(*data.values()), usual)
    site = make_site(tmp_path / "a", data)
    assert site.codes() == ("ok", "ok"), site.log()[-1]


@pytest.mark.parametrize(
    "kind", ["numeric", "real", "date", "timestamp", "timestamptz", "bool", "uuid", "bytea", "text"]
)
def test_cursor_and_arrow_read_the_same(kind, postgres_url) -> None:
    values = {
        "numeric": ("0.50", "-1.000"), "real": ("0.25", "1"), "date": ("2019-02-01", "2019-03-01"), "bool": ("t", "f"),
        "timestamp": ("2019-02-01 12:30", "2019-03-01"), "timestamptz": ("2019-02-01 12:30+02", "2019-03-01 00:00+00"),
        "uuid": ("c0ffee00-1111-2222-3333-444455556666", "d0ffee00-1111-2222-3333-444455556666"), "bytea": ("a", "b"),
        "text": ("a", "b"),
    }[kind]  # fmt: skip
    rows = ", ".join(f"('{value}'::{kind}, {number})" for number, value in enumerate(values))
    query = f"SELECT v AS id, 0.5 AS x, v AS y, v AS at FROM (VALUES {rows}) AS t (v, k)"
    by_cursor = f"SELECT *, '{{}}'::json AS note FROM ({query}) AS q"
    public = Domain.between("2019-01-01", "2019-12-31") if kind[:4] in ("date", "time") else Domain(0.0, 1.0)
    x = "at" if public.origin is not None else "x"
    y = "y" if kind in ("numeric", "real", "bool") else "x"
    names = {"id": "id", "x": x, "y": y if x == "x" else "one", "rows": "never refuse"}
    if names["x"] == names["y"]:
        names["y"] = "one"
    reading = Reading(public, (-1.0, 1.0), **names)
    one = "SELECT *, 1 AS one FROM ({}) AS w"
    read = [
        load_curves(find_source(postgres_url, one.format(each)), reading, n=2).curves for each in (query, by_cursor)
    ]
    assert read[0].n_points == 2
    assert np.array_equal(read[0].x, read[1].x)
    assert np.array_equal(read[0].y, read[1].y)


SPANS = "SELECT id, x, y, CASE WHEN id = 's00' THEN {!r} ELSE {!r} END::{} AS span FROM odd_visits"
ODD_SPANS = {
    "time": ("24:00", "10:30"), "timetz": ("24:00+15:59", "10:30+00"), "interval": ("9000000000 s", "1 day"),
}  # fmt: skip


@pytest.mark.parametrize("kind", ODD_SPANS)
@pytest.mark.parametrize("role", ["not read", "covariate"])
def test_a_span_that_arrow_does_not_have_is_the_affair_of_its_cell(kind, role, postgres_url) -> None:
    """Arrow's times end before 24:00, and its driver's intervals are short: one such cell, even unread, emptied all."""
    fill_server(postgres_url, None)
    odd, level = ODD_SPANS[kind]
    written = {"time": "10:30:00", "timetz": "10:30:00+00"}.get(kind, level)
    how = {"covariates": (Covariate("span", levels=(written, "other")),)} if role == "covariate" else {}
    usual = load(postgres_url, SPANS.format(level, level, kind), **how)
    assert (usual.counts == 2).all()
    assert others_are_unchanged(load(postgres_url, SPANS.format(odd, level, kind), **how), usual)


def test_the_owner_is_told_that_an_interval_is_no_number(postgres_url) -> None:
    fill_server(postgres_url, None)
    query = "SELECT id, x, make_interval(days => 3) AS y FROM odd_visits"
    reading = Reading(Domain(0.0, 1.0), (-1.0, 1.0), id="id", x="x", y="y", rows="never refuse")
    notes = " ".join(load_curves(find_source(postgres_url, query), reading, n=N).owner_notes)
    assert "Row 1 of 'y' is '3 days', not a number" in notes
    with pytest.raises(InvalidInput, match=r"'3 days', not a number"):
        load(postgres_url, query, rows="refuse")


def test_bytes_that_are_no_text_on_a_server_are_the_affair_of_their_cell(postgres_url) -> None:
    """A database of the encoding SQL_ASCII keeps any bytes; they came as texts, and polars read beyond them."""
    import psycopg

    url = postgres_url.rpartition("/")[0] + "/any_bytes"
    with psycopg.connect(postgres_url, autocommit=True) as server:
        server.execute("CREATE DATABASE any_bytes ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
    try:
        usual = load(*fill_server(url, None).values())
        for column in ("raw", "many"):
            with psycopg.connect(url) as server:
                server.execute(f"ALTER TABLE odd_visits DROP {column}")
        query, sex = "SELECT id, x, y::text AS y, sex FROM odd_visits", Covariate("sex", levels=("F", "M"))
        with psycopg.connect(url) as server:
            server.execute("ALTER TABLE odd_visits ADD sex text DEFAULT 'F'")
        assert (load(url, query, covariates=(sex,)).counts == usual.counts).all()
        for text in (r"\xff\xfe", r"\xed\xa0\x80", r"a\xc3"):
            with psycopg.connect(url) as server:
                server.execute(f"UPDATE odd_visits SET sex = E'{text}' WHERE id = 's00'")
            counts = load(url, query, covariates=(sex,)).counts
            assert counts[0] == 0
            assert (counts[1:] == 2).all()
    finally:
        with psycopg.connect(postgres_url, autocommit=True) as server:
            server.execute("DROP DATABASE any_bytes")


# ------------------------------------------------------------ types of cells

CODES = ("900000000000207008", "900000000000207009")  # of a terminology: more digits than a float holds
KINDS_OF_CODES = {
    "whole numbers": (int, CODES), "short numbers": (float, ("0.00001", "0.00002")), "flags": (int, ("0", "1")),
}  # fmt: skip
OBJECTS = [1.5, 1e308, 2**62, float("inf"), b"\xff", "x", "", "1.0", None]


def write_codes(path: Path, make: Callable[[str], object], codes: tuple[str, ...], odd: object = "usual") -> str:
    """A table of SQLite whose columns have no type; the first code is odd."""
    rows = [[*row[:3], make(codes[number // 2 % 2])] for number, row in enumerate(BASE)]
    if odd != "usual":
        rows[0][3] = odd
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE visits (id, x, y, code)")
        database.executemany("INSERT INTO visits VALUES (?, ?, ?, ?)", rows)
    return f"sqlite:///{path}"


@pytest.mark.parametrize("kind", KINDS_OF_CODES)
@pytest.mark.parametrize("role", ["covariate", "outcome"])
def test_the_type_of_one_cell_is_not_that_of_others(kind, role, tmp_path) -> None:
    """One number with a fraction made the codes of all others floats, whose digits were no level any more."""
    make, codes = KINDS_OF_CODES[kind]
    how = (
        {"covariates": (Covariate("code", levels=codes),)} if role == "covariate" else {"y": "code", "y_levels": codes}
    )

    def read(odd: object = "usual") -> Curves:
        reading = Reading(
            Domain(0.0, 1.0), (0.0, 1.0), **({"id": "id", "x": "x", "y": "y", "rows": "never refuse"} | how)
        )
        source = find_source(write_codes(tmp_path / "t.db", make, codes, odd), "SELECT * FROM visits")
        return load_curves(source, reading, n=N).curves

    usual = read()
    assert (usual.counts == 2).all()
    for odd in OBJECTS:
        assert others_are_unchanged(read(odd), usual), odd


def test_a_subject_is_one_whatever_numbers_write_its_id(tmp_path) -> None:
    with closing(sqlite3.connect(tmp_path / "t.db")) as database, database:
        database.execute("CREATE TABLE visits (id, x, y)")
        database.executemany("INSERT INTO visits VALUES (?, ?, ?)", [(1, 0.1, 0.2), (1.0, 0.3, 0.4), (2.5, 0.1, 0.2)])
    read = load(f"sqlite:///{tmp_path / 't.db'}", "SELECT * FROM visits")
    assert read.counts[:3].tolist() == [2, 1, 0]


def write_ids(path: Path, ids: list[object]) -> str:
    """Two rows for each subject of SQLite; a y of its own, so that subjects cannot be mistaken."""
    path.unlink(missing_ok=True)
    rows = [(subject, x, number / 20) for number, subject in enumerate(ids) for x in (0.25, 0.75)]
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE visits (id, x, y)")
        database.executemany("INSERT INTO visits VALUES (?, ?, ?)", rows)
    return f"sqlite:///{path}"


@pytest.mark.parametrize("odd", [0.5, 9e15, "a", -1.5])
def test_ids_of_many_digits_stay_apart_whatever_number_is_beside_them(odd, tmp_path) -> None:
    """One id with a fraction made floats of all, which hold 16 digits: twelve subjects became two."""
    long = [10**17 + number for number in range(1, N)]
    query = "SELECT * FROM visits"
    usual = load(write_ids(tmp_path / "t.db", [9 * 10**15, *long]), query)
    read = load(write_ids(tmp_path / "t.db", [odd, *long]), query)
    assert (read.counts == 2).all()
    assert sorted(read.y.tolist()) == sorted(usual.y.tolist())
    if odd == 9e15:
        assert read == usual
        return
    with pytest.raises(InvalidInput, match=r"ids of several types"):
        load(write_ids(tmp_path / "t.db", [odd, *long]), query, rows="refuse")


def test_an_id_is_one_subject_also_where_texts_make_all_ids_texts(tmp_path) -> None:
    read = load(write_ids(tmp_path / "t.db", [3, 3.0, "a"]), "SELECT * FROM visits")
    assert read.counts[:3].tolist() == [4, 2, 0]


@pytest.mark.parametrize("odd", [5, 0.5, b"x", "soon", 20200101, None])
def test_a_number_among_dates_is_the_affair_of_its_subject(odd, tmp_path) -> None:
    """A column of several types was no column of dates, so that all x were unreadable."""
    days = Domain.between("2020-01-01", "2020-02-01")
    reading = Reading(days, (-1.0, 1.0), id="id", x="x", y="y", rows="never refuse")

    def read(first: object) -> Curves:
        path = tmp_path / "t.db"
        path.unlink(missing_ok=True)
        rows = [[number, f"2020-01-{k + 1:02}", 0.5] for number in range(N) for k in range(2)]
        rows[0][1] = first
        with closing(sqlite3.connect(path)) as database, database:
            database.execute("CREATE TABLE visits (id, x, y)")
            database.executemany("INSERT INTO visits VALUES (?, ?, ?)", rows)
        return load_curves(find_source(f"sqlite:///{path}", "SELECT * FROM visits"), reading, n=N).curves

    usual = read("2020-01-01")
    assert (usual.counts == 2).all()
    assert others_are_unchanged(read(odd), usual)


@pytest.mark.parametrize("content", ["line\n", '""', 'a""'])
@pytest.mark.parametrize("end", ['",x', '"x', ""])
def test_a_long_cell_in_quotes_takes_the_room_of_its_letters(content, end) -> None:
    """For each letter on the way to its closing quote 150 bytes were kept: a long note took all memory, a site refused."""
    line = '"' + content * 200_000 + end
    tracemalloc.start()
    try:
        cells = odd_lines.split_row(line, ",")
        odd_lines.find_id(line, ",", 1, 3)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert cells[0] == (content.replace('""', '"') * 200_000 if end == '",x' else line)
    assert peak < 8 * len(line)


def test_digits_before_a_letter_are_read_once() -> None:
    """A cell of a workbook with many digits and a letter was looked at once for each of its digits."""
    began = time.monotonic()
    assert not workbook._NUMBER.fullmatch("9" * 20_000 + "x")
    assert time.monotonic() - began < 1


def test_a_cell_that_is_no_number_moves_no_terminal(tmp_path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id,x,y\n1,0.5,\x1b]0;t\x07\n")
    with pytest.raises(InvalidInput, match="not a number") as refused:
        load_curves(find_source(str(path)), Reading(Domain(0, 1), (0, 1), id="id", x="x", y="y"))
    assert str(refused.value).isprintable()


def test_texts_of_duckdb_are_looked_at() -> None:
    """No DuckDB is known that gives bytes which are no text; if one does, polars must not read beyond them."""
    import pyarrow as pa

    texts = pa.array([b"a", b"\xff\xfe", b"c\xc3"], pa.binary()).view(pa.string())
    reader = pa.RecordBatchReader.from_batches(pa.schema({"arm": pa.string()}), [pa.record_batch({"arm": texts})])
    (frame,) = database._read_records(reader, ["arm"], any_text=True)
    assert frame["arm"].to_list() == ["a", "\ufffd\ufffd", "c\ufffd"]


# ------------------------------------------------------------ folders of Parquet

ARMS = ["01", "02"] * (N // 2)
ODD_ARMS = [
    "unknown", "1.5", "1e3", "true", "2020-01-01", "__HIVE_DEFAULT_PARTITION__", "a=b", "x%2Fy", "%ff", "", "*", "**", "0?",
    "[01]*", "{01,02}", "!", "~", "$HOME", "a\nb", "\udcff", "_01", ".01",
]  # fmt: skip


def write_folder(folder: Path, change: Callable[[int, dict[str, list]], dict], arms: list[str] | None = None) -> str:
    """One file for each subject, with ids and y that are whole numbers; with arms, in folders that are named for them."""
    shutil.rmtree(folder, ignore_errors=True)
    for number in range(N):
        place = folder if arms is None else folder / f"arm={arms[number]}"
        place.mkdir(parents=True, exist_ok=True)
        columns = {"id": [number] * 2, "x": [0.25, 0.75], "y": [0, 1], "code": [int(CODES[number % 2])] * 2}
        with (place / f"{number:02}.parquet").open("wb") as file:
            pl.DataFrame(change(number, columns)).write_parquet(file)
    return str(folder)


def keep(_: int, columns: dict[str, list]) -> dict:
    return columns


@pytest.mark.parametrize("odd", ODD_ARMS)
def test_the_name_of_a_folder_is_the_affair_of_its_subjects(odd, tmp_path) -> None:
    """The type that suits all names made 1 of 01, unless one of them was a text: all curves but one were empty."""
    how = {"covariates": (Covariate("arm", levels=("01", "02")),)}
    usual = load(write_folder(tmp_path / "study=3" / "t", keep, ARMS), **how)
    assert (usual.counts == 2).all()
    read = load(write_folder(tmp_path / "study=3" / "t", keep, [odd, *ARMS[1:]]), **how)
    assert others_are_unchanged(read, usual)
    assert read.counts[0] == 0


@pytest.mark.parametrize(
    "odd",
    [
        "x/y=1",
        "x/id=3",
        "x/y=0.5/x=0.5",
        "x/_y",
        "x/.y",
        "x/y.parquet",
        "../study=3/id=3",
        "x/../z=1",
        "x/code=1",
        "x/1",
    ],
)
def test_a_slash_in_the_name_of_a_folder_is_the_affair_of_its_subjects(odd, tmp_path) -> None:
    """As Dask writes values: a slash in one of them was a column of all files, and the rows of others had nothing in it."""
    how = {"covariates": (Covariate("arm", levels=("01", "02")),)}
    usual = load(write_folder(tmp_path / "t", keep, ARMS), **how)
    read = load(write_folder(tmp_path / "t", keep, [odd, *ARMS[1:]]), **how)
    assert others_are_unchanged(read, usual)
    assert read.counts[0] == 0


@pytest.mark.parametrize(
    "name", ["*", "^.*$", "^x$", "^(id|x)$", "^($", "%2A", "%5Ex%24", "self", "exprs", "%00path", ""]
)
def test_no_name_of_a_column_that_a_folder_brings_is_a_pattern(name, tmp_path) -> None:
    """Ninth review, R9-1: what polars takes for all columns, or for its own argument, emptied every curve of the site."""
    how = {"covariates": (Covariate("arm", levels=("01", "02")),)}
    usual = load(write_folder(tmp_path / "t", keep, ARMS), **how)
    read = load(write_folder(tmp_path / "t", keep, [f"{ARMS[0]}/{name}=1", *ARMS[1:]]), **how)
    assert read.fingerprint(b"k" * 32) == usual.fingerprint(b"k" * 32)


@pytest.mark.parametrize("name", ["*", "^x$", "^.*$", "self"])
@pytest.mark.parametrize("inside", [True, False])
def test_a_column_is_found_by_its_very_name(name, inside, tmp_path) -> None:
    def rename(_: int, columns: dict[str, list]) -> dict:
        return columns | ({name: columns["code"]} if inside else {})

    arms = None if inside else [f"00/{name}={CODES[number % 2]}" for number in range(N)]
    path = Path(write_folder(tmp_path / "t", rename, arms))
    (part,) = scan_parquet(list_parquet(path)).parts
    columns = [name, "x", "code"]
    with part.open(columns) as lazy:
        read = lazy.collect()
    assert read.columns == columns
    assert read[name].cast(pl.Int64).to_list() == read["code"].to_list()
    assert read.equals(pl.concat(part.read_mended(columns, 5)))


@pytest.mark.parametrize("length", [3000, 4060, 4080])
def test_the_length_of_a_path_is_the_affair_of_its_subjects(length, tmp_path) -> None:
    """Ninth review, R9-3: one long value with slashes, and the site refused as soon as the folder lay a little deeper."""
    how = {"covariates": (Covariate("arm", levels=("01", "02")),)}
    usual = load(write_folder(tmp_path / "u", keep, ARMS), **how)
    room = length - len(str(tmp_path / "t" / "arm=01" / "00.parquet"))
    odd = (ARMS[0] + ("/" + "a" * 99) * (length // 100))[:room].rstrip("/")
    folder = Path(write_folder(tmp_path / "t", keep, [odd, *ARMS[1:]]))
    deeper = tmp_path / "in-a-folder-on-the-disk-of-the-site-that-lies-deeper" / "t"
    deeper.parent.mkdir()
    folder.rename(deeper)
    (found,) = (name for name in find_names(deeper) if "a" * 99 in name.parts)
    assert (len(str(deeper / found)) > 4095) == (length > 4000)
    assert load(str(deeper), **how).fingerprint(b"k" * 32) == usual.fingerprint(b"k" * 32)


def test_columns_that_nobody_asks_for_take_no_room(tmp_path) -> None:
    """Ninth review, R9-4: each was an expression over all files: one subject's values took memory by their square."""
    names = ["".join(f"/{number}_{other}=" for other in range(20)) for number in range(N)]
    path = Path(write_folder(tmp_path / "t", keep, [arm + name for arm, name in zip(ARMS, names, strict=True)]))
    table = scan_parquet(list_parquet(path))
    assert len(table.columns) > 20 * N
    for part in table.parts:
        with part.open(["id", "x", "y", "arm"]) as lazy:
            assert len(lazy.explain(optimized=False)) < 2000


@pytest.mark.parametrize("lost", ["id", "x", "y", "code"])
def test_a_file_that_lacks_a_column_takes_it_from_nobody(lost, tmp_path) -> None:
    def leave_out(number: int, columns: dict[str, list]) -> dict:
        return {name: cells for name, cells in columns.items() if number != 4 or name != lost}

    how = {"covariates": (Covariate("code", levels=CODES[:2]),)}
    usual = load(write_folder(tmp_path / "t", keep), **how)
    read = load(write_folder(tmp_path / "t", leave_out), **how)
    if lost == "id":
        assert np.array_equal(read.y, np.delete(usual.y, [8, 9]))
    else:
        assert np.array_equal(np.delete(read.counts, 4), np.delete(usual.counts, 4))
        assert read.counts[4] == 0


def test_a_writer_s_own_files_are_not_of_the_table(tmp_path) -> None:
    """As Spark, Delta and Hive leave them: a job that died, a log of changes, a file that is being written."""
    folder = Path(write_folder(tmp_path / "t", keep, ARMS))
    usual = load(str(folder))
    for name in (
        "_temporary/0/arm=01/a.parquet",
        "_delta_log/1.checkpoint.parquet",
        ".staging/a.parquet",
        "arm=01/.a.parquet",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        pl.DataFrame({"id": [1], "x": [0.5], "y": [1], "code": [1]}).write_parquet(folder / name)
    assert load(str(folder)).fingerprint(b"k" * 32) == usual.fingerprint(b"k" * 32)


@pytest.mark.parametrize("first", ["01", "1.50", "a=b", "%C3%A9", "__HIVE_DEFAULT_PARTITION__"])
def test_both_readers_of_parquet_find_the_same_names_of_folders(first, tmp_path) -> None:
    path = Path(write_folder(tmp_path / "study=3" / "t", keep, [first, *ARMS[1:]]))
    columns = ["id", "arm", "y"]
    (part,) = scan_parquet(list_parquet(path)).parts
    with part.open(columns) as lazy:
        assert lazy.collect_schema() == {name: part.find_type(name) for name in columns}
        assert lazy.collect().equals(pl.concat(part.read_mended(columns, 5)))


def put_gap(column: str) -> Callable[[int, dict[str, list]], dict]:
    """As pandas writes whole numbers of which one is missing: all of that file as floats."""

    def change(number: int, columns: dict[str, list]) -> dict:
        if number:
            return columns
        return columns | {column: pl.Series([None, float(columns[column][1])], dtype=pl.Float64)}

    return change


ODD_COLUMNS = {
    "a gap in y": put_gap("y"), "a gap in codes": put_gap("code"), "a gap in x": put_gap("x"), "a gap in id": put_gap("id"),
    "texts in y": lambda number, columns: columns if number else columns | {"y": ["?", "1"]},
    "nothing in y": lambda number, columns: columns if number else columns | {"y": [None, None]},
    "dates in x": lambda number, columns: columns if number else columns | {"x": [date(2019, 1, 1)] * 2},
}  # fmt: skip


@pytest.mark.parametrize("odd", ODD_COLUMNS)
@pytest.mark.parametrize("mending", [False, True])
def test_the_types_of_one_file_are_not_those_of_others(odd, mending, tmp_path, monkeypatch) -> None:
    """A gap made whole numbers floats in one file of pandas; the types did not agree, and all curves were empty."""
    if mending:
        opened = table_loading.open_batches
        monkeypatch.setattr(
            table_loading, "open_batches", lambda *given, **how: opened(*given, **(how | {"mending": True}))
        )
    how = {"covariates": (Covariate("code", levels=CODES),)}
    usual = load(write_folder(tmp_path / "t", keep), **how)
    assert (usual.counts == 2).all()
    read = load(write_folder(tmp_path / "t", ODD_COLUMNS[odd]), **how)
    assert others_are_unchanged(read, usual)
    assert read.counts[0] < 2


def test_whole_ids_keep_their_order_beside_a_gap(tmp_path) -> None:
    """As texts, 10 would come before 9; positions say which batch of the published method a curve is in."""

    def put_gap_in_last(number: int, columns: dict[str, list]) -> dict:
        return columns if number < N - 1 else put_gap("id")(0, columns)

    def read_marked(change: Callable[[int, dict[str, list]], dict]) -> Curves:
        return load(
            write_folder(tmp_path / "t", lambda number, columns: change(number, columns | {"y": [number / 99] * 2}))
        )

    usual, read = read_marked(keep), read_marked(put_gap_in_last)
    assert others_are_unchanged(read, usual, N - 1)
    assert read.counts[-1] == 1


def test_a_site_answers_whatever_types_the_files_of_a_folder_have(make_site, tmp_path) -> None:
    site = make_site(tmp_path / "a", {"source": write_folder(tmp_path / "t", put_gap("y"))})
    assert site.codes() == ("ok", "ok"), site.log()[-1]
    assert "curves are empty" not in str(site.log())


# ------------------------------------------------------------ bytes that are no text

NO_TEXT = [b"\xff\xfe", b"\xed\xa0\x80", b"a\xc3", b"\xf8" * 20]


def write_bytes(folder: Path, kind: str, odd: bytes | None, column: str, *, categories: bool = False) -> str:
    """The usual table as texts of Arrow, with these bytes in the first cell of a column: Arrow does not look at them."""
    import pyarrow as pa
    import pyarrow.feather
    import pyarrow.parquet

    cells = {name: [row[place].encode() for row in BASE] for place, name in enumerate(("id", "x", "y", "age", "sex"))}
    if odd is not None:
        cells[column][0] = odd
    texts = {name: pa.array(values, pa.binary()).view(pa.string()) for name, values in cells.items()}
    if categories:
        places = pa.array([cells["sex"].index(value) for value in cells["sex"]], pa.int16())
        texts["sex"] = pa.DictionaryArray.from_arrays(places, texts["sex"])
    table = pa.table(texts)
    if kind == "arrow":
        with pa.ipc.new_stream(str(folder / "t.arrow"), table.schema) as stream:
            stream.write_table(table)
    elif kind == "feather":
        pyarrow.feather.write_feather(table, str(folder / "t.feather"))
    elif kind == "parquet":
        pyarrow.parquet.write_table(table, folder / "t.parquet")
    else:
        (folder / "t").mkdir(exist_ok=True)
        for number, start in enumerate((0, 9)):
            part = table.slice(start, 9 if not start else None)
            pyarrow.parquet.write_table(part, folder / "t" / f"{number}.parquet")
    return str(folder / ("t" if kind == "folder" else f"t.{kind}"))


@pytest.mark.parametrize("kind", ["arrow", "feather", "parquet", "folder"])
@pytest.mark.parametrize("odd", NO_TEXT)
def test_bytes_that_are_no_text_are_the_affair_of_their_cell(kind, odd, tmp_path) -> None:
    """Arrow's texts were believed: polars read foreign memory, and the silo's process died. Parquet's emptied all curves."""
    how = {"covariates": (Covariate("sex", levels=("F", "M")),)}
    usual = load(write_bytes(tmp_path, kind, None, ""), **how)
    assert (usual.counts == 2).all()
    for column in ("x", "y", "sex"):
        assert others_are_unchanged(load(write_bytes(tmp_path, kind, odd, column), **how), usual), column
    if kind in ("arrow", "feather"):
        assert others_are_unchanged(load(write_bytes(tmp_path, kind, odd, "sex", categories=True), **how), usual)
    assert load(write_bytes(tmp_path, kind, odd, "age"), **how) == usual  # a column that is not read
    with pytest.raises(InvalidInput, match=r"UTF-8"):
        load(write_bytes(tmp_path, kind, odd, "sex"), rows="refuse", **how)


def test_a_site_answers_whatever_bytes_a_cell_holds(make_site, tmp_path) -> None:
    site = make_site(tmp_path / "a", {"source": write_bytes(tmp_path, "feather", NO_TEXT[0], "y")})
    assert site.codes() == ("ok", "ok"), site.log()[-1]


def test_an_arrow_file_with_impossible_places_is_not_read(tmp_path) -> None:
    """Texts that begin beyond the end, and categories that are none: the file is damaged, and no memory is read for it."""
    import pyarrow as pa

    ends = pa.py_buffer(np.array([0, 9_000_000, 3], dtype=np.int32))
    beyond = pa.Array.from_buffers(pa.string(), 2, [None, ends, pa.py_buffer(b"0.5")])
    none = pa.DictionaryArray.from_arrays(pa.array([0, 7], pa.int8()), pa.array(["0.5"]), safe=False)
    for texts in (beyond, none):
        table = pa.RecordBatch.from_arrays([pa.array(["a", "b"]), texts, pa.array([0.1, 0.2])], names=["id", "x", "y"])
        with pa.ipc.new_file(str(tmp_path / "t.arrow"), table.schema) as file:
            file.write_batch(table)
        assert load(str(tmp_path / "t.arrow")).n_points == 0
        with pytest.raises(InvalidInput, match=r"damaged"):
            load(str(tmp_path / "t.arrow"), rows="refuse")


# ------------------------------------------------------------ dates and times

FAR = {"date32": [2**31 - 1, -(2**31)], "time64": [86_400 * 10**6, -1], "timestamp": [2**63 - 1, -(2**63) + 1]}


@pytest.mark.parametrize("kind", FAR)
def test_a_date_that_no_calendar_has_is_the_affair_of_its_cell(kind, tmp_path) -> None:
    """Infinity as DuckDB and PostgreSQL keep it: writing it as a text made polars panic, and all curves were empty."""
    import pyarrow as pa
    import pyarrow.parquet

    made = {"date32": pa.date32(), "time64": pa.time64("us"), "timestamp": pa.timestamp("us")}[kind]
    level = {"date32": "1970-01-01", "time64": "00:00:00", "timestamp": "1970-01-01 00:00:00.000000"}[kind]
    texts = {name: [row[place] for row in BASE] for place, name in enumerate(("id", "x", "y"))}

    def read(first: int) -> Curves:
        numbers = np.zeros(len(BASE), dtype=np.int32 if kind == "date32" else np.int64)
        numbers[0] = first
        pyarrow.parquet.write_table(pa.table(texts | {"day": pa.array(numbers).view(made)}), tmp_path / "t.parquet")
        return load(str(tmp_path / "t.parquet"), covariates=(Covariate("day", levels=(level, "other")),))

    usual = read(0)
    assert (usual.counts == 2).all()
    for far in FAR[kind]:
        assert others_are_unchanged(read(far), usual), far


# ------------------------------------------------------------ the last wall


def test_a_column_of_duckdb_that_is_not_read_decides_nothing(tmp_path) -> None:
    """Names of columns were those of a frame, which polars cannot make of an interval: then one row decided to refuse."""
    duckdb = pytest.importorskip("duckdb")
    kinds = "id VARCHAR, x DOUBLE, text VARCHAR, stay INTERVAL, either UNION(n INT, t VARCHAR)"
    with duckdb.connect(str(tmp_path / "t.duckdb")) as database:
        database.execute(f"CREATE TABLE visits ({kinds})")
        database.executemany("INSERT INTO visits VALUES (?, ?, ?, INTERVAL 3 DAY, 1)", [row[:3] for row in BASE])
    location, query = (
        f"duckdb:///{tmp_path / 't.duckdb'}",
        "SELECT id, x, CAST(text AS DOUBLE) AS y, stay, either FROM visits",
    )
    assert (load(location, query).counts == 2).all()
    with duckdb.connect(str(tmp_path / "t.duckdb")) as database:
        database.execute("UPDATE visits SET text = 'n.d.' WHERE id = 's00'")
    assert load(location, query).counts.tolist() == [0] * N


FAILS_ON_DUCKDB = """
import sys
from dpfda.curves.tables import Domain, Reading, find_source, load_curves, loading

def fail(*_):
    raise RuntimeError("a row")

loading.RowReader.read = fail
reading = Reading(Domain(0.0, 1.0), (-1.0, 1.0), id="id", x="x", y="y", rows="never refuse")
print(load_curves(find_source(sys.argv[1], "SELECT * FROM visits"), reading, n=3).curves.counts.tolist())
"""


def test_what_rows_make_fail_on_duckdb_is_answered_too(tmp_path) -> None:
    """The error kept the reader open, and looking at the columns once more waited for it for ever."""
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "t.duckdb")) as database:
        database.execute("CREATE TABLE visits AS SELECT 'a' AS id, 0.5 AS x, 0.1 AS y")
    command = [sys.executable, "-c", FAILS_ON_DUCKDB, f"duckdb:///{tmp_path / 't.duckdb'}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout == "[0, 0, 0]\n"


class Panic(BaseException):
    """As compiled readers raise it: no Exception."""


Panic.__name__ = "PanicException"


@pytest.mark.parametrize("error", [Panic("decimal"), RuntimeError("what else"), InvalidInput("a row")])
def test_whatever_rows_make_fail_gives_empty_curves_and_a_note(error, make_site, tmp_path, monkeypatch) -> None:
    site = make_site(tmp_path / "a", write_csv(tmp_path / "a", BASE))

    def fail(*_):
        raise error

    monkeypatch.setattr(table_loading.RowReader, "read", fail)
    assert site.codes() == ("ok", "ok"), site.log()[-1]
    notes = [line["notes"] for line in site.log() if line["event"] == "data"]
    assert f"all {N} curves are empty" in notes[0]
    with pytest.raises(InvalidInput if isinstance(error, Panic) else type(error)):
        load(str(tmp_path / "a" / "table.csv"), rows="refuse")


def test_a_query_that_fails_at_one_row_answers_and_one_that_is_wrong_does_not(
    make_site, tmp_path, postgres_url
) -> None:
    data = fill_server(postgres_url, None)
    fails = "SELECT id, x, 1 / (y - 0.02) AS y FROM odd_visits ORDER BY id"
    site = make_site(tmp_path / "a", data | {"query": fails})
    assert site.codes() == ("ok", "ok"), site.log()[-1]
    assert "division by zero" in " ".join(line.get("notes", "") for line in site.log())
    wrong = make_site(tmp_path / "b", data | {"query": "SELECT id, x, yy AS y FROM odd_visits"})
    assert wrong.codes() == ("unavailable", "unavailable")


def test_a_panic_in_a_site_s_process_is_answered_and_noted(make_site, tmp_path, monkeypatch) -> None:
    site = make_site(tmp_path / "a", write_csv(tmp_path / "a", BASE))

    def panic(*_):
        raise Panic("in compiled code")

    monkeypatch.setattr(SitePolicy, "load_curves", panic)
    assert site.codes() == ("unavailable", "unavailable")
    assert [line["outcome"] for line in site.log()][-2:] == ["refused", "refused"]
    assert "PanicException: in compiled code" in site.log()[-1]["reason"]


def test_a_note_of_more_than_a_million_letters_is_one_cell(tmp_path) -> None:
    """Review seven: beyond 2^20 letters the quote was a letter, and every line of the note a row, of whomever it named."""
    import csv

    def write(name: str, note: str) -> str:
        with (tmp_path / name).open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["id", "x", "y", "note"])
            for person in range(4):
                writer.writerow([f"s{person}", 0.5, person / 4, note if person == 0 else ""])
        return str(tmp_path / name)

    plain = load(write("plain.csv", "well"))
    long = load(write("long.csv", "\ns3,0.25,1,\n" * 2 + "a" * (9 << 20)))  # longer than a block, too
    np.testing.assert_array_equal(long.y, plain.y)
    np.testing.assert_array_equal(long.offsets, plain.offsets)
