"""The settings that version 0.1 was measured in: those that it promised figures for at delta = 1e-3, and further ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpfda.curves.curves import Curves
from dpfda.curves.simulated import Function, make_vcm_coefficients, mean_1, mean_2, simulate_mean, simulate_vcm

Floats = NDArray[np.float64]
Generate = Callable[[np.random.Generator], Curves]
PAPER_DELTA, SMALL_DELTA = 1e-3, 1e-5


@dataclass(frozen=True)
class Part:
    """A silo: its curves are the next `n` of the data."""

    n: int
    epsilon: float


@dataclass(frozen=True)
class Row:
    """One problem: how data arise, what is true, and what every method is told.

    `spread`, `noise_sd` and `density` are what the forecast of the error may be told, too.
    """

    name: str
    generate: Generate
    truths: tuple[Function, ...]
    parts: tuple[Part, ...]
    m: float
    r: int | None
    basis: str = "fourier"
    target: float | None = None
    deltas: tuple[float, ...] = (SMALL_DELTA,)
    y_bounds: tuple[float, float] = (-4.0, 6.0)
    design_bounds: tuple[float, float] = (-1.0, 1.0)
    spread: float = 0.5
    noise_sd: float = 0.5
    density: Function | None = None
    design_moments: Floats | None = field(default=None, compare=False)
    m_label: str = ""

    @property
    def n(self) -> int:
        return sum(part.n for part in self.parts)

    @property
    def columns(self) -> int:
        return len(self.truths)

    @property
    def eps_label(self) -> str:
        values = sorted({part.epsilon for part in self.parts})
        return f"{values[0]:g}" if len(values) == 1 else f"{values[0]:g}-{values[-1]:g}"

    def cut(self, curves: Curves) -> list[Curves]:
        """The data of every silo."""
        ends = np.cumsum([part.n for part in self.parts])
        return [curves[int(end - part.n) : int(end)] for part, end in zip(self.parts, ends, strict=True)]


def bump(x: Floats) -> Floats:
    """A narrow hill on flat ground."""
    return np.asarray(0.3 + 1.2 * np.exp(-0.5 * ((np.asarray(x) - 0.35) / 0.08) ** 2))


def sigmoid(x: Floats) -> Floats:
    """A steep rise."""
    return np.asarray(1.5 / (1 + np.exp(-(np.asarray(x) - 0.6) / 0.04)) - 0.2)


def flat(x: Floats) -> Floats:
    """No shape at all."""
    return np.full(np.shape(x), 0.8)


def _wave_density(x: Floats) -> Floats:
    return np.asarray(1 + 0.75 * np.cos(2 * np.pi * np.asarray(x)))


def _falling_density(x: Floats) -> Floats:
    return np.asarray(3 * (1 - np.asarray(x)) ** 2)


def _gap_density(x: Floats) -> Floats:
    return np.where(np.abs(np.asarray(x) - 0.5) < 0.1, 0.0, 1.25)


def _one(n: int, epsilon: float = 1.0) -> tuple[Part, ...]:
    return (Part(n, epsilon),)


def _mean(
    name: str,
    n: int,
    m: int,
    r: int | None,
    *,
    truth: Function = mean_1,
    epsilon: float = 1.0,
    parts: tuple[Part, ...] | None = None,
    counts: Callable[[np.random.Generator], NDArray[np.int64]] | None = None,
    design: str = "uniform",
    noise: str = "gaussian",
    target: float | None = None,
    **options: object,
) -> Row:
    def generate(rng: np.random.Generator) -> Curves:
        points = m if counts is None else counts(rng)
        return simulate_mean(n, points, rng=rng, mean=truth, design_density=design, noise=noise)

    deltas = (SMALL_DELTA,) if target is None else (PAPER_DELTA, SMALL_DELTA)
    silos = _one(n, epsilon) if parts is None else parts
    return Row(name, generate, (truth,), silos, m, r, target=target, deltas=deltas, **options)  # type: ignore[arg-type]


def _vcm(
    name: str,
    n: int,
    m: int,
    r: int,
    d: int,
    *,
    correlation: float = 0.0,
    noise: str = "gaussian",
    process_sd: float = 0.0,
    target: float | None = None,
) -> Row:
    def generate(rng: np.random.Generator) -> Curves:
        return simulate_vcm(n, m, d, rng=rng, correlation=correlation, noise=noise, process_sd=process_sd)

    deltas = (SMALL_DELTA,) if target is None else (PAPER_DELTA, SMALL_DELTA)
    moments = np.full((d + 1, d + 1), correlation / 3)  # uniform on [-1, 1]: variance 1/3
    moments[0] = moments[:, 0] = 0.0
    np.fill_diagonal(moments, [1.0, *[1 / 3] * d])
    return Row(
        name, generate, tuple(make_vcm_coefficients(d)), _one(n), m, r, target=target, deltas=deltas,
        spread=process_sd, design_moments=moments,
    )  # fmt: skip


def _groups(name: str, n: int, m: int, share: float) -> Row:
    """Two groups, 0 and 1: the covariate that most tables have."""

    def difference(x: Floats) -> Floats:
        return np.asarray(0.5 * np.asarray(x) ** 2 - 0.3)

    def generate(rng: np.random.Generator) -> Curves:
        base = simulate_mean(n, m, rng=rng, mean=mean_2, process_sd=0.3)
        group = (rng.random(n) < share).astype(np.float64)
        y = base.y + np.repeat(group, base.counts) * difference(base.x)
        return Curves(base.x, y, base.offsets, np.column_stack([np.ones(n), group]))

    centred = np.array([[1.0, 2 * share - 1], [2 * share - 1, 1.0]])  # the forecast takes columns scaled to [-1, 1]
    return Row(
        name, generate, (mean_2, difference), _one(n), m, 5, basis="cosine", design_bounds=(0.0, 1.0),
        spread=0.3, design_moments=centred,
    )  # fmt: skip


def _any_count(low: int, high: int, n: int) -> Callable[[np.random.Generator], NDArray[np.int64]]:
    return lambda rng: rng.integers(low, high + 1, n)


def _equal(count: int, n: int, epsilon: float = 1.0) -> tuple[Part, ...]:
    return tuple(Part(n, epsilon) for _ in range(count))


_UNEQUAL = (Part(20, 5.0), Part(100, 2.0), Part(300, 0.1), Part(500, 1.0), Part(2000, 0.5))


def promised() -> list[Row]:
    """The table of the project's requirements."""
    return [
        _mean("mean, mu_1, uniform", 250, 10, 3, target=1.9),
        _mean("mean, mu_1, uniform", 250, 10, 3, epsilon=0.5, target=5.0),
        _mean("mean, mu_1, uniform", 250, 2, 3, target=2.2),
        _mean("mean, mu_1, uniform", 500, 10, 3, target=1.35),
        _mean("mean, mu_1, uniform", 678, 6, 5, target=1.4),
        _mean("mean, mu_1, density 1 + 0.75 cos", 1000, 5, 5, design="wave", target=1.6, density=_wave_density),
        _mean("mean, mu_2, cosine basis", 500, 8, 6, truth=mean_2, basis="cosine", target=1.6),
        _mean("mean, 10 silos of 200", 2000, 8, 5, parts=_equal(10, 200), target=3.0),
        _vcm("VCM d=2", 1000, 6, 3, 2, target=2.5),
        _vcm("VCM d=2", 4000, 6, 3, 2, target=1.25),
        _vcm("VCM d=5, correlated design", 5000, 8, 5, 5, correlation=0.5, target=2.0),
    ]


