"""Private quantiles of a column: a small, named share of the budget for bounds that are not known in public."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dpfda import _validate
from dpfda._typing import Interval
from dpfda.errors import InvalidInput
from dpfda.methods.run import run_study
from dpfda.protocol.plans.quantiles import STEPS, quantile_plan
from dpfda.protocol.statement import PrivacyStatement, statement
from dpfda.silo.silo import Silo
from dpfda.transports.in_process import InProcessTransport


@dataclass(frozen=True)
class PrivateQuantiles:
    """Released quantiles; `share_sd` is the noise in every comparison, as a share of the subjects."""

    levels: tuple[float, ...]
    values: tuple[float, ...]
    resolution: float
    share_sd: float
    privacy_: PrivacyStatement


def private_quantiles(
    silo: Silo,
    levels: Sequence[float],
    *,
    domain: Interval,
    search: Interval,
    run: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> PrivateQuantiles:
    """Release quantiles of y over a PUBLIC range `search`, every subject weighing the same.

    Guarantee: all releases together are (epsilon, delta)-DP with the silo's epsilon and delta, debited to its ledger
    like a fit. With the `run` of an earlier call that was stopped, its answers are replayed from the ledger and nothing
    is paid twice.

    | input | result |
    |---|---|
    | a value outside `search` | counts as the nearer end |
    | a subject without points | counts half below, half above every threshold |
    | one subject | noise; the guarantee holds |
    """
    checked = [_validate.fraction("levels", level) for level in levels]
    if len(set(checked)) != len(checked) or not checked:
        raise InvalidInput("levels must hold at least one level, each once.")
    domain, search = _validate.interval("domain", domain), _validate.interval("search", search)
    named = silo.in_fit(silo.name, None)
    terms = named.terms()
    plan = quantile_plan(terms, checked, domain, search)
    outcome = run_study(plan, InProcessTransport([named]), run or secrets.token_hex(8), progress)
    low, high = search
    values = tuple(float((low + high) / 2 + (high - low) / 2 * unit) for unit in outcome.coefficients)
    share_sd = 1 / (terms.n * plan.statistic_mus(terms.name, 0)[0])
    resolution = (high - low) / 2**STEPS
    return PrivateQuantiles(tuple(checked), values, resolution, share_sd, statement(plan, private=outcome.private))
