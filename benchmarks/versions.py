"""Waiting times against version 0.1, in one run: `python -m benchmarks.versions` writes its part of docs/performance.md.

Both versions run in processes of their own, in turns, and processor times are compared. "Cold" is a process that finds no
cache of anything and can write none. The sources of version 0.1 come from this repository's history.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks import limits
from benchmarks.ledger_growth import compare_rounds
from benchmarks.table_rows import Row

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "performance.md"
START, END = "<!-- versions -->", "<!-- /versions -->"
COMMIT = "b5b9421"
_NOWHERE = "/proc/nobody"  # not even the administrator can write there

_DATA = """
import json, sys, time, warnings
import numpy as np
from dpfda import Curves, PrivateMean
warnings.simplefilter("ignore")
def curves(n, m=10):
    rng = np.random.default_rng(n)
    x = rng.random(n * m)
    y = np.sin(2 * np.pi * x) + np.repeat(rng.uniform(-0.5, 0.5, n), m) + rng.uniform(-0.5, 0.5, n * m)
    return Curves(x, y, np.arange(n + 1) * m, np.ones((n, 1)))
def fit(data, epsilon=1.0, **options):
    PrivateMean(epsilon, 1e-6, domain=(0, 1), y_bounds=(-2, 2), **options).fit(data)
"""
_FIRST = _DATA + "fit(curves(250))\n"
_WARM = (
    _DATA
    + """
def measure(data, epsilons):
    fit(data)
    times = []
    for epsilon in epsilons:
        start = time.process_time()
        fit(data, epsilon)
        times.append(time.process_time() - start)
    return sorted(times)[len(times) // 2]
found = {f"n = {n:,}": measure(curves(n), 15 * [1.0]) for n in (250, 1000, 15205)}
found["n = 250, terms that the process has not seen"] = measure(curves(250), [1 + k / 1000 for k in range(1, 16)])
print(json.dumps(found))
"""
)
_REFERENCE = (
    _DATA
    + """
data, times = curves(1_000_000), {"adaptive": [], "nonprivate": []}
for method in 3 * list(times):
    start = time.process_time()
    fit(data, method=method)
    times[method].append(time.process_time() - start)
print(json.dumps(min(times["nonprivate"]) / min(times["adaptive"])))
"""
)


def run(code: str, source: Path, folder: Path, **changed: str) -> str:
    """What a new process of a version prints; nothing that it could find in a cache is there unless named."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "DPFDA_", "PYTHON"))}
    one_thread = {"OPENBLAS_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1", "PYTHONPATH": str(source)}
    environment = {**kept, **one_thread, **changed}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=environment, cwd=folder, check=True, capture_output=True, text=True).stdout


def sources() -> tuple[Path, Path]:
    """The sources of this version and of version 0.1."""
    before = ROOT / "out" / "version-0.1"
    if not before.exists():
        archive = subprocess.run(["git", "archive", COMMIT, "src"], cwd=ROOT, check=True, capture_output=True).stdout
        before.mkdir(parents=True)
        subprocess.run(["tar", "x"], cwd=before, input=archive, check=True)
    return ROOT / "src", before / "src"


def cold_fits(folder: Path, repeats: int) -> Iterator[Row]:
    """A process that fits 250 curves and ends."""
    now, before = sources()
    cold = {"HOME": _NOWHERE, "XDG_CACHE_HOME": _NOWHERE}

    def empty() -> str:
        return tempfile.mkdtemp(dir=folder)

    works = {
        "cold": lambda: run(_FIRST, now, folder, NUMBA_CACHE_DIR=empty(), **cold),
        "warm": lambda: run(_FIRST, now, folder, NUMBA_CACHE_DIR=str(folder / "kept")),
        "0.1 cold": lambda: run(_FIRST, before, folder, NUMBA_CACHE_DIR=empty(), **cold),
    }
    times = limits.alternate(works, repeats, limits.children)
    what = "new process that fits 250 curves, nothing cached and a home that cannot be written"
    yield Row(f"{what}, against one with warm caches", limits.ratio(times, "cold", "warm"), 1.2, at_most=True)
    yield Row(f"{what}, against version 0.1's", limits.ratio(times, "cold", "0.1 cold"), 0.06, at_most=True)
    yield Row(f"{what}, processor time", statistics.median(times["cold"]), unit="s")