def further() -> list[Row]:
    """Settings without a promised figure: other truths, tails, designs, budgets."""
    cosine: dict[str, str] = {"basis": "cosine"}
    return [
        _mean("eps 0.25", 1000, 8, 5, epsilon=0.25),
        _mean("eps 0.5", 1000, 8, 5, epsilon=0.5),
        _mean("eps 4", 500, 8, 5, epsilon=4.0),
        _mean("eps 8", 250, 10, 3, epsilon=8.0),
        _mean("hopeless budget", 50, 10, 3, epsilon=0.1),
        _mean("noise t3", 1000, 10, 5, noise="t3"),
        _mean("noise skewed", 1000, 6, 5, noise="skewed"),
        _mean("noise skewed", 5000, 6, 5, noise="skewed"),
        _mean("noise skewed, one point each", 1000, 1, 3, noise="skewed"),
        _mean("m_i from 1 to 60", 1000, 13, 5, counts=_any_count(1, 60, 1000), m_label="1-60"),
        _mean("one point each", 1000, 1, 5),
        _mean("60 points each", 1000, 60, 5),
        _mean("bump", 2000, 8, 11, truth=bump, **cosine),  # type: ignore[arg-type]
        _mean("steep sigmoid", 2000, 8, 9, truth=sigmoid, **cosine),  # type: ignore[arg-type]
        _mean("flat truth", 500, 8, 7, truth=flat, **cosine),  # type: ignore[arg-type]
        _mean("y_bounds ten times wider", 1000, 10, 5, y_bounds=(-40.0, 60.0)),
        _mean("the same, usual bounds", 1000, 10, 5),
        _mean("5 silos, n 20-2000", 2920, 6, 5, parts=_UNEQUAL),
        _mean("density falls to zero", 1000, 5, 7, truth=mean_2, design="falling", density=_falling_density, **cosine),  # type: ignore[arg-type]
        _mean("gap in the design", 1000, 5, 7, truth=mean_2, design="gap", density=_gap_density, **cosine),  # type: ignore[arg-type]
        _mean("n_basis chosen (others: 7)", 1000, 8, None, truth=mean_2, **cosine),  # type: ignore[arg-type]
        _mean("n_basis chosen (others: 7), bump", 4000, 8, None, truth=bump, **cosine),  # type: ignore[arg-type]
        _vcm("VCM d=2, random curves", 1000, 6, 3, 2, process_sd=0.5),
        _vcm("VCM d=2, noise t3", 2000, 6, 3, 2, noise="t3"),
        _groups("VCM, groups 30:70", 2000, 6, 0.3),
    ]


def rows(*, only: Sequence[str] = ()) -> list[Row]:
    """All settings, or those whose name contains one of the given words."""
    every = promised() + further()
    return [row for row in every if any(word in row.name for word in only)] if only else every
