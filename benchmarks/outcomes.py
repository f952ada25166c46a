"""Two outcomes in one budget against two fits with half of it each, for docs/utility-outcomes.md.

Both ways release under the same (epsilon, delta) for a subject with both outcomes: half of the budget is mu / sqrt(2), and
two such fits compose to mu exactly. Data are the same for both ways.
"""

from __future__ import annotations

import argparse
import math
import os
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from benchmarks import stamp
from dpfda import Curves, Outcomes, PrivateMean, PrivateVaryingCoefficients
from dpfda._typing import Floats
from dpfda.curves.simulated import draw_matern_process, mean_1, mean_2
from dpfda.errors import NotPrivateWarning
from dpfda.privacy.accounting import gaussian_epsilon, mu_for

PAGE = Path(__file__).parents[1] / "docs" / "utility-outcomes.md"
DELTA, LEVEL = 1e-5, 0.95
N, POINTS, GRID = 2000, 6, np.linspace(0, 1, 101)
NAMES = ("first", "second")
BOUNDS = {"first": (-4.0, 4.0), "second": (-4.0, 4.0)}
CORRELATION = 0.6  # of the two outcomes of a subject
TREATED = 0.3
LATE = 0.5  # the second outcome is missing at this share of visits in the second half


@dataclass(frozen=True)
class Problem:
    """How data are drawn, and which visits count."""

    name: str
    power: float = 1.0  # of uniform points: 2 puts most of them early
    treated: bool = False
    missing: bool = False
    visits: str = "complete"


PROBLEMS = (
    Problem("uniform visits"),
    Problem("early visits", power=2.0),
    Problem("30% treated", treated=True),
    Problem("missing late, complete visits", missing=True),
    Problem("missing late, own visits", missing=True, visits="own"),
)


@dataclass(frozen=True)
class Drawn:
    """Rows of a table, and the true functions of both outcomes on the grid."""

    ids: Floats
    x: Floats
    y: dict[str, Floats]
    design: Floats | None
    truth: dict[str, Floats]

    def curves(self, name: str, keep: Floats | None = None) -> Curves:
        """The curves of one outcome, at all its points or at some."""
        y = self.y[name] if keep is None else np.where(keep, self.y[name], np.nan)
        return Curves.from_long(self.ids, self.x, y, self.design)

    def outcomes(self, visits: str) -> Outcomes:
        """Both outcomes."""
        complete = np.isfinite(sum(self.y.values())) if visits == "complete" else None
        return Outcomes({name: self.curves(name, complete) for name in NAMES}, visits=visits)


def draw(problem: Problem, rng: np.random.Generator) -> Drawn:
    """One data set: curves of a subject are a Matern process around the mean, with noise, correlated between outcomes."""
    ids, counts = np.repeat(np.arange(N), POINTS), np.full(N, POINTS)
    x = rng.uniform(size=N * POINTS) ** problem.power
    common, own = (draw_matern_process(x, counts, rng) for _ in range(2))
    second = CORRELATION * common + math.sqrt(1 - CORRELATION**2) * own
    y = {"first": mean_1(x) + common, "second": mean_2(x) + second}
    y = {name: values + 0.5 * rng.normal(size=x.size) for name, values in y.items()}
    truth = {"first": mean_1(GRID)[:, None], "second": mean_2(GRID)[:, None]}
    design = None
    if problem.treated:
        treated = (rng.uniform(size=N) < TREATED).astype(float)
        design = np.column_stack([np.ones(N), treated])[ids]
        effects = {"first": 0.5 * mean_2(x), "second": 0.4 * np.cos(np.pi * x)}
        on_grid = {"first": 0.5 * mean_2(GRID), "second": 0.4 * np.cos(np.pi * GRID)}
        y = {name: values + effects[name] * treated[ids] for name, values in y.items()}
        truth = {name: np.column_stack([truth[name], on_grid[name]]) for name in NAMES}
    if problem.missing:
        y["second"] = np.where((x > 0.5) & (rng.uniform(size=x.size) < LATE), np.nan, y["second"])
    return Drawn(ids, x, y, design, truth)


def make_estimator(
    problem: Problem, epsilon: float, seed: int, bounds: object
) -> PrivateMean | PrivateVaryingCoefficients:
    """The estimator with its defaults."""
    public = {"domain": (0.0, 1.0), "y_bounds": bounds, "random_state": seed}
    if problem.treated:
        return PrivateVaryingCoefficients(epsilon, DELTA, design_bounds=[(0, 1)], **public)  # type: ignore[arg-type]
    return PrivateMean(epsilon, DELTA, **public)  # type: ignore[arg-type]


