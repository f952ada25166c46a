"""Tables larger than memory: the same curves, bit by bit, and the same sentences, whatever the size of the batches."""

from __future__ import annotations

import gzip
import os
import sqlite3
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pytest

from dpfda.curves.curves import Curves
from dpfda.curves.fingerprint import label_numbers
from dpfda.curves.tables import Covariate, Domain, Reading, find_source, load_curves
from dpfda.curves.tables.keys import FAN, Ranges, make_keys
from dpfda.curves.tables.rows import Rows
from dpfda.curves.tables.shaping import shape_rows
from dpfda.errors import InvalidInput, SourceError

pl = pytest.importorskip("polars")

READING = Reading(Domain(0, 1), (-10.0, 10.0), id="pid", x="age", y="hdl")
SMALL = 64  # rows at once: everything above 256 rows goes through the disk
ROWS = 4000


def ids_of(kind: str, rng: np.random.Generator, rows: int) -> list[object]:
    numbers = rng.integers(0, rows // 8, rows)
    makers = {
        "integers": int,
        "wide integers": lambda k: int(k) * 9_000_000_000_000_000 - 2**62,
        "unsigned": lambda k: 2**64 - 1 - int(k) * 7,
        "floats": lambda k: float(k) - 200.5,
        "texts": lambda k: f"subject-{k:05d}",
        "texts of any length": lambda k: "é" * (k % 5) + str(k) * (k % 4 + 1),
        "long common beginnings": lambda k: "a-very-long-common-beginning-of-all-ids-" * (1 + k % 2) + str(k),
        "dates": lambda k: date(1950, 1, 1) + timedelta(days=int(k)),
        "booleans": lambda k: bool(k % 2),
        "one id": lambda k: 7,
        "one frequent id": lambda k: 7 if k % 3 else int(k),
        "one frequent text": lambda k: "7" if k % 3 else f"{k}",
    }
    return [makers[kind](k) for k in numbers.tolist()]


KINDS = [
    "integers", "wide integers", "unsigned", "floats", "texts", "texts of any length", "long common beginnings", "dates",
    "booleans", "one id", "one frequent id", "one frequent text",
]  # fmt: skip


def table(kind: str = "integers", rows: int = ROWS, *, seed: int = 1):
    rng = np.random.default_rng(seed)
    y = rng.normal(size=rows)
    y[::97] = np.nan
    ids = ids_of(kind, rng, rows)
    unsigned = {"pid": pl.UInt64} if kind == "unsigned" else None
    return pl.DataFrame({"pid": ids, "age": rng.random(rows) * 1.2, "hdl": y}, schema_overrides=unsigned)


def both(location: object, reading: Reading = READING, query: str | None = None, **options: object):
    source = find_source(str(location), query)
    return load_curves(source, reading), load_curves(source, reading, rows_at_once=SMALL, **options)


def assert_same(small, big) -> None:
    for name in ("x", "y", "offsets", "design"):
        left, right = getattr(small.curves, name), getattr(big.curves, name)
        assert left.dtype == right.dtype
        assert left.shape == right.shape
        assert left.tobytes() == right.tobytes()
    assert isinstance(big.curves.x, np.memmap)
    assert not isinstance(small.curves.x, np.memmap)
    assert small.owner_notes == big.owner_notes


@pytest.mark.parametrize("order", ["unsorted", "sorted", "descending"])
@pytest.mark.parametrize("kind", KINDS)
def test_disk_and_memory_give_the_same_curves(kind: str, order: str, tmp_path) -> None:
    frame = table(kind)
    if order != "unsorted":
        frame = frame.sort("pid", descending=order == "descending", maintain_order=True)
    frame.write_parquet(tmp_path / "t.parquet")
    small, big = both(tmp_path / "t.parquet")
    assert_same(small, big)
    values = frame["pid"].to_numpy() if kind != "dates" else frame["pid"].to_physical().to_numpy()
    direct = Curves.from_long(values, frame["age"].to_numpy(), frame["hdl"].to_numpy()).restrict((0.0, 1.0))
    assert direct == big.curves


@pytest.mark.parametrize("at_once", [330, 334, 700, 999, 1001])
@pytest.mark.parametrize("kind", ["integers", "wide integers", "texts", "one frequent id"])
def test_some_batches_in_memory_give_the_same_curves(kind: str, at_once: int, tmp_path) -> None:
    """4,000 rows are 4 to 13 batches: up to 12 are kept, by counting where ids are dense, or divided in memory."""
    table(kind).write_parquet(tmp_path / "t.parquet")
    source = find_source(str(tmp_path / "t.parquet"))
    whole, batched = load_curves(source, READING), load_curves(source, READING, rows_at_once=at_once, scratch=tmp_path)
    assert whole.curves == batched.curves
    assert whole.owner_notes == batched.owner_notes


@pytest.mark.parametrize("spoiled_from", [10, 700, 3999])
@pytest.mark.parametrize("kind", ["integers", "texts", "one frequent id"])
def test_a_table_that_is_sorted_only_at_first_gives_the_same_curves(kind: str, spoiled_from: int, tmp_path) -> None:
    frame = table(kind).sort("pid", maintain_order=True)
    pl.concat([frame[:spoiled_from], frame[spoiled_from:].reverse()]).write_parquet(tmp_path / "t.parquet")
    assert_same(*both(tmp_path / "t.parquet"))


def test_a_sorted_table_is_not_sorted_again(tmp_path, monkeypatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("rows were sorted")

    monkeypatch.setattr("dpfda.curves.tables.gathering.Spool", refuse)
    monkeypatch.setattr("dpfda.curves.tables.grouping.order_rows", refuse)
    table().sort("pid", maintain_order=True).write_parquet(tmp_path / "t.parquet")
    assert_same(*both(tmp_path / "t.parquet"))
    table().write_parquet(tmp_path / "u.parquet")
    with pytest.raises(AssertionError, match="sorted"):
        both(tmp_path / "u.parquet")


def write_gzip(frame, path: Path) -> None:
    path.write_bytes(gzip.compress(frame.write_csv().encode()))


WRITERS = {
    "t.csv": lambda frame, path: frame.write_csv(path),
    "t.csv.gz": write_gzip,
    "t.feather": lambda frame, path: frame.write_ipc(path, record_batch_size=700),
    "t.arrows": lambda frame, path: frame.write_ipc_stream(path),
    "t.parquet": lambda frame, path: frame.write_parquet(path, row_group_size=130),
}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("kind", ["integers", "texts"])
def test_every_file_format_streams(name: str, kind: str, tmp_path) -> None:
    WRITERS[name](table(kind), tmp_path / name)
    assert_same(*both(tmp_path / name))


def test_a_folder_of_parquet_streams(tmp_path) -> None:
    frame = table("texts")
    for number in range(4):
        (tmp_path / f"site={number}").mkdir()
        frame[number * 1000 : (number + 1) * 1000].write_parquet(tmp_path / f"site={number}" / "part.parquet")
    small, big = both(tmp_path)
    assert_same(small, big)
    assert_same(*both(tmp_path, replace(READING, id="site")))


def test_a_hive_folder_gives_its_partitions_as_columns(tmp_path) -> None:
    """As Spark writes them: a folder for each value, the column in the folder's name only, a marker beside the files."""
    frame = table().with_columns(arm=pl.int_range(pl.len()) // 7 % 3)
    for (arm,), rows in frame.partition_by("arm", as_dict=True, maintain_order=True).items():
        folder = tmp_path / "visits" / f"arm={arm}"
        folder.mkdir(parents=True)
        rows.drop("arm").write_parquet(folder / "part-00000-c000.snappy.parquet", compression="snappy")
        (tmp_path / "visits" / "_SUCCESS").touch()
    frame.sort("arm", maintain_order=True).write_parquet(tmp_path / "whole.parquet")
    reading = replace(READING, covariates=(Covariate("arm", bounds=(0, 2)),))
    small, big = both(tmp_path / "visits", reading)
    assert_same(small, big)
    whole, _ = both(tmp_path / "whole.parquet", reading)
    assert whole.curves.fingerprint(bytes(32)) == small.curves.fingerprint(bytes(32))


def test_sqlite_streams(tmp_path) -> None:
    frame = table("texts")
    with sqlite3.connect(tmp_path / "clinic.db") as connection:
        connection.execute("CREATE TABLE visits (pid TEXT, age REAL, hdl REAL)")
        connection.executemany("INSERT INTO visits VALUES (?, ?, ?)", frame.fill_nan(None).rows())
    assert_same(*both(f"sqlite:///{tmp_path}/clinic.db", query="SELECT * FROM visits"))


def test_duckdb_streams(tmp_path) -> None:
    duckdb = pytest.importorskip("duckdb")
    frame = table("dates").to_arrow()
    with duckdb.connect(str(tmp_path / "clinic.duckdb")) as connection:
        connection.register("frame", frame)
        connection.execute("CREATE TABLE visits AS SELECT * FROM frame")
    assert_same(*both(f"duckdb:///{tmp_path}/clinic.duckdb", query="SELECT * FROM visits"))


def test_postgresql_streams(postgres_url) -> None:
    import psycopg

    frame = table("integers")
    with psycopg.connect(postgres_url) as connection:
        connection.execute("DROP TABLE IF EXISTS many_visits")
        connection.execute("CREATE TABLE many_visits (pid NUMERIC, age DOUBLE PRECISION, hdl DOUBLE PRECISION)")
        with connection.cursor() as cursor, cursor.copy("COPY many_visits FROM STDIN") as copy:
            for row in frame.rows():
                copy.write_row(row)
    assert_same(*both(postgres_url, query="SELECT * FROM many_visits"))


def test_covariates_stream(tmp_path) -> None:
    frame = table("integers").with_columns(
        bmi=pl.when(pl.col("pid") % 11 == 0).then(None).otherwise(20.0 + pl.col("pid") % 30),
        smoker=pl.col("pid").map_elements(lambda k: ["never", "former", "current", "?"][k % 4], return_dtype=pl.String),
    )
    frame.write_csv(tmp_path / "t.csv")
    covariates = (Covariate("bmi", bounds=(21, 45)), Covariate("smoker", levels=("never", "former", "current")))
    small, big = both(tmp_path / "t.csv", replace(READING, covariates=covariates))
    assert_same(small, big)
    assert any("'bmi' outside its bounds" in note for note in big.owner_notes)
    assert any("not in --levels" in note for note in big.owner_notes)


@pytest.mark.parametrize("kind", ["integers", "one id", "texts"])
def test_copies_are_counted_and_dropped_across_batches(kind: str, tmp_path) -> None:
    frame = table(kind)
    more = pl.concat([frame[::40], frame[:3]])
    copies = more.fill_nan(None).drop_nulls([READING.x, READING.y]).height  # a row without x or y is no copy
    assert 90 < copies < more.height
    copied = pl.concat([frame, more])
    copied.write_parquet(tmp_path / "t.parquet")
    source = find_source(str(tmp_path / "t.parquet"))
    sentences = []
    for rows in (SMALL, 1 << 20):
        with pytest.raises(InvalidInput, match="exact copies") as refusal:
            load_curves(source, READING, rows_at_once=rows)
        sentences.append(str(refusal.value))
    assert sentences[0] == sentences[1]
    assert sentences[0].startswith(f"{copies} rows")
    small, big = both(tmp_path / "t.parquet", replace(READING, duplicates="drop"))
    assert_same(small, big)
    assert_same(*both(tmp_path / "t.parquet", replace(READING, duplicates="keep")))
    frame.write_parquet(tmp_path / "plain.parquet")
    assert load_curves(find_source(str(tmp_path / "plain.parquet")), READING).curves == big.curves


def broken(column: str, row: int, value: object):
    frame = table().with_columns(pl.col("age", "hdl").cast(str))
    changed = frame[column].cast(str).to_list()
    changed[row] = value
    return frame.with_columns(pl.Series(column, changed))


@pytest.mark.parametrize(
    ("column", "value", "sentence"),
    [
        ("hdl", "high", "Row 3001 of 'hdl' is 'high', not a number"),
        ("age", "0,5", r"comma \(row 3001\)"),
        ("age", "03/04/2019", r"dates \(row 3001\)"),
        ("pid", "", "1 rows have no 'pid'"),
        ("age", "2019-01-31", "date"),
    ],
)
def test_a_bad_entry_far_down_is_refused_with_its_row(column: str, value: str, sentence: str, tmp_path) -> None:
    broken(column, 3000, value).write_csv(tmp_path / "t.csv")
    source = find_source(str(tmp_path / "t.csv"))
    with pytest.raises(InvalidInput, match=sentence):
        load_curves(source, READING, rows_at_once=SMALL)


@pytest.mark.parametrize(
    ("reading", "sentence"),
    [
        (replace(READING, domain=Domain(50, 60)), "misses every point"),
        (replace(READING, y_bounds=(100.0, 200.0)), "misses every value"),
        (replace(READING, y="nothing"), "lacks"),
        (replace(READING, covariates=(Covariate("smoker", levels=("a", "b")),)), "No row of 'smoker'"),
        (replace(READING, covariates=(Covariate("one", bounds=(0, 2)),)), "'one' is 1 for everybody"),
        (
            replace(READING, covariates=(Covariate("varies", bounds=(0, 2)),), one_design=True),
            "changes within a subject",
        ),
    ],
)
def test_what_the_whole_table_shows_is_refused_in_the_same_words(reading, sentence: str, tmp_path) -> None:
    frame = table().with_columns(smoker=pl.lit("x"), one=pl.lit(1.0), varies=pl.col("age"))
    frame.write_parquet(tmp_path / "t.parquet")
    source = find_source(str(tmp_path / "t.parquet"))
    said = []
    for rows in (SMALL, 1 << 20):
        with pytest.raises(InvalidInput, match=sentence) as refusal:
            load_curves(source, reading, rows_at_once=rows)
        said.append(str(refusal.value))
    assert said[0] == said[1]


def test_one_curve_with_very_many_points_and_a_design_that_changes_is_refused_for_the_published_method(
    tmp_path,
) -> None:
    frame = table("one id").with_columns(bmi=pl.Series([20.0] * (ROWS - 1) + [21.0]))
    frame.write_parquet(tmp_path / "t.parquet")
    reading = replace(READING, covariates=(Covariate("bmi", bounds=(10, 70)),), one_design=True)
    with pytest.raises(InvalidInput, match="changes within a subject"):
        load_curves(find_source(str(tmp_path / "t.parquet")), reading, rows_at_once=SMALL)


def test_a_query_that_changes_the_type_of_ids_is_refused(tmp_path) -> None:
    with sqlite3.connect(tmp_path / "clinic.db") as connection:
        connection.execute("CREATE TABLE visits (pid, age REAL, hdl REAL)")
        rows = [(k if k < 300 else f"s{k}", k / 1000, 1.0) for k in range(600)]
        connection.executemany("INSERT INTO visits VALUES (?, ?, ?)", rows)
    source = find_source(f"sqlite:///{tmp_path}/clinic.db", "SELECT * FROM visits")
    for rows in (SMALL, 300, 1 << 20):
        with pytest.raises(InvalidInput, match="one type with CAST"):
            load_curves(source, READING, rows_at_once=rows)


@pytest.mark.parametrize("kind", KINDS)
def test_ranges_never_decrease_in_the_order_of_ids(kind: str) -> None:
    from dpfda.curves.tables.rows import simplify_ids

    ids = simplify_ids(table(kind)["pid"]).sort()
    ranges = Ranges.from_sample(ids.gather_every(7))
    numbers = ranges.of(ids)
    assert np.all(numbers[1:] >= numbers[:-1])
    assert numbers.max() < ranges.count <= 2 * FAN + 3
    keys = make_keys(ids, ranges.prefix)
    assert np.all(keys[1:] >= keys[:-1])
    parts = make_keys(ids[5:9], ranges.prefix)
    np.testing.assert_array_equal(parts, keys[5:9])


def test_scratch_files_have_no_name_and_are_gone_with_the_curves(tmp_path) -> None:
    table().write_parquet(tmp_path / "t.parquet")
    folder = tmp_path / "scratch"
    folder.mkdir()
    _, big = both(tmp_path / "t.parquet", scratch=folder)
    assert os.listdir(folder) == []
    assert Path(big.curves.x.filename).parent == folder
    assert len(big.curves.y) == big.curves.n_points  # the map still works


def test_a_scratch_folder_that_is_not_there_is_named(tmp_path) -> None:
    table().write_parquet(tmp_path / "t.parquet")
    with pytest.raises(InvalidInput, match="--scratch"):
        both(tmp_path / "t.parquet", scratch=tmp_path / "nowhere")


def test_a_full_disk_is_one_sentence(tmp_path) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no /dev/full")
    from dpfda.curves.tables.scratch import ScratchFile

    file = ScratchFile(tmp_path)
    with full.open("wb", buffering=0) as device:
        file._file = device
        with pytest.raises(SourceError, match="is full; name one with more space with --scratch"):
            file.append(np.zeros(10))


def test_curves_from_a_source_in_python(tmp_path) -> None:
    frame = table()
    frame.write_parquet(tmp_path / "t.parquet")
    curves = Curves.from_source(tmp_path / "t.parquet", id="pid", x="age", y="hdl", domain=(0, 1), y_bounds=(-10, 10))
    assert curves == load_curves(find_source(str(tmp_path / "t.parquet")), READING).curves


@pytest.mark.parametrize("copy", [None, 0, 12_345, 69_999])
def test_copies_among_many_rows_are_found(copy: int | None) -> None:
    """Enough rows for the compiled search, which only says whether there are any."""
    from dpfda.curves.tables.copies import find_copies

    rng = np.random.default_rng(4)
    codes, x, y = rng.integers(0, 50, 70_000), rng.integers(0, 1 << 40, 70_000) / 7.0, np.zeros(70_000)
    x[::1000] = np.nan
    y[::1000] = np.arange(70)
    if copy is not None:
        codes, x, y = np.append(codes, codes[copy]), np.append(x, x[copy]), np.append(y, y[copy])
    found = find_copies(codes.astype(np.int64), x, y, None)
    assert found.tolist() == ([] if copy in (None, 0) else [70_000])  # row 0 has no x


@pytest.mark.parametrize("duplicates", ["refuse", "drop", "keep"])
@pytest.mark.parametrize("spoil", ["nothing", "a copy", "missing values", "two alike without x", "a long curve"])
def test_compiled_grouping_gives_the_same_curves_and_counts(spoil: str, duplicates: str, monkeypatch) -> None:
    from dpfda.curves.tables import shaping
    from dpfda.curves.tables.rows import Rows

    rng = np.random.default_rng(5)
    ids, x, y = rng.integers(100, 2000, 8000), rng.uniform(-0.1, 1, 8000), rng.normal(size=8000)
    if spoil == "a copy":
        ids[7000], x[7000], y[7000] = ids[3], x[3], y[3]
    if spoil == "missing values":
        x[::50], y[5::70] = np.nan, np.inf
    if spoil == "two alike without x":
        ids[[5, 6]], x[[5, 6]], y[[5, 6]] = 100, np.nan, 1.0
    if spoil == "a long curve":
        ids[:300] = 700
    rows, reading = Rows(pl.Series(ids), x, y, None), replace(READING, duplicates=duplicates)
    plain = shaping.shape_rows(rows, reading)
    monkeypatch.setattr(shaping, "_MANY", 1)
    compiled = shaping.shape_rows(rows, reading)
    assert compiled.tally == plain.tally
    assert plain.tally.copies == (spoil == "a copy" and duplicates != "keep")
    for name in ("x", "y", "offsets", "design"):
        assert getattr(compiled.curves, name).tobytes() == getattr(plain.curves, name).tobytes()


@pytest.mark.parametrize("kind", [np.int64, np.uint64])
@pytest.mark.parametrize("spoilt", ["", "nan", "order", "outside"])
def test_many_rows_in_order_are_the_curves_of_the_same_rows_in_any_order(kind, spoilt) -> None:
    """Rows in the order of ids are taken as they are; one that is not complete, or out of order, goes the long way."""
    rng, rows = np.random.default_rng(3), 70_000
    ids, x, y = np.sort(rng.integers(5, 9000, rows)).astype(kind), rng.random(rows), rng.random(rows)
    if spoilt == "nan":
        y[500] = np.nan
    if spoilt == "order":
        ids[[0, -1]] = ids[[-1, 0]]
    if spoilt == "outside":
        x[::7] = 2.0
    part = shape_rows(Rows(pl.Series(ids), x, y, None), READING)
    order = np.argsort(ids, kind="stable")
    expected = Curves.from_long(ids[order], x[order], y[order]).restrict(READING.domain.interval)
    assert part.curves.x.tobytes() == expected.x.tobytes()
    assert part.curves.y.tobytes() == expected.y.tobytes()
    assert part.curves.offsets.tolist() == expected.offsets.tolist()
    assert part.curves.labels.tobytes() == label_numbers(np.unique(ids)).tobytes()
    assert part.tally.missing == (spoilt == "nan")


def test_a_copy_among_many_rows_in_order_is_refused() -> None:
    ids, x, y = np.repeat(np.arange(20_000), 4), np.tile(np.arange(4) / 4, 20_000), np.ones(80_000)
    x[401] = x[400]
    assert shape_rows(Rows(pl.Series(ids), x, y, None), READING).tally.copies == 1
