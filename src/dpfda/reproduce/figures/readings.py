"""The phase transition under every reading, and all verdicts at a glance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dpfda.reproduce.claims.claim import FAILS, HOLDS, PARTLY, SHOWN, UNDECIDED
from dpfda.reproduce.figures.dense import draw_fitted_lines
from dpfda.reproduce.figures.panels import new_figure
from dpfda.reproduce.readings_table import list_verdicts
from dpfda.reproduce.results import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLOURS = {HOLDS: "#2e7d4f", PARTLY: "#e0b23c", FAILS: "#c03a2b", UNDECIDED: "#b7bec8"}
_BUDGETS = (1.0, 3.0, 4.0, 8.0)


def draw_readings(results: Results) -> Figure:
    """One panel for each reading, and one of verdicts."""
    from dpfda.reproduce.claims.judge import judge_claims

    parts = [part for part in results.parts if part.experiment.name == "dense"]
    figure, panels = new_figure(2, -(-(len(parts) + 1) // 2), width=4.0, height=4.2)
    for axes, part in zip(panels.ravel(), parts, strict=False):
        budgets = [epsilon for epsilon in _BUDGETS if epsilon in part.epsilons("dense", "published")]
        draw_fitted_lines(axes, part, "published", budgets)
        axes.set_title(f"reading {part.experiment.reading}", fontsize=10)
    _draw_verdicts(panels.ravel()[len(parts)], judge_claims(results))
    for axes in panels.ravel()[len(parts) + 1 :]:
        axes.set_visible(False)
    return figure


def _draw_verdicts(axes: Any, claims: Any) -> None:
    rows = list_verdicts([claim for claim in claims if claim.verdict != SHOWN])
    names = list(dict.fromkeys(name for row in rows.values() for name in row))
    order = list(_COLOURS)
    codes = np.full((len(rows), len(names)), np.nan)
    for i, row in enumerate(rows.values()):
        for j, name in enumerate(names):
            if name in row:
                codes[i, j] = order.index(row[name].verdict)
    from matplotlib.colors import ListedColormap

    axes.pcolormesh(codes, cmap=ListedColormap(list(_COLOURS.values())), vmin=-0.5, vmax=3.5, edgecolors="w", lw=0.8)
    axes.invert_yaxis()
    axes.set_xticks(np.arange(len(names)) + 0.5, names, fontsize=7, rotation=30)
    axes.set_ylabel("claims, in the order of the table")
    for verdict, colour in _COLOURS.items():
        axes.plot([], [], "s", color=colour, label=verdict)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), frameon=False, fontsize=7, ncols=4)
    axes.set_title("verdicts", fontsize=10)
