"""`dpfda fit --dry-run`: the settings as TOML, the price, and the error to expect. Reads, checks, spends nothing."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from dpfda.cli.fit.engine import read_here
from dpfda.cli.fit.forecast import forecast, forecast_outcomes, guess_points_per_curve
from dpfda.cli.fit.request import FitRequest
from dpfda.cli.fit.spending import describe_large_delta, refuse_overspending
from dpfda.cli.settings import write_toml
from dpfda.cli.terminal import Terminal
from dpfda.errors import BudgetExceeded
from dpfda.protocol.transforms import NO_TRANSFORM, name_transformed
from dpfda.report.formatting import describe_error

if TYPE_CHECKING:
    from dpfda.curves.tables import Loaded


def show_dry_run(request: FitRequest, terminal: Terminal) -> None:
    """Print what `dpfda fit` would do, as a TOML file that does it."""
    with terminal.waiting(f"Reading {request.source.shown}"):
        loaded = read_here(request)
    terminal.owner_notes([*loaded.owner_notes, *loaded.owner_doubts])
    wrong = describe_large_delta(request.delta, loaded.curves.n)
    if wrong is not None:
        terminal.say(f"Warning: {wrong}.")
    lines = [*_price(request, terminal), *_expectation(request, loaded)]
    sys.stdout.write("".join(f"# {line}\n" for line in lines) + write_toml(request.settings))


def _price(request: FitRequest, terminal: Terminal) -> list[str]:
    from dpfda.cli.fit.runs import choose_run
    from dpfda.privacy.accounting import gaussian_epsilon, mu_for

    cost = mu_for(request.epsilon, request.delta) ** 2
    would = f"Would spend at most epsilon = {request.epsilon:g}, delta = {request.delta:g}"
    if not request.ledger.exists:
        return [f"{would} from the new ledger {request.ledger.shown}, which would hold just this."]
    ledger = request.ledger.open()
    run = choose_run(request, ledger, terminal)
    if not run.is_new:
        return [f"Would resume run {run.name} of {request.ledger.shown} without paying twice for what it has released."]
    spent = ledger.spent()
    after = gaussian_epsilon((spent.mu_squared + cost) ** 0.5, spent.delta)
    lines = [
        f"{would} from {request.ledger.shown}:",
        f"epsilon {spent.epsilon:.4g} -> {after:.4g} of {spent.total_epsilon:g} at delta = {spent.delta:g}.",
    ]
    try:
        refuse_overspending(ledger, request.ledger, request.epsilon, request.delta)
    except BudgetExceeded:
        lines.append("It would be REFUSED: the budget is not large enough.")
    return lines


def _expectation(request: FitRequest, loaded: Loaded) -> list[str]:
    subjects = f"{loaded.curves.n:,} subjects (their number is public)."
    if request.each:
        found = forecast_outcomes(request, n=loaded.curves.n)
        lines = [_describe_expected(one, loaded, found[name]) for name, one in request.each.items()]
        return [subjects, *lines, _assumption(request)]
    expected = forecast(request, n=loaded.curves.n)
    if expected is None:
        return [subjects, f"Expected error: the method {request.options['method']!r} has no forecast."]
    return [subjects, _describe_expected(request, loaded, expected), _assumption(request), *_describe_weight(request)]


def _describe_expected(request: FitRequest, loaded: Loaded, expected: dict[str, float]) -> str:
    y = request.settings["y-label"] or request.reading.y or "y"
    unit = name_transformed(request.settings["transform"] or NO_TRANSFORM, y)
    return describe_error(expected, unit, len(loaded.functions))


def _assumption(request: FitRequest) -> str:
    points = guess_points_per_curve(request)
    return f"It assumes {points:g} points per subject (--points-per-curve), evenly over the domain, and {_typical(request)}."


def _describe_weight(request: FitRequest) -> list[str]:
    if "visit_cap" not in request.options:
        return []
    cap = request.options["visit_cap"]
    return [f"Every visit counts equally, up to {cap:,} of a subject; the forecast assumes that all have as many."]


def _typical(request: FitRequest) -> str:
    if request.options.get("outcome") != "binary":
        return "typical curves"
    return "a share of 0.5; 'dpfda plan --outcome binary --prevalence' forecasts another"
