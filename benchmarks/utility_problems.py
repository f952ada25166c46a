"""Curves whose mean function is known, for the utility benchmark: any outcome, any design.

y = h(x, Z): Z is a smooth process of the subject plus noise, with standard normal margins, so that E[y | x] is an integral.
Only numpy and scipy are used: version 0.1 draws the same data in its own process.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri
from scipy.stats import gamma

Floats = NDArray[np.float64]
Function = Callable[[Any], Any]
Outcome = Callable[[Any, Any], Any]
Seen = Callable[[Floats], NDArray[np.bool_]]

SEED = 20_261_117  # of all data; nothing of the method was chosen on it
GRID = np.linspace(0, 1, 101)
VISITS = np.linspace(0, 1, 5)
_JITTER = 0.03
_MARGIN = ndtri((np.arange(20_000) + 0.5) / 20_000)
_POINTS = 6


@dataclass(frozen=True)
class Data:
    """One simulated set: ids, x, y of all points; the subjects' design rows where there are covariates."""

    ids: NDArray[np.int64]
    x: Floats
    y: Floats
    rows: Floats | None = None


@dataclass(frozen=True)
class Problem:
    """How to draw n curves, what is public, and the truth."""

    draw: Callable[[int, np.random.Generator], Data]
    y_bounds: tuple[float, float]
    truth: Floats
    seen: NDArray[np.bool_]
    slope: Floats | None = None


def make_rng(name: str, n: int, repetition: int) -> np.random.Generator:
    """The generator of one repetition: the same for every method and budget."""
    return np.random.default_rng([SEED, zlib.crc32(name.encode()), n, repetition])


def draw_process(rng: np.random.Generator, x: Floats, share: float = 0.5) -> Floats:
    """Standard normal at each x; `share` of the variance is a smooth process of the subject, the rest is noise."""
    b = rng.normal(size=(len(x), 3))
    waves = np.cos(np.pi * x) * b[:, 1:2] + np.sin(np.pi * x) * b[:, 2:]
    smooth = np.sqrt(0.5) * (b[:, :1] + waves)
    return np.asarray(np.sqrt(share) * smooth + np.sqrt(1 - share) * rng.normal(size=x.shape))


def draw_design(rng: np.random.Generator, n: int, kind: str) -> tuple[Floats, NDArray[np.bool_]]:
    """Times of n subjects and which of them happened: four to six a subject."""
    x = rng.uniform(size=(n, _POINTS))
    mask = np.arange(_POINTS) < rng.integers(_POINTS - 2, _POINTS + 1, size=(n, 1))
    if kind == "clump":
        x[:, 0] = 0.0
    elif kind == "visits":
        x = np.clip(VISITS + rng.uniform(-_JITTER, _JITTER, size=(n, len(VISITS))), 0, 1)
        mask = rng.uniform(size=x.shape) < 0.9
        mask[:, 0] = True
    elif kind == "falling":
        x = x**2
    elif kind == "gap":
        x = np.where(x < 0.5, x * 0.8, 1 - (1 - x) * 0.8)
    return x, mask


SEEN: dict[str, Seen] = {
    "uniform": lambda x: np.ones(x.shape, dtype=bool),
    "clump": lambda x: np.ones(x.shape, dtype=bool),
    "visits": lambda x: np.min(np.abs(x[:, None] - VISITS), axis=1) <= _JITTER + 1e-9,
    "falling": lambda x: x <= 0.9801,  # P(U^2 <= x) = sqrt(x) = 0.99; there is no thin left end
    "gap": lambda x: (x <= 0.4) | (x >= 0.6),
}


def _level(x: Any) -> Any:
    return 0.6 + 0.5 * np.cos(np.pi * x) - 0.3 * np.cos(2 * np.pi * x) + 0.2 * x


def _skewed_level(x: Any) -> Any:
    return 1.2 + 0.8 * x + 0.5 * np.sin(2 * np.pi * x) * (1 - x)


def _grow(x: Any, z: Any) -> Any:
    spread = 0.15 + 0.85 * x
    return _level(x) + 0.8 * (np.exp(spread * z - spread * spread / 2) - 1)


OUTCOMES: dict[str, Outcome] = {
    "symmetric": lambda x, z: _level(x) + 0.7 * z,
    "lognormal": lambda x, z: _skewed_level(x) * np.exp(0.8 * z - 0.32),
    "skewness grows with x": _grow,
    "binary 20-80%": lambda x, z: (ndtr(z) < 0.2 + 0.6 * x**1.5) * 1.0,
    "rare binary 2-6%": lambda x, z: (ndtr(z) < 0.02 + 0.04 * x) * 1.0,
    "scores 0-27": lambda x, z: np.clip(np.round(27 * ndtr(1.1 * z - 1.2 + 0.8 * np.sin(np.pi * x))), 0, 27),
    "counts": lambda x, z: np.minimum(np.floor(np.exp(0.9 * z + 0.3 + 0.8 * x)), 30),
}
TRUTHS: dict[str, tuple[Function, Function]] = {  # with derivatives
    "growth": (
        lambda x: 2.2 / (1 + np.exp(-6 * (x - 0.35))) - 1,
        lambda x: 13.2 * np.exp(-6 * (x - 0.35)) / (1 + np.exp(-6 * (x - 0.35))) ** 2,
    ),
    "exponential decay": (lambda x: 2 * np.exp(-3 * x) - 0.7, lambda x: -6 * np.exp(-3 * x)),
    "line": (lambda x: 1.6 * x - 0.8, lambda x: 1.6 + 0 * x),
    "sin": (lambda x: np.sin(2 * np.pi * x), lambda x: 2 * np.pi * np.cos(2 * np.pi * x)),
}


