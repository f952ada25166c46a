"""The eleven settings that version 0.1 promised figures for, at delta = 1e-3, and how their data arise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpfda.curves.curves import Curves
from dpfda.curves.simulated import Function, make_vcm_coefficients, mean_1, mean_2, simulate_mean, simulate_vcm

Floats = NDArray[np.float64]
Generate = Callable[[np.random.Generator], Curves]
PAPER_DELTA = 1e-3


@dataclass(frozen=True)
class Part:
    """A silo: its curves are the next `n` of the data."""

    n: int
    epsilon: float


@dataclass(frozen=True)
class Row:
    """One problem: how data arise, what is true, and what every method knows."""

    name: str
    generate: Generate
    truths: tuple[Function, ...]
    parts: tuple[Part, ...]
    m: int
    r: int
    target: float
    basis: str = "fourier"
    y_bounds: tuple[float, float] = (-4.0, 6.0)
    design_bounds: tuple[float, float] = (-1.0, 1.0)

    @property
    def n(self) -> int:
        return sum(part.n for part in self.parts)

    @property
    def columns(self) -> int:
        return len(self.truths)

    @property
    def epsilon(self) -> float:
        return self.parts[0].epsilon

    @property
    def label(self) -> str:
        """What tells rows apart."""
        return f"{self.name}, m = {self.m}, r = {self.r}"

    def cut(self, curves: Curves) -> list[Curves]:
        """The data of every silo."""
        ends = np.cumsum([part.n for part in self.parts])
        return [curves[int(end - part.n) : int(end)] for part, end in zip(self.parts, ends, strict=True)]


def _one(n: int, epsilon: float = 1.0) -> tuple[Part, ...]:
    return (Part(n, epsilon),)


def _mean(
    name: str, n: int, m: int, r: int, *, target: float, truth: Function = mean_1, epsilon: float = 1.0,
    parts: tuple[Part, ...] | None = None, design: str = "uniform", basis: str = "fourier",
) -> Row:  # fmt: skip
    def generate(rng: np.random.Generator) -> Curves:
        return simulate_mean(n, m, rng=rng, mean=truth, design_density=design)

    return Row(name, generate, (truth,), _one(n, epsilon) if parts is None else parts, m, r, target, basis)


def _vcm(name: str, n: int, m: int, r: int, d: int, *, target: float, correlation: float = 0.0) -> Row:
    def generate(rng: np.random.Generator) -> Curves:
        return simulate_vcm(n, m, d, rng=rng, correlation=correlation)

    return Row(name, generate, tuple(make_vcm_coefficients(d)), _one(n), m, r, target)


def _equal(count: int, n: int, epsilon: float = 1.0) -> tuple[Part, ...]:
    return tuple(Part(n, epsilon) for _ in range(count))


def promised() -> list[Row]:
    """The table of the project's requirements."""
    return [
        _mean("mean, mu_1, uniform", 250, 10, 3, target=1.9),
        _mean("mean, mu_1, uniform", 250, 10, 3, epsilon=0.5, target=5.0),
        _mean("mean, mu_1, uniform", 250, 2, 3, target=2.2),
        _mean("mean, mu_1, uniform", 500, 10, 3, target=1.35),
        _mean("mean, mu_1, uniform", 678, 6, 5, target=1.4),
        _mean("mean, mu_1, density 1 + 0.75 cos", 1000, 5, 5, design="wave", target=1.6),
        _mean("mean, mu_2, cosine basis", 500, 8, 6, truth=mean_2, basis="cosine", target=1.6),
        _mean("mean, 10 silos of 200", 2000, 8, 5, parts=_equal(10, 200), target=3.0),
        _vcm("VCM d=2", 1000, 6, 3, 2, target=2.5),
        _vcm("VCM d=2", 4000, 6, 3, 2, target=1.25),
        _vcm("VCM d=5, correlated design", 5000, 8, 5, 5, correlation=0.5, target=2.0),
    ]
