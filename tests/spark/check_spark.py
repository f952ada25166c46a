"""On a real local Spark, in a venv of its own: `make test-spark`; `make test` names it where it did not run."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from dask_cluster import two_workers

from dpfda import PrivateMean, Silo
from dpfda.curves.spark import write_by_id
from dpfda.curves.tables import Domain, Reading, find_source, load_curves
from dpfda.errors import InvalidInput
from dpfda.silo.cluster import DaskCurves

ROWS = {
    "a-1": 3000,
    "a/b c": 40,
    "a/b+c": 700,
    "a/B": 9000,
    "z": 1,
    "ä": 500,
}  # the names sort otherwise than their URLs
READING = Reading(Domain(0, 1), (-1.0, 2.0), id="pid", x="time of visit", y="y")
KEY = bytes(32)


@pytest.fixture(scope="module")
def spark():
    from pyspark.sql import SparkSession

    here = {"spark.ui.enabled": "false", "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    few = {
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.files.maxPartitionBytes": "65536",
    }  # a file is split over tasks
    session = SparkSession.builder.master("local[2]").config(map={**here, **few}).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


def write_files(folder: Path, ids) -> None:
    """Rows in no order, of which every subject has some in several files; many x are the same, so that order shows."""
    rng = np.random.default_rng(5)
    for name, rows in ROWS.items():
        x, y = rng.integers(0, 4, rows) / 4, rng.normal(0.5, 0.3, rows)
        file = folder / f"{name}.parquet"
        file.parent.mkdir(parents=True, exist_ok=True)
        pl.DataFrame({"pid": ids(rng, rows), "time of visit": x, "y": y}).write_parquet(file, row_group_size=1000)


KINDS = {
    "numbers": lambda rng, rows: rng.integers(-150, 150, rows),
    "texts": lambda rng, rows: pl.Series([f"Zoë-{k}" if k % 2 else f"adam {k}" for k in rng.integers(0, 300, rows)]),
}


@pytest.fixture(params=KINDS)
def tables(spark, tmp_path, request):
    """The files, and what Spark makes of them."""
    write_files(tmp_path / "files", KINDS[request.param])
    rows = spark.read.option("recursiveFileLookup", "true").parquet(str(tmp_path / "files"))
    write_by_id(rows, str(tmp_path / "by_id"), id="pid", files=3)
    return tmp_path / "files", tmp_path / "by_id"


def fitted(source) -> np.ndarray:
    silo = Silo(source, epsilon=2.0, delta=1e-5, random_state=3)
    return PrivateMean(domain=(0, 1), y_bounds=(-1, 2), n_basis=5).fit(silo).coef_


def test_one_process_and_dask_get_the_bits_of_the_files_that_spark_read(tables, tmp_path) -> None:
    _, by_id = tables
    before, after = (load_curves(find_source(str(each)), READING).curves for each in tables)
    for name in ("x", "y", "offsets"):
        assert np.array_equal(getattr(before, name), getattr(after, name)), name
    assert before.fingerprint(KEY) == after.fingerprint(KEY)
    expected = fitted(before)
    assert np.array_equal(fitted(after), expected)
    with two_workers(tmp_path / "dask") as client:
        spread = DaskCurves.from_source(client, by_id, READING, parts=3)
        assert spread.fingerprint(KEY) == before.fingerprint(KEY)
        assert np.array_equal(fitted(spread), expected)


def test_every_subject_is_in_one_file_and_files_are_in_the_order_of_ids(tables) -> None:
    files, by_id = tables
    parts = [pl.read_parquet(file) for file in sorted(by_id.glob("*.parquet"))]
    assert len(parts) == 3
    assert all(set(a["pid"]).isdisjoint(b["pid"]) for a, b in pairwise(parts))
    rows = pl.concat(parts)
    assert rows["pid"].is_sorted()
    given = pl.concat([pl.read_parquet(file) for file in sorted(files.rglob("*.parquet"))])
    assert rows.equals(given.sort("pid", maintain_order=True))
    shuffled = given.sample(fraction=1, shuffle=True, seed=1).sort("pid", maintain_order=True)
    assert not rows.equals(shuffled), "the order of rows does not show in these tables"


def test_a_frame_from_elsewhere_needs_columns_that_say_its_order(spark, tmp_path) -> None:
    rng = np.random.default_rng(2)
    visits = [(int(k), int(n), float(n) / 50, 0.5) for n, k in enumerate(rng.integers(0, 9, 50))]
    rows = spark.createDataFrame(visits, ["pid", "visit", "time of visit", "y"]).orderBy("time of visit")
    with pytest.raises(InvalidInput, match="have no order of their own"):
        write_by_id(rows, str(tmp_path / "no"), id="pid")
    with pytest.raises(InvalidInput, match="order must name columns"):
        write_by_id(rows, str(tmp_path / "no"), id="pid", order=["vist"])
    with pytest.raises(InvalidInput, match="id names the column 'id'"):
        write_by_id(rows, str(tmp_path / "no"), id="id")
    with pytest.raises(InvalidInput, match="files"):
        write_by_id(rows, str(tmp_path / "no"), id="pid", order=["visit"], files=0)
    assert not (tmp_path / "no").exists()
    write_by_id(rows, str(tmp_path / "by_id"), id="pid", order=["visit"])
    found = pl.concat([pl.read_parquet(file) for file in sorted((tmp_path / "by_id").glob("*.parquet"))])
    assert found.rows() == sorted(visits)


def test_moments_are_written_so_that_they_can_be_read_and_the_session_stays_as_it_was(spark, tmp_path) -> None:
    setting = "spark.sql.parquet.outputTimestampType"
    before = spark.conf.get(setting)
    rows = spark.sql(
        "SELECT 1 AS pid, 0 AS visit, timestamp_ntz'2999-12-31 23:59:59' AS at, timestamp'2300-01-01' AS zoned"
    )
    write_by_id(rows, str(tmp_path / "by_id"), id="pid", order=["visit"], files=1)
    (file,) = (tmp_path / "by_id").glob("*.parquet")
    assert [moment.year for moment in pl.read_parquet(file).row(0)[2:]] in ([2999, 2300], [2999, 2299])
    assert spark.conf.get(setting) == before


def test_the_how_to_page_works(spark, tmp_path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "spark.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    write_files(tmp_path / "visits", KINDS["numbers"])
    exec(block.replace('"visits', f'"{tmp_path}/visits'), {"spark": spark})
    before, after = (load_curves(find_source(f"{tmp_path}/{name}"), READING) for name in ("visits", "visits-by-id"))
    assert before.curves == after.curves
