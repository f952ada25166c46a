"""Numbers and sentences that reports and terminals share."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from typing import Any

from dpfda.inference.curve_scale import CurveScale
from dpfda.inference.result_model import read_transform


def format_number(value: float | None, digits: int = 4) -> str:
    """A number to read: four significant digits, no exponent in the everyday range."""
    if value is None or not math.isfinite(value):
        return "–"
    if value != 0 and not 1e-4 <= abs(value) < 1e7:
        return f"{value:.{digits - 1}e}"
    places = max(0, digits - 1 - (math.floor(math.log10(abs(value))) if value else 0))
    text = f"{value:,.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def format_small(value: float) -> str:
    """A small probability as people write it: 10⁻⁵, 3×10⁻⁶."""
    mantissa, exponent = f"{value:.2e}".split("e")
    power = "10" + str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return power if float(mantissa) == 1 else f"{float(mantissa):g}×{power}"


SOURCES = {"privacy": "privacy noise", "sampling": "sampling of subjects", "bias": "smoothing"}


def describe_error(error: Mapping[str, float], unit: str, functions: int = 1) -> str:
    """The expected error in the units of y (or of its transform), and where it comes from.

    Errors of several coefficient functions are added up, each in its own units.
    """
    total = max(error["total"], 0.0)
    shares = ", ".join(f"{error[part] / total:.0%} {words}" for part, words in SOURCES.items()) if total > 0 else ""
    size = format_number(math.sqrt(total), 3) + ("" if functions > 1 else f" in units of {unit}")
    whose = "" if functions == 1 else f" of the {functions} coefficient curves together, each in its own units"
    return f"Expected error{whose}, root mean square over the domain: {size}" + (
        f"; its square is {shares}." if shares else "."
    )


def name_error_unit(document: Mapping[str, Any]) -> str:
    """What errors are errors of: y by its label, or its transform."""
    return CurveScale(read_transform(document["model"]), None).label(document["study"]["y_label"])


def count_subjects(document: Mapping[str, Any]) -> int:
    """The public number of subjects."""
    return sum(int(silo["n"]) for silo in document["privacy"]["silos"])


def describe_contributing(document: Mapping[str, Any]) -> str:
    """`of whom about 12,000 contribute`: how many have points in the domain, from releases; empty if these do not say."""
    about, subjects = document.get("contributing"), count_subjects(document)
    if about is None:
        return ""
    return "nearly all of whom contribute" if about >= subjects else f"of whom about {about:,} contribute"


def typical_half_width(function: Mapping[str, Any]) -> float | None:
    """The median over the domain of half the width of a function's band."""
    if function["low"] is None:
        return None
    sides = zip(function["low"], function["high"], strict=True)
    widths = [high - low for low, high in sides if low is not None and high is not None]
    return statistics.median(widths) / 2 if widths else None
