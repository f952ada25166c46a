"""Repetitions per second of the Monte Carlo engine against the plain loop, in one run: python -m benchmarks.monte_carlo

It writes docs/monte-carlo.md. A repetition is: simulate the data, estimate at every budget, compute the errors. The plain
loop does what a user would write: `simulate_mean`, then `PrivateMean(...).fit` for one budget after the other, then
`squared_l2_error`. Both use the production plans; `tests/unit/reproduce/test_published_runs.py` shows that the coefficients
agree to 1e-10.

A second table asks what a leading axis over repetitions could save of the default method's coordinator: operations of one
run, with the arrays that it gave them, one at a time and stacked.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.stamp import stamp
from dpfda import NotPrivateWarning, PrivateMean
from dpfda._blas import one_blas_thread
from dpfda.curves.simulated import mean_1, simulate_mean, squared_l2_error
from dpfda.methods.adaptive import asymmetry
from dpfda.methods.adaptive.asymmetry import Asymmetry
from dpfda.methods.adaptive.lengths import LengthLaw
from dpfda.reproduce.adaptive_runs import AdaptiveRuns, prepare_sums
from dpfda.reproduce.cells import Cell, Method, make_plan, run_cell

BUDGETS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0)  # those of the paper's figures
SIZES = ((250, 10, 3), (1000, 10, 3), (3600, 15, 3), (1000, 10, 15))
WANTED = {"published": 20.0, "adaptive": 8.0}
STACKED = 16  # repetitions
LAWS = ((Asymmetry, "find_biases"), (LengthLaw, "observe"), (LengthLaw, "attenuation"))
OPERATIONS = ((asymmetry, "take_least"), (np.linalg, "eigh"), (np.linalg, "inv"))


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


@contextmanager
def replaced(owner: Any, name: str, made: Callable[[Any], Any]) -> Iterator[None]:
    """Another function in the place of one, made from it."""
    function = getattr(owner, name)
    setattr(owner, name, made(function))
    try:
        yield
    finally:
        setattr(owner, name, function)


def record(calls: list[tuple[Any, ...]], function: Any) -> Any:
    """The function, which keeps what it is called with."""

    def keep(*arguments: Any) -> Any:
        calls.append(arguments)
        return function(*arguments)

    return keep


def clock(times: list[float], function: Any) -> Any:
    """The function, which keeps the processor time of its calls."""

    def keep(*arguments: Any) -> Any:
        begun = time.process_time()
        found = function(*arguments)
        times.append(time.process_time() - begun)
        return found

    return keep


def processor_time(work: Callable[[], object], times: int = 20) -> float:
    """The least processor time of a call, in seconds."""
    found: list[float] = []
    for _ in range(times):
        clock(found, work)()
    return min(found)


def compare_stacked(n: int, m: int, r: int) -> list[dict[str, Any]]:
    """Milliseconds of a run of the engine, in work on laws of lengths, and in operations one at a time and stacked."""
    cell = Cell(n, m)
    plan = make_plan(cell, Method("adaptive", (1.0,), 1, n_basis=r), 1.0)
    runs, sums = AdaptiveRuns(plan), prepare_sums(plan, cell.curves(0))
    run = partial(runs.run, sums, 1)
    with one_blas_thread():
        run()
        found: list[dict[str, Any]] = [{"what": "a whole run", "calls": 1, "single": 1e3 * processor_time(run)}]
        for owner, name in LAWS:
            times: list[float] = []
            with replaced(owner, name, partial(clock, times)):
                runs_timed = [(run(), list(times), times.clear()) for _ in range(5)]
            each = [sum(seconds) for _, seconds, _ in runs_timed]
            found.append({"what": f"`{name}`", "calls": len(runs_timed[0][1]), "single": 1e3 * min(each)})
        return found + [_compare_operation(run, owner, name) for owner, name in OPERATIONS]


def _compare_operation(run: Callable[[], object], owner: Any, name: str) -> dict[str, Any]:
    """One operation with the arrays of a run: each call by itself, and for many repetitions at once."""
    calls: list[tuple[Any, ...]] = []
    function = getattr(owner, name)
    with replaced(owner, name, partial(record, calls)):
        run()
    single = sum(processor_time(partial(function, *each)) for each in calls)
    stacked = sum(processor_time(partial(function, *stack(name, each))) for each in calls) / STACKED
    return {"what": f"`{name}`", "calls": len(calls), "single": 1e3 * single, "stacked": 1e3 * stacked}


def stack(name: str, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """The same for many repetitions at once: matrices along a new first axis, laws' values as further columns."""
    if name == "take_least":
        values, *others = arguments
        return (np.concatenate([values] * STACKED, axis=-1), *others)
    return tuple(np.stack([each] * STACKED) for each in arguments)


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
    stacked = compare_stacked(*SIZES[0][:2], 15)
    if options.json:
        print(json.dumps({"speeds": rows, "stacked": stacked}))
        return
    text = page(rows, stacked)
    Path(options.output).write_text(text, encoding="utf-8")
    stamp(Path(options.output))
    print(text)


def page(rows: list[dict[str, Any]], stacked: list[dict[str, Any]]) -> str:
    """docs/monte-carlo.md."""
    lines = [_INTRODUCTION]
    lines.append("| method | n | m | r | plain loop, per second | engine, per second | ratio | target | met |")
    lines.append("|---|---|---|---|---|---|---|---|---|")
    for row in rows:
        ratio, wanted = row["engine"] / row["plain"], WANTED[row["method"]]
        speeds = f"{row['plain']:.3g} | {row['engine']:.3g} | {ratio:.3g} | >= {wanted:g}"
        met = "yes" if ratio >= wanted else "**no**"
        lines.append(f"| {row['method']} | {row['n']} | {row['m']} | {row['r']} | {speeds} | {met} |")
    lines += [
        _WHY_NOT,
        "| operation | calls in a run | one at a time, ms a run | stacked, ms a run |",
        "|---|---|---|---|",
    ]
    for row in stacked:
        many = f"{row['stacked']:.3g}" if "stacked" in row else ""
        lines.append(f"| {row['what']} | {row['calls']} | {row['single']:.3g} | {many} |")
    return "\n".join(lines) + "\n"


_INTRODUCTION = f"""# Speed of the Monte Carlo engine

Written by `python -m benchmarks.monte_carlo`: repetitions per second of processor time, {len(BUDGETS)} budgets each, both
sides in one run. The plain loop simulates, fits and measures one budget at a time with `PrivateMean`, as a user would
write it. Runs share data over budgets and methods. `tests/unit/reproduce/test_published_runs.py` shows that both give
the same: the published method to 1e-10, the default method to the bit.
"""
_WHY_NOT = f"""
The published method is a fixed number of equal steps, so that all repetitions and budgets are one batch of matrix products.
The default method is not: what a round asks depends on what earlier rounds answered, and nearly all of its time at these
sizes is the coordinator's own work, which the engine runs unchanged. The engine shares the data, the plan and the packing
of curves, and leaves out ledger, messages and bands; that is all.

A leading axis over repetitions in the coordinator's code is not built. The table has one run (n = {SIZES[0][0]}, r = 15,
epsilon = 1; least of repeated processor times). `find_biases`, `observe` and `attenuation` work on hundreds or thousands of
laws of lengths at once; their arrays are so large that a call costs little besides its arithmetic: `take_least`, a part of
the first, takes as long for {STACKED} repetitions at once as for one after the other. Small matrices (numpy's `eigh` and
`inv`) would gain more. So the axis cannot save more than what the run spends outside of these three.
"""


if __name__ == "__main__":
    main()
