"""Figures of fitted functions in the user's units, with their privacy stated on the figure."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpfda.inference.curve_scale import AS_IS
from dpfda.inference.places import show_places
from dpfda.inference.result_model import read_transform
from dpfda.inference.showing import show_dates
from dpfda.report.chart import choose_y_range, is_effect, name_change
from dpfda.report.document import has_outcomes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dpfda.estimators import PrivateMean

PRIVATE, REFERENCE = "#1b6ca8", "#b5651d"


def draw_mean(
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
    if getattr(fitted, "has_band", False):
        low, high = fitted.band(level, x=grid)
        label = f"{level:.0%} simultaneous band (sampling and privacy)"
        axes.fill_between(grid, low, high, color=PRIVATE, alpha=0.18, linewidth=0, label=label)
        axes.set_ylim(*choose_y_range({"values": fitted.predict(grid), "low": low, "high": high}))
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


def draw_document(document: dict[str, Any]) -> Figure:
    """The functions of a result document, one panel each, with bands where there are any; of all outcomes."""
    from matplotlib.figure import Figure

    several = has_outcomes(document)
    each = list(document["outcomes"].values()) if several else [document]
    panels = [(one, index) for one in each for index in range(len(one["functions"]))]
    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(8 if columns == 1 else 11, 1 + 3.8 * rows), dpi=150, layout="constrained")
    for position, (one, index) in enumerate(panels, start=1):
        axes: Any = figure.add_subplot(rows, columns, position)
        study, name = one["study"], one["functions"][index]["name"]
        _draw_function(axes, one, one["functions"][index])
        effect = is_effect(one, index) and read_transform(one["model"]) != AS_IS.transform
        label = f"{name_change(one)} {study['y_label']}" if effect else study["y_label"]
        title = f"{study['y']}: {name}" if several else name if len(panels) > 1 else ""
        axes.set(xlabel=study["x_label"], ylabel=label, title=title)
    privacy = document["privacy"]
    promise = f"ε = {privacy['epsilon']:g}, δ = {privacy['delta']:g}" if privacy["private"] else "NOT PRIVATE"
    figure.suptitle(f"{document['study']['title']} ({promise})")
    return figure


def _draw_function(axes: Any, document: dict[str, Any], function: dict[str, Any]) -> None:
    grid: Any = show_places(np.asarray(document["grid"]), document["study"]["x_origin"])
    if function["low"] is not None:
        low, high = (np.asarray(function[side], dtype=np.float64) for side in ("low", "high"))
        bottom, top = choose_y_range(function)
        low, high = np.where(np.isnan(low), bottom, low), np.where(np.isnan(high), top, high)
        label = f"{document['study']['level']:.0%} simultaneous band"
        axes.fill_between(grid, low, high, color=PRIVATE, alpha=0.18, linewidth=0, label=label)
    axes.plot(grid, function["values"], color=PRIVATE, linewidth=2, label="private estimate")
    if document["study"]["x_origin"] is not None:
        show_dates(axes)
    axes.margins(x=0)
    axes.set_ylim(*choose_y_range(function))
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)


def encode_figure(figure: Figure, kind: str) -> bytes:
    """A figure as PNG, SVG or PDF."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind)
    return buffer.getvalue()


def save_figure(figure: Figure, path: str | Path) -> Path:
    """Write a figure; the ending of the path gives its format."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    return path
