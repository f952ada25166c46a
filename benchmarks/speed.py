"""Speed as ratios within one run: `python -m benchmarks.speed [--quick]` writes docs/performance.md.

Every comparison takes turns with what it is compared with, and the median of the ratios counts. Absolute times are for
orientation only.
"""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import speed_fits, speed_kernels
from benchmarks.stamp import stamp
from benchmarks.table_rows import Row
from benchmarks.versions import kept_part

TARGET = Path(__file__).parent.parent / "docs" / "performance.md"


def rows(quick: bool) -> Iterator[Row]:
    """All lines of the table."""
    repeats, large = (3, 100_000) if quick else (5, 1_000_000)
    with threadpool_limits(1):
        yield from speed_kernels.against_numpy(repeats, large)
        yield from speed_kernels.against_limits(repeats)
        yield from speed_kernels.varying_coefficients(repeats)
        yield from speed_kernels.changing_designs(repeats)
        yield from speed_kernels.packing(repeats)
        yield from speed_fits.against_least_squares(repeats)
        yield from speed_fits.small_fit(repeats)
        yield from speed_fits.against_smoothing(repeats, (1000,) if quick else (1000, 10_000))
        yield from speed_fits.growth(2, (10_000, 100_000) if quick else (10_000, 100_000, 1_000_000, 10_000_000))
        yield from speed_fits.monte_carlo(1.0 if quick else 3.0)
        yield from speed_fits.start_up(repeats)


INTRODUCTION = """# Performance

Written by `python -m benchmarks.speed`. All comparisons are ratios within one run in which both sides take turns; medians
of repeats. Times are processor times unless a line says wall clock; two threads against one is wall clock. BLAS has one
thread on both sides unless a line says all processors. Machine:
{machine}, {processors} processors, load {load:.1f} during the run, Python {python}, numpy {numpy}.

"Any lengths" is numpy as one writes it for ragged curves (`np.add.reduceat`, basis evaluated beforehand). Where all curves
have one length, batched matrix products are several times faster than that; "equal lengths only" compares with those.

A fit is the default method from raw `Curves` to the function: checks, packing, all rounds, a ledger in memory, noise from
the system's entropy, the coordinator. Growth is in the picture below the table.

| what | target | measured | met |
|---|---|---|---|
"""


def main() -> None:
    """Measure, print, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller data, fewer repeats; the table is only printed")
    quick = parser.parse_args().quick
    lines = []
    for row in rows(quick):
        print(row, flush=True)
        lines.append(f"{row}\n")
    if not quick:
        facts = {"machine": platform.machine(), "processors": len(os.sched_getaffinity(0)), "load": os.getloadavg()[0]}
        versions = {"python": platform.python_version(), "numpy": np.__version__}
        picture = "\n![Time and memory of a fit against the number of curves](images/growth.png)\n"
        TARGET.write_text(INTRODUCTION.format(**facts, **versions) + "".join(lines) + picture + kept_part())
        stamp(TARGET)


if __name__ == "__main__":
    main()
