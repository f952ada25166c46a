"""Figures of the experiments: mean squared L2 error with standard errors, logarithmic where errors span decades."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dpfda.reproduce.running import Results, Series

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ERROR = "mean squared $L^2$ error"
NAMES = {"published": "published method", "adaptive": "default method", "nonprivate": "not private"}
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
}
_LOG_X = ("eta", "C_alpha", "S", "width")
_LONG_LABEL = 20  # characters; two such labels leave no room for a third column
_MOST_CURVES = 6  # in one panel; the table has all budgets


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


def _parts(results: Results, sweep: str) -> list[tuple[str, list[float]]]:
    """The published method at small and at large budgets, then the default method."""
    published = results.epsilons(sweep, "published")
    small, large = [e for e in published if e <= 1], [e for e in published if e > 1]
    parts = [("published", small), ("published", large), ("adaptive", _some(results.epsilons(sweep, "adaptive")))]
    return [(method, budgets) for method, budgets in parts if budgets]


def _some(budgets: list[float]) -> list[float]:
    """Few enough to be told apart, the ends among them."""
    places = np.linspace(0, len(budgets) - 1, min(len(budgets), _MOST_CURVES))
    return [budgets[round(place)] for place in places]


def _mean(results: Results) -> Figure:
    parts = _parts(results, "visits")
    figure, panels = new_figure(2, len(parts))
    for row, (sweep, axis, fixed) in enumerate((("visits", "m", "n = 250"), ("subjects", "n", "m = 10"))):
        for axes, (method, budgets) in zip(panels[row], parts, strict=True):
            draw_panel(axes, results, sweep, method, axis, budgets)
            axes.set_title(f"{NAMES[method]}, {fixed}", fontsize=10)
    return figure


def _visits(results: Results) -> Figure:
    parts, sizes = _parts(results, "visits"), results.axis("visits", "n")
    figure, panels = new_figure(len(sizes), len(parts))
    for row, n in enumerate(sizes):
        for axes, (method, budgets) in zip(panels[row], parts, strict=True):
            draw_panel(axes, results, "visits", method, "m", budgets, n=n)
            axes.set_title(f"{NAMES[method]}, n = {n}", fontsize=10)
    return figure


def _heat(results: Results) -> Figure:
    methods, sizes = ("published", "adaptive"), results.axis("heat", "m")
    figure, panels = new_figure(2, len(sizes), width=3.0, height=2.6)
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


def _sensitivity(results: Results) -> Figure:
    sweeps = list(dict.fromkeys(one.sweep for one in results.series))
    figure, panels = new_figure(2, -(-len(sweeps) // 2), width=3.3, height=3.0)
    for axes, sweep in zip(panels.ravel(), sweeps, strict=False):
        method = next(one.method for one in results.series if one.sweep == sweep)
        draw_panel(axes, results, sweep, method, sweep, results.epsilons(sweep, method))
        axes.set_title(f"{NAMES[method]}, n = 250, m = 10", fontsize=9)
    for axes in panels.ravel()[len(sweeps) :]:
        axes.set_visible(False)
    return figure


def _three_sweeps(results: Results, sweeps: Sequence[tuple[str, str, str]]) -> Figure:
    """Both methods in two rows, one column for each sweep (name, axis, title)."""
    figure, panels = new_figure(2, len(sweeps))
    for row, method in enumerate(("published", "adaptive")):
        for axes, (sweep, axis, title) in zip(panels[row], sweeps, strict=True):
            if axis == "profile":
                _profiles(axes, results, sweep, method)
            else:
                draw_panel(axes, results, sweep, method, axis, results.epsilons(sweep, method))
            axes.set_title(f"{NAMES[method]}: {title}", fontsize=9)
    return figure


def _profiles(axes: Any, results: Results, sweep: str, method: str) -> None:
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


def _federated(results: Results) -> Figure:
    sweeps = (
        ("silos", "S", "250 subjects at each silo"),
        ("split", "S", "2000 subjects in all"),
        ("budgets", "profile", "250 at each silo"),
    )
    return _three_sweeps(results, sweeps)


def _covariates(results: Results) -> Figure:
    sweeps = (
        ("dimension", "d", "n = 1000"),
        ("subjects", "n", "d = 2"),
        ("silos", "S", "d = 2, 500 at each silo"),
    )
    return _three_sweeps(results, sweeps)


def picture_of(results: Results) -> Figure:
    """The figure of one experiment."""
    from dpfda.reproduce.figures.more import dense_figure, real_figure

    table: dict[str, Callable[[Results], Figure]] = {
        "mean-1": _mean,
        "mean-2": _mean,
        "dense": dense_figure,
        "heat": _heat,
        "visits": _visits,
        "sensitivity": _sensitivity,
        "federated": _federated,
        "covariates": _covariates,
        "real-data": real_figure,
    }
    figure = table[results.experiment.name](results)
    figure.suptitle(f"{results.experiment.title}. {results.experiment.source}", fontsize=11)
    return figure
