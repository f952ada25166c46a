"""Private quantiles of a column: a small, stated share of the budget for bounds that are not publicly known."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dpfda import _validate
from dpfda._typing import Interval
from dpfda.errors import InvalidInput
from dpfda.methods.run import run_study
from dpfda.protocol.plans.quantiles import STEPS
from dpfda.protocol.plans.registry import make_plan
from dpfda.protocol.statement import PrivacyStatement, statement
from dpfda.protocol.terms import SiloTerms, StudyTerms
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
    """Release quantiles of y over a PUBLIC range `search`, every subject counting equally.

    Parameters
    ----------
    silo : Silo
        Whose data are asked; its (epsilon, delta) is spent as a whole.
    levels : sequence of float
        Between 0 and 1, each once.
    domain : (low, high)
        PUBLIC range of x; points outside do not count.
    search : (low, high)
        PUBLIC range of y in which to search; the resolution of the result is its length over 2^`STEPS`.
    run : str, optional
        Names the search in the ledger. With the name of a search that was stopped, its answers are replayed from the
        ledger and nothing is paid twice.
    progress : callable, optional
        Called as ``progress(rounds_done, rounds_planned)``.

    Returns
    -------
    PrivateQuantiles

    Notes
    -----
    Guarantee: all releases together are (epsilon, delta)-differentially private with the silo's epsilon and delta, debited
    to its ledger like a fit.

    | input | result |
    |---|---|
    | a value outside `search` | counts as the nearer end |
    | a subject without points | counts half below, half above every threshold |
    | one subject | noise; the guarantee holds |

    Examples
    --------
    >>> from dpfda import Silo
    >>> from dpfda.curves.simulated import simulate_mean
    >>> from dpfda.estimators.private_quantiles import private_quantiles
    >>> silo = Silo(simulate_mean(2000, 6, rng=1), epsilon=1, delta=1e-5, random_state=1)
    >>> found = private_quantiles(silo, [0.1, 0.5, 0.9], domain=(0, 1), search=(-10, 10))
    >>> [round(value, 1) for value in found.values]
    [-0.4, 0.8, 2.0]
    >>> round(found.share_sd, 3)
    0.01
    """
    named = silo.in_fit(silo.name, None)
    terms = quantile_terms(named.terms(), levels, domain=domain, search=search)
    plan = make_plan(terms)
    outcome = run_study(terms, InProcessTransport([named]), run or secrets.token_hex(8), progress)
    low, high = terms.y_bounds
    values = tuple(float((low + high) / 2 + (high - low) / 2 * unit) for unit in outcome.coefficients)
    share_sd = 1 / (plan.silos[0].n * plan.statistic_mus(named.name, 0)[0])
    resolution = (high - low) / 2**STEPS
    return PrivateQuantiles(terms.levels, values, resolution, share_sd, statement(plan, private=outcome.private))


def quantile_terms(silo_terms: SiloTerms, levels: Sequence[float], *, domain: Interval, search: Interval) -> StudyTerms:
    """The terms of a search for quantiles."""
    checked = [_validate.fraction("levels", level) for level in levels]
    if len(set(checked)) != len(checked) or not checked:
        raise InvalidInput("levels must hold at least one level, each once.")
    domain, search = _validate.interval("domain", domain), _validate.interval("search", search)
    return StudyTerms("quantiles", domain, search, (silo_terms,), levels=tuple(checked))
