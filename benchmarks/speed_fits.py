"""Whole private fits, ledger and noise included, against tools that people use today; growth; start-up."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import limits
from benchmarks.monte_carlo import engine, per_second, plain
from benchmarks.table_rows import Row
from dpfda import Curves, NotPrivateWarning, PrivateMean
from dpfda.basis import Fourier

IMAGES = Path(__file__).parent.parent / "docs" / "images"
RAW_BYTES = 24  # id, x, y of a point


def curves(n: int, m: int = 10) -> Curves:
    """n curves of m points around a smooth function."""
    rng = np.random.default_rng(n)
    x = rng.random(n * m)
    y = np.sin(2 * np.pi * x)
    y += np.repeat(rng.uniform(-0.5, 0.5, n), m)
    y += rng.uniform(-0.5, 0.5, n * m)
    return Curves(x, y, np.arange(n + 1) * m, np.ones((n, 1)))


def private_fit(data: Curves, size: int) -> None:
    """The default method with noise from the system's entropy and a ledger, from raw curves to the function."""
    PrivateMean(1.0, 1e-6, domain=(0, 1), y_bounds=(-2, 2), basis="fourier", n_basis=size).fit(data)


def against_least_squares(repeats: int) -> Iterator[Row]:
    """1e5 curves x 10 points, r = 15."""
    from sklearn.linear_model import LinearRegression

    data = curves(100_000)
    features = Fourier(15).evaluate_unit(data.x)[:, 1:].copy()

    def from_points() -> None:
        LinearRegression().fit(Fourier(15).evaluate_unit(data.x)[:, 1:], data.y)

    works = {
        "fit": lambda: private_fit(data, 15),
        "given": lambda: LinearRegression().fit(features, data.y),
        "computed": from_points,
    }
    times = limits.alternate(works, repeats, time.process_time)
    what = "whole private fit, 1e5 x 10, r = 15"
    yield Row(
        f"{what}, against the same with its features computed, processor time", limits.ratio(times, "computed", "fit")
    )
    yield Row(f"{what}, processor time", statistics.median(times["fit"]), unit="s")
    with threadpool_limits(None):
        clocks = limits.alternate({name: works[name] for name in ("fit", "given")}, repeats, time.perf_counter)
    name = "one LinearRegression on given features"
    yield Row(f"{what}, against {name}, all processors, wall clock", limits.ratio(clocks, "given", "fit"), 3)
    yield Row(f"{what}, against {name}, processor time", limits.ratio(times, "given", "fit"), 5)
    used = grow(100_000, 15)
    raw = RAW_BYTES * data.n_points
    yield Row(f"{what}, raw data and all that the fit adds, over id, x, y", used["bytes"] / raw, 2, at_most=True)


def against_smoothing(repeats: int, sizes: tuple[int, ...]) -> Iterator[Row]:
    """scikit-fda's smoothing of every curve, the smallest basis that its users would take."""
    from skfda.representation.basis import FourierBasis

    for n in sizes:
        data = curves(n)
        irregular = data.to_skfda()
        basis = FourierBasis((0, 1), n_basis=5)
        works = {"fit": lambda data=data: private_fit(data, 5), "skfda": lambda i=irregular, b=basis: i.to_basis(b)}
        times = limits.alternate(works, 1 if n > 1000 else repeats, time.process_time)
        what = f"whole private fit, {n:.0e} x 10, r = 5"
        yield Row(
            f"{what}, against scikit-fda's basis smoothing",
            limits.ratio(times, "skfda", "fit"),
            40 if n <= 1000 else 100,
        )


def small_fit(repeats: int) -> Iterator[Row]:
    """250 curves."""
    data = curves(250)
    times = limits.alternate({"fit": lambda: private_fit(data, 7)}, 3 * repeats, time.process_time)
    yield Row("whole private fit, 250 x 10, warm", statistics.median(times["fit"]), 0.5, at_most=True, unit="s")


_GROWN = """
import ctypes, json, sys, time
from benchmarks.speed_fits import curves, private_fit
private_fit(curves(20_000), int(sys.argv[2]))  # warm: all code that a fit needs is loaded
ctypes.CDLL(None).malloc_trim(0)
def status(name):
    with open("/proc/self/status") as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith(name))
before = status("VmRSS")
data = curves(int(sys.argv[1]))
ctypes.CDLL(None).malloc_trim(0)  # what making the data has freed is not the fit's
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")  # start the peak anew
begun = time.process_time()
private_fit(data, int(sys.argv[2]))
print(json.dumps({"seconds": time.process_time() - begun, "bytes": status("VmHWM") - before}))
"""


