"""Private quantiles by noisy bisection as a plan: equal shares of the budget for a fixed number of comparisons."""

from __future__ import annotations

from collections.abc import Sequence

from dpfda._typing import Interval
from dpfda.basis.basis import make_basis
from dpfda.protocol.plan import Plan, Round, SiloPlan
from dpfda.protocol.scaling import Scaling
from dpfda.protocol.statistics import ShareBelow
from dpfda.protocol.terms import SiloTerms

METHOD = "quantiles"
STEPS = 10  # the last bracket is a thousandth of the searched range


def quantile_plan(terms: SiloTerms, levels: Sequence[float], domain: Interval, search: Interval) -> Plan:
    """Equal shares for STEPS rounds of every level; y is mapped from the searched range to [-1, 1]."""
    low, high = search
    rounds = tuple(Round((ShareBelow(level),)) for level in levels for _ in range(STEPS))
    shares = ((1 / len(rounds),),) * len(rounds)
    return Plan(
        method=METHOD,
        algorithm="quantiles by noisy bisection",
        basis=make_basis("cosine", 1, domain),
        n_coefficients=1,
        scaling=Scaling(search, ((1.0, 1.0),), (low + high) / 2, (high - low) / 2),
        rounds=rounds,
        silos=(SiloPlan(terms, shares=shares),),
    )
