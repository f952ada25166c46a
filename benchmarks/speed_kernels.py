"""One round over packed curves, against numpy and against the limits of the machine."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks import limits
from benchmarks.table_rows import Row
from dpfda.basis import Cosine, Fourier, FreeEnds
from dpfda.privacy.clipping import EllipsoidBound, EntrywiseBound
from dpfda.silo.chunked_sums import ChunkedSums, sums_of_prepared
from dpfda.silo.kernels.packed import PackedCurves
from dpfda.silo.prepared import PreparedCurves
from dpfda.silo.sums import TruncatedGradientSum


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

    def pack(self, size: int, longest_direct: int | None = None) -> PackedCurves:
        """One pack of all curves, for what the kernels alone do."""
        arrays = self.u, self.y, self.offsets, self.design
        return PackedCurves.pack(*arrays, Fourier(size), longest_direct=longest_direct)

    def sums(self, size: int, threads: int = 1) -> ChunkedSums:
        """As a silo has them."""
        prepared = PreparedCurves(self.u, self.y, self.offsets, self.design)
        return sums_of_prepared(prepared, Fourier(size), threads=threads)


def simulate(n: int, m: int, p: int = 1, *, ragged: bool = False) -> Data:
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


def silo_round(sums: ChunkedSums, size: int, p: int = 1) -> Callable[[], np.ndarray]:
    """One round of the published method, from the bound to the numbers, as a silo computes it."""
    iterate, radii = np.full((p, size), 0.1), np.full(p * size, 0.5)

    def work() -> np.ndarray:
        bound = EntrywiseBound(radii)
        return bound.total(sums.words(TruncatedGradientSum(iterate, bound), range(sums.n)), sums.n).total

    return work


def kernel(packed: PackedCurves, size: int, p: int = 1) -> Callable[[], np.ndarray]:
    """The compiled part of a round alone."""
    iterate, bound = np.full((p, size), 0.1), EntrywiseBound(np.full(p * size, 0.5))
    return lambda: packed.truncated_words(iterate, bound)


def in_a_row(work: Callable[[], object], rounds: int) -> Callable[[], object]:
    """Several rounds as in a fit: small data stay in the cache, for both sides of a comparison."""
    return lambda: [work() for _ in range(rounds)]


def against_numpy(repeats: int, large: int) -> Iterator[Row]:
    """r = 15, ten points a curve."""
    for n, reach in ((10_000, 15), (large, 20)):
        data = simulate(n, 10)
        works = {
            "ragged": numpy_ragged(data, 15, np.full((1, 15), 0.1), 0.5),
            "equal": numpy_equal(data, 10, 15, np.full((1, 15), 0.1), 0.5),
            "kernel": kernel(data.pack(15), 15),
            "round": silo_round(data.sums(15), 15),
        }
        rounds = 20 if n == 10_000 else 1
        times = limits.alternate({name: in_a_row(work, rounds) for name, work in works.items()}, repeats)
        name = f"r = 15, {n:.0e} x 10, one thread"
        yield Row(
            f"{name}, against numpy with cached basis, any lengths", limits.ratio(times, "ragged", "kernel"), reach
        )
        yield Row(f"{name}, against numpy for equal lengths only", limits.ratio(times, "equal", "kernel"))
        yield Row(f"{name}, any lengths, with all that a silo does in a round", limits.ratio(times, "ragged", "round"))
        yield Row(f"{name}, time per point", 1e9 * statistics.median(times["kernel"]) / rounds / data.points, unit="ns")
    for name, data in (
        ("equal lengths", simulate(large, 10)),
        ("ragged, 1 to 19 points", simulate(large, 10, ragged=True)),
    ):
        works = {"one": silo_round(data.sums(15), 15), "two": silo_round(data.sums(15, threads=2), 15)}
        times = limits.alternate(works, 3 * repeats, time.perf_counter)
        what = f"r = 15, {large:.0e} x 10, {name}, two threads against one"
        yield Row(what, limits.ratio(times, "one", "two"), 1.7)
        yield Row(f"{what}, best time against best time", min(times["one"]) / min(times["two"]))
        times = limits.alternate(works, repeats, time.process_time)
        yield Row(f"{what}, by processor time, if both were free", 2 * limits.ratio(times, "one", "two"))


def against_limits(repeats: int) -> Iterator[Row]:
    """Points rather than moments, so that the machine's limits apply."""
    data = simulate(100_000, 10)
    for size in (3, 15, 51):
        packed = data.pack(size, longest_direct=10)
        works = {"kernel": kernel(packed, size), "peak": limits.peak, "sines": limits.sines}
        if size == 3:
            works["rule"] = kernel(data.pack(size), size)
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
    data = simulate(100_000, 10, 4)
    works = {"numpy": numpy_ragged(data, 15, np.full((4, 15), 0.1), 0.5), "kernel": silo_round(data.sums(15), 15, 4)}
    times = limits.alternate(works, repeats)
    yield Row(
        "varying coefficients, d = 3, r = 15, 1e5 x 10, against numpy", limits.ratio(times, "numpy", "kernel"), 30
    )


def whitened(packed: PackedCurves, size: int) -> Callable[[], object]:
    """The compiled part of a round of the default method."""
    iterate, ball = np.full((size,), 0.1), EllipsoidBound(np.ones(size), 1.0)
    return lambda: packed.clipped_words(iterate, np.eye(size), ball)


def changing_designs(repeats: int) -> Iterator[Row]:
    """A design vector for each point against one for each curve: the same curves, bases and rounds, in one run."""
    for basis in (Fourier(15), FreeEnds(16), Cosine(6)):
        for points in (5, 10, 50):
            for columns in (2, 4):
                data = simulate(200_000 // points, points, columns)
                rows = np.hstack(
                    [np.ones((data.points, 1)), np.random.default_rng(1).random((data.points, columns - 1))]
                )
                arrays, size = (data.u, data.y, data.offsets, data.design), columns * basis.size
                works = {
                    "curve": whitened(PackedCurves.pack(*arrays, basis), size),
                    "point": whitened(PackedCurves.pack(*arrays, basis, rows=rows), size),
                }
                times = limits.alternate(works, repeats)
                name = f"{basis.name}, r = {basis.size}, d = {columns - 1}, {points} points a curve"
                yield Row(
                    f"design per point against per curve, speed, {name}", limits.ratio(times, "curve", "point"), 0.5
                )


def packing(repeats: int) -> Iterator[Row]:
    """Moments, memory, and what packing costs."""
    data = simulate(20_000, 100)
    by_points, by_moments = data.pack(15, 100), data.pack(15)
    times = limits.alternate({"points": kernel(by_points, 15), "moments": kernel(by_moments, 15)}, repeats)
    yield Row("r = 15, 2e4 x 100, moments against points, per round", limits.ratio(times, "points", "moments"))
    yield Row("the same, memory of moments over memory of points", by_moments.nbytes / by_points.nbytes)
    short = simulate(100_000, 10)
    times = limits.alternate(
        {"pack": lambda: short.pack(15), "records": lambda: data.pack(15), "round": kernel(short.pack(15), 15)},
        repeats,
    )
    yield Row("packing 1e5 x 10 by points, in rounds of r = 15", limits.ratio(times, "pack", "round"))
    yield Row(
        "packing 2e4 x 100 by moments, r = 15", 1e9 * statistics.median(times["records"]) / data.points, unit="ns"
    )
    raw = 24 * short.points  # id, x, y
    yield Row(
        "memory of packed curves, 1e5 x 10, over id, x, y in raw form", short.pack(15).nbytes / raw, 2, at_most=True
    )
