"""Whole fits on data larger than what is kept in memory, in processes of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

from dpfda.curves.tables import Domain, Reading, find_source, load_curves
from dpfda.estimators import PrivateMean
from dpfda.privacy.ledger.ledger import Ledger
from dpfda.silo.silo import Silo

pl = pytest.importorskip("polars")

READING = Reading(Domain(0, 1), (-3.0, 3.0), id="pid", x="age", y="hdl", duplicates="keep")
_MEGABYTE = 1000  # in the kilobytes that Linux counts in

LOAD = """
import sys
from dpfda.curves.tables import Domain, Reading, find_source, load_curves
reading = Reading(Domain(0, 1), (-3.0, 3.0), id="pid", x="age", y="hdl")
said = lambda done, planned: print(done, flush=True)
curves = load_curves(find_source(sys.argv[1]), reading, scratch=sys.argv[2], progress=said, rows_at_once=1 << 16).curves
print("loaded", flush=True)
sys.stdin.read()
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def write_table(path: Path, rows: int) -> Path:
    rng = np.random.default_rng(2)
    age = rng.random(rows)
    frame = pl.DataFrame({"pid": rng.integers(0, rows // 10, rows), "age": age, "hdl": np.sin(6 * age)})
    frame.write_parquet(path, row_group_size=1 << 15)
    return path


def started(path: Path, scratch: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", LOAD, str(path), str(scratch)]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )


def peak_memory(path: Path, scratch: Path) -> int:
    """In kilobytes, of a process that loads the table; as it says itself, since rusage counts what it was forked from."""
    process = started(path, scratch)
    said, _ = process.communicate()
    assert process.returncode == 0
    return int(said.split()[-1])


def test_peak_memory_does_not_grow_with_the_rows(tmp_path) -> None:
    """Three million more rows are 72 MB more of raw data, and a sorted copy as much again; the peak may grow by 25."""
    one = peak_memory(write_table(tmp_path / "one.parquet", 1_000_000), tmp_path)
    four = peak_memory(write_table(tmp_path / "four.parquet", 4_000_000), tmp_path)
    assert four - one < 25 * _MEGABYTE


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("moment", ["reading", "loaded"])
def test_a_process_that_is_stopped_leaves_no_file(end: signal.Signals, moment: str, tmp_path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    process = started(write_table(tmp_path / "t.parquet", 1_000_000), scratch)
    assert process.stdout is not None
    for line in process.stdout:
        if line == "loaded\n" or (moment == "reading" and int(line) > 850_000):
            break
    assert [entry for entry in Path(f"/proc/{process.pid}/fd").iterdir() if "dpfda-" in os.readlink(entry)] or (
        "dpfda-" in Path(f"/proc/{process.pid}/maps").read_text()
    )
    process.send_signal(end)
    process.communicate(timeout=300)
    assert process.returncode != 0
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize("kind", ["csv", "parquet", "sqlite", "duckdb"])
@pytest.mark.parametrize("method", ["adaptive", "published"])
def test_the_fit_is_the_same_bit_by_bit(kind: str, method: str, tmp_path) -> None:
    frame = pl.read_parquet(write_table(tmp_path / "t.parquet", 3000))
    source = stored(frame, kind, tmp_path)
    small, big = load_curves(source, READING).curves, load_curves(source, READING, rows_at_once=64).curves
    assert isinstance(big.x, np.memmap)
    coefficients = []
    for curves in (small, big):
        silo = Silo(curves, epsilon=2.0, delta=1e-5)
        estimator = PrivateMean(
            2.0, 1e-5, domain=(0.0, 1.0), y_bounds=(-3.0, 3.0), method=method, points_per_curve=10, random_state=5
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            coefficients.append(estimator.fit(silo).coef_)
    assert coefficients[0].tobytes() == coefficients[1].tobytes()


def stored(frame, kind: str, folder: Path):
    if kind == "csv":
        frame.write_csv(folder / "t.csv")
        return find_source(str(folder / "t.csv"))
    if kind == "parquet":
        return find_source(str(folder / "t.parquet"))
    if kind == "sqlite":
        import sqlite3

        with sqlite3.connect(folder / "t.db") as connection:
            connection.execute("CREATE TABLE visits (pid INTEGER, age REAL, hdl REAL)")
            connection.executemany("INSERT INTO visits VALUES (?, ?, ?)", frame.rows())
        return find_source(f"sqlite:///{folder}/t.db", "SELECT * FROM visits")
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(folder / "t.duckdb")) as connection:
        connection.register("frame", frame.to_arrow())
        connection.execute("CREATE TABLE visits AS SELECT * FROM frame")
    return find_source(f"duckdb:///{folder}/t.duckdb", "SELECT * FROM visits")


def test_ctrl_c_during_a_fit_leaves_neither_files_nor_a_debt(tmp_path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    path = write_table(tmp_path / "t.parquet", 7_000_000)  # more than memory keeps
    Ledger.create(tmp_path / "t.parquet.ledger", 1.0, 1e-6).close()
    columns = ["--id", "pid", "--x", "age", "--y", "hdl", "--domain", "0:1", "--y-bounds=-3:3"]
    promise = ["--epsilon", "1", "--delta", "1e-6", "--scratch", str(scratch)]
    command = [sys.executable, "-m", "dpfda", "fit", str(path), *columns, *promise]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not scratch_is_open(process.pid):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=300)
    assert process.returncode == 130
    assert "Interrupted" in said
    assert list(scratch.iterdir()) == []
    assert Ledger.open(tmp_path / "t.parquet.ledger").spent().debits == 0


def scratch_is_open(pid: int) -> bool:
    try:
        return any("dpfda-" in os.readlink(entry) for entry in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False


FIT = """
import sys
from dpfda.cli.main import run
assert run(sys.argv[1:]) == 0
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


@pytest.mark.slow
def test_one_command_fits_twice_the_rows_in_the_same_memory(tmp_path) -> None:
    """2.5 million more rows are 60 MB more of raw data; the peak of the whole command may grow by 40 and stays below 800."""
    options = ["--id", "pid", "--x", "age", "--y", "hdl", "--domain", "0:1", "--y-bounds=-3:3", "--epsilon", "1"]
    options += ["--delta", "1e-7", "--quiet", "--json", "r.json", "--overwrite", "--ledger", "table.ledger"]
    Ledger.create(tmp_path / "table.ledger", 3.0, 1e-5).close()
    peaks = []
    for rows in (2_500_000, 5_000_000):
        path = write_table(tmp_path / f"{rows}.parquet", rows)
        command = [sys.executable, "-c", FIT, "fit", str(path), *options, "--scratch", str(tmp_path)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        peaks.append(int(done.stdout.split()[-1]))
    assert peaks[1] - peaks[0] < 40 * _MEGABYTE
    assert peaks[1] < 800 * _MEGABYTE