def measure(problem: Problem, epsilon: float, repetition: int) -> dict[str, Floats]:
    """Squared errors of both ways, one for each outcome, and what bands held."""
    place = PROBLEMS.index(problem)
    drawn = draw(problem, np.random.default_rng([16, 6, place, repetition]))
    together = make_estimator(problem, epsilon, 2 * repetition, BOUNDS).fit(drawn.outcomes(problem.visits))
    half = gaussian_epsilon(mu_for(epsilon, DELTA) / math.sqrt(2), DELTA)
    alone = {
        name: make_estimator(problem, half, 2 * repetition + 5000 + number, BOUNDS[name]).fit(drawn.curves(name))
        for number, name in enumerate(NAMES)
    }
    joint = together.simultaneous_bands(LEVEL, GRID)
    held = [
        [
            _holds(curve.band(LEVEL, GRID), truth)
            for curve, truth in zip(together[name].list_curves(), drawn.truth[name].T, strict=True)
        ]
        for name in NAMES
    ]
    all_held = [
        _holds(band, truth) for name in NAMES for band, truth in zip(joint[name], drawn.truth[name].T, strict=True)
    ]
    return {
        "together": np.array([_measure_error(together[name], drawn.truth[name]) for name in NAMES]),
        "alone": np.array([_measure_error(alone[name], drawn.truth[name]) for name in NAMES]),
        "held": np.array(held, dtype=float),
        "joint": np.array(all(all_held), dtype=float),
    }


def _measure_error(fitted: PrivateMean | PrivateVaryingCoefficients, truth: Floats) -> float:
    found = np.column_stack([curve(GRID) for curve in fitted.list_curves()])
    return float(((found - truth) ** 2).mean(axis=0).sum())


def _holds(band: tuple[Floats, Floats], truth: Floats) -> bool:
    low, high = band
    return bool(((low <= truth) & (truth <= high)).all())


def write_row(problem: Problem, epsilon: float, repetitions: int) -> str:
    """A row of the table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        found = [measure(problem, epsilon, repetition) for repetition in range(repetitions)]
    together, alone, held, joint = (
        np.array([each[key] for each in found]) for key in ("together", "alone", "held", "joint")
    )
    ratios = together.mean(axis=0) / alone.mean(axis=0)
    moved = (ratios * (together / together.mean(axis=0) - alone / alone.mean(axis=0))).mean(axis=1)
    error = float(moved.std()) / math.sqrt(repetitions)  # of the mean ratio, to first order
    cells = [problem.name, f"{epsilon:g}", f"{repetitions}", *(f"{value:.3g}" for value in alone.mean(axis=0))]
    cells += [f"{value:.2f}" for value in ratios] + [f"**{ratios.mean():.2f}** ± {error:.2f}"]
    cells += [f"{value:.0%}" for value in (*held.mean(axis=0).min(axis=1), float(joint.mean()))]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.outcomes", description=__doc__)
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.5, 1.0, 2.0])
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args()
    began, commit = time.time(), stamp.name_commit()
    rows = []
    for epsilon in options.epsilons:
        for problem in PROBLEMS:
            rows.append(write_row(problem, epsilon, options.repetitions))
            print(rows[-1], flush=True)
    minutes = (time.time() - began) / 60
    options.page.write_text(_HEAD.format(commit=commit, minutes=minutes) + "\n".join(rows) + "\n", encoding="utf-8")
    stamp.stamp(options.page, None if " " in commit else commit)


_HEAD = f"""# Utility of several outcomes

Written by `python -m benchmarks.outcomes`; do not edit. Measured at commit {{commit}} in {{minutes:.0f}} minutes.

Two outcomes of {N:,} subjects with {POINTS} visits each, whose curves are correlated ({CORRELATION:g}); delta = {DELTA:g},
defaults, seeds fixed before. "Alone": mean squared error of each outcome, fitted by itself with half of the budget,
mu / sqrt(2), at all its points; the two fits compose to the same (epsilon, delta) exactly. "Ratio": the error of the same
outcome fitted together with the other in the whole budget, over that; the mean of both with its standard error. "Held": how
often the simultaneous {LEVEL:.0%} band of an outcome's function held it (with a covariate, of the function that was held
least often), and how often the joint {LEVEL:.0%} bands held all functions of both outcomes. With "missing late" the second
outcome is missing at half of the visits in the second half of the domain: complete visits lose those of the first outcome as
well, own visits pay for the design twice.

| problem | eps | reps | alone, first | second | ratio, first | second | ratio | held, first | second | joint |
|---|---|---|---|---|---|---|---|---|---|---|
"""


if __name__ == "__main__":
    main()
