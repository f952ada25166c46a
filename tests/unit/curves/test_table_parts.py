"""The parts that read tables, each by itself."""

from __future__ import annotations

import re
import sqlite3
from datetime import date
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from dpfda._compile import KernelError
from dpfda.curves.known_ranges import KNOWN, find_measures
from dpfda.curves.point_order import cut_curves, order_points
from dpfda.curves.tables import postgres_cells
from dpfda.curves.tables.batches import open_batches, read_column_names
from dpfda.curves.tables.cells import Cells
from dpfda.curves.tables.database import import_optional, postgres_url, query_batches
from dpfda.curves.tables.failures import is_made_by_rows
from dpfda.curves.tables.files import explain_errors
from dpfda.curves.tables.gathering import Collector
from dpfda.curves.tables.grouping import may_hold_copies, order_rows
from dpfda.curves.tables.numbers import parse_numbers, parse_positions
from dpfda.curves.tables.ordering import cut_into_pieces
from dpfda.curves.tables.owner_view import Tally, write_notes
from dpfda.curves.tables.reading import Domain, Reading
from dpfda.curves.tables.repeats import has_repeat
from dpfda.curves.tables.rows import RowReader, Rows, join_rows
from dpfda.curves.tables.source import find_source
from dpfda.curves.tables.spool import Spool
from dpfda.curves.tables.wide import unpivot
from dpfda.errors import InvalidInput
from dpfda.protocol.transforms import check_transform

READING = Reading(Domain(0.0, 100.0), (0.0, 10.0), id="id", x="x", y="y")


def some_rows(n: int, seed: int = 1) -> Rows:
    rng = np.random.default_rng(seed)
    return Rows(pl.Series(rng.integers(0, 40, n)), rng.uniform(0, 100, n), rng.uniform(0, 10, n), None)


def test_known_ranges_are_ranges_and_are_found_by_a_columns_name() -> None:
    assert all(known.low < known.high for known in KNOWN)
    assert [known.name for known in find_measures("hdl_mgdl")] == ["HDL cholesterol"]
    assert [known.name for known in find_measures("phq9_total")] == ["depression score (PHQ-9)"]
    assert find_measures("xyzzy") == []
    assert [(known.name, known.unit) for known in find_measures("crp")] == [("C-reactive protein", "mg/l")]


def test_a_column_of_times_is_not_taken_for_steps_a_day_or_hours_a_week() -> None:
    assert find_measures("day") == find_measures("week") == find_measures("hour") == []
    assert [known.name for known in find_measures("steps")] == ["steps a day"]
    assert [known.name for known in find_measures("pain")] == ["pain score"]


def test_ranges_of_weight_and_height_hold_preterm_newborns() -> None:
    ranges = {known.name: known for known in KNOWN}
    assert ranges["weight"].low < 0.4
    assert ranges["height"].low < 25


@pytest.mark.parametrize(("cell", "limit"), [("<0.3", "0.3"), ("< 5", "5"), (">=200", "200"), ("≤ 0,3", "0,3")])
def test_a_limit_of_detection_is_not_called_a_missing_value(cell: str, limit: str) -> None:
    with pytest.raises(InvalidInput, match="if it is a limit of detection") as caught:
        parse_numbers(pl.Series("crp", ["1", cell]))
    assert f"write the limit itself, {limit}, into the table" in str(caught.value)
    assert "only if such values may be left out" in str(caught.value)


def test_bounds_named_for_a_logarithm_are_positive_and_in_the_units_of_y() -> None:
    named = {known.name: re.findall(r'"log" (\S+):(\S+)$', known.why) for known in KNOWN if '"log"' in known.why}
    assert {"bilirubin", "creatinine", "C-reactive protein"} <= set(named)
    for known in KNOWN:
        assert "logarithm:" not in known.why
        for low, high in named.get(known.name, []):
            check_transform("log", (float(low), float(high)))
            assert float(high) >= known.high
    assert all(len(bounds) == 1 for bounds in named.values())


