"""More rows than memory: one `dpfda fit` on an unsorted Parquet file against polars reading and sorting the same file.

    python -m benchmarks.scale --rows 1e7 1e8 1e9

Makes the files itself in a scratch folder and removes them. Every figure is of a process of its own: wall time, CPU time and
peak resident memory as the system counts them. A size that the disk has no room for is extrapolated from the two largest
that were measured, and the table says so; polars is left out where memory is too small for it. Writes
docs/performance-scale.md.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.stamp import stamp

PAGE = Path(__file__).parents[1] / "docs" / "performance-scale.md"
CLUSTER = "<!-- cluster -->"
BYTES_A_ROW = 66  # at most at one time: file 20, rows divided by id 24, curves 18; packs 18 come when the 24 are gone
SORT_BYTES_A_ROW = 100  # of memory, for polars
BATCH = 1 << 20
SORT = "import polars, sys; polars.read_parquet(sys.argv[1]).sort('pid')"
STREAMED = "import polars, sys; polars.scan_parquet(sys.argv[1]).sort('pid').collect(engine='streaming')"
FUND = "budget init {file} --epsilon 1 --delta 1e-9 --ledger {ledger}"
FIT = (
    "fit {file} --id pid --x age --y hdl --domain 0:1 --y-bounds=-3:3 --epsilon 1 --delta 1e-9 --ledger {ledger} "
    "--json {json} --overwrite --scratch {scratch}"
)


@dataclass(frozen=True)
class Cost:
    """What a process took."""

    seconds: float
    cpu: float
    megabytes: float


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    arguments.add_argument("--rows", nargs="*", type=float, default=[1e7, 1e8])
    arguments.add_argument("--repeats", type=int, default=1)
    arguments.add_argument("--disk", type=float, default=60, help="gigabytes that may be used")
    arguments.add_argument("--output", type=Path, default=PAGE)
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="dpfda-scale-", dir=os.environ.get("DPFDA_SCRATCH", "/var/tmp")) as name:
        folder = Path(name)
        lines = []
        measure(folder, make_table(folder / "small.parquet", 3 * BATCH), 1)  # compiles kernels, fills caches
        found: dict[int, dict[str, list[Cost]]] = {}
        for rows in sorted({int(rows) for rows in options.rows}):
            if rows * BYTES_A_ROW > min(1e9 * options.disk, shutil.disk_usage(folder).free):
                lines.append(extrapolate(rows, found))
            else:
                file = make_table(folder / "visits.parquet", rows)
                found[rows] = measure(folder, file, options.repeats, sort=rows * SORT_BYTES_A_ROW < memory())
                lines.append(row(rows, file, found[rows]))
                file.unlink()
            print(lines[-1], flush=True)
    options.output.write_text(page(lines) + kept_part(options.output))
    stamp(options.output)
    print(f"wrote {options.output}")


def kept_part(path: Path) -> str:
    """What `benchmarks.cluster` has written between its markers, which stand at the end of the page."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return f"\n{CLUSTER}{text.split(CLUSTER)[1]}" if CLUSTER in text else ""


def memory() -> int:
    """Bytes of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def median(costs: list[Cost], figure: str) -> float:
    """Of one of the figures of a cost."""
    return statistics.median(getattr(cost, figure) for cost in costs)


def extrapolate(rows: int, found: dict[int, dict[str, list[Cost]]]) -> str:
    """A line for rows beyond the disk: a straight line through the fit's times of the two largest sizes."""
    if len(found) < 2:
        return f"| {rows:,} | no room on the disk, and no two sizes to extrapolate from | | | | | |"
    small, large = sorted(found)[-2:]
    low, high = (median(found[size]["fit"], "seconds") for size in (small, large))
    seconds = high + (high - low) / (large - small) * (rows - large)
    return f"| {rows:,} | extrapolated from {small:.0e} and {large:.0e} | | | {seconds:.0f} | | |"


