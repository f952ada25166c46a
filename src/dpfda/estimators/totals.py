"""What all fits to one data object have spent together: every fit's statement says it."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dpfda.curves.curves import Curves
from dpfda.protocol.statement import PrivacyStatement, SiloPrivacy
from dpfda.silo.silo import Silo

_spent: dict[int, float] = {}  # mu^2 of raw curves, by the identity of the object; gone with it


def state_totals(privacy: PrivacyStatement, data: Any, silos: Sequence[Silo]) -> PrivacyStatement:
    """The statement with the total that was spent on each data object, this fit included."""
    items = [data] if isinstance(data, Curves | Silo) else list(data)
    totals = {
        silo.name: _add_raw(item, next(each for each in privacy.silos if each.name == silo.name))
        if isinstance(item, Curves)
        else silo.ledger.spent().mu_squared
        for item, silo in zip(items, silos, strict=True)
    }
    return replace(privacy, silos=tuple(each.with_total(totals[each.name]) for each in privacy.silos))


def _add_raw(curves: Curves, spent: SiloPrivacy) -> float:
    key = id(curves)
    if key not in _spent:
        weakref.finalize(curves, _spent.pop, key, None)
    _spent[key] = _spent.get(key, 0.0) + spent.mu**2
    return _spent[key]
