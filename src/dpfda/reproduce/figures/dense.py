"""The phase transition in the dense regime, with its fitted lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dpfda.planning.theory import rate
from dpfda.reproduce.claims.dense import PAPER_BUDGETS, dense_lines
from dpfda.reproduce.figures.panels import AXES, ERROR, NAMES, colours, draw_series, new_figure, tidy
from dpfda.reproduce.results import Results
from dpfda.reproduce.trends import BETWEEN_THEORIES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PRIVATE, PLAIN = "#c03a2b", "#1b6ca8"


def draw_dense(results: Results) -> Figure:
    """Errors with lines and breaks for both methods, and what the theory says."""
    adaptive = results.epsilons("dense", "adaptive")
    figure, panels = new_figure(1, 3 if adaptive else 2, width=4.2, height=4.6)
    paper = [eps for eps in PAPER_BUDGETS if eps in results.epsilons("dense", "published")]
    draw_fitted_lines(panels[0, 0], results, "published", paper)
    if adaptive:
        draw_fitted_lines(panels[0, 2], results, "adaptive", adaptive)
    _draw_theory(panels[0, 1], list(PAPER_BUDGETS), results.axis("dense", "n"))
    return figure


def draw_fitted_lines(axes: Any, results: Results, method: str, budgets: list[float]) -> None:
    """Errors over n with the lines that were fitted through them."""
    lines = dense_lines(results, method)
    for epsilon, colour in zip(budgets, colours(len(budgets)), strict=True):
        series, found = results.select("dense", method, epsilon), lines.get(epsilon, [])
        gradients = ", then ".join(f"{line.gradient:.2f}" for line in found)
        draw_series(axes, series, "n", colour, f"ε = {epsilon:g}: {gradients}", linestyle="", markersize=4)
        for line in found:
            x, steep = np.array([line.start, line.stop]), line.gradient < BETWEEN_THEORIES
            style = {"color": PRIVATE, "ls": "-"} if steep else {"color": PLAIN, "ls": "--"}
            axes.plot(np.exp(x), np.exp(line.at(x)), lw=1.2, **style)
    reference = results.select("dense", "nonprivate")
    if reference:
        draw_series(axes, reference, "n", "0.35", NAMES["nonprivate"], linestyle=":", marker="", capsize=0)
    axes.plot([], [], color=PRIVATE, label="nearer to -2")
    axes.plot([], [], color=PLAIN, ls="--", label="nearer to -1")
    axes.set(xscale="log", yscale="log", xlabel=AXES["n"], ylabel=ERROR)
    axes.set_title(f"{NAMES[method]}, $m = n^{{1/\\alpha}}$: gradients", fontsize=10)
    _set_ticks(axes)


def _set_ticks(axes: Any) -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axes.set_xticks([200, 500, 1000, 2000, 3600])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    tidy(axes)


def _draw_theory(axes: Any, budgets: list[float], ns: list[int]) -> None:
    """The two dense terms of the rate, with the constants left open (both set to fit the ranges shown)."""
    grid = np.geomspace(ns[0], ns[-1], 60)
    scale = 13_500.0  # ratio of the unknown constants: the private term is this much dearer
    for epsilon, colour in zip(budgets, colours(len(budgets)), strict=True):
        terms = [rate("mean", "cdp", n=n, m=n ** (1 / 3), alpha=3, epsilon=epsilon).as_dict() for n in grid]
        private = np.array([one["private dense"] for one in terms]) * scale
        plain = np.array([one["non-private dense"] for one in terms])
        axes.plot(grid, np.maximum(private, plain), color=colour, label=f"ε = {epsilon:g}")
    axes.set(xscale="log", yscale="log", xlabel=AXES["n"], ylabel="rate (constants unknown)")
    axes.set_title("theory: the larger of $C_1/(n\\epsilon)^2$ and $C_2/n$", fontsize=10)
    _set_ticks(axes)
