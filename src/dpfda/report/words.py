"""Numbers and sentences that reports and terminals share."""

from __future__ import annotations

import math
from collections.abc import Mapping


def number(value: float | None, digits: int = 4) -> str:
    """A number to read: four significant digits, no exponent in the everyday range."""
    if value is None or not math.isfinite(value):
        return "–"
    if value != 0 and not 1e-4 <= abs(value) < 1e7:
        return f"{value:.{digits - 1}e}"
    places = max(0, digits - 1 - (math.floor(math.log10(abs(value))) if value else 0))
    text = f"{value:,.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def tiny(value: float) -> str:
    """A small probability as people write it: 10⁻⁵, 3×10⁻⁶."""
    mantissa, exponent = f"{value:.2e}".split("e")
    power = "10" + str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return power if float(mantissa) == 1 else f"{float(mantissa):g}×{power}"


def rms_sentence(error: Mapping[str, float], unit: str, functions: int = 1) -> str:
    """The expected error in the units of y, and where it comes from, as far as that is known.

    Errors of several coefficient functions are added up, each in its own units.
    """
    total = max(error["total"], 0.0)
    known = [part for part in ("privacy", "sampling", "bias") if part in error and total > 0]
    shares = ", ".join(f"{error[part] / total:.0%} {part}" for part in known) or "sampling and privacy together"
    size = number(math.sqrt(total), 3)
    if functions > 1:
        return (
            f"Expected error, root mean square over the domain: {size}, all {functions} functions added up ({shares})."
        )
    return f"Expected error, root mean square over the domain: {size} in units of {unit} ({shares})."
