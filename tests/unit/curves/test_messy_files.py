"""Files as hospitals have them: workbooks, local dates, units, codes for missing values, baseline facts in one row only."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import polars as pl
import pytest

from dpfda.curves.tables import Covariate, Domain, Reading, find_source, load_curves
from dpfda.curves.tables.cells import Cells
from dpfda.curves.tables.dates import parse_dates
from dpfda.curves.tables.numbers import parse_numbers
from dpfda.curves.tables.wide import parse_point
from dpfda.curves.tables.workbook import read_sheet
from dpfda.errors import InvalidInput

YEAR = Domain.between("1986-01-01", "1986-12-31")
NUMBERS = Domain(0.0, 100.0)


def reading(domain: Domain = NUMBERS, y_bounds: tuple[float, float] = (0.0, 300.0), **how: object) -> Reading:
    return Reading(domain, y_bounds, **{"id": "id", "x": "x", "y": "y", **how})  # type: ignore[arg-type]


def load(tmp_path: Path, text: str, **how: object):
    path = tmp_path / "t.csv"
    path.write_text(text)
    return load_curves(find_source(str(path)), reading(**how))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("cell", "date_format"),
    [
        ("23.04.1986", None),
        ("23.4.1986", None),
        ("23.04.1986 12:00", None),
        ("1986-04-23", None),
        ("1986-04-23 12:00:00", None),
        ("1986-04-23T12:00:00Z", None),
        ("1986-04-23 12:00:00.000+02:00", None),
        ("23/04/1986", "dmy"),
        ("23-04-1986 12:00:00", "dmy"),
        ("04/23/1986", "mdy"),
        ("4/23/1986 12:00 PM", "mdy"),
        ("1986/4/23", "ymd"),
        ("1986-04-23", "mdy"),
        ("23Apr1986", "%d%b%Y"),
    ],
)
def test_a_date_is_the_same_day_however_it_is_written(cell: str, date_format: str | None) -> None:
    moments = parse_dates(pl.Series("x", [cell, None]), Cells(date_format=date_format))
    assert moments is not None
    expected = dt.datetime(1986, 4, 23, 12 if ":" in cell else 0)
    assert moments.to_list() == [expected, None]


@pytest.mark.parametrize("cell", ["04/23/1986", "23.04.86", "1986-04-23x", "31.31.1986", "1986-04-23 25:00:00"])
def test_a_date_that_could_be_another_one_is_refused_with_its_row(tmp_path: Path, cell: str) -> None:
    with pytest.raises(InvalidInput, match=f"(?i)row 2.*'{cell[:4]}"):
        load(tmp_path, f"id,x,y\n1,1986-05-01,5\n2,{cell},6\n", domain=YEAR)


def test_what_a_cell_becomes_depends_on_the_cell_alone() -> None:
    cells = ["1986-04-23", "23.04.1986 10:00", "1986-04-23 10:00:00xyz", "5", "1986-4-3", "3/4/1986"]
    for date_format in (None, "dmy", "mdy"):
        together = parse_dates(pl.Series("x", cells), Cells(date_format=date_format))
        assert together is not None
        for place, cell in enumerate(cells):
            alone = parse_dates(pl.Series("x", [cell]), Cells(date_format=date_format))
            assert together[place] == (None if alone is None else alone[0])


def test_days_count_from_the_first_day_of_the_domain(tmp_path: Path) -> None:
    local = Domain.between("01.01.1986", "31.12.1986")
    assert local == YEAR
    assert Domain.between("12/31/1985", "12/31/1986", "mdy").origin == dt.date(1985, 12, 31)
    curves = load(tmp_path, "id;x;y\n1;03.01.1986 06:00;5\n", domain=YEAR).curves
    assert curves.x.tolist() == [2.25]


def test_decimal_commas_thousands_and_units() -> None:
    def read(cells: list[str], **how: object) -> list[float]:
        return parse_numbers(pl.Series("y", cells), Cells(**how)).tolist()  # type: ignore[arg-type]

    assert read(["1,5", "1.234,5", "7", "1.5"], decimal="comma") == [1.5, 1234.5, 7.0, 1.5]
    assert read(["1,234.5", "1,234,567.25"]) == [1234.5, 1234567.25]
    units = ["182 cm", "182cm", "1.5e2 mg/dl", "37.2 °C", "12 %", "60 ml/min/1.73m2", "25 kg/m2", "5 µmol/l"]
    assert read(units, strip_units=True) == [182, 182, 150, 37.2, 12, 60, 25, 5]
    assert read(["37,2 °C"], strip_units=True, decimal="comma") == [37.2]


@pytest.mark.parametrize(
    "cell", ["<400", "120/80", "6 ft 1", "5'11", "3h30", "10-12", "~5", "1 234", "cm", "5 (est 7)"]
)
def test_what_is_no_number_with_a_unit_is_quoted(cell: str) -> None:
    with pytest.raises(InvalidInput, match="Row 17 of 'score' is "):
        parse_numbers(pl.Series("score", [cell]), Cells(strip_units=True), rows_before=16)


def test_two_units_in_a_column_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="the units 'kg' and 'lb'"):
        load(tmp_path, "id,x,y\n1,5,70 kg\n2,6,150 lb\n", strip_units=True)
    with pytest.raises(InvalidInput, match="add --strip-units"):
        load(tmp_path, "id,x,y\n1,5,70 kg\n")


def test_a_decimal_comma_before_a_unit_is_named(tmp_path: Path) -> None:
    table = "id;x;y\n1;5;0,9 mg/l\n2;6;1,5 mg/l\n"
    with pytest.raises(InvalidInput, match=r"Row 1 of 'y' is '0,9 mg/l', .* add --decimal comma"):
        load(tmp_path, table, strip_units=True)
    assert load(tmp_path, table, strip_units=True, decimal="comma").curves.y.tolist() == [0.9, 1.5]


@pytest.mark.parametrize("rows", ["refuse", "never refuse"])
def test_rows_without_x_or_y_are_no_copies(tmp_path: Path, rows: str) -> None:
    loaded = load(tmp_path, "id,x,y\n1,5,\n1,5,\n1,6,2\n2,,3\n2,,3\n2,7,4\n", rows=rows)
    assert loaded.curves.counts.tolist() == [1, 1]
    assert loaded.owner_notes == ("4 of 6 rows have no x or no y and were left out",)
    copies = "id,x,y\n1,5,\n1,5,\n1,6,2\n1,6,2\n2,7,4\n"
    dropped = load(tmp_path, copies, rows=rows, duplicates="drop")
    assert "1 row is an exact copy of another row and was dropped" in dropped.owner_notes
    assert dropped.curves.counts.tolist() == [1, 1]


def test_codes_of_missing_values_are_missing_in_every_kind_of_column(tmp_path: Path) -> None:
    how = {"missing": ("-99", "k.A."), "covariates": (Covariate("arm", levels=("a", "b")), Covariate("w", (0.0, 9.0)))}
    loaded = load(tmp_path, "id,x,y,arm,w\n1,5,-99.0,a,1\n2,K.A.,6,b,2\n3,7,7,k.A.,3\n4,8,8,b,-99\n5,9,9,b,4\n", **how)
    assert loaded.curves.counts.tolist() == [0, 0, 0, 0, 1]
    frame = pl.DataFrame({"id": [1, 2], "x": [1.0, 2.0], "y": [-99.0, 3.0]})
    frame.write_parquet(tmp_path / "t.parquet")
    numeric = load_curves(find_source(str(tmp_path / "t.parquet")), reading(missing=("-99",)))
    assert numeric.curves.counts.tolist() == [0, 1]


def test_a_typo_in_the_levels_is_refused_and_a_rare_level_is_not(tmp_path: Path) -> None:
    table = "id,x,y,s\n1,5,5,never\n2,5,5,current\n3,5,5,unknown\n"

    def levels(*names: str, **how: object):
        return load(tmp_path, table, covariates=(Covariate("s", levels=names),), **how)

    with pytest.raises(InvalidInput, match="No row of 's' is 'curent', but row 2 is 'current'"):
        levels("never", "curent")
    note = "1 of 3 rows has x and y, but 's' is missing or not in --levels: left out"
    assert note in levels("never", "current").owner_notes
    with pytest.raises(InvalidInput, match="--missing"):
        levels("never", "former", "current")
    assert levels("never", "former", "current", missing=("unknown",)).curves.counts.tolist() == [1, 1, 0]


def test_yes_and_no_become_a_share(tmp_path: Path) -> None:
    table = "id,x,y\n1,5,yes\n1,6,no\n2,7,\n"
    loaded = load(tmp_path, table, y_levels=("no", "yes"), y_bounds=(0.0, 1.0))
    assert loaded.curves.y.tolist() == [1.0, 0.0]
    assert loaded.curves.n == 2
    with pytest.raises(InvalidInput, match="Row 1 of 'y' is 'yes', not one of --y-levels"):
        load(tmp_path, table, y_levels=("no", "YES"), y_bounds=(0.0, 1.0))
    with pytest.raises(InvalidInput, match="--y-levels no,yes"):
        load(tmp_path, table)
    with pytest.raises(InvalidInput, match="two different values"):
        reading(y_levels=("no",), y_bounds=(0.0, 1.0))
    with pytest.raises(InvalidInput, match="--y-bounds must be 0:1"):
        reading(y_levels=("no", "yes"))


REDCAP = """record_id,event,x,y,sex,bmi
1,baseline,,,f,22.5
1,visit 1,5,50,,
1,visit 2,6,51,,
2,baseline,,,m,30
2,visit 1,7,60,,
"""


def test_a_baseline_row_without_x_and_y_is_filled_down_on_request(tmp_path: Path) -> None:
    how = {"id": "record_id", "covariates": (Covariate("sex", levels=("f", "m")), Covariate("bmi", (10.0, 70.0)))}
    with pytest.raises(InvalidInput, match="'sex' is missing where x and y are given; add --fill-down sex"):
        load(tmp_path, REDCAP, **how)
    with pytest.raises(InvalidInput, match="'sex' is missing where x and y are given; add --fill-down sex"):
        load(tmp_path, REDCAP, id="record_id", covariates=(Covariate("sex", levels=("f", "m")),))
    curves = load(tmp_path, REDCAP, fill_down=("sex", "bmi"), **how).curves
    assert curves.design.tolist() == [[1, 0, 22.5], [1, 1, 30]]
    assert curves.counts.tolist() == [2, 1]


def test_a_code_of_a_missing_value_is_filled_down_and_an_unlisted_level_is_not(tmp_path: Path) -> None:
    table = "id,x,y,s\n1,1,5,a\n1,2,5,unknown\n1,3,5,\n2,1,5,b\n2,2,5,c\n"
    how = {"covariates": (Covariate("s", levels=("a", "b")),), "fill_down": ("s",), "missing": ("unknown",)}
    assert load(tmp_path, table, **how).curves.counts.tolist() == [3, 1]


@pytest.mark.parametrize(
    ("column", "x"),
    [("v_-2", -2.0), ("v_2", 2.0), ("-2", -2.0), ("hdl-46", 46.0), ("t0.5", 0.5), ("day.-7", -7.0), ("v -3.5", -3.5),
     ("bp_sys2-4", 4.0), ("m+6", 6.0)],
)  # fmt: skip
def test_the_number_in_the_name_of_a_wide_column(column: str, x: float) -> None:
    assert parse_point(column, reading(wide=True, x=None)) == x


def test_blanks_of_a_wide_table_are_cells(tmp_path: Path) -> None:
    loaded = load(tmp_path, "id,y_5,y_6\n1,2,\n2,3,4\n3,,\n", wide=True, x=None, y=None)
    assert loaded.owner_notes[0] == "3 of 6 cells have no x or no y and were left out"


def test_wide_columns_named_by_dates_and_two_columns_for_one_x(tmp_path: Path) -> None:
    wide = {"wide": True, "x": None, "y": None}
    assert load(tmp_path, "id,1986-01-03,1986-02-01\na,5,6\n", domain=YEAR, **wide).curves.x.tolist() == [2.0, 31.0]
    with pytest.raises(InvalidInput, match="give --domain as dates"):
        load(tmp_path, "id,1986-01-03,1986-02-01\na,5,6\n", **wide)
    with pytest.raises(InvalidInput, match="'hdl_1' and 'ldl_1' both stand for x = 1; say with --y"):
        load(tmp_path, "id,hdl_1,hdl_2,ldl_1\na,5,6,7\n", **wide)
    negative = load(tmp_path, "id,v_-2,v_2\na,5,6\n", domain=Domain(-5.0, 5.0), **wide)
    assert negative.curves.x.tolist() == [-2.0, 2.0]


def test_units_in_the_names_of_wide_columns(tmp_path: Path) -> None:
    wide = {"wide": True, "x": None, "y": "bdi"}
    table = "id,bdi.pre,bdi.2m,bdi.4m\na,5,6,7\n"
    with pytest.raises(InvalidInput, match="add --strip-units if a unit follows"):
        load(tmp_path, table, **wide)
    assert load(tmp_path, table, strip_units=True, **wide).curves.x.tolist() == [2.0, 4.0]


def test_one_rule_for_points_outside_the_domain(tmp_path: Path) -> None:
    table = "id,x,y\n1,5,5\n1,500,5\n"
    assert load(tmp_path, table).curves.n_points == 1
    with pytest.raises(InvalidInput, match="--outside drop"):
        load(tmp_path, table, outside="refuse")


def workbook(path: Path, sheets: dict[str, list[list[object]]]) -> Path:
    xlsxwriter = pytest.importorskip("xlsxwriter")
    book = xlsxwriter.Workbook(path)
    day = book.add_format({"num_format": "dd.mm.yyyy"})
    for name, rows in sheets.items():
        sheet = book.add_worksheet(name)
        for place, row in enumerate(rows):
            for column, value in enumerate(row):
                if isinstance(value, dt.date):
                    sheet.write_datetime(place, column, dt.datetime(value.year, value.month, value.day), day)
                elif value is not None:
                    sheet.write(place, column, value)
        sheet.write_blank(len(rows) + 3, 0, None, day)  # as Excel leaves behind
    book.close()
    return path


def test_a_workbook_is_read_as_a_csv_file_is(tmp_path: Path) -> None:
    pytest.importorskip("fastexcel")
    rows: list[list[object]] = [
        [" id ", "x", "y"],
        [1, dt.date(1986, 1, 3), 5.5],
        [1, dt.date(1986, 1, 4), None],
        [2, None, 7],
    ]
    path = workbook(tmp_path / "t.xlsx", {"visits": rows})
    curves = load_curves(find_source(str(path)), reading(domain=YEAR)).curves
    assert (curves.n, curves.x.tolist(), curves.y.tolist()) == (2, [2.0], [5.5])
    rows[1][2] = "<400"
    bad = workbook(tmp_path / "bad.xlsx", {"visits": rows})
    with pytest.raises(InvalidInput, match="Row 1 of 'y' is '<400', not a number"):
        load_curves(find_source(str(bad)), reading(domain=YEAR))


def test_a_sheet_holds_texts_and_no_empty_rows(tmp_path: Path) -> None:
    pytest.importorskip("fastexcel")
    path = workbook(tmp_path / "t.xlsx", {"s": [["id", "day"], [1, dt.date(1986, 1, 3)]]})
    assert read_sheet(path, None).rows() == [("1", "1986-01-03 00:00:00")]


def test_a_sheet_is_named_where_there_are_several(tmp_path: Path) -> None:
    pytest.importorskip("fastexcel")
    path = workbook(
        tmp_path / "t.xlsx", {"codebook": [["a"], [1]], "visits": [["id", "x", "y"], [1, 2, 3]], "empty": []}
    )
    with pytest.raises(InvalidInput, match=r"3 sheets \('codebook', 'visits', 'empty'\); choose one with --sheet"):
        load_curves(find_source(str(path)), reading())
    assert load_curves(find_source(str(path), sheet="visits"), reading()).curves.n == 1
    with pytest.raises(InvalidInput, match="has no sheet 'visit'"):
        load_curves(find_source(str(path), sheet="visit"), reading())
    with pytest.raises(InvalidInput, match=r"'empty' of t\.xlsx is empty"):
        load_curves(find_source(str(path), sheet="empty"), reading())
    with pytest.raises(InvalidInput, match="--sheet goes with a workbook"):
        find_source(str(tmp_path / "t.csv"), sheet="visits")


def test_doubts_are_for_bounds_that_change_nearly_everybody(tmp_path: Path) -> None:
    rows = "".join(f"{subject},{subject % 50},{subject % 10 + 100}\n" for subject in range(100))
    assert (
        "nearly everybody would be clamped" in load(tmp_path, f"id,x,y\n{rows}", y_bounds=(0.0, 100.0)).owner_doubts[0]
    )
    assert load(tmp_path, f"id,x,y\n{rows}", y_bounds=(0.0, 108.0)).owner_doubts == ()
    assert "most values are clamped" in load(tmp_path, f"id,x,y\n{rows}", y_bounds=(0.0, 103.0)).owner_doubts[0]
    visits = [f"{subject},{visit},5,{'' if visit else 3}" for subject in range(9) for visit in range(4)]
    baseline = "\n".join(["id,x,y,w", *visits])
    how = {"covariates": (Covariate("w", (0.0, 9.0)),)}
    assert "--fill-down w" in load(tmp_path, baseline, **how).owner_doubts[0]
    assert load(tmp_path, baseline, fill_down=("w",), **how).owner_doubts == ()


@pytest.mark.parametrize("wide", [False, True])
def test_a_level_that_nobody_has_is_a_doubt(tmp_path: Path, wide: bool) -> None:
    content = "id,x,y,arm\n1,2,3,A\n2,2,3,B\n" if not wide else "id,y_2,arm\n1,3,A\n2,3,B\n"
    how = {"wide": True, "x": None, "y": "y_"} if wide else {}
    found = load(tmp_path, content, covariates=(Covariate("arm", levels=("A", "B", "b")),), **how)
    assert found.owner_doubts == ("no row of 'arm' is 'b', which --levels arm= lists: its curve would be noise",)
    right = load(tmp_path, content, covariates=(Covariate("arm", levels=("A", "B")),), **how)
    assert right.owner_doubts == ()


def test_a_code_for_a_missing_value_is_a_doubt(tmp_path: Path) -> None:
    content = "id,x,y\n1,2,3\n2,2,-999\n3,2,-999\n4,2,99\n"
    found = load(tmp_path, content, y_bounds=(-8.0, 8.0)).owner_doubts
    assert [doubt for doubt in found if "-999" in doubt] == [
        "2 points of y are -999, beyond its bounds, which often stands for a missing value: --missing=-999 would leave "
        "them out"
    ]
    assert not any("are 99," in doubt for doubt in found), "a single one may be a value"
    assert not any("999" in doubt for doubt in load(tmp_path, content, y_bounds=(-1000.0, 1000.0)).owner_doubts)
    told = load(tmp_path, content, y_bounds=(-8.0, 8.0), missing=("-999",))
    assert not any("999" in doubt for doubt in told.owner_doubts)


@pytest.mark.parametrize(
    ("cell", "sentence"),
    [("40.3 %", "add --strip-units"), ("$6,160", "without a sign and without thousands"), ("12 €", "without a sign")],
)
def test_percent_and_currency_have_their_own_advice(tmp_path: Path, cell: str, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        load(tmp_path, f'id,x,y\n1,2,"{cell}"\n')


def test_dates_in_words_are_quoted_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"Row 1 of 'x' is '24-Mar-1986 00:00', not a date.*--date-format"):
        load(tmp_path, "id,x,y\n1,24-Mar-1986 00:00,3\n", domain=YEAR)
