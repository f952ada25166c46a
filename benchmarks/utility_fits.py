"""Private fits of the utility benchmark, by whichever version of dpfda is on the path.

As a program it answers tasks, one JSON object a line: so version 0.1 takes part, from its own worktree.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from functools import cache
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from benchmarks.utility_covariates import Covariates, make_covariate_problems
from benchmarks.utility_problems import GRID, Data, Problem, make_problems, make_rng

DELTA = 1e-5
LEVEL = 0.95
ROOT = Path(__file__).resolve().parents[1]
VERSION_01 = "b5b9421"
Fit = dict[str, Any]


@cache
def get_problems() -> dict[str, Problem | Covariates]:
    """The mean's and the covariates' problems by name."""
    return {**make_problems(), **make_covariate_problems()}


def draw(name: str, n: int, repetition: int) -> Data:
    """The data of one repetition."""
    return get_problems()[name].draw(n, make_rng(name, n, repetition))


def make_curves(data: Data) -> Any:
    """The library's curves of the data."""
    from dpfda import Curves

    if data.rows is None:
        return Curves.from_long(data.ids, data.x, data.y)
    return Curves.from_long(data.ids, data.x, data.y, design=data.rows)


def fit_once(name: str, n: int, epsilon: float, repetition: int, options: dict[str, Any]) -> Fit:
    """Estimate, band, expected error and slopes at both ends of one private fit; what is not there is None."""
    problem = get_problems()[name]
    estimator = make_estimator(problem, epsilon, repetition, options)
    try:
        estimator.fit(make_curves(draw(name, n, repetition)))
    except ValueError as error:  # a version that does not know such data
        return {"refused": str(error)}
    return describe(estimator, isinstance(problem, Problem) and problem.slope is not None)


def make_estimator(problem: Problem | Covariates, epsilon: float, repetition: int, options: dict[str, Any]) -> Any:
    """The estimator at its defaults but for `options`."""
    from dpfda import PrivateMean, PrivateVaryingCoefficients

    terms: dict[str, Any] = {"domain": (0, 1), "y_bounds": problem.y_bounds, "random_state": 7000 + repetition}
    if isinstance(problem, Problem):
        return PrivateMean(epsilon, DELTA, **terms, **options)
    return PrivateVaryingCoefficients(epsilon, DELTA, design_bounds=problem.design_bounds, **terms, **options)


def describe(estimator: Any, slopes: bool) -> Fit:
    """What a fit says, as lists: functions in columns."""
    of_mean = not hasattr(estimator, "predict_coefficients") or np.ndim(estimator.coef_) == 1
    curve = estimator.predict(GRID) if of_mean else estimator.predict_coefficients(GRID)
    low, high = estimator.band(LEVEL, x=GRID)
    said = estimator.expected_error_
    found = {"curve": np.reshape(curve, (len(GRID), -1)).tolist(), "told": said.total if said is not None else None}
    found |= {"low": np.reshape(low, (len(GRID), -1)).tolist(), "high": np.reshape(high, (len(GRID), -1)).tolist()}
    found["size"] = int(np.shape(estimator.coef_)[-1])
    if slopes:
        found |= _describe_slopes(estimator)
    return found


def _describe_slopes(estimator: Any) -> Fit:
    """Slopes at both ends; their band, if this version has one. Version 0.1's cosines are level there."""
    step = 1e-3
    near = estimator.predict([0.0, step, 1 - step, 1.0])
    found: Fit = {"ends": [(near[1] - near[0]) / step, (near[3] - near[2]) / step]}
    if hasattr(estimator, "curve_at"):
        slope = estimator.curve_at().derivative()
        low, high = slope.band(LEVEL, x=GRID)
        found |= {"ends": slope([0.0, 1.0]).tolist(), "slope_low": low.tolist(), "slope_high": high.tolist()}
    return found


class OldVersion:
    """Version 0.1 in its own process, with its own source on the path."""

    def __init__(self, tree: Path) -> None:
        path = os.pathsep.join((str(tree / "src"), str(ROOT)))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.utility_fits"], cwd=ROOT, env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        source = Path(self._read()["source"])
        if not source.is_relative_to(tree):
            raise RuntimeError(f"version 0.1 was to come from {tree}, not from {source}")

    def fit_once(self, *task: Any) -> Fit:
        """The same as the function of that name."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(task) + "\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> Fit:
        assert self._process.stdout is not None
        answer: Fit = json.loads(self._process.stdout.readline())
        return answer


@cache
def start_old_version(tree: Path) -> OldVersion:
    """One process of version 0.1 for all cells; it ends when this process closes its pipe."""
    return OldVersion(tree)


def main() -> None:
    """Say where dpfda comes from, then answer tasks until there are no more."""
    import dpfda

    warnings.simplefilter("ignore")
    print(json.dumps({"source": dpfda.__file__}), flush=True)
    for line in sys.stdin:
        print(json.dumps(fit_once(*json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
