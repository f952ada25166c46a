"""Which worker reads which subjects, and how little of a file it reads for that."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dpfda.curves.tables import Covariate, Domain, Reading, find_source
from dpfda.curves.tables.keys import Ranges, make_keys
from dpfda.curves.tables.loading import read_curves
from dpfda.errors import InvalidInput
from dpfda.silo.cluster.shares import divide, recipe, split_rows

pl = pytest.importorskip("polars")

READING = Reading(Domain(0, 1), (-3.0, 3.0), id="pid", x="age", y="hdl")
KINDS = {
    "signed": (pl.Int64, lambda k: 3 * k - 4000),
    "short": (pl.Int16, lambda k: k - 1000),
    "unsigned": (pl.UInt64, lambda k: 2**64 - 1 - 7 * k),
    "far apart": (pl.Int64, lambda k: (k - 1000) * 2**50),
    "texts": (pl.String, lambda k: f"s{k:04d}"),
    "floats": (pl.Float64, lambda k: k / 7 - 100),
}


def write_table(path: Path, kind: str = "signed", rows: int = 40_000, *, in_order: bool = True) -> Path:
    rng = np.random.default_rng(4)
    type_, make = KINDS[kind]
    ids = pl.Series([make(int(k)) for k in rng.integers(0, 2000, rows)], dtype=type_)
    frame = pl.DataFrame({"pid": ids, "age": rng.random(rows), "hdl": rng.normal(size=rows), "bmi": rng.random(rows)})
    (frame.sort("pid", maintain_order=True) if in_order else frame).write_parquet(path, row_group_size=1000)
    return path


def bytes_read() -> int:
    return next(int(line.split()[1]) for line in Path("/proc/self/io").open() if line.startswith("rchar"))


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_parts_one_after_the_other_are_the_whole(kind, in_order, tmp_path) -> None:
    source = find_source(str(write_table(tmp_path / "t.parquet", kind, in_order=in_order)))
    reading = Reading(Domain(0, 1), (-3.0, 3.0), id="pid", x="age", y="hdl", covariates=(Covariate("bmi", (0.0, 1.0)),))
    for asked in (READING, reading):
        whole, findings = read_curves(source, asked)
        division = divide(source, asked, 5)
        parts = [recipe(source, asked, division, number, None)() for number in range(len(division.shares))]
        assert len(parts) > 3
        for name in ("x", "y", "labels", "design"):
            assert np.concatenate([getattr(curves, name) for curves, _ in parts]).tobytes() == (
                np.asarray(getattr(whole, name)).tobytes()
            )
        assert sum(found.tally.rows for _, found in parts) == findings.tally.rows


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_are_read_once_and_handed_on_make_the_same_parts(kind, tmp_path) -> None:
    """Whatever the number of slices; together they read little more than the file."""
    path = write_table(tmp_path / "t.parquet", kind, in_order=False)
    source, expected = find_source(str(path)), path.stat().st_size
    division = divide(source, READING, 5)
    assert division.shuffle_bytes is not None
    assert repr(split_rows(source, READING, division, 0, 1)[0]).startswith(
        "Piece of "
    )  # what a worker's log would show
    recipes = [recipe(source, READING, division, number, None) for number in range(len(division.shares))]
    for count in (1, 3):
        before = bytes_read()
        slices = [split_rows(source, READING, division, number, count) for number in range(count)]
        assert bytes_read() - before < 1.7 * expected
        for number, each in enumerate(recipes):
            one, other = each(), each.make_part([pieces[number] for pieces in slices])
            for name in ("x", "y", "offsets", "labels", "design"):
                assert np.asarray(getattr(one[0], name)).tobytes() == np.asarray(getattr(other.curves, name)).tobytes()
            assert other.findings == one[1]


def test_rows_are_handed_on_only_where_it_pays_and_they_mean_the_same_everywhere(tmp_path) -> None:
    path = write_table(tmp_path / "t.parquet", rows=1_200_000)
    assert divide(find_source(str(path)), READING, 2).shuffle_bytes is None  # parts read their own row groups
    path = write_table(tmp_path / "u.parquet", in_order=False)
    assert divide(find_source(str(path)), READING, 1).shuffle_bytes is None  # one part reads all
    yes_no = Reading(Domain(0, 1), (0.0, 1.0), id="pid", x="age", y="hdl", y_levels=("no", "yes"))
    assert divide(find_source(str(path)), yes_no, 5).shuffle_bytes is None  # all rows decide what a level is
    pl.read_parquet(path).with_columns(pl.col("age").cast(pl.String)).write_parquet(path)
    assert divide(find_source(str(path)), READING, 5).shuffle_bytes is None  # a text is refused with its row
    pl.read_parquet(path).with_columns(pl.col("age").cast(pl.Float64)).write_csv(tmp_path / "u.csv")
    assert divide(find_source(str(tmp_path / "u.csv")), READING, 5).shuffle_bytes is None


def test_rows_without_an_id_are_refused_where_rows_are_handed_on(tmp_path) -> None:
    frame = pl.read_parquet(write_table(tmp_path / "t.parquet", in_order=False)).with_row_index()
    holes = pl.when(pl.col("index").is_in([7, 39_999])).then(None).otherwise(pl.col("pid")).alias("pid")
    frame.with_columns(holes).drop("index").write_parquet(tmp_path / "t.parquet", row_group_size=1000)
    source = find_source(str(tmp_path / "t.parquet"))
    division = divide(source, READING, 4)
    slices = [split_rows(source, READING, division, number, 2) for number in range(2)]
    with pytest.raises(InvalidInput, match=r"^2 rows have no 'pid'"):
        recipe(source, READING, division, 0, None).make_part([pieces[0] for pieces in slices])


def test_of_a_file_in_the_order_of_ids_a_part_reads_its_own_row_groups(tmp_path) -> None:
    """All parts together read little more than the file; of one in any order each reads all."""
    read = {}
    for in_order in (True, False):
        path = write_table(tmp_path / f"{in_order}.parquet", rows=200_000, in_order=in_order)
        source = find_source(str(path))
        division = divide(source, READING, 8)
        before = bytes_read()
        for number in range(len(division.shares)):
            recipe(source, READING, division, number, None)()
        read[in_order] = (bytes_read() - before) / path.stat().st_size
    assert read[True] < 2
    assert read[False] > 4


def test_rows_without_an_id_are_refused_by_the_first_part_in_the_words_of_one_process(tmp_path) -> None:
    frame = pl.read_parquet(write_table(tmp_path / "t.parquet")).with_row_index()
    holes = pl.when(pl.col("index").is_in([20_000, 39_999])).then(None).otherwise(pl.col("pid")).alias("pid")
    frame.with_columns(holes).drop("index").write_parquet(tmp_path / "t.parquet", row_group_size=1000)
    source = find_source(str(tmp_path / "t.parquet"))
    division = divide(source, READING, 4)
    for read in (lambda: read_curves(source, READING), recipe(source, READING, division, 0, None)):
        with pytest.raises(InvalidInput, match=r"^2 rows have no 'pid'"):
            read()


@pytest.mark.parametrize("kind", ["signed", "unsigned", "far apart"])
def test_keys_of_ranges_are_those_between_their_bounds(kind) -> None:
    rng = np.random.default_rng(5)
    type_, make = KINDS[kind]
    ids = pl.Series([make(int(k)) for k in rng.integers(0, 2000, 5000)], dtype=type_)
    ranges = Ranges.from_sample(ids.sample(500, seed=1))
    keys, numbers = make_keys(ids), ranges.of(ids).astype(int)
    for first, last in ((0, 1), (0, ranges.count), (1, 40), (40, ranges.count - 1), (ranges.count - 1, ranges.count)):
        low, high = ranges.key_bounds(first, last)
        mine = (numbers >= first) & (numbers < last)
        assert [low <= int(key) <= high for key in keys] == mine.tolist()