def commands(folder: Path, repeats: int) -> Iterator[Row]:
    """`dpfda fit small.csv`, the whole process."""
    now, before = sources()
    table = folder / "small.csv"
    rows = run(
        _DATA + "data = curves(250)\nfor i in range(250):\n for k in range(10):\n"
        "  print(i, data.x[10 * i + k], data.y[10 * i + k], sep=',')",
        now,
        folder,
    )
    table.write_text(f"id,x,y\n{rows}")
    words = ["fit", str(table), "--id", "id", "--x", "x", "--y", "y", "--domain", "0:1", "--y-bounds=-2:2"]
    words += ["--epsilon", "1", "--delta", "1e-6", "--json", "-", "--ledger"]
    budget = ["budget", "init", "--epsilon", "1000", "--delta", "0.01", "--ledger"]

    def call(source: Path, arguments: list[str], ledger: str, cache: str) -> None:
        code = f"import sys; sys.argv[1:] = {[*arguments, str(folder / ledger)]!r}; from dpfda.cli.entry import main; main()"
        run(code, source, folder, NUMBA_CACHE_DIR=cache, HOME=_NOWHERE)

    call(now, budget, "now.ledger", str(folder))
    call(before, budget, "before.ledger", str(folder))
    works = {
        "now": lambda: call(now, words, "now.ledger", tempfile.mkdtemp(dir=folder)),
        "0.1": lambda: call(before, words, "before.ledger", tempfile.mkdtemp(dir=folder)),
    }
    times = limits.alternate(works, repeats, limits.children)
    what = "`dpfda fit small.csv`, whole process, nothing cached and a home that cannot be written"
    yield Row(f"{what}, against version 0.1's", limits.ratio(times, "now", "0.1"), 0.1, at_most=True)
    yield Row(f"{what}, processor time", statistics.median(times["now"]), unit="s")


def warm_fits(folder: Path, repeats: int) -> Iterator[Row]:
    """Fits in a process that has fitted before: again under the same terms, and under new ones, as every new study is."""
    now, before = sources()
    cache = {"NUMBA_CACHE_DIR": str(folder / "kept")}
    run(_FIRST, before, folder, **cache)
    ratios: dict[str, list[float]] = {}
    for _ in range(repeats):
        ours, theirs = (json.loads(run(_WARM, source, folder, **cache)) for source in (now, before))
        for what in ours:
            ratios.setdefault(what, []).append(ours[what] / theirs[what])
    for (what, found), reach in zip(ratios.items(), (0.6, 0.6, 0.7, None), strict=True):
        yield Row(f"warm fit, {what}, against version 0.1", statistics.median(found), reach, at_most=True)


def others(folder: Path) -> Iterator[Row]:
    """A ledger that fills up, and the reference."""
    now, _ = sources()
    (folder / "ledgers").mkdir(mode=0o700)
    wall, cpu = compare_rounds(str(folder / "ledgers"))
    what = "a round of the 200th study on one durable ledger against the 1st"
    yield Row(f"{what}, wall clock, sync included", wall, 1.1, at_most=True)
    yield Row(f"{what}, processor time", cpu, 1.1, at_most=True)
    ratio = json.loads(run(_REFERENCE, now, folder))
    yield Row("non-private reference against the private fit, 1e6 curves", ratio, 1.5, at_most=True)


def main() -> None:
    """Measure, print, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    lines = ["| what | target | measured | met |\n|---|---|---|---|\n"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in (cold_fits(folder, repeats), commands(folder, repeats), warm_fits(folder, repeats), others(folder)):
            for row in part:
                print(row, flush=True)
                lines.append(f"{row}\n")
    load = (
        f"Written by `python -m benchmarks.versions`; load {os.getloadavg()[0]:.0f} on {os.cpu_count()} processors.\n\n"
    )
    write_part(f"## Waiting, and version 0.1\n\n{load}{''.join(lines)}")


def write_part(text: str) -> None:
    """Put the text between its markers, which stand at the end of the page."""
    page = PAGE.read_text(encoding="utf-8")
    before = page.split(START)[0].rstrip()
    PAGE.write_text(f"{before}\n\n{START}\n{text}{END}\n", encoding="utf-8")


def kept_part() -> str:
    """What stands between the markers, for who writes the rest of the page."""
    page = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    return f"\n{START}{page.split(START)[1]}" if START in page else ""


if __name__ == "__main__":
    main()
