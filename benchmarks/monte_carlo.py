"""Repetitions per second of the Monte Carlo engine against the plain loop, in one run: python -m benchmarks.monte_carlo

It writes docs/monte-carlo.md. A repetition is: simulate the data, estimate at every budget, compute the errors. The plain
loop does what a user would write: `simulate_mean`, then `PrivateMean(...).fit` for one budget after the other, then
`squared_l2_error`. Both use the production plans; `tests/unit/reproduce/test_published_runs.py` shows that the coefficients
agree to 1e-10.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.stamp import stamp
from dpfda import NotPrivateWarning, PrivateMean
from dpfda.curves.simulated import mean_1, simulate_mean, squared_l2_error
from dpfda.reproduce.cells import Cell, Method, run_cell

BUDGETS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0)  # those of the paper's figures
SIZES = ((250, 10, 3), (1000, 10, 3), (3600, 15, 3), (1000, 10, 15))
WANTED = 20.0


def plain(method: str, n: int, m: int, r: int, repetitions: int) -> None:
    """One fit at a time."""
    bounds = (-50, 50) if method == "published" else (-4, 5)
    for repetition in range(repetitions):
        for epsilon in BUDGETS:
            estimator = PrivateMean(
                epsilon, 1e-3, domain=(0, 1), y_bounds=bounds, basis="fourier", n_basis=r, method=method,
                points_per_curve=m, y_scale="none", random_state=repetition,
            )  # fmt: skip
            estimator.fit(simulate_mean(n, m, rng=repetition))
            squared_l2_error(estimator.predict, mean_1)


def engine(method: str, n: int, m: int, r: int, repetitions: int) -> None:
    """All budgets and many repetitions at once."""
    run_cell(Cell(n, m, methods=(Method(method, BUDGETS, repetitions, n_basis=r),)))


def per_second(
    run: Callable[[str, int, int, int, int], None], method: str, size: tuple[int, int, int], seconds: float
) -> float:
    """Repetitions per second of processor time; the machine's other users do not count."""
    run(method, *size, 1)
    count, done, begun = 1, 0, time.process_time()
    while time.process_time() - begun < seconds:
        run(method, *size, count)
        done += count
        count = min(2 * count, 256)
    return done / (time.process_time() - begun)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0, help="for each number")
    parser.add_argument("--json", action="store_true", help="print numbers; write no page")
    parser.add_argument("--output", default="docs/monte-carlo.md")
    options = parser.parse_args()
    warnings.simplefilter("ignore", NotPrivateWarning)
    rows = []
    for method, sizes in (("published", SIZES), ("adaptive", SIZES[:2])):
        for size in sizes:
            slow, fast = (per_second(run, method, size, options.seconds) for run in (plain, engine))
            rows.append({"method": method, "n": size[0], "m": size[1], "r": size[2], "plain": slow, "engine": fast})
    if options.json:
        print(json.dumps(rows))
        return
    text = page(rows)
    Path(options.output).write_text(text, encoding="utf-8")
    stamp(Path(options.output))
    print(text)


def page(rows: list[dict[str, Any]]) -> str:
    """docs/monte-carlo.md."""
    lines = [_INTRODUCTION]
    lines.append("| method | n | m | r | plain loop, per second | engine, per second | ratio | at least 20 |")
    lines.append("|---|---|---|---|---|---|---|---|")
    for row in rows:
        ratio = row["engine"] / row["plain"]
        speeds = f"{row['plain']:.3g} | {row['engine']:.3g} | {ratio:.3g}"
        met = "yes" if ratio >= WANTED else "**no**"
        lines.append(f"| {row['method']} | {row['n']} | {row['m']} | {row['r']} | {speeds} | {met} |")
    return "\n".join(lines) + "\n" + _WHY_NOT


_INTRODUCTION = f"""# Speed of the Monte Carlo engine

Written by `python -m benchmarks.monte_carlo`: repetitions per second of processor time, {len(BUDGETS)} budgets each, both
sides in one run. The plain loop simulates, fits and measures one budget at a time with `PrivateMean`, as a user would
write it. Runs share data over budgets and methods. `tests/unit/reproduce/test_published_runs.py` shows that both give
the same: the published method to 1e-10, the default method to the bit.
"""
_WHY_NOT = """
The published method is a fixed number of equal steps, so that all repetitions and budgets are one batch of matrix products.
The default method is not: what a round asks depends on what earlier rounds answered, and nearly all of its time at these
sizes is the coordinator's own work on small matrices, which the engine runs unchanged. A version for many repetitions at
once would be a second implementation of the method, and its results no longer those of the code that users run. So the
engine shares the data, the plan and the packing of curves, and leaves out ledger and messages; that is all.
"""


if __name__ == "__main__":
    main()
