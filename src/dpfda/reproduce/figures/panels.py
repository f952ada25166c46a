"""Panels of figures: mean squared L2 error with standard errors, logarithmic where errors span decades."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dpfda.reproduce.results import Results, Series

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ERROR = "mean squared $L^2$ error"

NAMES = {
    "published": "published method",
    "full-batch": "published, full batch",
    "adaptive": "default method",
    "nonprivate": "not private",
}

AXES = {
    "n": "subjects n",
    "m": "visits per subject m",
    "S": "silos S",
    "d": "covariates d",
    "C_R": "$C_R$",
    "C_T": "$C_T$",
    "rho": r"$\rho$",
    "eta": r"$\eta$",
    "C_alpha": r"$C_\alpha$",
    "width": "width of y bounds (times)",
    "n_basis": "basis functions r",
    "between": "between-site sd τ",
}

_LOG_X = ("eta", "C_alpha", "S", "width")

_LONG_LABEL = 20  # characters; two such labels leave no room for a third column


def new_figure(rows: int, columns: int, *, width: float = 3.7, height: float = 3.2) -> tuple[Figure, Any]:
    """A grid of panels."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height * rows + 0.4), dpi=140, layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def colours(count: int) -> list[Any]:
    """As many colours from dark to light."""
    from matplotlib import colormaps

    return [colormaps["viridis"](place) for place in np.linspace(0.0, 0.88, max(count, 1))]


def draw_series(axes: Any, series: Sequence[Series], axis: str, colour: Any, label: str, **style: Any) -> None:
    """One curve with standard errors."""
    x = [one.coordinates[axis] for one in series]
    y = [one.mean for one in series]
    bars = [one.standard_error for one in series]
    options = {"marker": "o", "markersize": 3, "linewidth": 1.2, "capsize": 2, **style}
    axes.errorbar(x, y, yerr=bars, color=colour, label=label, **options)


def draw_panel(
    axes: Any, results: Results, sweep: str, method: str, axis: str, budgets: Sequence[float], **where: Any
) -> None:
    """Error against one axis, one curve for each budget, with least squares as a dotted line where it was run."""
    for epsilon, colour in zip(budgets, colours(len(budgets)), strict=True):
        draw_series(axes, results.select(sweep, method, epsilon, **where), axis, colour, f"ε = {epsilon:g}")
    reference = results.select(sweep, "nonprivate", **where)
    if reference:
        draw_series(axes, reference, axis, "0.35", NAMES["nonprivate"], linestyle=":", marker="", capsize=0)
    axes.set(xlabel=AXES[axis], ylabel=ERROR, yscale="log", title=NAMES[method])
    _set_x(axes, axis)
    tidy(axes)


def _set_x(axes: Any, axis: str) -> None:
    """Logarithmic or whole numbers, where these are what the axis means."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    if axis in _LOG_X:
        axes.set_xscale("log", base=2 if axis in ("S", "width") else 10)
        if axis in ("S", "width"):
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    elif axis in ("n", "m", "d", "n_basis"):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6, steps=[1, 2, 5, 10]))


def tidy(axes: Any) -> None:
    """Grid, and a legend at the top with room of its own, so that it hides nothing."""
    axes.grid(alpha=0.25, which="both")
    axes.spines[["top", "right"]].set_visible(False)
    labels = axes.get_legend_handles_labels()[1]
    columns = 3 if sum(len(label) > _LONG_LABEL for label in labels) < 2 else 2
    rows = -(-len(labels) // columns)
    low, high = axes.get_ylim()
    room = 0.1 * rows + 0.04
    axes.set_ylim(low, high * (high / low) ** room if axes.get_yscale() == "log" else high + (high - low) * room)
    axes.legend(loc="upper center", frameon=False, fontsize=7, ncols=columns, columnspacing=1.2, handlelength=1.6)
