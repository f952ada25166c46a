"""Studies over real sites, this version beside an older one, in turns on the same machine.

    python -m benchmarks.federation_versions --old ../v01 --sites 3 10 30 --repeats 3

`--old` is a working tree of the older version (version 0.1 is commit b5b9421) whose `benchmarks.federation` prints the same
table. Both run the published method, so that a round holds the same in both: one vector of r = 50 numbers out, one noisy
vector and its noise back from each site, 200 subjects a site, mutual TLS, durable ledgers. (The default method of this
version asks other rounds than that of 0.1.) Memory is that of a site's client and silo, without either supervisor.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parents[1]


def measure(tree: Path, sites: int, *, seconds: bool) -> tuple[float, float]:
    """Median milliseconds of a round and megabytes of a site, of one study."""
    path = os.pathsep.join((str(tree / "src"), str(tree)))
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.federation", str(sites)], cwd=tree, capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": path}, timeout=1800,
    )  # fmt: skip
    cells = [cell.strip() for cell in done.stdout.splitlines()[-1].strip("|").split("|")]
    return float(cells[2]) * (1000.0 if seconds else 1.0), float(cells[6])


def main() -> None:
    """The table of docs/federation.md."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--old", type=Path, required=True)
    parser.add_argument("--sites", type=int, nargs="*", default=[3, 10, 30])
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    print(
        "| sites | ms a round, old | ms a round, now | times faster | MB a site, old | MB a site, now | load |",
        flush=True,
    )
    print("|---|---|---|---|---|---|---|", flush=True)
    for count in arguments.sites:
        old, new = [], []
        for _ in range(arguments.repeats):
            old.append(measure(arguments.old.absolute(), count, seconds=True))
            new.append(measure(HERE, count, seconds=False))
        times = [statistics.median(each[0] for each in found) for found in (old, new)]
        sizes = [statistics.median(each[1] for each in found) for found in (old, new)]
        print(
            f"| {count} | {times[0]:.1f} | {times[1]:.1f} | {times[0] / times[1]:.1f} | {sizes[0]:.0f} | {sizes[1]:.0f} | "
            f"{os.getloadavg()[0]:.0f} |", flush=True,
        )  # fmt: skip


if __name__ == "__main__":
    main()
