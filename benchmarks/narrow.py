"""Problems on which bands were narrow and wrong, or still are: `python -m benchmarks.narrow [--fits 32]`.

Prints the table of docs/known_limits.md, section 8. Five visits each, uniform over the domain; delta = 1e-5; noise is
from numpy's generator, so nothing here is private.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from dpfda import Curves, PrivateMean
from dpfda._typing import Floats

VISITS, FIRST_SEED = 5, 9000
GRID = np.linspace(0.02, 0.98, 97)
Draw = Callable[[np.random.Generator, Floats, int], Floats]  # y of n subjects at times x, VISITS each


@dataclass(frozen=True)
class Problem:
    """Outcomes, their public bounds, and the mean curve."""

    name: str
    n: int
    y_bounds: tuple[float, float]
    draw: Draw
    mean: Callable[[Floats], Floats]


def draw_carried(share: float, _rng: np.random.Generator, _x: Floats, n: int) -> Floats:
    """Events at all visits of the first subjects, at none of the others."""
    return np.asarray(np.repeat(np.arange(n) < share * n, VISITS), dtype=np.float64)


def draw_mostly_zero(rng: np.random.Generator, x: Floats, n: int) -> Floats:
    """3% of subjects have values around 20, the others zero."""
    size = np.repeat(np.where(rng.random(n) < 0.03, rng.gamma(2, 10, n), 0.0), VISITS)
    return np.asarray(np.minimum(size * np.exp(rng.normal(0, 0.2, x.size) - 0.02), 100))


def draw_far_subjects(rng: np.random.Generator, x: Floats, n: int) -> Floats:
    """2% of subjects have every value at the upper bound, 28 sds away."""
    y = 1 + np.sin(4 * x) + np.repeat(rng.normal(0, 0.5, n), VISITS) + rng.normal(0, 0.3, x.size)
    return np.where(np.repeat(rng.random(n) < 0.02, VISITS), 15.0, y)


def draw_lognormal(rng: np.random.Generator, x: Floats, n: int) -> Floats:
    """Sd 0.85 of the log, most of it between subjects."""
    logs = 0.3 + 0.4 * np.sin(4 * x) + np.repeat(rng.normal(0, 0.8, n), VISITS) + rng.normal(0, 0.3, x.size)
    return np.asarray(np.minimum(np.exp(logs), 50))


def draw_hidden_subjects(rng: np.random.Generator, x: Floats, n: int) -> Floats:
    """1% of subjects are 20 sds away from the others at every visit."""
    y = np.sin(4 * x) + np.repeat(rng.normal(0, 0.5, n), VISITS) + rng.normal(0, 0.4, x.size)
    return y + 13.0 * np.repeat(rng.random(n) < 0.01, VISITS)


def draw_spreading(rng: np.random.Generator, x: Floats, n: int) -> Floats:
    """Logs of a subject's values spread with x: sd 0.15 at the left end, 1.05 at the right one."""
    logs = 0.3 + np.repeat(rng.normal(0, 1, n), VISITS) * (0.15 + 0.9 * x) + rng.normal(0, 0.2, x.size)
    return np.asarray(np.minimum(np.exp(logs), 50))


def grow_spread(x: Floats) -> Floats:
    """The mean of `draw_spreading`."""
    return np.asarray(np.exp(0.32 + (0.15 + 0.9 * x) ** 2 / 2))


def draw_uneven(place: str, rng: np.random.Generator, x: Floats, n: int) -> Floats:
    """Subjects' skewed parts count where the weight says, so that skewness is that of a place; sd 0.4 elsewhere."""
    skewed = np.repeat(rng.lognormal(0, 0.9, n) - np.exp(0.405), VISITS)
    own = np.repeat(rng.normal(0, 0.3, n), VISITS) + rng.normal(0, 0.3, x.size)
    return np.asarray(np.clip(bend(x) + own + 0.8 * WEIGHTS[place](x) * skewed, -10, 20))


def draw_turned(rng: np.random.Generator, x: Floats, n: int) -> Floats:
    """Single values, not subjects, are skewed downwards, and only in the middle."""
    skewed = 1 - rng.gamma(0.5, 2, x.size)
    own = np.repeat(rng.normal(0, 0.4, n), VISITS) + rng.normal(0, 0.2, x.size)
    return np.asarray(np.clip(bend(x) + own + 1.5 * WEIGHTS["middle"](x) * skewed, -25, 15))


