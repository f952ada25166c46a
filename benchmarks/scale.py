"""More rows than memory: one `dpfda fit` on an unsorted Parquet file against polars reading and sorting the same file.

    python -m benchmarks.scale --rows 1e7 1e8

Makes the files itself in a scratch folder and removes them. Every figure is of a process of its own: wall time, CPU time and
peak resident memory as the system counts them. Writes docs/performance-scale.md.
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

PAGE = Path(__file__).parents[1] / "docs" / "performance-scale.md"
BYTES_A_ROW = 120  # file, rows divided by id, curves, packs
BATCH = 1 << 20
SORT = "import polars, sys; polars.read_parquet(sys.argv[1]).sort('pid')"
STREAMED = "import polars, sys; polars.scan_parquet(sys.argv[1]).sort('pid').collect(engine='streaming')"
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
    arguments.add_argument("--output", type=Path, default=PAGE)
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="dpfda-scale-", dir=os.environ.get("DPFDA_SCRATCH", "/var/tmp")) as name:
        folder = Path(name)
        lines = []
        measure(folder, make_table(folder / "small.parquet", 3 * BATCH), 1)  # compiles kernels, fills caches
        for rows in fitting(options.rows, folder):
            file = make_table(folder / "visits.parquet", rows)
            lines.append(row(rows, file, measure(folder, file, options.repeats)))
            print(lines[-1], flush=True)
            file.unlink()
    options.output.write_text(page(lines))
    print(f"wrote {options.output}")


def fitting(wanted: list[float], folder: Path) -> list[int]:
    """The sizes for which the disk has room; the others shrink to what it has."""
    room = shutil.disk_usage(folder).free // BYTES_A_ROW
    return sorted({min(int(rows), room) for rows in wanted})


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


def measure(folder: Path, file: Path, repeats: int) -> dict[str, list[Cost]]:
    """Turn by turn, so that a busy machine slows all alike."""
    costs: dict[str, list[Cost]] = {"sort": [], "streamed sort": [], "fit": []}
    for repeat in range(repeats):
        paths = {"ledger": folder / f"{file.stem}-{time.time_ns()}.ledger", "json": folder / "out.json"}
        fit = FIT.format(file=file, scratch=folder, **paths).split()
        costs["sort"].append(run([sys.executable, "-c", SORT, str(file)]))
        costs["fit"].append(run([sys.executable, "-m", "dpfda", *fit]))
        costs["streamed sort"].append(run([sys.executable, "-c", STREAMED, str(file)]))
        print(f"{file.name}, repeat {repeat + 1}: { ({name: each[-1] for name, each in costs.items()}) }", flush=True)
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

    def median(name: str, figure: str) -> float:
        return statistics.median(getattr(cost, figure) for cost in costs[name])

    def ratio(figure: str) -> float:
        return statistics.median(
            getattr(fit, figure) / getattr(sort, figure) for fit, sort in zip(costs["fit"], costs["sort"], strict=True)
        )

    cells = [
        f"{rows:,}",
        f"{file.stat().st_size / 1e6:,.0f}",
        f"{median('sort', 'seconds'):.1f} / {median('sort', 'megabytes'):,.0f}",
        f"{median('streamed sort', 'seconds'):.1f} / {median('streamed sort', 'megabytes'):,.0f}",
        f"{median('fit', 'seconds'):.1f} / {median('fit', 'megabytes'):,.0f}",
        f"{ratio('seconds'):.2f}",
        f"{ratio('cpu'):.2f}",
    ]
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
            "Reach: at most 1,000 MB, and at most 2 times the sort's time.",
            "",
            "| rows | file, MB | polars read + sort, s / MB | streaming sort | `dpfda fit` | time ratio | CPU ratio |",
            "|---|---|---|---|---|---|---|",
            *lines,
            "",
        ]
    )


if __name__ == "__main__":
    main()