def test_numbers_are_not_guessed() -> None:
    np.testing.assert_array_equal(parse_numbers(pl.Series("y", ["1.5", " n/a", "2"])), [1.5, np.nan, 2])
    np.testing.assert_array_equal(parse_numbers(pl.Series("y", ["1,5"]), Cells("comma")), [1.5])
    with pytest.raises(InvalidInput, match=r"row 13.*--decimal comma"):
        parse_numbers(pl.Series("y", ["1", "2,5"]), rows_before=11)


def test_dates_are_days_since_the_first_day_of_the_domain() -> None:
    domain = Domain.between("2019-01-01", "2019-12-31")
    assert parse_positions(pl.Series("day", [date(2019, 1, 3)]), domain).tolist() == [2.0]
    with pytest.raises(InvalidInput, match="give --domain as dates"):
        parse_positions(pl.Series("day", [date(2019, 1, 3)]), READING.domain)


def test_rows_come_in_the_order_of_codes_and_keep_their_own() -> None:
    codes, x, y = order_rows(np.array([1, 0, 1, 0]), np.arange(4.0), np.arange(4.0) * 10)
    assert (codes.tolist(), x.tolist(), y.tolist()) == ([0, 0, 1, 1], [1, 3, 0, 2], [10, 30, 0, 20])


def test_copies_and_repeats_are_seen() -> None:
    offsets = np.array([0, 2, 4])
    assert may_hold_copies(np.array([1.0, 1, 2, 3]), np.array([5.0, 5, 5, 5]), offsets)
    assert not may_hold_copies(np.array([1.0, 2, 1, 2]), np.array([5.0, 5, 5, 5]), offsets)
    assert has_repeat(np.array([7, 3, 7], dtype=np.uint64))
    assert not has_repeat(np.array([7, 3, 5], dtype=np.uint64))


def test_wide_tables_take_x_from_the_names_of_their_columns() -> None:
    frame = pl.DataFrame({"id": ["a", "b"], "hdl_46": [1.0, 2.0], "hdl_50": [3.0, 4.0]})
    reading = Reading(READING.domain, READING.y_bounds, id="id", y="hdl", wide=True)
    owners, x, y = unpivot(frame, RowReader(reading))
    assert (owners.tolist(), x.tolist(), y.tolist()) == ([0, 0, 1, 1], [46, 50, 46, 50], [1, 3, 2, 4])


def test_a_spool_gives_every_row_once_in_pieces_of_whole_ids(tmp_path: Path) -> None:
    rows = some_rows(3000)
    spool = Spool(tmp_path, rows.ids)
    for start in range(0, len(rows), 700):
        spool.add(rows[start : start + 700])
    pieces = [piece.read() for piece in cut_into_pieces(spool, tmp_path, 400)]
    everything = join_rows(pieces)
    assert sorted(everything.x) == sorted(rows.x)
    ids = [set(piece.ids) for piece in pieces]
    assert sum(map(len, ids)) == len(set().union(*ids))


def test_curves_are_the_same_through_memory_and_through_the_disk(tmp_path: Path) -> None:
    found = []
    for at_once in (10_000, 300):
        collector = Collector(READING, at_once, tmp_path)
        for start in range(0, 3000, 500):
            collector.add(some_rows(3000)[start : start + 500])
        found.append(collector.curves(lambda done: None))
    assert [np.array_equal(getattr(found[0], name), getattr(found[1], name)) for name in ("x", "y", "offsets")] == [
        True, True, True,
    ]  # fmt: skip


def test_tallies_add_up_and_one_curve_in_parts_is_one_subject() -> None:
    part = Tally(rows=3, points=3, inside=3, within_bounds=3, subjects=1)
    assert (part + part).rows == 6
    assert Tally.of_one_curve([part, part]).subjects == 1
    whole = Tally(rows=10, missing=2, points=8, inside=8, within_bounds=8, subjects=4)
    assert write_notes(whole, READING) == ["2 of 10 rows have no x or no y and were left out"]