def draw_central_group(share: float, away: float, rng: np.random.Generator, x: Floats, n: int) -> Floats:
    """A share of subjects is so far above the others, whose mean is in the middle of the bounds."""
    y = bend(x) + np.repeat(rng.normal(0, 0.5, n), VISITS) + rng.normal(0, 0.4, x.size)
    return np.asarray(y + away * np.repeat(rng.random(n) < share, VISITS))


WEIGHTS: dict[str, Callable[[Floats], Floats]] = {
    "middle": lambda x: np.sin(np.pi * x) ** 2,
    "both ends": lambda x: (2 * x - 1) ** 2,
    "left end": lambda x: (1 - x) ** 3,
}


def bend(x: Floats) -> Floats:
    """The mean curve of the problems whose skewness changes along x."""
    return np.asarray(0.8 * np.cos(3 * x) + 0.5 * x)


def flat(value: float, x: Floats) -> Floats:
    """A constant curve."""
    return np.full(x.size, value)


PROBLEMS = (
    Problem("2% of subjects carry all events", 2000, (0, 1), partial(draw_carried, 0.02), partial(flat, 0.02)),
    Problem("5% of subjects carry all events", 2000, (0, 1), partial(draw_carried, 0.05), partial(flat, 0.05)),
    Problem("3% of subjects above zero", 2000, (0, 100), draw_mostly_zero, partial(flat, 0.6)),
    Problem(
        "2% of subjects 28 sds away", 1000, (-5, 15), draw_far_subjects, lambda x: 0.98 * (1 + np.sin(4 * x)) + 0.3
    ),
    Problem("1% of subjects 20 sds away", 2000, (-6, 20), draw_hidden_subjects, lambda x: np.sin(4 * x) + 0.13),
    Problem("spread of logs grows with x", 1000, (0, 50), draw_spreading, grow_spread),
    Problem("skewed in the middle", 1000, (-10, 20), partial(draw_uneven, "middle"), bend),
    Problem("skewed at both ends", 1000, (-10, 20), partial(draw_uneven, "both ends"), bend),
    Problem("skewed at the left end", 1000, (-10, 20), partial(draw_uneven, "left end"), bend),
    Problem("values skewed downwards in the middle", 1000, (-25, 15), draw_turned, bend),
    Problem(
        "2% of subjects 15 sds away, central",
        1000,
        (-12, 12),
        partial(draw_central_group, 0.02, 9.6),
        lambda x: bend(x) + 0.192,
    ),
    Problem(
        "4% of subjects 8 sds away, central",
        1000,
        (-12, 12),
        partial(draw_central_group, 0.04, 5.1),
        lambda x: bend(x) + 0.204,
    ),
    Problem("lognormal", 1000, (0, 50), draw_lognormal, lambda x: np.exp(0.3 + 0.4 * np.sin(4 * x) + 0.365)),
)


def fit(place: int, epsilon: float, seed: int) -> tuple[float, float, float]:
    """Whether the band holds the curve, the squared error, the mean half width."""
    warnings.simplefilter("ignore")
    problem, rng = PROBLEMS[place], np.random.default_rng(seed)
    ids = np.repeat(np.arange(problem.n), VISITS)
    x = rng.uniform(0, 1, ids.size)
    curves, truth = Curves.from_long(ids, x, problem.draw(rng, x, problem.n)), problem.mean(GRID)
    model = PrivateMean(epsilon, 1e-5, domain=(0, 1), y_bounds=problem.y_bounds, random_state=seed + 7).fit(curves)
    lower, upper = model.band(0.95, x=GRID)
    held = (lower <= truth + 1e-12).all() and (truth <= upper + 1e-12).all()
    return float(held), float(np.mean((model.predict(GRID) - truth) ** 2)), float(np.mean(upper - lower) / 2)


def main() -> None:
    """The table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fits", type=int, default=32)
    fits = parser.parse_args().fits
    print("| problem | n | eps | bands that hold the mean | RMSE | half width / RMSE |\n|---|---|---|---|---|---|")
    with ProcessPoolExecutor(2) as pool:
        for place, problem in enumerate(PROBLEMS):
            for epsilon in (0.5, 1.0, 2.0, 4.0):
                seeds = range(FIRST_SEED, FIRST_SEED + fits)
                found = np.array(list(pool.map(partial(fit, place, epsilon), seeds, chunksize=4)))
                rmse = float(np.sqrt(found[:, 1].mean()))
                print(
                    f"| {problem.name} | {problem.n} | {epsilon:g} | {found[:, 0].sum():.0f} of {fits} | {rmse:.3g} | "
                    f"{found[:, 2].mean() / rmse:.2f} |", flush=True,
                )  # fmt: skip


if __name__ == "__main__":
    main()
