"""Curves and results as tables, pictures and HTML for notebooks."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from dpfda._typing import Floats
from dpfda.errors import InvalidInput

if TYPE_CHECKING:
    from dpfda.inference.curve import ReleasedCurve

COLOUR = "#1b6ca8"
_ROWS = 9


def make_frame(columns: Mapping[str, Any]) -> Any:
    """A pandas table, or one of polars where pandas is not installed."""
    for package in ("pandas", "polars"):
        if importlib.util.find_spec(package) is not None:
            return importlib.import_module(package).DataFrame(dict(columns))
    raise InvalidInput("a table needs pandas or polars; install one of them, e.g. with `pip install pandas`.")


def make_curve_frame(curve: ReleasedCurve, x: Floats, level: float) -> Any:
    """One row for each x."""
    return make_frame(curve_columns(curve, x, level))


def curve_columns(curve: ReleasedCurve, x: Floats, level: float) -> dict[str, Floats]:
    """X, estimate and, where they are known, standard error and limits."""
    columns = {"x": x, "estimate": curve(x)}
    if curve.has_band:
        lower, upper = curve.band(level, x)
        columns |= {"standard_error": curve.standard_error(x), "lower": lower, "upper": upper}
    return columns


def draw_curve(curve: ReleasedCurve, ax: Any, level: float) -> Any:
    """The estimate as a line, the simultaneous band as an area."""
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.subplots(layout="constrained")[1]
    x = curve.grid(None)
    (line,) = ax.plot(x, curve(x), linewidth=2, label=curve.name)
    if curve.has_band:
        lower, upper = curve.band(level, x)
        ax.fill_between(x, lower, upper, color=line.get_color(), alpha=0.18, linewidth=0, label=f"{level:.0%} band")
    ax.set(xlabel=curve.x_name, ylabel=curve.scale.label(curve.y_name))
    ax.margins(x=0)
    ax.legend(frameon=False)
    return ax


def write_curve_html(curve: ReleasedCurve, level: float = 0.95) -> str:
    """A small table for notebooks."""
    x = np.linspace(*curve.domain, _ROWS)
    columns = curve_columns(curve, x, level)
    head = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in columns)
    rows = "".join(
        "<tr>" + "".join(f"<td>{value:.4g}</td>" for value in row) + "</tr>"
        for row in zip(*columns.values(), strict=True)
    )
    note = f"{level:.0%} simultaneous band" if curve.has_band else "no band: this method has none"
    return f"<table><caption>{escape(curve.name)}, {note}</caption><tr>{head}</tr>{rows}</table>"


def write_table(columns: Mapping[str, list[str]]) -> str:
    """Text columns under their names, right-aligned but for the first."""
    widths = [max(len(name), *(len(cell) for cell in cells)) for name, cells in columns.items()]
    lines = [list(columns), *map(list, zip(*columns.values(), strict=True))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    )
