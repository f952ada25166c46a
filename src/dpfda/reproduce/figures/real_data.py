"""The real data: distances to the training curve, and bands of the mechanism."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dpfda.reproduce.figures.panels import NAMES, colours, new_figure, tidy
from dpfda.reproduce.real_data import GRID_POINTS, RealCell
from dpfda.reproduce.results import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LINE = "#1b6ca8"

_SHOWN_BANDS = 3


def draw_real_data(results: Results) -> Figure:
    """Distances for both methods, and bands of the mechanism for some budgets."""
    figure, panels = new_figure(2 * len(results.real), 2, width=4.6, height=3.2)
    for number, (point, found) in enumerate(results.real):
        assert isinstance(point.cell, RealCell)
        for column, method in enumerate(point.cell.methods):
            _draw_distance(
                panels[2 * number, column], point.cell, found[f"{method.name} distance"], method.epsilons, method.name
            )
            _draw_bands(panels[2 * number + 1, column], point.cell, found, method.name, method.epsilons)
    return figure


def _draw_distance(axes: Any, cell: RealCell, distance: Any, epsilons: tuple[float, ...], method: str) -> None:
    error = distance.std(axis=0, ddof=1) / np.sqrt(len(distance))
    axes.errorbar(
        epsilons, distance.mean(axis=0), yerr=error, marker="o", ms=4, capsize=2, color=_LINE, label="mean ± s.e."
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


def _draw_bands(axes: Any, cell: RealCell, found: Any, method: str, epsilons: tuple[float, ...]) -> None:
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
