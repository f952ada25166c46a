"""Curves and results as tables, pictures and HTML for notebooks."""

from __future__ import annotations

import importlib.util
import math
import textwrap
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from dpfda._typing import Floats
from dpfda.errors import InvalidInput
from dpfda.inference.places import show_places

if TYPE_CHECKING:
    from dpfda.inference.curve import ReleasedCurve

COLOUR = "#1b6ca8"
_ROWS, _TITLE_WIDTH, _DATE_TICKS = 9, 34, 7


def make_frame(columns: Mapping[str, Any]) -> Any:
    """A pandas table, or one of polars where pandas is not installed."""
    for package in ("pandas", "polars"):
        if importlib.util.find_spec(package) is not None:
            return importlib.import_module(package).DataFrame(dict(columns))
    raise InvalidInput("a table needs pandas or polars; install one of them, e.g. with `pip install pandas`.")


def make_curve_frame(curve: ReleasedCurve, x: Floats, level: float) -> Any:
    """One row for each x; dates as dates."""
    return make_frame({**curve_columns(curve, x, level), "x": show_places(x, curve.x_origin)})


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
    shown: Any = show_places(x, curve.x_origin)
    (line,) = ax.plot(shown, curve(x), linewidth=2, label=curve.name)
    if curve.has_band:
        lower, upper = curve.band(level, x)
        ax.fill_between(shown, lower, upper, color=line.get_color(), alpha=0.18, linewidth=0, label=f"{level:.0%} band")
    ax.set(xlabel=curve.x_name, ylabel=curve.scale.label(curve.y_name))
    if curve.x_origin is not None:
        show_dates(ax)
    ax.margins(x=0)
    ax.legend(frameon=False)
    return ax


def show_dates(ax: Any) -> None:
    """An axis of dates whose ticks do not collide."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator(minticks=3, maxticks=_DATE_TICKS)  # type: ignore[no-untyped-call]
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]


def draw_panels(curves: Sequence[ReleasedCurve], level: float) -> Any:
    """Small multiples: one panel of the same size for each curve under its name, three in a row; their axes."""
    panels, columns = _make_panels(len(curves))
    for number, (curve, panel) in enumerate(zip(curves, panels, strict=True)):
        _fill_panel(panel, curve, level, curve.name)
        panel.set_ylabel(curve.y_name if number % columns == 0 else "")
        if number:  # effects are judged against zero
            panel.axhline(0.0, color="0.6", linewidth=0.8, zorder=0)
    panels[0].figure.suptitle(f"{level:.0%} bands" if curves[0].has_band else "")
    return panels


def draw_outcomes(curves: Sequence[tuple[str, ReleasedCurve]], level: float) -> Any:
    """The same for curves of several outcomes, each with the name of its outcome, of which the first curve comes first."""
    panels, _ = _make_panels(len(curves))
    drawn: set[str] = set()
    for (name, curve), panel in zip(curves, panels, strict=True):
        _fill_panel(panel, curve, level, f"{name}: {curve.name}")
        if name in drawn:
            panel.axhline(0.0, color="0.6", linewidth=0.8, zorder=0)
        drawn.add(name)
    panels[0].figure.suptitle(f"{level:.0%} bands, each for its own curve" if curves[0][1].has_band else "")
    return panels


def _make_panels(count: int) -> tuple[Any, int]:
    import matplotlib.pyplot as plt

    columns = min(count, 2 if count <= 4 else 3)
    rows = math.ceil(count / columns)
    _, panels = plt.subplots(rows, columns, squeeze=False, figsize=(3.6 * columns, 2.7 * rows), layout="constrained")
    for panel in panels.ravel()[count:]:
        panel.set_visible(False)
    return panels.ravel()[:count], columns


def _fill_panel(panel: Any, curve: ReleasedCurve, level: float, title: str) -> None:
    draw_curve(curve, panel, level)
    panel.get_legend().remove()
    panel.set_title("\n".join(textwrap.wrap(title, _TITLE_WIDTH)), fontsize="medium")
    panel.tick_params(labelsize="small")


def write_curve_html(curve: ReleasedCurve, level: float = 0.95) -> str:
    """A small table for notebooks."""
    x = np.linspace(*curve.domain, _ROWS)
    columns = curve_columns(curve, x, level)
    head = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in columns)
    rows = "".join(
        f"<tr><td>{curve.write_place(place)}</td>" + "".join(f"<td>{value:.4g}</td>" for value in row) + "</tr>"
        for place, *row in zip(*columns.values(), strict=True)
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
