"""The phase transition with its fitted lines, and the real data with their bands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dpfda.planning.theory import rate
from dpfda.reproduce.claims.dense import PAPER_BUDGETS, dense_lines
from dpfda.reproduce.figures.figures import AXES, ERROR, NAMES, colours, draw_series, new_figure, tidy
from dpfda.reproduce.real_data import GRID_POINTS, RealCell
from dpfda.reproduce.running import Results
from dpfda.reproduce.trends import BETWEEN_THEORIES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PRIVATE, PLAIN = "#c03a2b", "#1b6ca8"
_SHOWN_BANDS = 3


def dense_figure(results: Results) -> Figure:
    """Errors with lines and breaks for both methods, and what the theory says."""
    figure, panels = new_figure(1, 3, width=4.2, height=4.6)
    adaptive = results.epsilons("dense", "adaptive")
    for axes, method, budgets in (
        (panels[0, 0], "published", [eps for eps in PAPER_BUDGETS if eps in results.epsilons("dense", "published")]),
        (panels[0, 2], "adaptive", adaptive),
    ):
        _fitted(axes, results, method, budgets)
    _theory(panels[0, 1], list(PAPER_BUDGETS), results.axis("dense", "n"))
    return figure


def _fitted(axes: Any, results: Results, method: str, budgets: list[float]) -> None:
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
    _plain_ticks(axes)


def _plain_ticks(axes: Any) -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axes.set_xticks([200, 500, 1000, 2000, 3600])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    tidy(axes)


def _theory(axes: Any, budgets: list[float], ns: list[int]) -> None:
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
    _plain_ticks(axes)


def real_figure(results: Results) -> Figure:
    """Distances for both methods, and bands of the mechanism for some budgets."""
    figure, panels = new_figure(2 * len(results.real), 2, width=4.6, height=3.2)
    for number, (point, found) in enumerate(results.real):
        assert isinstance(point.cell, RealCell)
        for column, method in enumerate(point.cell.methods):
            _distance(
                panels[2 * number, column], point.cell, found[f"{method.name} distance"], method.epsilons, method.name
            )
            _bands(panels[2 * number + 1, column], point.cell, found, method.name, method.epsilons)
    return figure


def _distance(axes: Any, cell: RealCell, distance: Any, epsilons: tuple[float, ...], method: str) -> None:
    error = distance.std(axis=0, ddof=1) / np.sqrt(len(distance))
    axes.errorbar(
        epsilons, distance.mean(axis=0), yerr=error, marker="o", ms=4, capsize=2, color=PLAIN, label="mean ± s.e."
    )
    axes.set(xlabel="budget ε", ylabel=f"$L^2$ distance ({_quantity(cell)[1]})", xscale="log", yscale="log")
    axes.set_title(f"{NAMES[method]}: to the training third", fontsize=9)
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    plain = FuncFormatter(lambda value, _: f"{value:g}")
    axes.set_xticks([0.5, 1, 2, 4, 8])
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(plain)
        axis.set_minor_formatter(NullFormatter())
    tidy(axes)


def _quantity(cell: RealCell) -> tuple[str, str]:
    """What y is, and its unit."""
    return ("blood lipid", "mg/dl") if cell.swan is None else ("estradiol", "pg/ml")


def _bands(axes: Any, cell: RealCell, found: Any, method: str, epsilons: tuple[float, ...]) -> None:
    from matplotlib.ticker import MaxNLocator

    grid = np.linspace(*cell.domain, GRID_POINTS)
    chosen = sorted({0, epsilons.index(1.0), len(epsilons) - 1})[:_SHOWN_BANDS]
    for index, colour in zip(chosen, colours(len(chosen)), strict=True):
        curves = found[f"{method} curves"][index]
        low, high = np.quantile(curves, (0.05, 0.95), axis=0)
        axes.fill_between(grid, low, high, color=colour, alpha=0.25, lw=0)
        axes.plot(grid, curves.mean(axis=0), color=colour, lw=1.5, label=f"ε = {epsilons[index]:g}")
    axes.plot(grid, found["reference"], color="black", ls=":", lw=1.5, label=NAMES["nonprivate"])
    axes.set(xlabel="age (years)", ylabel="{} ({})".format(*_quantity(cell)))
    axes.set_title(f"{NAMES[method]}: means and 90% bands", fontsize=9)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    tidy(axes)
