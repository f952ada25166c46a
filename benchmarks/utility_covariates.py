"""Curves with covariates whose coefficient functions are known: groups, offsets, dependence, change in time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from benchmarks.utility_problems import GRID, Data, Floats, Function, draw_process

Bounds = tuple[tuple[float, float], ...]
Drawn = tuple[Floats, Floats]  # x (n, m) and the design (n, d) or (n, m, d)
_POINTS = 6
_ONE = (1.0, 1.0)


@dataclass(frozen=True)
class Covariates:
    """How to draw n curves with covariates, what is public, and the true functions, one column each."""

    draw: Callable[[int, np.random.Generator], Data]
    y_bounds: tuple[float, float]
    design_bounds: Bounds
    truth: Floats
    seen: NDArray[np.bool_]
    small: tuple[int, ...] = ()  # columns of small groups: their functions are scored by themselves too


def base(x: Any) -> Any:
    """The intercept function."""
    return 0.6 + 0.5 * np.cos(np.pi * x) - 0.3 * np.cos(2 * np.pi * x) + 0.2 * x


def effect(x: Any) -> Any:
    """A typical effect."""
    return 0.8 * x + 0.3 * np.sin(2 * np.pi * x)


def _bowl(x: Any) -> Any:
    return -0.5 + 2.4 * (x - 0.5) ** 2


def _none(x: Any) -> Any:
    return 0 * x


def _constant(value: float) -> Function:
    return lambda x: value + 0 * x


def _with_one(columns: Floats) -> Floats:
    return np.concatenate([np.ones((*columns.shape[:-1], 1)), columns], axis=-1)


def _make(
    functions: Sequence[Function], bounds: Bounds, covariates: Callable[[np.random.Generator, Floats], Drawn],
    *, small: tuple[int, ...] = (), binary: bool = False, ends: tuple[float, float] = (0.0, 1.0),
) -> Covariates:  # fmt: skip
    def draw(n: int, rng: np.random.Generator) -> Data:
        x, design = covariates(rng, rng.uniform(size=(n, _POINTS)))
        rows = np.repeat(design, _POINTS, axis=0) if design.ndim == 2 else design.reshape(n * _POINTS, -1)
        z = draw_process(rng, x).ravel()
        flat = x.ravel()
        mean = sum(rows[:, k] * function(flat) for k, function in enumerate(functions))
        y = (ndtr(z) < mean) * 1.0 if binary else mean + np.sqrt(0.5) * z
        return Data(np.repeat(np.arange(n), _POINTS), flat, np.asarray(y), rows)

    truth = np.stack([function(GRID) for function in functions], axis=1)
    seen = (ends[0] <= GRID) & (ends[1] >= GRID)
    return Covariates(draw, (0.0, 1.0) if binary else (-4.0, 5.0), bounds, truth, seen, small)


def _treat(share: float) -> Callable[[np.random.Generator, Floats], Drawn]:
    return lambda rng, x: (x, _with_one((rng.uniform(size=(len(x), 1)) < share).astype(np.float64)))


def _depend(rng: np.random.Generator, x: Floats) -> Drawn:
    g = rng.uniform(-1, 1, size=(len(x), 1))
    return (x + 0.5 * g + 0.5) / 2, _with_one(g)


def _level(rng: np.random.Generator, x: Floats) -> Drawn:
    level = rng.choice(4, size=(len(x), 1), p=[0.4, 0.3, 0.2, 0.1])
    return x, _with_one((level == np.arange(1, 4)) * 1.0)


def _offset(centre: float, sd: float, low: float, high: float) -> Callable[[np.random.Generator, Floats], Drawn]:
    return lambda rng, x: (x, _with_one(np.clip(rng.normal(centre, sd, size=(len(x), 1)), low, high)))


def _correlate(rng: np.random.Generator, x: Floats) -> Drawn:
    z = rng.normal(size=(len(x), 2))
    z[:, 1] = 0.95 * z[:, 0] + np.sqrt(1 - 0.95**2) * z[:, 1]
    return x, _with_one(np.clip(0.33 * z, -1, 1))


def _change(rng: np.random.Generator, x: Floats) -> Drawn:
    """A dose that half follows the subject and half changes from visit to visit."""
    dose = 0.5 * rng.uniform(0, 1, size=(len(x), 1)) + 0.5 * rng.uniform(0, 1, size=x.shape)
    return x, _with_one(dose[..., None])


def _scaled(factor: float, centre: float) -> list[Function]:
    """Intercept and effect of a covariate around `centre`, in the covariate's own units."""
    return [lambda x: base(x) - factor * centre * effect(x), lambda x: factor * effect(x)]


def make_covariate_problems() -> dict[str, Covariates]:
    """All problems with covariates by name."""
    unit, both = (0.0, 1.0), (-1.0, 1.0)
    eight = [base, effect, _bowl, _none, _none, _none, _constant(0.3), lambda x: 0.3 * x]
    return {
        "5% treated": _make([base, effect], (_ONE, unit), _treat(0.05), small=(1,)),
        "30% treated": _make([base, effect], (_ONE, unit), _treat(0.3), small=(1,)),
        "covariate depends on x": _make([base, effect], (_ONE, both), _depend, ends=(0.0707, 0.9293)),
        "four levels": _make([base, effect, _bowl, _constant(0.4)], (_ONE, unit, unit, unit), _level, small=(1, 2, 3)),
        "offset: bmi": _make(_scaled(0.06, 27.0), (_ONE, (10.0, 70.0)), _offset(27, 5, 15, 60)),
        "offset: age in days": _make(_scaled(1e-4, 16_000.0), (_ONE, (0.0, 40_000.0)), _offset(16e3, 4e3, 1e3, 36e3)),
        "correlation .95": _make([base, effect, _bowl], (_ONE, both, both), _correlate),
        "d = 8": _make(eight, (_ONE, *[both] * 7), lambda rng, x: (x, _with_one(rng.uniform(-1, 1, (len(x), 7))))),
        "changes within a subject": _make([base, effect], (_ONE, unit), _change),
        "binary, 30% treated": _make(
            [lambda x: 0.2 + 0.2 * x, lambda x: 0.15 * x], (_ONE, unit), _treat(0.3), small=(1,), binary=True
        ),
    }
