"""The phase diagram: which term of the minimax rate dominates where, with the reader's own study marked."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpfda._typing import Floats
from dpfda.planning.theory.rates import term_monomials
from dpfda.planning.theory.setting import TERM_NAMES, Setting, TermName

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Against = Literal["m", "epsilon"]

COLOURS: dict[TermName, str] = {
    "non-private sparse": "#cfe3f5",
    "private sparse": "#f7d4c5",
    "non-private dense": "#9cc3e6",
    "private dense": "#ec9f83",
}
WORDS: dict[TermName, str] = {
    "non-private sparse": "sampling dominates:\nmore visits or subjects help",
    "private sparse": "privacy dominates:\nsubjects, budget, then visits help",
    "non-private dense": "sampling dominates:\nonly more subjects help",
    "private dense": "privacy dominates:\nonly subjects or budget help",
}
_LABELS = {"n": "subjects per site n", "m": "visits per subject m", "epsilon": "budget ε"}
_CELLS, _DECADES = 240, 2.0


def draw_phase_diagram(setting: Setting, against: Against = "m") -> Figure:
    """Regions of the dominating term over (n, m) at fixed eps, or over (n, eps) at fixed m; logarithmic axes."""
    from matplotlib.colors import ListedColormap
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, 6.0), dpi=130, layout="constrained")
    axes: Any = figure.add_subplot()
    n, other = (
        _range(setting.n, least=1.0),
        _range(_value(setting, against), least=0.0 if against == "epsilon" else 1.0),
    )
    names, logs = _log_terms(setting, against, n, other)
    ruler = logs.argmax(axis=0)
    axes.pcolormesh(
        n, other, ruler, cmap=ListedColormap([COLOURS[name] for name in names]), vmin=-0.5, vmax=len(names) - 0.5,
        shading="nearest", rasterized=True,
    )  # fmt: skip
    for index in np.unique(ruler)[1:] if len(np.unique(ruler)) < 3 else np.unique(ruler):
        lead = logs[index] - np.delete(logs, index, axis=0).max(axis=0)
        axes.contour(n, other, lead, levels=[0.0], colors="0.25", linewidths=0.9)
    _rate_lines(axes, n, other, logs)
    _name_regions(axes, n, other, ruler, names)
    axes.plot([setting.n], [_value(setting, against)], "*", ms=18, color="#111111", mec="white", label="your study")
    axes.plot([], [], color="white", lw=1.5, label="equal rate")
    axes.set(xscale="log", yscale="log", xlabel=_LABELS["n"], ylabel=_LABELS[against], title=_title(setting, against))
    axes.legend(loc="upper left", framealpha=0.9, facecolor="0.8")
    return figure


def draw_phase_panels(setting: Setting) -> Figure:
    """The rate over epsilon in the three ranges of m that the paper distinguishes: sparse, between, dense.

    n and S are the study's; m is a typical member of each range, the study's own m where it belongs.
    """
    from matplotlib.figure import Figure

    curves = setting.S * setting.n
    first, second = curves ** (1 / (2 * setting.alpha)), curves ** (1 / setting.alpha)
    ranges = (
        ("sparse: m below (Sn)^(1/2α)", (1.0, first)),
        ("between", (first, second)),
        ("dense: m above (Sn)^(1/α)", (second, second**2)),
    )
    figure = Figure(figsize=(12.6, 4.4), dpi=130, layout="constrained")
    for axes, (title, (low, high)) in zip(figure.subplots(1, 3, sharey=True), ranges, strict=True):
        typical = setting.m if low <= setting.m <= high else math.sqrt(low * high)
        _draw_panel(axes, dataclasses.replace(setting, m=max(1.0, typical)), title)
    figure.suptitle("Terms of the minimax rate over the budget (up to constants and logarithms)", fontsize=11)
    return figure


def _draw_panel(axes: Any, setting: Setting, title: str) -> None:
    epsilon = np.geomspace(1e-3, 10, 200) / math.sqrt(setting.n)
    names, logs = _log_terms(dataclasses.replace(setting, n=setting.n), "epsilon", np.array([setting.n]), epsilon)
    for name, values in zip(names, logs[:, :, 0], strict=True):
        style = "-" if "dense" in name else "--"
        axes.plot(epsilon, np.exp(values), style, color="#c03a2b" if name.startswith("private") else "#1b6ca8", lw=1.2,
                  label=name)  # fmt: skip
    ruler = np.exp(logs[:, :, 0].max(axis=0))
    axes.plot(epsilon, ruler, color="black", lw=2.4, alpha=0.35, label="the larger of them: the rate")
    axes.set(xscale="log", yscale="log", xlabel="budget ε", ylabel="rate", title=f"{title} (m = {setting.m:.3g})")
    axes.title.set_fontsize(10)
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, fontsize=7)


def _value(setting: Setting, variable: str) -> float:
    return float(getattr(setting, variable))


def _range(centre: float, *, least: float) -> Floats:
    """Two decades to either side, as far as numbers of people and visits go."""
    low, high = centre / 10**_DECADES, centre * 10**_DECADES
    return np.geomspace(max(low, least) if least else low, high, _CELLS)


def _log_terms(setting: Setting, against: Against, n: Floats, other: Floats) -> tuple[list[TermName], Floats]:
    """Logarithms of the terms on the grid: (terms, other, n)."""
    monomials = term_monomials(setting.problem, setting.privacy, setting.alpha)
    names = [name for name in TERM_NAMES if name in monomials]
    logs = []
    for name in names:
        monomial = monomials[name]
        fixed = dataclasses.replace(
            setting,
            n=1.0,
            m=1.0 if against == "m" else setting.m,
            epsilon=1.0 if against == "epsilon" else setting.epsilon,
        )
        constant = monomial.log_at(fixed.values)
        logs.append(
            constant + monomial.exponent("n") * np.log(n)[None, :] + monomial.exponent(against) * np.log(other)[:, None]
        )
    return names, np.array(logs)


def _rate_lines(axes: Any, n: Floats, other: Floats, logs: Floats) -> None:
    """Thin lines of equal rate, one for each power of ten."""
    total = np.logaddexp.reduce(logs, axis=0) / math.log(10)
    powers = np.arange(math.floor(total.min()), math.ceil(total.max()) + 1)
    lines = axes.contour(n, other, total, levels=powers, colors="white", linewidths=0.7, linestyles="solid")
    axes.clabel(lines, fmt=lambda power: f"$10^{{{power:.0f}}}$", fontsize=7, colors="0.35")


def _name_regions(axes: Any, n: Floats, other: Floats, ruler: NDArray[np.int64], names: list[TermName]) -> None:
    for index, name in enumerate(names):
        rows, columns = np.nonzero(ruler == index)
        if rows.size < 0.02 * ruler.size:
            continue
        centre = np.array([rows.mean(), columns.mean()])  # the member nearest to the middle of the region
        near = np.argmin((rows - centre[0]) ** 2 + (columns - centre[1]) ** 2)
        text = f"{name}\n{WORDS[name]}"
        axes.text(n[columns[near]], other[rows[near]], text, ha="center", va="center", fontsize=8)


def _title(setting: Setting, against: Against) -> str:
    model = {"cdp": "central", "fdp": "federated", "ldp": "local", "none": "no"}[setting.privacy]
    what = "mean" if setting.problem == "mean" else f"{setting.d:g} covariates"
    fixed = f"ε = {setting.epsilon:.3g}" if against == "m" else f"m = {setting.m:g}"
    sites = f", {setting.S:g} sites" if setting.S > 1 else ""
    title = f"Which term of the minimax rate dominates: {what}, {model} privacy, {fixed}{sites}"
    return f"{title}\n(rates: up to constants and logarithms)"
