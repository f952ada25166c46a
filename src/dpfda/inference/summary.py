"""The text of a result, in the manner of statsmodels."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from dpfda.inference.curve_scale import MEANS
from dpfda.inference.places import write_place
from dpfda.inference.showing import write_table
from dpfda.protocol.transforms import NO_TRANSFORM

if TYPE_CHECKING:
    from dpfda.inference.answers import Answers
    from dpfda.inference.curve import ReleasedCurve

_WIDTH, _PLACES = 100, 7
_MORE_LIKELY = 0.5


_TAKEN_BACK = {
    "log": "the mean of log({y}), transformed back by exp",
    "log1p": "the mean of log(1 + {y}), transformed back by exp and minus 1",
    "sqrt": "the mean of the square root of {y}, squared",
}


def write_estimand(
    y: str,
    x: str,
    limits: tuple[float, float],
    transform: str = NO_TRANSFORM,
    *,
    binary: bool = False,
    visit_cap: int | None = None,
) -> str:
    """What the mean is a mean of, unless the method says otherwise; of a y that is declared binary, a share."""
    low, high = limits
    weighing, units = "Every subject counts equally", "subjects"
    if visit_cap is not None:
        units = "visits"
        weighing = f"Every visit counts equally, but a subject with more than {visit_cap} counts as {visit_cap}"
    if binary:
        share = "the share" if limits == (0, 1) else f"{low:g} plus {high - low:g} times the share"
        return f"{weighing}: {share} of {units} with {y} = {high:g} at each {x}."
    clamped = f"a value outside {low:g} to {high:g} counting as the nearer of the two."
    if transform == NO_TRANSFORM:
        return f"{weighing}: the mean over {units} of {y} at each {x}, {clamped}"
    meaning = _TAKEN_BACK[transform].format(y=y)
    return (
        f"{weighing}: the {MEANS[transform]} over {units} of {y} at each {x} ({meaning}), {clamped} "
        f"It is not the mean of {y}: where {y} varies it is smaller, and nearer to the median if {y} is skewed to the right."
    )


def write_differing_sites(i_squared: tuple[float, float, float], probability: float, mean: str) -> list[str]:
    """That sites differ, by how much, and which mean is shown; nothing where they are more likely alike.

    `mean` is the name of the mean of all sites together: over subjects, or over visits.
    """
    if probability <= _MORE_LIKELY:
        return []
    share, low, high = (f"{value:.0%}" for value in i_squared)
    return [
        f"The sites differ: I^2 of the level is {share} (95% interval {low} to {high}). The curve and its band are those of "
        f"one mean common to all sites; the {mean}, whose band allows for sites that differ, is sites_.mean() of "
        "the fit (in the report: the sites)."
    ]


def write_summary(answers: Answers, level: float) -> str:
    """What was estimated, a table of curves with tests, values of the first curve, and the promise."""
    curves = answers.list_curves()
    what = MEANS[answers.transform_].capitalize() if answers.coding_.is_mean else "Varying coefficients"
    title = f"{what} of {answers.y_name} over {answers.x_name}"
    low, high = map(curves[0].write_place, curves[0].domain)
    parts = [
        title,
        "=" * _WIDTH,
        *_wrap([answers.estimand_] if answers.estimand_ else []),
        *_wrap(answers.describe_sites()),
        *_wrap([f"Warning: {sentence}" for sentence in answers.warnings_]),
        f"Domain of {answers.x_name}: {low} to {high}.",
        "-" * _WIDTH,
        write_table(_table_of_curves(curves, level)),
        "-" * _WIDTH,
        f"{curves[0].name}:",
        write_table(_table_of_values(curves[0], level)),
        "-" * _WIDTH,
        *_wrap(answers.describe_privacy()),
    ]
    return "\n".join(parts)


def write_outcomes_summary(each: Mapping[str, Answers], privacy: list[str], level: float) -> str:
    """A table of the curves of all outcomes, what was warned of, and the promise that covers all of them."""
    first = next(iter(each.values()))
    low, high = map(first.list_curves()[0].write_place, first.list_curves()[0].domain)
    parts = [f"{len(each)} outcomes over {first.x_name}: {', '.join(each)}", "=" * _WIDTH]
    parts += _wrap([f"{name}: {answers.estimand_}" for name, answers in each.items() if answers.estimand_])
    for name, answers in each.items():
        parts += _wrap([f"{name}: {sentence}" for sentence in answers.describe_sites()])
        parts += _wrap([f"Warning ({name}): {sentence}" for sentence in answers.warnings_])
    parts += [f"Domain of {first.x_name}: {low} to {high}.", "-" * _WIDTH]
    for name, answers in each.items():
        parts += [f"{name}:", write_table(_table_of_curves(answers.list_curves(), level)), "-" * _WIDTH]
    return "\n".join([*parts, *_wrap(privacy)])


def write_summary_html(answers: Answers, level: float = 0.95) -> str:
    """The same for notebooks."""
    return f"<pre>{escape(write_summary(answers, level))}</pre>"


def _wrap(sentences: list[str]) -> list[str]:
    return [textwrap.fill(sentence, _WIDTH) for sentence in sentences]


def _table_of_curves(curves: list[ReleasedCurve], level: float) -> dict[str, list[str]]:
    table = {"curve": [curve.name for curve in curves], "average": [_number(float(c.mean_over())) for c in curves]}
    if not all(curve.has_band for curve in curves):
        return table
    intervals = [curve.mean_over().interval(level) for curve in curves]
    table[f"{level:.0%} interval"] = [f"{_number(low)} to {_number(high)}" for low, high in intervals]
    table["half band"] = [_number(_median_half(curve, level)) for curve in curves]
    zero = "p: ratio 1" if any(curve.scale.is_ratio for curve in curves) else "p: zero"
    table[zero] = ["-" if curve.scale.is_mean else _p(curve.is_zero(level).p_value) for curve in curves]
    table["p: constant"] = [_p(curve.is_constant(level).p_value) for curve in curves]
    return table


def _median_half(curve: ReleasedCurve, level: float) -> float:
    lower, upper = curve.band(level)
    return float(np.median(upper - lower)) / 2


def _table_of_values(curve: ReleasedCurve, level: float) -> dict[str, list[str]]:
    x = np.linspace(*curve.domain, _PLACES)
    places = [write_place(value, curve.x_origin) for value in x]
    table = {curve.x_name: places, "estimate": [_number(value) for value in curve(x)]}
    if curve.has_band:
        lower, upper = curve.band(level, x)
        table["s.e."] = [_number(value) for value in curve.standard_error(x)]
        table[f"{level:.0%} band"] = [f"{_number(a)} to {_number(b)}" for a, b in zip(lower, upper, strict=True)]
    return table


def _number(value: float) -> str:
    return f"{value:.4g}"


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.3f}"
