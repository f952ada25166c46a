"""Reading against reading alone, in one run: `python -m benchmarks.sources` writes docs/performance-sources.md."""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from benchmarks import limits
from benchmarks.stamp import stamp
from benchmarks.table_rows import Row
from dpfda.audit.fault_database import Server
from dpfda.curves.tables import Domain, Reading, find_source, load_curves

TARGET = Path(__file__).parents[1] / "docs" / "performance-sources.md"
INTRODUCTION = """# Reading tables

Written by `python -m benchmarks.sources`. A fit needs curves: rows checked, in the order of ids, with notes for the owner.
What that costs is compared with a plain read of the same rows by the library that dpfda reads with, in turns in one process:
polars for Parquet, ADBC for PostgreSQL, whose server is on this machine. Medians of {repeats} pairs; load {load:.0f} on
{processors} processors.

| what | target | measured | met |
|---|---|---|---|
"""
READING = Reading(Domain(0, 1), (-1.0, 2.0), id="id", x="x", y="y")
FILL = """CREATE TABLE visits AS SELECT (random() * {subjects})::bigint AS id, random() AS x, random() AS y,
'arm ' || k % 3 AS arm, k AS visit FROM generate_series(1, {rows}) AS k"""


def parquet(rows: int, repeats: int, folder: Path) -> Iterator[Row]:
    """Parquet to curves, in the order of ids and in no order."""
    import polars as pl

    rng = np.random.default_rng(0)
    ids = rng.integers(0, rows // 10, rows)
    for order, reach in {"sorted by id": 1.5, "not sorted": 2.5}.items():
        path = folder / "visits.parquet"
        frame = {"id": np.sort(ids) if reach == 1.5 else ids, "x": rng.random(rows), "y": rng.random(rows)}
        pl.DataFrame(frame).write_parquet(path)
        what = f"{rows:.0e} rows of Parquet to curves, against a plain read by polars, {order}"
        yield from compare(what, lambda: pl.read_parquet(path), _load(str(path)), repeats, reach)  # noqa: B023


def postgres(rows: int, repeats: int, folder: Path) -> Iterator[Row]:
    """A query on a PostgreSQL server of this machine to curves; the client's processor time, and the wall clock."""
    import adbc_driver_postgresql.dbapi as driver

    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if not found:
        print("NOT RUN: PostgreSQL is not installed; make setup-system installs it")
        return
    folder.chmod(0o755)
    (folder / "server").mkdir()
    server = Server(found[-1].parent, folder / "server")
    server.start()
    try:
        url, query = server.url("-").partition("?")[0], "SELECT * FROM visits"
        with driver.connect(url) as connection, connection.cursor() as cursor:
            cursor.execute(FILL.format(subjects=rows // 10, rows=rows))
            connection.commit()

        def read() -> None:
            with driver.connect(url) as connection, connection.cursor() as cursor:
                cursor.execute(query)
                cursor.fetch_arrow_table()

        yield from compare(
            f"{rows:.0e} rows x 5 of PostgreSQL to curves, against a plain ADBC read",
            read,
            _load(url, query),
            repeats,
            2.0,
        )
    finally:
        server.kill()


def _load(location: str, query: str | None = None) -> Callable[[], object]:
    return lambda: load_curves(find_source(location, query), READING)


def compare(
    what: str, plain: Callable[[], object], ours: Callable[[], object], repeats: int, reach: float
) -> Iterator[Row]:
    """Both in turns, by processor time and then by the clock on the wall."""
    works = {"plain": plain, "ours": ours}
    for clock, name in ((time.process_time, "processor time"), (time.perf_counter, "wall clock")):
        times = limits.alternate(works, repeats, clock)
        yield Row(f"{what}, {name}", limits.ratio(times, "ours", "plain"), reach, at_most=True)


def main() -> None:
    """Measure, print, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    repeats = parser.parse_args().repeats
    lines = []
    with tempfile.TemporaryDirectory(prefix="dpfda-sources-", dir="/var/tmp") as name:
        for part in (parquet(5_000_000, repeats, Path(name)), postgres(1_000_000, repeats, Path(name))):
            for row in part:
                print(row, flush=True)
                lines.append(f"{row}\n")
    facts = {"repeats": repeats, "load": os.getloadavg()[0], "processors": len(os.sched_getaffinity(0))}
    TARGET.write_text(INTRODUCTION.format(**facts) + "".join(lines), encoding="utf-8")
    stamp(TARGET)


if __name__ == "__main__":
    main()
