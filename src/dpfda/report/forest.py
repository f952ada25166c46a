"""The sites of a study: what a result says of them, and a forest plot of their averages as an inline SVG."""

from __future__ import annotations

from html import escape
from typing import Any

from dpfda.report.chart import choose_ticks
from dpfda.report.formatting import format_number

_WIDTH, _NAMES, _FIGURES, _ROW, _TOP, _BOTTOM = 880.0, 210.0, 190.0, 26.0, 12.0, 50.0
_LONGEST_NAME = 28
_ROOM = 0.04


def describe_sites(fitted: Any, level: float) -> dict[str, Any] | None:
    """Averages over the domain with their intervals, heterogeneity and flags; None for a fit to one silo."""
    sites = getattr(fitted, "sites_", None)
    if sites is None:
        return None
    share, low, high = sites.i_squared
    rows = [
        {**_summarise(sites.curve(name), level), "name": name, "keeps": sites.heterogeneity[name],
         "weight": sites.weights[name], "flagged": name in sites.flagged}
        for name in sites.names
    ]  # fmt: skip
    curves = {
        sites.name_mean(): sites.mean(),
        sites.name_mean("sites"): sites.mean("sites"),
        "a new site": sites.new_site(),
    }
    return {
        "level": level,
        "each": rows,
        "summaries": [{**_summarise(curve, level), "name": name} for name, curve in curves.items()],
        "i_squared": {"value": share, "low": low, "high": high},
        "between_sd": {"value": sites.between_sd[0], "standard_error": sites.between_sd[1]},
        "probability": sites.probability,
    }


def _summarise(curve: Any, level: float) -> dict[str, float]:
    average = curve.mean_over()
    low, high = average.interval(level)
    return {"estimate": float(average.estimate), "low": float(low), "high": float(high)}


def draw_forest(document: dict[str, Any]) -> str:
    """One line for each site, then the means and a new site; the dashed line is the mean over subjects, or visits."""
    sites, study = document["sites"], document["study"]
    rows = [*sites["each"], *sites["summaries"]]
    low, high = min(row["low"] for row in rows), max(row["high"] for row in rows)
    room = _ROOM * (high - low) or 1.0
    ends = low - room, high + room
    height = _TOP + _ROW * len(rows) + _BOTTOM
    floor = height - _BOTTOM
    said = escape(f"average {study['y']} at each site")
    parts = [f'<svg class="chart forest" viewBox="0 0 {_WIDTH:g} {height:g}" role="img" aria-label="{said}">']
    for tick in choose_ticks(*ends, 8):
        column = _across(tick, ends)
        parts.append(f'<line class="rule" x1="{column:.1f}" x2="{column:.1f}" y1="{_TOP:g}" y2="{floor:g}"/>')
        parts.append(
            f'<text class="tick" x="{column:.1f}" y="{floor + 20:g}" text-anchor="middle">{format_number(tick)}</text>'
        )
    middle = _across(sites["summaries"][0]["estimate"], ends)
    parts.append(f'<line class="zero" x1="{middle:.1f}" x2="{middle:.1f}" y1="{_TOP:g}" y2="{floor:g}"/>')
    parts += [_draw_row(row, _TOP + _ROW * (number + 0.5), ends) for number, row in enumerate(rows)]
    centre = (_NAMES + _WIDTH - _FIGURES) / 2
    label = escape(f"{study['y_label']}, average over {study['x_label']}")
    parts.append(f'<text class="label" x="{centre:g}" y="{height - 8:g}" text-anchor="middle">{label}</text></svg>')
    return "".join(parts)


def _across(value: float, ends: tuple[float, float]) -> float:
    return _NAMES + (value - ends[0]) / (ends[1] - ends[0]) * (_WIDTH - _NAMES - _FIGURES)


def _draw_row(row: dict[str, Any], level: float, ends: tuple[float, float]) -> str:
    left, place, right = (round(_across(row[key], ends), 1) for key in ("low", "estimate", "high"))
    name = row["name"] if len(row["name"]) <= _LONGEST_NAME else row["name"][: _LONGEST_NAME - 1] + "…"
    if "weight" not in row:
        kind, corners = "summary", f"M{left},{level:g}L{place},{level - 7:g}L{right},{level:g}L{place},{level + 7:g}Z"
        mark = f'<path class="diamond" d="{corners}"/>'
    else:
        kind = "flagged" if row["flagged"] else "site"
        mark = f'<line class="whisker" x1="{left}" x2="{right}" y1="{level:g}" y2="{level:g}"/>'
        mark += f'<circle class="dot" cx="{place}" cy="{level:g}" r="4.5"/>'
    shown = escape(name) + (" ⚑" if kind == "flagged" else "")
    figures = f"{format_number(row['estimate'])} ({format_number(row['low'])} to {format_number(row['high'])})"
    return (
        f'<g class="{kind}"><title>{escape(row["name"])}: {figures}</title>'
        f'<text class="tick" x="{_NAMES - 12:g}" y="{level + 4:g}" text-anchor="end">{shown}</text>'
        f'{mark}<text class="tick" x="{_WIDTH - 4:g}" y="{level + 4:g}" text-anchor="end">{figures}</text></g>'
    )
