"""What all fits to one data object have spent together: every fit's statement says it."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dpfda.curves.curves import Curves
from dpfda.curves.outcomes import Outcomes
from dpfda.protocol.statement import PrivacyStatement, SiloPrivacy
from dpfda.silo.silo import Silo

_spent: dict[int, dict[int, float]] = {}  # mu^2 of every fit to raw curves, by the identity of the object; gone with it
_fits = itertools.count()


def state_totals(privacy: PrivacyStatement, data: Any, silos: Sequence[Silo]) -> PrivacyStatement:
    """The statement with the total that was spent on each data object, this fit included."""
    items = [data] if isinstance(data, Curves | Outcomes | Silo) else list(data)
    totals = {
        silo.name: silo.ledger.spent().mu_squared
        if isinstance(item, Silo)
        else _add_raw(item, next(each for each in privacy.silos if each.name == silo.name))
        for item, silo in zip(items, silos, strict=True)
    }
    return replace(privacy, silos=tuple(each.with_total(totals[each.name]) for each in privacy.silos))


def _add_raw(data: Curves | Outcomes, spent: SiloPrivacy) -> float:
    """Remember this fit with all curves that it read; what all fits to any of them have spent, each counted once."""
    fit = next(_fits)
    known: dict[int, float] = {}
    for curves in data if isinstance(data, Outcomes) else (data,):
        key = id(curves)
        if key not in _spent:
            weakref.finalize(curves, _spent.pop, key, None)
        _spent.setdefault(key, {})[fit] = spent.mu**2
        known |= _spent[key]
    return sum(known.values())
