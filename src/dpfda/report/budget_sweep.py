"""The typical error over the budget, for every privacy model: what a larger epsilon would buy."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dpfda.planning.expected_error import ExpectedError
from dpfda.planning.planned_study import PlannedStudy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LINES = {"central": ("#1b6ca8", "-"), "federated": ("#2e7d4f", "-"), "local": ("#c03a2b", "-")}
_POINTS, _REACH = 13, 16.0  # budgets from a sixteenth to sixteen times the study's


def draw_budget_sweep(study: PlannedStudy, target: float | None = None, units: str = "y") -> Figure:
    """Typical distance against epsilon for the same subjects pooled, at their sites and each alone."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.6, 5.0), dpi=130, layout="constrained")
    axes: Any = figure.add_subplot()
    times = np.geomspace(1 / _REACH, _REACH, _POINTS)
    own = 1.0 if study.sites else study.epsilon
    models: dict[str, Callable[[float], ExpectedError]] = {"central": study.central, "local": study.local}
    if len(study.members) > 1:
        models["federated"] = partial(study.federated, None)
    for name, (colour, style) in _LINES.items():
        if name in models:
            distances = [math.sqrt(models[name](float(each)).total) for each in times]
            axes.plot(times * own, distances, style, color=colour, lw=1.8, label=_name(name, study))
    axes.axhline(math.sqrt(study.without_privacy().total), color="0.35", ls=":", lw=1.5, label="no privacy")
    if target is not None:
        axes.axhline(target, color="#b8860b", ls="--", lw=1.2, label="your target")
    axes.plot([own], [math.sqrt(study.expected().total)], "*", ms=15, color="#111111", mec="white", label="your study")
    label = "budgets of the sites, times" if study.sites else "budget ε of each site"
    axes.set(xscale="log", yscale="log", xlabel=label, ylabel=f"typical distance from the truth ({units})")
    axes.set_title(f"{study.subjects:,} subjects, {study.m:g} visits each", fontsize=11)
    axes.grid(alpha=0.25, which="both")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9)
    return figure


def _name(model: str, study: PlannedStudy) -> str:
    return {
        "central": "central: all data pooled",
        "federated": f"federated: {len(study.members)} sites",
        "local": "local: every subject alone",
    }[model]