def test_a_file_is_scanned_in_batches_with_the_columns_that_were_chosen(tmp_path: Path) -> None:
    file = tmp_path / "visits.csv"
    file.write_text("id,x,y,name\n1,2,3,ann\n1,3,4,ann\n2,5,6,bob\n")
    source = find_source(str(file))
    assert read_column_names(source) == ["id", "x", "y", "name"]
    with open_batches(source, lambda names: names[:3], None, rows=2) as batches:
        frames = list(batches.frames)
    assert [frame.height for frame in frames] == [2, 1]
    assert pl.concat(frames).columns == ["id", "x", "y"]


def test_an_empty_file_is_explained_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"visits\.csv is empty"), explain_errors(tmp_path / "visits.csv"):
        raise pl.exceptions.NoDataError("empty CSV")


def test_a_query_comes_in_batches_and_cannot_change_the_database(tmp_path: Path) -> None:
    place = tmp_path / "clinic.sqlite"
    with sqlite3.connect(place) as database:
        database.execute("CREATE TABLE visits (id, x, y)")
        database.executemany("INSERT INTO visits VALUES (?, ?, ?)", [(k, k, k) for k in range(5)])
    with query_batches(find_source(f"sqlite:///{place}", "SELECT * FROM visits"), list, 2) as frames:
        assert pl.concat(list(frames)).height == 5
    assert postgres_url("postgresql://me@server/clinic") == "postgresql+psycopg://me@server/clinic"
    with pytest.raises(InvalidInput, match=r"dpfda\[duckdb\]"):
        import_optional("a_module_that_is_not_there", "duckdb")


def test_what_rows_make_fail_is_told_from_what_the_source_is(tmp_path: Path) -> None:
    file = tmp_path / "visits.csv"
    file.write_text("id,x,y\n1,2,3\n")
    source = find_source(str(file))
    assert is_made_by_rows(RuntimeError("a cell"), source, None, lambda names: names)
    assert not is_made_by_rows(OSError("the disk"), source, None, lambda names: names)
    file.unlink()
    assert not is_made_by_rows(RuntimeError("a cell"), source, None, lambda names: names)


def test_types_of_which_every_value_can_be_read_stay_as_they_are() -> None:
    assert "float8" in postgres_cells._PLAIN
    assert not {"numeric", "date", "timestamp", "json"} & set(postgres_cells._PLAIN)


@pytest.mark.parametrize("longest", [3, 30, 300])
@pytest.mark.parametrize("columns", [0, 2])
def test_short_and_long_curves_are_put_in_the_order_of_their_bits(longest, columns) -> None:
    rng = np.random.default_rng(longest)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(0, longest, 40))])
    x, y = (rng.integers(-2, 3, offsets[-1]).astype(float) for _ in range(2))
    rows = rng.integers(0, 2, (x.size, columns)).astype(float) if columns else None
    owners = np.repeat(np.arange(40), np.diff(offsets))
    keys = [*([] if rows is None else rows.view(np.uint64).T), y.view(np.uint64), x.view(np.uint64), owners]
    np.testing.assert_array_equal(order_points(x, y, rows, offsets), np.lexsort(keys))


@pytest.mark.parametrize("offsets", [[0, 5], [0, 2, 1, 4], [1, 4], [0, 3]])
def test_points_that_offsets_do_not_cover_are_refused(offsets) -> None:
    with pytest.raises(KernelError):
        order_points(np.arange(4.0), np.arange(4.0), None, np.array(offsets))


def test_points_are_put_in_order_within_their_curves() -> None:
    x, y, offsets = np.array([2.0, 1.0, 1.0, 0.5]), np.array([0.0, 2.0, 1.0, 0.0]), np.array([0, 3, 4])
    order = order_points(x, y, None, offsets)
    assert order is not None
    assert order.tolist() == [2, 1, 0, 3]
    assert order_points(x[order], np.arange(4.0), None, np.array([0, 1, 3, 4])) is None
    assert list(cut_curves(offsets)) == [(0, 2)]
