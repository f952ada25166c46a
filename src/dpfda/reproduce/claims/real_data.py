"""Claims about the real data: distances to the training third, and bands of the repeated mechanism."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from dpfda.curves import datasets
from dpfda.reproduce.claims.claim import FAILS, HOLDS, UNDECIDED, Claim, mark_undecided, verdict
from dpfda.reproduce.results import Results
from dpfda.reproduce.trends import falls

_NEAR = 0.05  # "near": within this share of the level of y


def real_data_claims(results: Results) -> Iterable[Claim]:
    """The rows of the real data: every data set, every method."""
    for point, found in results.real:
        for method in point.cell.methods:
            yield from _real_method(point.sweep, method.name, method.epsilons, found)


def _real_method(data: str, method: str, epsilons: tuple[float, ...], found: dict[str, Any]) -> Iterable[Claim]:
    distance, curves = found[f"{method} distance"], found[f"{method} curves"]
    test = falls(distance[:, 0], distance[:, -1], paired=True)
    text = (
        f"{data}, n = {found['n'][0]:.0f}: root mean square {test.before:.3g} at eps = {epsilons[0]:g}, {test.after:.3g} at "
        f"{epsilons[-1]:g} (p = {test.p_value:.1g})"
    )
    claim = "Distance to the non-private curve of the training third falls with eps"
    yield Claim("real-data", claim, method, *mark_undecided(text, HOLDS if test.holds(0.01) else FAILS, len(distance)))
    widths = [float(np.ptp(np.quantile(one, (0.05, 0.95), axis=0), axis=0).mean()) for one in curves]
    text = f"mean width of the 90% band {widths[0]:.3g} at eps = {epsilons[0]:g}, {widths[-1]:.3g} at {epsilons[-1]:g}"
    yield Claim(
        "real-data",
        "The 90% band of the mechanism narrows with eps",
        method,
        text,
        HOLDS if widths[-1] < widths[0] else FAILS,
    )
    yield _average_curve(method, epsilons, curves, found["reference"])
    yield _single_curves(method, epsilons, curves, found["reference"])
    if method == "published":
        yield _trend(data, found)


def _single_curves(method: str, epsilons: tuple[float, ...], curves: Any, reference: Any) -> Claim:
    """One private curve against the average of many, both as the distance from the non-private curve."""
    alone = np.sqrt(((curves - reference) ** 2).mean(axis=(1, 2)))
    average = np.sqrt(((curves.mean(axis=1) - reference) ** 2).mean(axis=-1))
    size = float(np.std(reference))
    text = (
        f"distance of one curve {alone[0]:.3g} at eps = {epsilons[0]:g}, {alone[-1]:.3g} at {epsilons[-1]:g} (r.m.s.); "
        f"of their average {average[0]:.3g} and {average[-1]:.3g}; the curve itself varies by {size:.2g} around its level"
    )
    good = int((alone > average).sum())
    claim = "Single private curves show the trend less precisely than their average"
    return Claim("real-data", claim, method, text, verdict(good, len(alone)))


def _trend(data: str, found: dict[str, Any]) -> Claim:
    """The paper's finding about its own data; other data say nothing about it."""
    claim = "Estradiol falls after the age of 50 (non-private curve)"
    if data != "swan":
        text = f"{data} has no estradiol: give the SWAN file with --swan"
        return Claim("real-data", claim, "nonprivate", text, UNDECIDED)
    low, high = datasets.SWAN_DOMAIN
    ages = np.linspace(low, high, len(found["reference"]))
    fifty, end = (float(np.interp(age, ages, found["reference"])) for age in (50.0, high))
    text = f"{fifty:.3g} pg/ml at 50, {end:.3g} at {high:g}"
    return Claim("real-data", claim, "nonprivate", text, HOLDS if end < fifty else FAILS)


def _average_curve(method: str, epsilons: tuple[float, ...], curves: Any, reference: Any) -> Claim:
    """How far the mean of the runs is from the non-private curve, beyond the Monte Carlo error of that mean."""
    squared = ((curves.mean(axis=1) - reference) ** 2).mean(axis=-1)
    chance = (curves.var(axis=1, ddof=1) / curves.shape[1]).mean(axis=-1)
    away = np.sqrt(np.maximum(squared - chance, 0.0)) / float(reference.mean())
    good = int((away < _NEAR).sum())
    text = f"bias beyond Monte Carlo error {away[0]:.1%} of the level at eps = {epsilons[0]:g}, {away[-1]:.1%} at "
    text += f"{epsilons[-1]:g}; below {_NEAR:.0%} at {good} of {len(away)} budgets"
    text, seen = mark_undecided(text, verdict(good, len(away)), curves.shape[1])
    why = {
        "published": "T rounds of step rho leave a part (1 - rho)^T of the start at zero, more where the extension is "
        "ill-conditioned",
        "adaptive": "at small budgets curves are shrunk towards smooth ones",
    }
    claim = "The average of private curves is near the non-private one"
    return Claim("real-data", claim, method, text, seen, "" if seen in (HOLDS, UNDECIDED) else why[method])
