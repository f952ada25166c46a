"""Forecasts against measured errors on a fixed grid: `python -m benchmarks.planner` writes docs/planner.md.

The planner is given what a careful planner could know: bounds, sds of subjects and measurements, the size of the signal, or
the prevalence of a binary outcome. It never sees the data, nor the curve. A ratio of 1 is honest; the page says where it is
not within 1.5 (symmetric outcomes) or 2 (others). Seeds are fixed, and no constant was chosen on them.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import ndtri

from benchmarks.stamp import stamp
from dpfda import Curves, PrivateMean, Silo
from dpfda._typing import Floats
from dpfda.curves.simulated import Function, mean_1, mean_2, simulate_mean, squared_l2_error
from dpfda.planning.outcomes import guess_outcome
from dpfda.planning.planned_study import PlannedStudy

PAGE = Path(__file__).parents[1] / "docs" / "planner.md"
FRESH, DELTA = 20_261_117, 1e-5
LIMITS = {"symmetric": 1.5, "binary": 2.0, "skewed": 2.0}
CORRELATION = 0.3
LOCAL_SHARE = 4  # studies of one-subject sites take long: a quarter of the repetitions


@dataclass(frozen=True)
class Setting:
    """One study: n subjects at each of S sites (S = 0: each subject alone), and what its planner knows of y."""

    outcome: str
    n: int
    m: int
    epsilon: float
    S: int = 1
    level: float = 0.0  # prevalence, or mean of a skewed y
    variation: float = 0.0
    mean: str = "mu_1"


SETTINGS = (
    Setting("symmetric", 250, 10, 1.0),
    Setting("symmetric", 250, 10, 4.0),
    Setting("symmetric", 500, 5, 1.0, mean="mu_2"),
    Setting("symmetric", 1000, 5, 0.5),
    Setting("symmetric", 1000, 5, 1.0, mean="mu_2"),
    Setting("symmetric", 1000, 2, 1.0),
    Setting("symmetric", 2000, 5, 0.5, mean="mu_2"),
    Setting("symmetric", 5000, 5, 1.0),
    Setting("symmetric", 200, 6, 1.0, S=5),
    Setting("symmetric", 200, 6, 2.0, S=10),
    Setting("symmetric", 300, 10, 4.0, S=0),
    Setting("symmetric", 300, 10, 8.0, S=0),
    Setting("binary", 1000, 5, 1.0, level=0.5),
    Setting("binary", 1000, 5, 1.0, level=0.2),
    Setting("binary", 5000, 5, 1.0, level=0.2),
    Setting("binary", 5000, 5, 2.0, level=0.05),
    Setting("skewed", 1000, 5, 1.0, level=10.0, variation=0.5),
    Setting("skewed", 5000, 5, 1.0, level=10.0, variation=0.5),
    Setting("skewed", 5000, 5, 1.0, level=10.0, variation=0.95),
    Setting("skewed", 5000, 5, 2.0, level=10.0, variation=0.95),
)


def make_truth(setting: Setting) -> Function:
    """The mean function: the paper's, or a wave of half the level."""
    if setting.outcome == "symmetric":
        return {"mu_1": mean_1, "mu_2": mean_2}[setting.mean]
    return lambda x: setting.level * (1 + 0.5 * np.sin(2 * math.pi * np.asarray(x)))


def draw(setting: Setting, rng: np.random.Generator) -> Curves:
    """The data of all sites together."""
    subjects, truth = setting.n * max(setting.S, 1), make_truth(setting)
    if setting.outcome == "symmetric":
        return simulate_mean(subjects, setting.m, rng=rng, mean=truth)
    x = rng.random(subjects * setting.m)
    own = np.repeat(rng.standard_normal(subjects), setting.m)
    latent = math.sqrt(CORRELATION) * own + math.sqrt(1 - CORRELATION) * rng.standard_normal(x.size)
    if setting.outcome == "binary":
        y: Floats = (latent < ndtri(truth(x))).astype(np.float64)
    else:
        sd = math.sqrt(math.log1p(setting.variation**2))
        y = truth(x) * np.exp(sd * latent - sd**2 / 2)
    return Curves(x, y, np.arange(subjects + 1) * setting.m, np.ones((subjects, 1)))


