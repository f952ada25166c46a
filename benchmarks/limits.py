"""What this machine can do at most, measured in the same run as everything that is compared with it."""

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Callable

import numpy as np

from dpfda._compile import compiled
from dpfda.silo.kernels.direct import FEW
from dpfda.silo.kernels.simd import add, fma, load, splat, store
from dpfda.silo.kernels.trig import cosine_sine

Clock = Callable[[], float]


def children() -> float:
    """Processor time of finished child processes."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def alternate(
    works: dict[str, Callable[[], object]], repeats: int, clock: Clock = time.thread_time
) -> dict[str, list[float]]:
    """Times of several pieces of work, taken in turn, so that a busy machine slows all of them alike.

    The clock is the processor time of this thread, which others' work hardly disturbs; several threads need another.
    """
    for work in works.values():
        work()
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(repeats):
        for name, work in works.items():
            start = clock()
            work()
            times[name].append(clock() - start)
    return times


def ratio(times: dict[str, list[float]], above: str, below: str) -> float:
    """The median over repeats of time `above` / time `below`."""
    return statistics.median(a / b for a, b in zip(times[above], times[below], strict=True))


@compiled
def _multiply_add(rounds, out):  # type: ignore[no-untyped-def]
    a, b, c, d, e = splat(1.0), splat(1.1), splat(1.2), splat(1.3), splat(1.4)
    f, g, h, i, j = splat(1.5), splat(1.6), splat(1.7), splat(1.8), splat(1.9)
    factor, term = splat(out[0]), splat(out[1])
    for _ in range(rounds):
        a, b, c, d, e = (
            fma(a, factor, term), fma(b, factor, term), fma(c, factor, term), fma(d, factor, term), fma(e, factor, term)
        )  # fmt: skip
        f, g, h, i, j = (
            fma(f, factor, term), fma(g, factor, term), fma(h, factor, term), fma(i, factor, term), fma(j, factor, term)
        )  # fmt: skip
    store(out, 0, add(add(add(a, b), add(c, d)), add(add(e, add(f, g)), add(add(h, i), j))))


@compiled
def _cosines_and_sines(turns, out):  # type: ignore[no-untyped-def]
    total = splat(0.0)
    for i in range(0, turns.size, 8):
        c, s = cosine_sine(load(turns, i))
        total = add(total, add(c, s))
    store(out, 0, total)


FLOPS = 200_000 * 10 * 8 * 2
TURNS = 80_000


def peak() -> None:
    """`FLOPS` floating-point operations, all of them in fused multiply-adds on registers."""
    _multiply_add(FLOPS // 160, np.full(8, 0.5))


_TURNS = np.random.default_rng(0).random(TURNS)


def sines() -> None:
    """cos and sin of `TURNS` numbers that are in the cache."""
    _cosines_and_sines(_TURNS, np.zeros(8))


def flops_per_point(size: int) -> int:
    """Operations of the kernel per point, Fourier basis.

    cos and sin 46; by the fast recurrence 12 a harmonic, else rotations 6 and fit and score 8; and about ten for the rest.
    """
    harmonics = size // 2
    return 56 + (12 if harmonics <= FEW else 14) * harmonics