def grow(n: int, size: int) -> dict[str, float]:
    """Processor time of a fit, and the peak memory of the data and the fit, in a process of its own."""
    command = [sys.executable, "-c", _GROWN, str(n), str(size)]
    one_thread = os.environ | {"OPENBLAS_NUM_THREADS": "1"}  # of BLAS, as in the other lines
    done = subprocess.run(command, capture_output=True, check=True, text=True, env=one_thread)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def growth(repeats: int, sizes: tuple[int, ...]) -> Iterator[Row]:
    """Time and memory against n, with a picture; a fit costs a + b n, and a is what the coordinator computes."""
    found = {n: [grow(n, 15) for _ in range(repeats if n < 10**7 else 1)] for n in sizes}
    seconds = {n: statistics.median(one["seconds"] for one in runs) for n, runs in found.items()}
    memory = {n: statistics.median(one["bytes"] for one in runs) for n, runs in found.items()}
    span = f"n = {sizes[0]:.0e} to {sizes[-1]:.0e} x 10, r = 15"
    (fixed, slope, off), (_, _, memory_off) = (straightness(found) for found in (seconds, memory))
    yield Row(f"growth of time, {span}: deviation from a + b n", off, 15, at_most=True, unit="%")
    yield Row("the same, a: what does not depend on n", fixed, unit="s")
    yield Row("the same, b: per point", 1e9 * slope / 10, unit="ns")
    yield Row(f"growth of memory, {span}: deviation from a + b n", memory_off, 15, at_most=True, unit="%")
    share = memory[sizes[-1]] / (10 * RAW_BYTES * sizes[-1])
    yield Row(f"memory over raw data at n = {sizes[-1]:.0e}", share, 2, at_most=True)
    if len(sizes) > 2:
        draw_growth(seconds, memory, fixed, slope)


def straightness(found: dict[int, float]) -> tuple[float, float, float]:
    """a and b of the line a + b n with the least squared relative errors, and the largest of them in percent."""
    n, values = np.array(sorted(found), dtype=float), np.array([found[n] for n in sorted(found)])
    fixed, slope = np.linalg.lstsq(np.column_stack([1 / values, n / values]), np.ones(n.size), rcond=None)[0]
    return float(fixed), float(slope), float(100 * np.abs(values / (fixed + slope * n) - 1).max())


def draw_growth(seconds: dict[int, float], memory: dict[int, float], fixed: float, slope: float) -> None:
    """docs/images/growth.png."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2), constrained_layout=True)
    n = np.array(sorted(seconds))
    left.loglog(n, [seconds[k] for k in n], "o", label="measured")
    left.loglog(n, fixed + slope * n, "-", linewidth=1, label="a + b n")
    left.set(xlabel="curves of 10 points", ylabel="processor seconds", title="one private fit, r = 15")
    left.legend(frameon=False)
    right.loglog(n, [memory[k] / 1e6 for k in n], "o", label="data and fit, peak")
    right.loglog(n, 10 * RAW_BYTES * n / 1e6, "-", linewidth=1, label="raw data (id, x, y)")
    right.set(xlabel="curves of 10 points", ylabel="MB", title="memory")
    right.legend(frameon=False)
    figure.savefig(IMAGES / "growth.png", dpi=130)
    plt.close(figure)


def monte_carlo(seconds: float) -> Iterator[Row]:
    """Repetitions of an experiment, all budgets at once, against one fit after the other."""
    for n, m, r in ((1000, 10, 3), (1000, 10, 15)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotPrivateWarning)
            slow, fast = (per_second(run, "published", (n, m, r), seconds) for run in (plain, engine))
        yield Row(f"Monte Carlo repetition, published, {n} x {m}, r = {r}, against a loop of fits", fast / slow, 25)


def start_up(repeats: int) -> Iterator[Row]:
    """A fresh interpreter."""
    commands = {
        "numpy": "import numpy",
        "dpfda": "import numpy, dpfda",
        "estimator": "import numpy; from dpfda import PrivateMean",
        "kernels": "import numpy, dpfda.silo.kernels.passes",
    }
    works = {
        name: (lambda code=code: subprocess.run([sys.executable, "-c", code], check=True))
        for name, code in commands.items()
    }
    times = limits.alternate(works, repeats, limits.children)
    what = {
        "dpfda": "import dpfda",
        "estimator": "from dpfda import PrivateMean",
        "kernels": "import of the kernels, once, at the first fit",
    }
    for name, text in what.items():
        extra = statistics.median(a - b for a, b in zip(times[name], times["numpy"], strict=True))
        yield Row(f"{text}, beyond numpy", extra, 0.5 if name == "dpfda" else None, at_most=True, unit="s")
