"""One function with its band as an inline SVG; the page's style sheet colours it, its script answers the pointer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from html import escape
from typing import Any

from dpfda.inference.curve_scale import AS_IS, CurveScale
from dpfda.inference.result_model import read_transform
from dpfda.report.formatting import format_number, typical_half_width

LEFT, RIGHT, TOP, BOTTOM = 64.0, 14.0, 14.0, 50.0
_WIDE = 5.0
_BROAD = 600.0  # pixels: a chart that needs larger letters on a phone
_MONTHS = (1, 2, 3, 6, 12, 24, 60, 120, 240, 600)
_SPARSE = 2.0  # times the typical half width: where a band is wider, there are few data


@dataclass(frozen=True)
class Frame:
    """The drawing area and the ranges of x and y that it shows."""

    width: float
    height: float
    x_range: tuple[float, float]
    y_range: tuple[float, float]

    def across(self, x: float) -> float:
        """The pixel column of x."""
        low, high = self.x_range
        return LEFT + (x - low) / (high - low) * (self.width - LEFT - RIGHT)

    def up(self, y: float) -> float:
        """The pixel row of y."""
        low, high = self.y_range
        return self.height - BOTTOM - (y - low) / (high - low) * (self.height - TOP - BOTTOM)


def draw_chart(
    document: dict[str, Any],
    index: int,
    *,
    width: float = 880,
    height: float = 400,
    joint: Sequence[Sequence[float]] | None = None,
) -> str:
    """The SVG of function `index` of a result; `joint` are the sides of a band that holds other curves as well."""
    function, grid, study = document["functions"][index], document["grid"], document["study"]
    neutral = find_neutral(document) if is_effect(document, index) else None
    frame = Frame(width, height, (grid[0], grid[-1]), choose_y_range(function, neutral))
    y_label = study["y_label"] if neutral is None else f"{name_change(document)} {study['y_label']}"
    label = f"{function['name']} of {study['y']} over {study['x']}"
    kind = "chart broad" if width > _BROAD else "chart"
    parts = [
        f'<svg class="{kind}" data-function="{index}" viewBox="0 0 {width:g} {height:g}" role="img" tabindex="0" '
        f'aria-label="{escape(label)}" data-left="{LEFT:g}" data-right="{RIGHT:g}" data-top="{TOP:g}" '
        f'data-bottom="{BOTTOM:g}" data-low="{frame.y_range[0]!r}" data-high="{frame.y_range[1]!r}">',
        _axes(frame, study, y_label),
        _sparse(frame, grid, function),
        "" if neutral is None else _line_at(frame, neutral),
        _band(frame, grid, function),
        *(f'<path class="joint" d="{_path(frame, grid, side)}"/>' for side in joint or ()),
        f'<path class="curve" d="{_path(frame, grid, function["values"])}"/>',
        f'<g class="pointer" visibility="hidden"><line class="cross" y1="{TOP:g}" y2="{height - BOTTOM:g}"/>'
        '<circle class="dot" r="4.5"/></g></svg>',
    ]
    return "".join(parts)


def is_effect(document: dict[str, Any], index: int) -> bool:
    """Whether function `index` is that of a covariate, not a mean."""
    return document["study"]["model"] != "mean" and not (index == 0 and document["model"]["intercept"])


def find_neutral(document: dict[str, Any]) -> float:
    """The value of a covariate without an effect: a ratio of 1 where y is on the logarithmic scale, else 0."""
    return 1.0 if CurveScale(read_transform(document["model"]), 0.0).is_ratio else 0.0


def name_change(document: dict[str, Any]) -> str:
    """What the values of an effect are, before the label of y."""
    scale = CurveScale(read_transform(document["model"]), 0.0)
    if scale.is_ratio:
        return "ratio of"
    return "change of" if scale.transform == AS_IS.transform else f"change of {scale.transform} of"


def choose_y_range(function: dict[str, Any], neutral: float | None = None) -> tuple[float, float]:
    """What a picture shows: the whole curve, and of the band at most `_WIDE` typical half-widths to each side.

    Where hardly anybody was observed a band can be so wide that nothing else could be seen; there it leaves the picture.
    """
    values = function["values"]
    shown = list(values) if neutral is None else [*values, neutral]
    half = typical_half_width(function)
    if half is not None:
        for value, low, high in zip(values, function["low"], function["high"], strict=True):
            shown.append(max(value - _WIDE * half, -math.inf if low is None else low))
            shown.append(min(value + _WIDE * half, math.inf if high is None else high))
    low, high = min(shown), max(shown)
    room = 0.06 * (high - low) or max(abs(high), 1.0) * 0.1
    return low - room, high + room


def leaves_the_picture(function: dict[str, Any]) -> bool:
    """Whether the band is wider somewhere than the picture shows."""
    low, high = choose_y_range(function)
    below, above = function["low"] or (), function["high"] or ()
    return any(side is None or not low <= side <= high for side in (*below, *above))


def find_sparse(grid: Sequence[float], function: dict[str, Any]) -> list[tuple[float, float]]:
    """Intervals of x on which the band is much wider than elsewhere: few data, as far as released numbers can tell."""
    half = typical_half_width(function)
    if half is None:
        return []
    sides = zip(function["low"], function["high"], strict=True)
    wide = [low is None or high is None or high - low > 2 * _SPARSE * half for low, high in sides]
    found: list[tuple[float, float]] = []
    for place, is_wide in enumerate(wide):
        if is_wide and place and wide[place - 1]:
            found[-1] = (found[-1][0], grid[place])
        elif is_wide:
            found.append((grid[place], grid[place]))
    return [(low, high) for low, high in found if high > low]


def _sparse(frame: Frame, grid: Sequence[float], function: dict[str, Any]) -> str:
    tall = frame.height - TOP - BOTTOM
    return "".join(
        f'<rect class="sparse" x="{frame.across(low):.1f}" y="{TOP:g}" width="{frame.across(high) - frame.across(low):.1f}" '
        f'height="{tall:g}"/>'
        for low, high in find_sparse(grid, function)
    )


def _path(frame: Frame, xs: Sequence[float], ys: Sequence[float]) -> str:
    low, high = frame.y_range
    return "M" + "L".join(
        f"{frame.across(x):.1f},{frame.up(min(max(y, low), high)):.1f}" for x, y in zip(xs, ys, strict=True)
    )


def _band(frame: Frame, grid: Sequence[float], function: dict[str, Any]) -> str:
    if function["low"] is None:
        return ""
    low = [-math.inf if value is None else value for value in function["low"]]
    high = [math.inf if value is None else value for value in function["high"]]
    there, back = _path(frame, grid, high), _path(frame, grid[::-1], low[::-1])
    return f'<path class="band" d="{there}L{back[1:]}Z"/>'


def _line_at(frame: Frame, value: float) -> str:
    level = frame.up(value)
    return f'<line class="zero" x1="{LEFT:g}" x2="{frame.width - RIGHT:g}" y1="{level:.1f}" y2="{level:.1f}"/>'


def _axes(frame: Frame, study: dict[str, Any], y_label: str) -> str:
    right, floor = frame.width - RIGHT, frame.height - BOTTOM
    parts = []
    for tick in choose_ticks(*frame.y_range, 6):
        row = frame.up(tick)
        parts.append(f'<line class="rule" x1="{LEFT:g}" x2="{right:g}" y1="{row:.1f}" y2="{row:.1f}"/>')
        parts.append(
            f'<text class="tick" x="{LEFT - 9:g}" y="{row + 4:.1f}" text-anchor="end">{format_number(tick)}</text>'
        )
    for number, (tick, name) in enumerate(_name_ticks(frame, study["x_origin"])):
        column, spare = frame.across(tick), " spare" if number % 2 else ""
        parts.append(f'<line class="mark" x1="{column:.1f}" x2="{column:.1f}" y1="{floor:g}" y2="{floor + 5:g}"/>')
        parts.append(
            f'<text class="tick{spare}" x="{column:.1f}" y="{floor + 20:g}" text-anchor="middle">{name}</text>'
        )
    middle, half_up = (LEFT + right) / 2, (TOP + floor) / 2
    parts.append(f'<line class="axis" x1="{LEFT:g}" x2="{right:g}" y1="{floor:g}" y2="{floor:g}"/>')
    parts.append(_label("along", f'x="{middle:g}" y="{frame.height - 8:g}"', study["x_label"]))
    parts.append(_label("up", f'transform="translate(14 {half_up:g}) rotate(-90)"', y_label))
    return "".join(parts)


def _label(side: str, place: str, text: str) -> str:
    return f'<text class="label {side}" {place} text-anchor="middle">{escape(text)}</text>'


def _name_ticks(frame: Frame, origin: str | None) -> list[tuple[float, str]]:
    about = 9 if frame.width > _BROAD else 6
    if origin is None:
        return [(tick, format_number(tick)) for tick in choose_ticks(*frame.x_range, about)]
    return choose_date_ticks(*frame.x_range, about, origin)


def x_name(x: float, origin: str | None) -> str:
    """How x is written on an axis: a number, or a date."""
    if origin is None:
        return format_number(x)
    return (date.fromisoformat(origin) + timedelta(days=round(x))).isoformat()


def choose_ticks(low: float, high: float, about: int) -> list[float]:
    """Round numbers inside [low, high], roughly as many as asked for."""
    rough = (high - low) / max(about, 1)
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * unit for factor in (1, 2, 2.5, 5, 10) if factor * unit >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round(place * step, 12) for place in range(first, math.floor(high / step + 1e-9) + 1)]


def choose_date_ticks(low: float, high: float, about: int, origin: str) -> list[tuple[float, str]]:
    """First days of months, roughly as many as asked for, with their names; days if there are few months. x counts days."""
    first = date.fromisoformat(origin)
    months = next((step for step in _MONTHS if (high - low) / 30.8 / step <= about), _MONTHS[-1])
    ticks, start = [], first + timedelta(days=math.floor(low))
    for number in range(start.year * 12 + start.month - 1, 12 * date.max.year):
        day = float((date(number // 12, number % 12 + 1, 1) - first).days)
        if day > high:
            break
        if number % months == 0 and day >= low:
            ticks.append((day, f"{number // 12}-{number % 12 + 1:02d}" if months < 12 else f"{number // 12}"))
    if len(ticks) > 2:
        return ticks
    return [(tick, x_name(tick, origin)) for tick in choose_ticks(low, high, min(about, 5)) if tick == round(tick)]