def plan_of(setting: Setting) -> PlannedStudy:
    """What the planner is told."""
    truth = make_truth(setting)(np.linspace(0, 1, 1001))
    signal = float(truth.std())
    facts = {"spread": 0.5, "noise_sd": 0.5}
    if setting.outcome == "binary":
        facts = guess_outcome("binary", y_bounds(setting), prevalence=setting.level, correlation=CORRELATION)
    elif setting.outcome == "skewed":
        public = {"level": setting.level, "variation": setting.variation, "correlation": CORRELATION}
        facts = guess_outcome("positive", y_bounds(setting), **public)
    guesses = tuple({**facts, "signal": signal}.items())
    return PlannedStudy(
        setting.n, setting.m, max(setting.S, 1), setting.epsilon, DELTA, 2.0, 0, y_bounds(setting), guesses
    )


def y_bounds(setting: Setting) -> tuple[float, float]:
    """Public ranges that a careful planner would choose."""
    return {"symmetric": (-4.0, 6.0), "binary": (0.0, 1.0), "skewed": (0.0, 10 * setting.level)}[setting.outcome]


def measure(setting: Setting, repetitions: int) -> tuple[float, float, float]:
    """The forecast, the mean of the measured squared errors, and its standard error."""
    study, truth, errors = plan_of(setting), make_truth(setting), []
    forecast = (study.local() if setting.S == 0 else study.expected()).total
    if setting.S == 0:
        repetitions = max(3, repetitions // LOCAL_SHARE)
    for seed in range(repetitions):
        curves = draw(setting, np.random.default_rng([FRESH, seed]))
        mean = PrivateMean(domain=(0, 1), y_bounds=study.y_bounds, random_state=seed)
        parts = max(setting.S, 1) if setting.S else curves.n
        silos = [Silo(curves[k::parts], epsilon=setting.epsilon, delta=DELTA) for k in range(parts)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            errors.append(squared_l2_error(mean.fit(silos).predict, truth))
    return forecast, float(np.mean(errors)), float(np.std(errors) / math.sqrt(len(errors)))


def write_page(rows: list[tuple[Setting, tuple[float, float, float]]], repetitions: int, seconds: float) -> str:
    """docs/planner.md."""
    lines = [
        "# The planner against what happens",
        f"Written by `python -m benchmarks.planner` ({seconds / 60:.0f} minutes, {repetitions} repetitions, a "
        "quarter for sites of one subject); do not edit.",
        "`dpfda plan` forecasts the squared L2 error of the default method from public guesses. Here the guesses are right "
        "(sds of subjects and measurements, size of the signal; for binary y the prevalence), the curve is not known to it, "
        f"and the error is then measured. delta = {DELTA:g}. A forecast is called honest within a factor "
        "1.5 for symmetric outcomes and 2 for others.",
        "| outcome | subjects | sites | visits | eps | forecast | measured | forecast/measured | honest |\n"
        "|---|---|---|---|---|---|---|---|---|\n" + "\n".join(_row(*row) for row in rows),
    ]
    good = sum(_is_honest(*row) for row in rows)
    lines.append(f"{good} of {len(rows)} forecasts are honest.")
    return "\n\n".join(lines) + "\n"


def _is_honest(setting: Setting, found: tuple[float, float, float]) -> bool:
    limit = LIMITS[setting.outcome]
    return 1 / limit <= found[0] / found[1] <= limit


def _row(setting: Setting, found: tuple[float, float, float]) -> str:
    forecast, measured, error = found
    words = {"symmetric": setting.mean, "binary": f"{setting.level:g}", "skewed": f"variation {setting.variation:g}"}
    subjects = setting.n * max(setting.S, 1)
    sites = "each subject" if setting.S == 0 else str(setting.S)
    honest = "yes" if _is_honest(setting, found) else "**no**"
    return (
        f"| {setting.outcome} ({words[setting.outcome]}) | {subjects} | {sites} | {setting.m} | {setting.epsilon:g} | "
        f"{forecast:.3g} | {measured:.3g} +- {error:.1g} | {forecast / measured:.2f} | {honest} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=40)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--output", type=Path, default=PAGE)
    options = parser.parse_args()
    begun, work = time.monotonic(), _Measure(options.repetitions)
    with ProcessPoolExecutor(options.jobs) as pool:
        rows = list(zip(SETTINGS, pool.map(work, SETTINGS), strict=True))
    options.output.write_text(write_page(rows, options.repetitions, time.monotonic() - begun))
    stamp(options.output)
    print(options.output)


@dataclass(frozen=True)
class _Measure:
    repetitions: int

    def __call__(self, setting: Setting) -> tuple[float, float, float]:
        return measure(setting, self.repetitions)


if __name__ == "__main__":
    main()
