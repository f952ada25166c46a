"""Speed as ratios within one run: `python -m benchmarks.speed [--quick]` writes docs/performance.md.

Every comparison takes turns with what it is compared with, and the median of the ratios counts. Absolute times are for
orientation only.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import limits
from dpfda.basis import Fourier
from dpfda.kernels.packed import PackedCurves

TARGET = Path(__file__).parent.parent / "docs" / "performance.md"


@dataclass(frozen=True)
class Row:
    """A line of the table; `reach` is the aim, None for what is only told."""

    what: str
    measured: float
    reach: float | None = None
    at_most: bool = False
    unit: str = "x"

    def __str__(self) -> str:
        aim, verdict = "", ""
        if self.reach is not None:
            aim = f"{'<=' if self.at_most else '>='} {self.reach:g} {self.unit}"
            met = self.measured <= self.reach if self.at_most else self.measured >= self.reach
            verdict = "yes" if met else "**no**"
        return f"| {self.what} | {aim} | {self.measured:.3g} {self.unit} | {verdict} |"


@dataclass(frozen=True)
class Data:
    """Simulated curves in the units of a plan."""

    u: np.ndarray
    y: np.ndarray
    offsets: np.ndarray
    design: np.ndarray

    @property
    def points(self) -> int:
        return self.u.size

    def packed(self, size: int, longest_direct: int | None = None) -> PackedCurves:
        return PackedCurves.pack(
            self.u, self.y, self.offsets, self.design, Fourier(size), longest_direct=longest_direct, threads=1
        )


def simulated(n: int, m: int, p: int = 1, *, ragged: bool = False) -> Data:
    """n curves with m points each, or 1..2m-1 of them."""
    rng = np.random.default_rng(n)
    lengths = rng.integers(1, 2 * m, n) if ragged else np.full(n, m)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    design = np.hstack([np.ones((n, 1)), rng.uniform(-1, 1, (n, p - 1))])
    return Data(rng.random(offsets[-1]), rng.uniform(-1, 1, offsets[-1]), offsets, design)


def numpy_ragged(data: Data, size: int, iterate: np.ndarray, radius: float) -> Callable[[], np.ndarray]:
    """The gradient sum in numpy with a cached basis, for curves of any lengths."""
    features = Fourier(size).evaluate_unit(data.u)
    counts = np.diff(data.offsets)
    owner = np.repeat(np.arange(counts.size), counts)

    def mean() -> np.ndarray:
        residuals = features @ iterate[0] - data.y
        gradients = np.add.reduceat(features * residuals[:, None], data.offsets[:-1], axis=0) / counts[:, None]
        return np.clip(gradients, -radius, radius).sum(axis=0)

    def varying() -> np.ndarray:
        slopes = (data.design @ iterate)[owner]
        residuals = np.einsum("jl,jl->j", features, slopes) - data.y
        scores = np.add.reduceat(features * residuals[:, None], data.offsets[:-1], axis=0) / counts[:, None]
        gradients = (data.design[:, :, None] * scores[:, None, :]).reshape(counts.size, -1)
        return np.clip(gradients, -radius, radius).sum(axis=0)

    return mean if len(iterate) == 1 else varying


def numpy_equal(data: Data, m: int, size: int, iterate: np.ndarray, radius: float) -> Callable[[], np.ndarray]:
    """The same for curves of one length, with batched matrix products: the fastest numpy that was found."""
    features = Fourier(size).evaluate_unit(data.u).reshape(-1, m, size)
    values = data.y.reshape(-1, m)

    def mean() -> np.ndarray:
        residuals = features @ iterate[0] - values
        gradients = (residuals[:, None, :] @ features)[:, 0] / m
        return np.clip(gradients, -radius, radius).sum(axis=0)

    return mean


def kernel(packed: PackedCurves, size: int, p: int = 1, threads: int = 1) -> Callable[[], np.ndarray]:
    """One round of the published method."""
    iterate, radii = np.full((p, size), 0.1), np.full(p * size, 0.5)
    return lambda: packed.clipped_gradient_sum(iterate, radii, threads=threads)


def in_a_row(work: Callable[[], object], rounds: int) -> Callable[[], object]:
    """Several rounds as in a fit: small data stay in the cache, for both sides of a comparison."""
    return lambda: [work() for _ in range(rounds)]


def against_numpy(repeats: int, large: int) -> Iterator[Row]:
    """r = 15, ten points a curve."""
    for n, reach in ((10_000, 15), (large, 20)):
        data = simulated(n, 10)
        works = {
            "ragged": numpy_ragged(data, 15, np.full((1, 15), 0.1), 0.5),
            "equal": numpy_equal(data, 10, 15, np.full((1, 15), 0.1), 0.5),
            "kernel": kernel(data.packed(15), 15),
        }
        rounds = 20 if n == 10_000 else 1
        times = limits.alternate({name: in_a_row(work, rounds) for name, work in works.items()}, repeats)
        name = f"r = 15, {n:.0e} x 10, one thread"
        yield Row(
            f"{name}, against numpy with cached basis, any lengths", limits.ratio(times, "ragged", "kernel"), reach
        )
        yield Row(f"{name}, against numpy for equal lengths only", limits.ratio(times, "equal", "kernel"))
        yield Row(f"{name}, time per point", 1e9 * statistics.median(times["kernel"]) / rounds / data.points, unit="ns")
    for name, data in (
        ("equal lengths", simulated(large, 10)),
        ("ragged, 1 to 19 points", simulated(large, 10, ragged=True)),
    ):
        packed = data.packed(15)
        works = {"one": kernel(packed, 15), "two": kernel(packed, 15, threads=2)}
        times = limits.alternate(works, 3 * repeats, time.perf_counter)
        what = f"r = 15, {large:.0e} x 10, {name}, two threads against one"
        yield Row(what, limits.ratio(times, "one", "two"), 1.7)
        yield Row(f"{what}, best time against best time", min(times["one"]) / min(times["two"]))
        times = limits.alternate(works, repeats, time.process_time)
        yield Row(f"{what}, by processor time, if both were free", 2 * limits.ratio(times, "one", "two"))


def against_limits(repeats: int) -> Iterator[Row]:
    """Points rather than moments, so that the machine's limits apply."""
    data = simulated(100_000, 10)
    for size in (3, 15, 51):
        packed = data.packed(size, longest_direct=10)
        works = {"kernel": kernel(packed, size), "peak": limits.peak, "sines": limits.sines}
        if size == 3:
            works["rule"] = kernel(data.packed(size), size)
        times = limits.alternate(works, 3 * repeats)
        if size == 3:
            per_point = limits.TURNS / data.points
            cost = limits.ratio(times, "rule", "sines") * per_point
            yield Row("r = 3, 1e5 x 10, by moments (the default), against cos and sin alone", cost, 2, at_most=True)
            cost = limits.ratio(times, "kernel", "sines") * per_point
            yield Row("r = 3, 1e5 x 10, by points, against cos and sin alone", cost, 2, at_most=True)
            yield Row("cos and sin of a number", 1e9 * statistics.median(times["sines"]) / limits.TURNS, unit="ns")
            yield Row("peak of multiply-adds", limits.FLOPS / statistics.median(times["peak"]) / 1e9, unit="GFLOP/s")
        else:
            work = limits.flops_per_point(size) * data.points / limits.FLOPS
            share = 100 * work / limits.ratio(times, "kernel", "peak")
            yield Row(f"r = {size}, 1e5 x 10, share of the peak of multiply-adds", share, 50, unit="%")


