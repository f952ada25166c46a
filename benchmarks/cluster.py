"""A table on the workers of a cluster: python -m benchmarks.cluster

Rows of Parquet in 8 parts on 2 worker processes of a local Dask cluster: how many bytes the workers read, over the size of
the file, and what processor time they take, over that of one process that reads the same file, after imports. Workers always
make the fingerprint of the curves; one process makes it for a durable ledger, so they are compared with and without it.
Writes its part of docs/performance-scale.md.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.scale import CLUSTER, PAGE, make_table
from benchmarks.table_rows import Row
from dpfda.curves.tables import Domain, Reading, find_source, load_curves
from dpfda.silo.cluster import DaskCurves

END = "<!-- /cluster -->"
PARTS, WORKERS = 8, 2
READING = Reading(Domain(0, 1), (-3.0, 3.0), id="pid", x="age", y="hdl")
LIMITS = {"not sorted": (2.5, 1.7), "sorted by id": (1.6, 1.2)}
_ALONE = """
import sys
from benchmarks.cluster import READING, make_ready, spent
from dpfda.curves.tables import find_source, load_curves
make_ready()
before = spent()[0]
curves = load_curves(find_source(sys.argv[1]), READING, scratch=sys.argv[2]).curves
read = spent()[0]
curves.fingerprint(bytes(32))
print(read - before, spent()[0] - before)
"""


def make_ready() -> None:
    """Import what reads a table: each process does so once, however many rows there are."""
    import polars as pl

    with tempfile.TemporaryDirectory() as folder:
        pl.DataFrame({"pid": [2, 1], "age": [0.1, 0.2], "hdl": [0.0, 1.0]}).write_parquet(f"{folder}/t.parquet")
        load_curves(find_source(f"{folder}/t.parquet"), READING).curves.fingerprint(bytes(32))


def spent() -> tuple[float, int]:
    """Processor seconds of this process, and the bytes that it has read."""
    times = os.times()
    lines = Path("/proc/self/io").read_text(encoding="ascii").splitlines()
    return times.user + times.system, next(int(line.split()[1]) for line in lines if line.startswith("rchar"))


def measure_cluster(path: Path, folder: Path) -> tuple[float, float]:
    """Processor seconds of all workers from their start, and bytes read, over the size of the file."""
    import distributed

    cluster: Any = distributed.LocalCluster(  # type: ignore[no-untyped-call, unused-ignore]
        n_workers=WORKERS, threads_per_worker=1, dashboard_address=None, local_directory=str(folder)
    )
    with cluster, distributed.Client(cluster) as client:  # type: ignore[no-untyped-call, unused-ignore]
        client.run(make_ready)
        before = client.run(spent)
        DaskCurves.from_source(client, path, READING, parts=PARTS, scratch=folder)
        after = client.run(spent)
    used = np.array([np.subtract(after[worker], before[worker]) for worker in before])
    return float(used[:, 0].sum()), float(used[:, 1].sum()) / path.stat().st_size


def measure_alone(path: Path, folder: Path) -> tuple[float, float]:
    """Processor seconds of a process that reads the whole table, and with the fingerprint of the curves."""
    command = [sys.executable, "-c", _ALONE, str(path), str(folder)]
    read, sealed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return float(read), float(sealed)


def measure(rows: int, repeats: int, folder: Path) -> Iterator[Row]:
    """Of a table in any order, and of the same in the order of ids."""
    import polars as pl

    path = make_table(folder / "visits.parquet", rows)
    for order, (most_bytes, most_time) in LIMITS.items():
        if order == "sorted by id":
            pl.read_parquet(path).sort("pid").write_parquet(path, compression="zstd")
        found = [(*measure_cluster(path, folder), *measure_alone(path, folder)) for _ in range(repeats)]
        seconds, read, alone, sealed = np.median(np.array(found), axis=0).tolist()
        what = f"{rows:.0e} rows in {PARTS} parts on {WORKERS} workers, {order}"
        yield Row(f"{what}: bytes read over the file's", read, most_bytes, at_most=True)
        yield Row(f"{what}: processor time over one process's that reads", seconds / alone, most_time, at_most=True)
        yield Row(f"{what}: processor time over one process's that reads and makes the fingerprint", seconds / sealed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=1e7)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    lines = ["| what | target | measured | met |\n|---|---|---|---|\n"]
    with tempfile.TemporaryDirectory(prefix="dpfda-cluster-", dir=os.environ.get("DPFDA_SCRATCH", "/var/tmp")) as name:
        for row in measure(int(options.rows), options.repeats, Path(name)):
            print(row, flush=True)
            lines.append(f"{row}\n")
    load = (
        f"Written by `python -m benchmarks.cluster`; load {os.getloadavg()[0]:.0f} on {os.cpu_count()} processors.\n\n"
    )
    before = PAGE.read_text(encoding="utf-8").split(CLUSTER)[0].rstrip()
    PAGE.write_text(f"{before}\n\n{CLUSTER}\n## On a cluster\n\n{load}{''.join(lines)}{END}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