def _collect(x: Floats, y: Floats, mask: NDArray[np.bool_]) -> Data:
    ids = np.broadcast_to(np.arange(len(x))[:, None], x.shape)
    return Data(ids[mask], x[mask], y[mask])


def _of_outcome(outcome: Outcome, y_bounds: tuple[float, float], design: str = "uniform") -> Problem:
    def draw(n: int, rng: np.random.Generator) -> Data:
        x, mask = draw_design(rng, n, design)
        return _collect(x, np.clip(outcome(x, draw_process(rng, x)), *y_bounds), mask)

    truth = np.array([np.mean(np.clip(outcome(np.full_like(_MARGIN, t), _MARGIN), *y_bounds)) for t in GRID])
    return Problem(draw, y_bounds, truth, SEEN[design](GRID))


def _of_truth(truth: Function, slope: Function | None = None) -> Problem:
    def draw(n: int, rng: np.random.Generator) -> Data:
        x, mask = draw_design(rng, n, "uniform")
        return _collect(x, truth(x) + np.sqrt(0.5) * draw_process(rng, x), mask)

    slopes = None if slope is None else slope(GRID)
    return Problem(draw, (-4.0, 4.0), truth(GRID), SEEN["uniform"](GRID), slopes)


def _draw_zero_inflated(n: int, rng: np.random.Generator) -> Data:
    x, mask = draw_design(rng, n, "uniform")
    some = ndtr(draw_process(rng, x)) < 0.35 + 0.2 * np.sin(np.pi * x)
    amount = gamma.ppf(ndtr(draw_process(rng, x, 0.3)), 1.5) * (1 + x)
    return _collect(x, np.where(some, np.minimum(amount, 25.0), 0.0), mask)


def _draw_outliers(n: int, rng: np.random.Generator) -> Data:
    x, mask = draw_design(rng, n, "uniform")
    usual = np.clip(_level(x) + 0.7 * draw_process(rng, x), -8, 8)
    return _collect(x, np.where(rng.uniform(size=x.shape) < 0.02, 8.0, usual), mask)


def _draw_t3(n: int, rng: np.random.Generator) -> Data:
    x, mask = draw_design(rng, n, "uniform")
    scale = np.sqrt(3 / rng.chisquare(3, size=(n, 1)))
    return _collect(x, np.clip(_level(x) + 0.5 * draw_process(rng, x) * scale, -20, 20), mask)


def make_problems() -> dict[str, Problem]:
    """All problems for the mean by name."""
    usual, every = (-4.0, 5.0), SEEN["uniform"](GRID)
    symmetric = OUTCOMES["symmetric"]
    limits = {"symmetric": usual, "lognormal": (0.0, 30.0), "skewness grows with x": (-2.0, 20.0)}
    limits |= {"scores 0-27": (0.0, 27.0), "counts": (0.0, 30.0)}
    found = {name: _of_outcome(outcome, limits.get(name, (0.0, 1.0))) for name, outcome in OUTCOMES.items()}
    gammas = (0.35 + 0.2 * np.sin(np.pi * GRID)) * 1.5 * (1 + GRID)  # what lies above 25 counts less than 1e-4
    found["zero-inflated gamma"] = Problem(_draw_zero_inflated, (0.0, 25.0), gammas, every)
    found["2% outliers"] = Problem(_draw_outliers, (-8.0, 8.0), 0.98 * _level(GRID) + 0.16, every)
    found["t3"] = Problem(_draw_t3, (-20.0, 20.0), _level(GRID), every)
    names = {"visits": "scheduled visits", "clump": "baseline clump", "gap": "gap", "falling": "falling density"}
    found |= {name: _of_outcome(symmetric, usual, kind) for kind, name in names.items()}
    found["sharp peak"] = _of_truth(lambda x: 1.5 * np.exp(-0.5 * ((x - 0.6) / 0.05) ** 2))
    found["bounds 10 times too wide"] = _of_outcome(symmetric, (-44.5, 45.5))
    found["bounds 100 times too wide"] = _of_outcome(symmetric, (-449.5, 450.5))
    return found | {name: _of_truth(truth, slope) for name, (truth, slope) in TRUTHS.items()}
