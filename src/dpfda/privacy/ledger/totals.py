"""Prices that are added up exactly: a running total equals the sum over all debits to the last bit.

A price mu^2 is a floating-point number, hence a multiple of 2^-1074: totals are whole numbers of that unit, as hexadecimal
text. Read back they are rounded once, as `math.fsum` would.
"""

from __future__ import annotations

from collections.abc import Iterable

from dpfda.errors import InvalidInput
from dpfda.privacy.accounting import Event

_UNIT = 2**1074


def exact(value: float) -> int:
    """A finite float in units of 2^-1074."""
    numerator, denominator = value.as_integer_ratio()
    return numerator * (_UNIT // denominator)


def rounded(total: int) -> float:
    """The nearest float."""
    return total / _UNIT


def cost(event: Event) -> int:
    """The price mu^2 of one event, at least one unit."""
    try:
        return max(1, exact(event.mu**2))
    except OverflowError:
        raise InvalidInput(f"mu = {event.mu!r} is absurdly large.") from None


def run_price(common: int, dearest: int) -> int:
    """The price of one run: events of all curves and the dearest part, rounded as `accounting.mu_squared` does."""
    return exact(rounded(common + dearest))


def price_of(events: Iterable[Event]) -> int:
    """The same from the events: `accounting.mu_squared`, exactly."""
    common = 0
    parts: dict[int, int] = {}
    for event in events:
        if event.part is None:
            common += cost(event)
        else:
            parts[event.part] = parts.get(event.part, 0) + cost(event)
    return run_price(common, max(parts.values(), default=0))


def text(total: int) -> str:
    """How a total is written."""
    return f"{total:x}"


def read(written: str) -> int:
    """A total as it was written."""
    return int(written, 16)
