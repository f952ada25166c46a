"""A cell of the utility benchmark: one problem, one n, one epsilon, all methods on the same data."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmarks.utility_covariates import Covariates
from benchmarks.utility_fits import DELTA, Fit, OldVersion, draw, fit_once, get_problems
from benchmarks.utility_problems import Data, Floats, Problem
from benchmarks.utility_references import Oracle, fit_binned_means, fit_least_squares
from dpfda.privacy.accounting import mu_for

SHORT = 7  # functions of the estimator's own non-private fit, the default of method="nonprivate"
Cell = dict[str, Any]


def measure(name: str, n: int, epsilon: float, repetitions: int, old: OldVersion | None, oracle: bool) -> Cell:
    """All figures of a cell."""
    problem = get_problems()[name]
    if isinstance(problem, Covariates):
        return _measure_covariates(name, n, epsilon, repetitions, old)
    best = Oracle(problem, epsilon, DELTA) if oracle else None
    methods = {"new": [], "old": [], "declared": []}  # type: dict[str, list[Fit]]
    errors: dict[str, list[float]] = {"ls": [], "ls7": [], "bins": []}
    for repetition in range(repetitions):
        data = draw(name, n, repetition)
        methods["new"].append(fit_once(name, n, epsilon, repetition, {}))
        if name == "symmetric":
            methods["declared"].append(fit_once(name, n, epsilon, repetition, {"assume_symmetric": True}))
        if old is not None:
            methods["old"].append(old.fit_once(name, n, epsilon, repetition, {}))
        rng = np.random.default_rng([1, repetition])
        curves = {"ls": fit_least_squares(data, methods["new"][-1]["size"])[:, 0]}
        curves["ls7"] = fit_least_squares(data, SHORT)[:, 0]
        curves["bins"] = fit_binned_means(data, problem, mu_for(epsilon, DELTA), rng)
        for key, curve in curves.items():
            errors[key].append(_square(curve - problem.truth, problem))
        if best is not None:
            best.add(data, rng)
    cell: Cell = {"problem": name, "n": n, "eps": epsilon, "reps": repetitions, "nmu": n * mu_for(epsilon, DELTA)}
    cell |= {key: float(np.mean(found)) for key, found in errors.items()}
    cell |= {key: _score(fits, problem) for key, fits in methods.items() if fits}
    cell["oracle"] = None if best is None else best.error
    cell["least_oracle"] = None if best is None else best.least_error
    return cell


def _square(error: Floats, problem: Problem) -> float:
    return float(np.mean(error[problem.seen] ** 2))


def _score(fits: list[Fit], problem: Problem) -> Cell:
    """Error, coverage and width where the design is; expected over achieved error on the whole domain."""
    curve, low, high = (np.array([fit[key] for fit in fits])[:, :, 0] for key in ("curve", "low", "high"))
    seen, error = problem.seen, np.array([fit["curve"] for fit in fits])[:, :, 0] - problem.truth
    squares = (error[:, seen] ** 2).mean(axis=1)
    held = ((low <= problem.truth + 1e-12) & (problem.truth - 1e-12 <= high))[:, seen].all(axis=1)
    half = float((high - low)[:, seen].mean() / 2)
    told = [fit["told"] for fit in fits if fit["told"] is not None]
    whole = float((error**2).mean())
    found: Cell = {
        "mse": float(squares.mean()), "median": float(np.median(squares)), "held": int(held.sum()),
        "width": half / math.sqrt(squares.mean()), "told": float(np.mean(told)) / whole if told else None,
        "se": float(squares.std() / math.sqrt(len(squares))), "bias": float(np.abs(curve.mean(0) - problem.truth).max()),
    }  # fmt: skip
    if problem.slope is not None:
        ends = np.array([fit["ends"] for fit in fits]) - problem.slope[[0, -1]]
        found["ends"] = float(np.mean(ends**2))
        if "slope_low" in fits[0]:
            below, above = (np.array([fit[key] for fit in fits]) for key in ("slope_low", "slope_high"))
            found["slopes_held"] = int(((below <= problem.slope) & (problem.slope <= above)).all(axis=1).sum())
    return found


def _measure_covariates(name: str, n: int, epsilon: float, repetitions: int, old: OldVersion | None) -> Cell:
    problem = get_problems()[name]
    assert isinstance(problem, Covariates)
    new, before, predicted, functions = [], [], [], []
    for repetition in range(repetitions):
        data = draw(name, n, repetition)
        new.append(fit_once(name, n, epsilon, repetition, {}))
        if old is not None:
            before.append(old.fit_once(name, n, epsilon, repetition, {}))
        error = fit_least_squares(data, new[-1]["size"]) - problem.truth
        predicted.append(_predict(error, data, problem))
        functions.append((error[problem.seen] ** 2).mean(axis=0))
    cell: Cell = {"problem": name, "n": n, "eps": epsilon, "reps": repetitions, "nmu": n * mu_for(epsilon, DELTA)}
    cell |= {"ls": float(np.mean(predicted)), "ls_functions": np.mean(functions, axis=0).tolist()}
    cell["new"] = _score_functions(name, n, new, problem)
    if before and "refused" not in before[0]:
        cell["old"] = _score_functions(name, n, before, problem)
    return cell


def _predict(error: Floats, data: Data, problem: Covariates) -> float:
    """The mean squared error of predictions at the design rows where the design is."""
    assert data.rows is not None
    nearest = np.round(data.x * 100).astype(int)
    inside = problem.seen[nearest]
    return float(np.mean((error[nearest] * data.rows).sum(axis=1)[inside] ** 2))


def _score_functions(name: str, n: int, fits: list[Fit], problem: Covariates) -> Cell:
    seen = problem.seen
    error = np.array([fit["curve"] for fit in fits]) - problem.truth
    low, high = (np.array([fit[key] for fit in fits]) for key in ("low", "high"))
    held = ((low <= problem.truth + 1e-12) & (problem.truth - 1e-12 <= high))[:, seen].all(axis=1)
    squares = (error[:, seen] ** 2).mean(axis=(0, 1))
    predicted = [_predict(own, draw(name, n, k), problem) for k, own in enumerate(error)]
    widths = (high - low)[:, seen].mean(axis=(0, 1)) / 2 / np.sqrt(squares)
    told = [fit["told"] for fit in fits if fit["told"] is not None]
    return {
        "mse": float(np.mean(predicted)), "functions": squares.tolist(), "held_each": held.sum(axis=0).tolist(),
        "held": int(held.sum(axis=0).min()), "width": float(widths.max()), "widths": widths.tolist(),
        "told": float(np.mean(told) / (error**2).mean(axis=1).sum(axis=1).mean()) if told else None,
    }  # fmt: skip
