"""Third review, F1 and F2: one subject's cells decide neither whether a site answers nor what the curves of others are."""

from __future__ import annotations

import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest

pytest.importorskip("cryptography")

from hospital import BASE, Hospital, N, open_consortium, with_values, write_csv

from dpfda.curves.curves import Curves
from dpfda.curves.tables import Domain, Reading, find_source, load_curves, text_files
from dpfda.curves.tables import loading as table_loading
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


def test_two_stray_quotes_do_not_swallow_what_is_between(tmp_path) -> None:
    """In order of visits, all rows between the two of one subject were one cell, also for `dpfda fit`."""
    rows = sorted(([row[0], row[1], row[2], "ok"] for row in BASE), key=lambda row: row[1])
    mine = [place for place, row in enumerate(rows) if row[0] == "s00"]
    for place in (mine[0], mine[-1]):
        rows[place][3] = '"'
    path = tmp_path / "t.csv"
    path.write_text("".join(",".join(row) + "\n" for row in [["id", "x", "y", "comment"], *rows]))
    for how in ("never refuse", "refuse"):
        assert (load(str(path), rows=how).counts == 2).all()


def test_blocks_and_batches_do_not_matter(tmp_path, monkeypatch) -> None:
    changes = {(5, 4): '"5', (9, 4): '"a ""b"" c"', (12, 1): "plain"}
    path = write_lines(tmp_path / "t.csv", changes)
    whole = load(path)
    assert (whole.counts == 2).all()
    for size in (7, 50, 200):
        monkeypatch.setattr(text_files, "_BLOCK", size)
        assert load(path) == whole


def test_the_owner_is_asked_to_take_a_line_break_out_of_a_cell(tmp_path) -> None:
    path = write_lines(tmp_path / "t.csv", {(3, 1): '"Ward 3,\nEast"'})
    with pytest.raises(InvalidInput, match=r"Line 5 of t\.csv has 3 cells where the header has 5"):
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
    f'"{_TYPES}/officeDocument/2006/relationships/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
}


def write_workbook(path: Path, odd: str | None) -> str:
    """The usual table; the y of the first row is the XML of a cell."""
    lines = []
    for number, row in enumerate([["id", "x", "y"], *BASE], 1):
        cells = [f'<c r="{"ABC"[k]}{number}" t="inlineStr"><is><t>{row[k]}</t></is></c>' for k in range(3)]
        if number == 2 and odd is not None:
            cells[2] = odd.replace("@", "C2")
        lines.append(f'<row r="{number}">{"".join(cells)}</row>')
    sheet = f'<worksheet xmlns="{_TYPES}/spreadsheetml/2006/main"><sheetData>{"".join(lines)}</sheetData></worksheet>'
    with zipfile.ZipFile(path, "w") as book:
        for name, content in (_PARTS | {"xl/worksheets/sheet1.xml": sheet}).items():
            book.writestr(name, '<?xml version="1.0"?>' + content)
    return str(path)


ODD_CELLS = [
    f'<c r="@" t="e"><v>{error}</v></c>' for error in ("#SPILL!", "#CALC!", "#GETTING_DATA", "Err:502", "#N/A")
]
ODD_CELLS += ['<c r="@" t="s"><v>99</v></c>', '<c r="@" t="zzz"><v>5</v></c>', '<c r="@" t="e"><f>1/0</f></c>']


@pytest.mark.parametrize("odd", ODD_CELLS)
def test_an_odd_cell_of_a_workbook_is_the_affair_of_its_subject(odd, make_site, tmp_path) -> None:
    pytest.importorskip("fastexcel")
    usual = load(write_workbook(tmp_path / "usual.xlsx", None))
    assert (usual.counts > 0).all()
    assert others_are_unchanged(load(write_workbook(tmp_path / "odd.xlsx", odd)), usual)
    site = make_site(tmp_path / "a", {"source": str(tmp_path / "odd.xlsx")})
    assert site.codes() == ("ok", "ok"), site.log()[-1]


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


# ------------------------------------------------------------ the last wall


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
