"""Figures of the simulated experiments: one panel for each method and sweep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dpfda.reproduce.figures.panels import AXES, ERROR, NAMES, colours, draw_panel, new_figure, tidy
from dpfda.reproduce.results import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_CURVES = 6  # in one panel; the table has all budgets


def _parts(results: Results, sweep: str) -> list[tuple[str, list[float]]]:
    """The published method at small and at large budgets, then the default method."""
    published = results.epsilons(sweep, "published")
    small, large = [e for e in published if e <= 1], [e for e in published if e > 1]
    parts = [
        ("published", small),
        ("published", large),
        ("adaptive", _choose_budgets(results.epsilons(sweep, "adaptive"))),
    ]
    return [(method, budgets) for method, budgets in parts if budgets]


def _choose_budgets(budgets: list[float]) -> list[float]:
    """Few enough to be told apart, the ends among them."""
    places = np.linspace(0, len(budgets) - 1, min(len(budgets), _MOST_CURVES))
    return [budgets[round(place)] for place in places]


def draw_mean(results: Results) -> Figure:
    parts = _parts(results, "visits")
    figure, panels = new_figure(2, len(parts))
    for row, (sweep, axis, fixed) in enumerate((("visits", "m", "n = 250"), ("subjects", "n", "m = 10"))):
        for axes, (method, budgets) in zip(panels[row], parts, strict=True):
            draw_panel(axes, results, sweep, method, axis, budgets)
            axes.set_title(f"{NAMES[method]}, {fixed}", fontsize=10)
    return figure


def draw_visits(results: Results) -> Figure:
    parts, sizes = _parts(results, "visits"), results.axis("visits", "n")
    figure, panels = new_figure(len(sizes), len(parts))
    for row, n in enumerate(sizes):
        for axes, (method, budgets) in zip(panels[row], parts, strict=True):
            draw_panel(axes, results, "visits", method, "m", budgets, n=n)
            axes.set_title(f"{NAMES[method]}, n = {n}", fontsize=10)
    return figure


def draw_heat(results: Results) -> Figure:
    methods, sizes = results.methods, results.axis("heat", "m")
    figure, panels = new_figure(len(methods), len(sizes), width=3.0, height=2.6)
    for row, method in enumerate(methods):
        ns, budgets = results.axis("heat", "n"), results.epsilons("heat", method)
        maps = {m: _log_errors(results, method, m) for m in sizes}
        low, high = min(one.min() for one in maps.values()), max(one.max() for one in maps.values())
        for axes, m in zip(panels[row], sizes, strict=True):
            image = axes.pcolormesh(ns, budgets, maps[m], vmin=low, vmax=high, cmap="magma", shading="nearest")
            axes.set(xlabel=AXES["n"], ylabel="budget ε", yticks=[0.2, 0.5, 1.0, 1.5, 2.0])
            axes.set_title(f"{NAMES[method]}, m = {m}", fontsize=10)
        figure.colorbar(image, ax=list(panels[row]), label="log10 of the mean error")
    return figure


def _log_errors(results: Results, method: str, m: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    ns, budgets = results.axis("heat", "n"), results.epsilons("heat", method)
    errors = [[results.select("heat", method, eps, m=m, n=n)[0].mean for n in ns] for eps in budgets]
    return np.asarray(np.log10(np.array(errors)))


def draw_sensitivity(results: Results) -> Figure:
    sweeps = list(dict.fromkeys(one.sweep for one in results.series))
    figure, panels = new_figure(2, -(-len(sweeps) // 2), width=3.3, height=3.0)
    for axes, sweep in zip(panels.ravel(), sweeps, strict=False):
        method = next(one.method for one in results.series if one.sweep == sweep)
        draw_panel(axes, results, sweep, method, sweep, results.epsilons(sweep, method))
        axes.set_title(f"{NAMES[method]}, n = 250, m = 10", fontsize=9)
    for axes in panels.ravel()[len(sweeps) :]:
        axes.set_visible(False)
    return figure


def _draw_sweeps(results: Results, sweeps: Sequence[tuple[str, str, str]]) -> Figure:
    """A row for each method, one column for each sweep (name, axis, title)."""
    figure, panels = new_figure(len(results.methods), len(sweeps))
    for row, method in enumerate(results.methods):
        for axes, (sweep, axis, title) in zip(panels[row], sweeps, strict=True):
            if not results.epsilons(sweep, method):
                axes.set_visible(False)
                continue
            if axis == "profile":
                _draw_profiles(axes, results, sweep, method)
            else:
                draw_panel(axes, results, sweep, method, axis, results.epsilons(sweep, method))
            axes.set_title(f"{NAMES[method]}: {title}", fontsize=9)
    return figure


def _draw_profiles(axes: Any, results: Results, sweep: str, method: str) -> None:
    profiles, budgets = results.axis(sweep, "profile"), results.epsilons(sweep, method)
    for index, (epsilon, colour) in enumerate(zip(budgets, colours(len(budgets)), strict=True)):
        series = results.select(sweep, method, epsilon)
        places = np.arange(len(profiles)) + 0.15 * (index - (len(budgets) - 1) / 2)
        means, bars = [one.mean for one in series], [one.standard_error for one in series]
        axes.errorbar(places, means, yerr=bars, color=colour, label=f"ε = {epsilon:g}", fmt="o", ms=4, capsize=2)
    labels = ["\n".join(f"{share:g}" for share in profile) for profile in profiles]
    axes.set_xticks(range(len(profiles)), labels, fontsize=7, linespacing=0.9)
    axes.set(xlabel="budget of each silo, times ε", ylabel=ERROR, yscale="log")
    tidy(axes)


def draw_federated(results: Results) -> Figure:
    sweeps = (
        ("silos", "S", "250 subjects at each silo"),
        ("split", "S", "2000 subjects in all"),
        ("budgets", "profile", "250 at each silo"),
        ("local", "S", "one subject at each silo"),
        ("between", "between", "8 silos whose means differ"),
    )
    return _draw_sweeps(results, sweeps)


def draw_covariates(results: Results) -> Figure:
    sweeps = (
        ("dimension", "d", "n = 1000"),
        ("process", "d", "n = 1000, with a random process"),
        ("subjects", "n", "d = 2"),
        ("silos", "S", "d = 2, 500 at each silo"),
    )
    return _draw_sweeps(results, sweeps)
