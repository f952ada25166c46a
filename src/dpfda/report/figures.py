"""Figures of fitted functions in the user's units, with their privacy stated on the figure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dpfda.estimators import PrivateMean

PRIVATE, REFERENCE = "#1b6ca8", "#b5651d"


def mean_figure(
    fitted: PrivateMean,
    *,
    reference: PrivateMean | None = None,
    title: str = "",
    x_label: str = "x",
    y_label: str = "mean of y",
    level: float = 0.95,
) -> Figure:
    """The private mean curve with its simultaneous band where it has one, beside a non-private reference if given."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.8), dpi=120, layout="constrained")
    axes: Any = figure.add_subplot()
    grid = np.linspace(*fitted.basis_.domain, 400)
    if fitted.has_band:
        low, high = fitted.band(level, x=grid)
        label = f"{level:.0%} simultaneous band (sampling and privacy)"
        axes.fill_between(grid, low, high, color=PRIVATE, alpha=0.18, linewidth=0, label=label)
    if reference is not None:
        axes.plot(grid, reference.predict(grid), color=REFERENCE, linestyle="--", label="not private: least squares")
    privacy = fitted.privacy_
    label = (
        f"private mean (ε = {privacy.epsilon:g}, δ = {privacy.delta:g})" if privacy.private else "mean (not private)"
    )
    axes.plot(grid, fitted.predict(grid), color=PRIVATE, linewidth=2, label=label)
    axes.set(xlabel=x_label, ylabel=y_label, title=title)
    axes.margins(x=0)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    return figure


def save_figure(figure: Figure, path: str | Path) -> Path:
    """Write a figure; the ending of the path gives its format."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    return path
