"""Sites that differ, through `estimator.sites_`: means over subjects, a small site's own curve, a site with garbage."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from benchmarks.utility_combination import PRIOR_SIZES, combine, keep_coordinators
from benchmarks.utility_covariates import base
from benchmarks.utility_fits import DELTA, LEVEL
from benchmarks.utility_problems import GRID, Data, Floats, draw_process, make_rng
from benchmarks.utility_references import fit_least_squares
from dpfda import Curves, PrivateMean, Silo

_BOUNDS = (-4.0, 5.0)
_SPREAD = 0.4  # sd of levels or slopes between sites
_NOISE = math.sqrt(0.5)  # sd of a value around its site's mean
_SMALL = 60
_GARBAGE = 5  # sites, the last with values in another unit, at the bounds
_SITES = 20
Cell = dict[str, Any]


def _draw_site(rng: np.random.Generator, n: int, kind: str, number: int) -> tuple[Data, Floats]:
    """One site's curves and its true mean on the grid."""
    x = rng.uniform(size=(n, 6))
    x = x ** _find_power(kind, number)
    shift = _SPREAD * rng.normal() if "means" in kind else 0.0
    slope = _SPREAD * rng.normal() if "slopes" in kind else 0.0
    y = base(x) + shift + slope * (2 * x - 1) + _NOISE * draw_process(rng, x)
    data = Data(np.repeat(np.arange(n), 6), x.ravel(), y.ravel())
    return data, base(GRID) + shift + slope * (2 * GRID - 1)


def _find_power(kind: str, number: int) -> int:
    """Designs that differ: every second site has its points to the power of two, most of them early."""
    return 2 if "designs" in kind and number % 2 else 1


def _combine(coordinator: Any, sites: list[Data], kind: str, target: str = "subjects") -> Floats:
    """The best linear combination of the releases, for each size of the common curve's prior."""
    half = (_BOUNDS[1] - _BOUNDS[0]) / 2
    level, slope = (_SPREAD * (word in kind) for word in ("means", "slopes"))
    powers = [_find_power(kind, number) for number in range(len(sites))]
    between = np.array([level, slope / math.sqrt(3), 0.0]) / half  # 2x - 1 is 3^-1/2 times the function of the slope
    return combine(coordinator, sites, powers, _NOISE / half, between, target)


def _make_silo(data: Data, name: str, epsilon: float) -> Silo:
    return Silo(Curves.from_long(data.ids, data.x, data.y), epsilon=epsilon, delta=DELTA, name=name)


def _fit(sites: list[Data], epsilon: float, repetition: int) -> tuple[Any, Any]:
    """A fit to all sites, and its coordinator; silos are new, for those of another fit have spent their budget."""
    silos = [_make_silo(data, f"site {number}", epsilon) for number, data in enumerate(sites)]
    with keep_coordinators() as kept:
        fit = PrivateMean(domain=(0, 1), y_bounds=_BOUNDS, random_state=7000 + repetition).fit(silos)
    return fit, kept[-1]


def measure_sites(kind: str, epsilon: float, repetitions: int) -> Cell:
    """The figures of a cell."""
    found = [_run(kind, epsilon, repetition) for repetition in range(repetitions)]
    error, reference, half = (np.array([run[key] for run in found]) for key in ("error", "reference", "half"))
    cell: Cell = {"problem": kind, "n": _SMALL if kind.startswith("small") else 0, "eps": epsilon, "reps": repetitions}
    cell["ls"] = float(reference.mean())  # or the error of what the cell is compared with
    cell["new"] = {
        "mse": float(error.mean()), "held": int(sum(run["held"] for run in found)), "told": None,
        "width": float(half.mean() / math.sqrt(error.mean())), "default": float(np.mean([run["default"] for run in found])),
    }  # fmt: skip
    if "combined" in found[0]:
        errors = np.mean([run["combined"] for run in found], axis=0)
        cell["combined"], cell["prior"] = float(errors.min()), PRIOR_SIZES[int(errors.argmin())]
    return cell


def _run(kind: str, epsilon: float, repetition: int) -> Cell:
    rng = make_rng(kind, 0, repetition)
    garbage, small = kind == "garbage site", kind.startswith("small")
    sizes = rng.integers(50, 500, size=_GARBAGE if garbage else _SITES)
    if small:
        sizes[0] = _SMALL
    drawn = [_draw_site(rng, int(n), kind, number) for number, n in enumerate(sizes)]
    sites = [data for data, _ in drawn]
    if small:
        return _compare_small(kind, sites, drawn[0][1], epsilon, repetition)
    if garbage:
        return _compare_garbage(sites, drawn[0][1], epsilon, repetition)
    truth = np.average([own for _, own in drawn], axis=0, weights=sizes)
    starts = np.cumsum([0, *sizes[:-1]])
    ids = np.concatenate([data.ids + start for (data, _), start in zip(drawn, starts, strict=True)])
    x, y = (np.concatenate([getattr(data, key) for data, _ in drawn]) for key in ("x", "y"))
    fit, coordinator = _fit(sites, epsilon, repetition)
    reference = fit_least_squares(Data(ids, x, y), int(np.shape(fit.coef_)[-1]))[:, 0]
    cell = _describe(fit.sites_.mean("subjects"), truth, reference - truth, fit.predict(GRID) - truth)
    return cell | {"combined": np.mean((_combine(coordinator, sites, kind) - truth) ** 2, axis=1)}


def _compare_small(kind: str, sites: list[Data], truth: Floats, epsilon: float, repetition: int) -> Cell:
    fit, coordinator = _fit(sites, epsilon, repetition)
    alone = _fit(sites[:1], epsilon, repetition)[0].predict(GRID) - truth
    cell = _describe(fit.sites_.curve("site 0"), truth, alone, fit.predict(GRID) - truth)
    return cell | {"combined": np.mean((_combine(coordinator, sites, kind, "site 0") - truth) ** 2, axis=1)}


def _compare_garbage(sites: list[Data], truth: Floats, epsilon: float, repetition: int) -> Cell:
    """The last site's values are 100 times what they should be: at the bounds after clamping."""
    spoilt = dataclasses.replace(sites[-1], y=100 * sites[-1].y)
    fit, _ = _fit([*sites[:-1], spoilt], epsilon, repetition)
    without = _fit(sites[:-1], epsilon, repetition)[0].predict(GRID) - truth
    return _describe(fit.sites_.mean("subjects"), truth, without, fit.predict(GRID) - truth)


def _describe(curve: Any, truth: Floats, reference: Floats, default: Floats) -> Cell:
    low, high = curve.band(LEVEL, x=GRID)
    return {
        "error": float(np.mean((curve(GRID) - truth) ** 2)), "held": bool(((low <= truth) & (truth <= high)).all()),
        "half": float((high - low).mean() / 2), "reference": float(np.mean(reference**2)),
        "default": float(np.mean(default**2)),
    }  # fmt: skip