def make_table(path: Path, rows: int) -> Path:
    """A table made by a process of its own: the system counts a parent's memory in the peak of its children."""
    code = "import sys; from benchmarks.scale import write_table; write_table(sys.argv[1], int(sys.argv[2]))"
    subprocess.run([sys.executable, "-c", code, str(path), str(rows)], check=True)
    return path


def write_table(path: str, rows: int) -> None:
    """Rows of rows / 10 subjects in random order."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    draw = np.random.default_rng(1)
    writer = None
    for start in range(0, rows, BATCH):
        size = min(BATCH, rows - start)
        age = draw.random(size)
        columns = {"pid": draw.integers(0, rows // 10, size), "age": age}
        table = pa.table(columns | {"hdl": np.sin(6 * age) + 0.3 * draw.normal(size=size)})
        writer = writer or pq.ParquetWriter(path, table.schema, compression="zstd")
        writer.write_table(table)
    assert writer is not None
    writer.close()


def measure(folder: Path, file: Path, repeats: int, *, sort: bool = True) -> dict[str, list[Cost]]:
    """Turn by turn, so that a busy machine slows all alike; without `sort`, the fit alone."""
    costs: dict[str, list[Cost]] = {"sort": [], "streamed sort": [], "fit": []}
    for repeat in range(repeats):
        paths = {"ledger": folder / f"{file.stem}-{time.time_ns()}.ledger", "json": folder / "out.json"}
        fund, fit = (each.format(file=file, scratch=folder, **paths).split() for each in (FUND, FIT))
        run([sys.executable, "-m", "dpfda", *fund])
        if sort:
            costs["sort"].append(run([sys.executable, "-c", SORT, str(file)]))
        costs["fit"].append(run([sys.executable, "-m", "dpfda", *fit]))
        if sort:
            costs["streamed sort"].append(run([sys.executable, "-c", STREAMED, str(file)]))
        last = {name: each[-1] for name, each in costs.items() if each}
        print(f"{file.name}, repeat {repeat + 1}: {last}", flush=True)
    return costs


def run(command: list[str]) -> Cost:
    """The cost of one process."""
    begun = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, f"{command[:3]} ended with {process.returncode}"
    return Cost(time.perf_counter() - begun, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000)


def row(rows: int, file: Path, costs: dict[str, list[Cost]]) -> str:
    """One line of the table, medians of the repeats."""

    def both(name: str) -> str:
        if not costs[name]:
            return "memory too small"
        return f"{median(costs[name], 'seconds'):.1f} / {median(costs[name], 'megabytes'):,.0f}"

    def ratio(figure: str) -> str:
        pairs = list(zip(costs["fit"], costs["sort"], strict=False))
        return f"{statistics.median(getattr(a, figure) / getattr(b, figure) for a, b in pairs):.2f}" if pairs else ""

    size = f"{file.stat().st_size / 1e6:,.0f}"
    cells = [f"{rows:,}", size, both("sort"), both("streamed sort"), both("fit"), ratio("seconds"), ratio("cpu")]
    return "| " + " | ".join(cells) + " |"


def page(lines: list[str]) -> str:
    """The document."""
    load = os.getloadavg()[1]
    busy = f" Other work ran on the machine (load {load:.1f}), which slows all columns." if load > 3 else ""
    return "\n".join(
        [
            "# More rows than memory",
            "",
            "Written by `python -m benchmarks.scale`. Unsorted Parquet rows (zstd) of rows / 10 subjects to a finished",
            "private mean with ledger and JSON, in one command with its default options, against polars reading and sorting",
            f"the same file in the same run. {os.cpu_count()} processors.{busy}",
            "Target: at most 1,000 MB, and at most 2 times the sort's time.",
            "",
            "| rows | file, MB | polars read + sort, s / MB | streaming sort | `dpfda fit` | time ratio | CPU ratio |",
            "|---|---|---|---|---|---|---|",
            *lines,
            "",
        ]
    )


if __name__ == "__main__":
    main()