def varying_coefficients(repeats: int) -> Iterator[Row]:
    """d = 3: four coefficient functions."""
    data = simulated(100_000, 10, 4)
    works = {"numpy": numpy_ragged(data, 15, np.full((4, 15), 0.1), 0.5), "kernel": kernel(data.packed(15), 15, 4)}
    times = limits.alternate(works, repeats)
    yield Row(
        "varying coefficients, d = 3, r = 15, 1e5 x 10, against numpy", limits.ratio(times, "numpy", "kernel"), 30
    )


def packing(repeats: int) -> Iterator[Row]:
    """Moments, memory, and what packing costs."""
    data = simulated(20_000, 100)
    by_points, by_moments = data.packed(15, 100), data.packed(15)
    times = limits.alternate({"points": kernel(by_points, 15), "moments": kernel(by_moments, 15)}, repeats)
    yield Row("r = 15, 2e4 x 100, moments against points, per round", limits.ratio(times, "points", "moments"))
    yield Row("the same, memory of moments over memory of points", by_moments.nbytes / by_points.nbytes)
    short = simulated(100_000, 10)
    times = limits.alternate(
        {"pack": lambda: short.packed(15), "records": lambda: data.packed(15), "round": kernel(short.packed(15), 15)},
        repeats,
    )
    yield Row("packing 1e5 x 10 by points, in rounds of r = 15", limits.ratio(times, "pack", "round"))
    yield Row(
        "packing 2e4 x 100 by moments, r = 15", 1e9 * statistics.median(times["records"]) / data.points, unit="ns"
    )
    raw = 24 * short.points  # id, x, y
    yield Row(
        "memory of packed curves, 1e5 x 10, over id, x, y in raw form", short.packed(15).nbytes / raw, 2, at_most=True
    )


def start_up(repeats: int) -> Iterator[Row]:
    """A fresh interpreter."""
    commands = {
        "numpy": "import numpy",
        "dpfda": "import numpy, dpfda",
        "estimator": "import numpy; from dpfda import PrivateMean",
        "kernels": "import numpy, dpfda.kernels.passes",
    }
    works = {
        name: (lambda code=code: subprocess.run([sys.executable, "-c", code], check=True))
        for name, code in commands.items()
    }
    times = limits.alternate(works, repeats, limits.children)
    what = {
        "dpfda": "import dpfda",
        "estimator": "from dpfda import PrivateMean",
        "kernels": "import of the kernels with numba, once, at the first fit",
    }
    for name, text in what.items():
        extra = statistics.median(a - b for a, b in zip(times[name], times["numpy"], strict=True))
        yield Row(f"{text}, beyond numpy", extra, 0.5 if name == "dpfda" else None, at_most=True, unit="s")


def rows(quick: bool) -> Iterator[Row]:
    """All lines of the table."""
    repeats, large = (3, 100_000) if quick else (5, 1_000_000)
    with threadpool_limits(1):
        yield from against_numpy(repeats, large)
        yield from against_limits(repeats)
        yield from varying_coefficients(repeats)
        yield from packing(repeats)
        yield from start_up(repeats)


INTRODUCTION = """# Performance

Written by `python -m benchmarks.speed`. All comparisons are ratios within one run in which both sides take turns; medians
of repeats. Times are processor times, except for two threads (wall clock). Machine: {machine}, {processors} processors,
load {load:.1f} during the run, Python {python}, numpy {numpy}.

"Any lengths" is numpy as one writes it for ragged curves (`np.add.reduceat`, basis evaluated beforehand). Where all curves
have one length, batched matrix products are several times faster than that; "equal lengths only" compares with those.

| what | reach | measured | met |
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
        TARGET.write_text(INTRODUCTION.format(**facts, **versions) + "".join(lines))


if __name__ == "__main__":
    main()
