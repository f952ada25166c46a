"""`dpfda fit`: from a table to a private curve, a report and a ledger that shows the price."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dpfda.cli.fit import options
from dpfda.cli.new_app import example, new_app
from dpfda.cli.terminal import Terminal

if TYPE_CHECKING:
    from dpfda.cli.fit.request import FitRequest
    from dpfda.cli.fit.runs import Run
    from dpfda.curves.tables import Loaded
    from dpfda.privacy.ledger.ledger import Ledger
    from dpfda.report.document import Document

app = new_app()

_EXAMPLES = example(
    "dpfda fit visits.csv --id pid --x age --y hdl --domain 20:90 --y-bounds 0:150 --epsilon 1 --delta 1e-5 "
    "--report hdl.html",
    "dpfda fit visits.parquet --id pid --x age --y hdl --design bmi,smoker --bounds bmi=10:70 "
    "--levels smoker=never,former,current --domain 20:90 --y-bounds 0:150 --epsilon 1 --delta 1e-5",
    "dpfda fit postgresql://me@server/clinic --query 'SELECT pid, age, hdl FROM visits' --id pid --x age --y hdl "
    "--domain 20:90 --y-bounds 0:150 --epsilon 1 --delta 1e-5",
    "dpfda fit visits.csv --id pid --x age --y sbp --y dbp --domain 20:90 --y-bounds sbp=60:250 --y-bounds dbp=30:150 "
    "--epsilon 1 --delta 1e-5 --report blood-pressure.html",
    "dpfda fit study.toml --dry-run",
)


@app.command(epilog=_EXAMPLES)
def fit(
    ctx: typer.Context,
    source: options.Source,
    id_: options.Id = None,
    x: options.X = None,
    y: options.Y = None,
    visits: options.Visits = None,
    wide: options.Wide = None,
    query: options.Query = None,
    separator: options.Separator = None,
    decimal: options.Decimal = None,
    sheet: options.Sheet = None,
    date_format: options.DateFormat = None,
    missing: options.Missing = None,
    strip_units: options.StripUnits = None,
    y_levels: options.YLevels = None,
    outside: options.Outside = None,
    duplicates: options.Duplicates = None,
    scratch: options.Scratch = None,
    engine: options.Engine = None,
    design: options.Design = None,
    bounds: options.Bounds = None,
    levels: options.Levels = None,
    reference: options.Reference = None,
    fill_down: options.FillDown = None,
    method: options.Method = None,
    variant: options.Variant = None,
    basis: options.Basis = None,
    n_basis: options.NBasis = None,
    alpha: options.Alpha = None,
    points_per_curve: options.PointsPerCurve = None,
    assume_symmetric: options.AssumeSymmetric = None,
    outcome: options.Outcome = None,
    transform: options.Transform = None,
    weight: options.Weight = None,
    visit_cap: options.VisitCap = None,
    visit_times: options.VisitTimes = None,
    domain: options.Domain = None,
    y_bounds: options.YBounds = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    ledger: options.Ledger = None,
    run: options.Run = None,
    report: options.Report = None,
    json_: options.Json = None,
    figure: options.Figure = None,
    overwrite: options.Overwrite = None,
    level: options.Level = None,
    title: options.Title = None,
    x_label: options.XLabel = None,
    y_label: options.YLabel = None,
    dry_run: options.DryRun = False,
    yes: options.Yes = False,
) -> None:
    """Estimate a mean curve, or with --design coefficient curves, under differential privacy for whole subjects.

    Domain and bounds must be public facts: choose them by definition, never by looking at the data (dpfda describe
    helps). Every answer is written to the data set's ledger together with its cost; a fit that would overspend is refused
    before the data are read. The same command again is a new study and costs again, unless the first stopped before its
    result was written: then it resumes without spending budget twice.
    """
    from dpfda.cli.fit.outcomes import take_single
    from dpfda.cli.fit.request import make_request
    from dpfda.cli.settings import merge_settings

    typed = {name.rstrip("_"): value for name, value in ctx.params.items() if name not in ("dry_run", "yes")}
    settings = merge_settings(take_single(typed))
    request = make_request(settings)
    if request.settings["outcome"] != settings["outcome"]:
        ctx.obj.say("--y-levels declares that y is one of two values: --y-bounds 0:1 --outcome binary.")
    if dry_run:
        from dpfda.cli.fit.dry_run import show_dry_run

        show_dry_run(request, ctx.obj)
    else:
        run_fit(request, ctx.obj, yes=yes)


def run_fit(request: FitRequest, terminal: Terminal, *, yes: bool = False) -> Document:
    """Check the budget, read, spend, write, report: in this order."""
    from dpfda.cli.fit.engine import read_table
    from dpfda.cli.fit.first_budget import set_first_budget
    from dpfda.cli.fit.runs import choose_run
    from dpfda.cli.fit.spending import confirm_doubts, confirm_large_delta, refuse_overspending
    from dpfda.cli.summary import print_summary

    if not request.ledger.exists and terminal.can_ask:
        set_first_budget(request, terminal)
    ledger = request.ledger.open()
    run = choose_run(request, ledger, terminal)
    if run.is_new:
        refuse_overspending(ledger, request.ledger, request.epsilon, request.delta)
    with terminal.progress(f"Reading {request.source.shown}") as advance:
        loaded = read_table(request, advance)
    terminal.owner_notes(loaded.owner_notes)
    confirm_large_delta(request.delta, loaded.curves.n, terminal, yes=yes)
    confirm_doubts(loaded.owner_doubts, terminal, yes=yes)
    document = _spend(request, loaded, ledger, run, terminal)
    written = request.outputs.write(document, [*request.ledger.folders, Path.cwd()])
    ledger.finish(run.name)
    if request.outputs.json != "-":
        print_summary(document, terminal)
    for path in written:
        terminal.say(f"Wrote {path}")
    return document


def _spend(request: FitRequest, loaded: Loaded, ledger: Ledger, run: Run, terminal: Terminal) -> Document:
    """The fit itself, with the library's warnings as sentences."""
    from dpfda.cli.fit.forecast import forecast, forecast_outcomes
    from dpfda.cli.fit.outcomes import list_warnings
    from dpfda.cli.fit.runs import compute_spent_before, explain_changed_terms, resume_run
    from dpfda.cli.fit.spending import make_budget_change
    from dpfda.cli.settings import write_toml
    from dpfda.cli.summary import write_for_the_command_line
    from dpfda.curves.tables.source import redact_password
    from dpfda.errors import LargeDeltaWarning, ProtocolError
    from dpfda.protocol.plans import make_plan
    from dpfda.protocol.terms import plain_name
    from dpfda.report.document import make_result_document
    from dpfda.report.outcomes import make_outcomes_document
    from dpfda.silo.silo import Silo

    studies = {name: one.study(loaded) for name, one in (request.each or {"": request}).items()}
    study, estimator = next(iter(studies.values())), request.estimator()
    silo = Silo(
        loaded.curves,
        epsilon=request.epsilon,
        delta=request.delta,
        name=plain_name(f"{study.model} of {request.name_outcomes()} over {study.x}, {study.source}"),
        points_per_curve=request.options.get("points_per_curve"),
        ledger=ledger,
    )
    plan = make_plan(request.make_terms(silo))
    resume_run(run, ledger, plan, silo.name, loaded.curves, terminal)
    try:
        with warnings.catch_warnings(record=True) as caught, terminal.progress("Fitting") as advance:
            warnings.simplefilter("always")
            fitted = estimator.fit(silo, run=run.name, progress=advance)
    except ProtocolError as error:
        raise explain_changed_terms(run) from error
    said = [warning.message for warning in caught if warning.category is not LargeDeltaWarning]  # asked about before
    known = list_warnings(fitted)
    for sentence in dict.fromkeys(str(each) for each in said if str(each) not in known):
        terminal.say(f"Note: {write_for_the_command_line(sentence)}")
    circumstances: dict[str, Any] = {
        "budget": make_budget_change(request.ledger, compute_spent_before(ledger, run.name), ledger.spent()),
        "command": redact_password(terminal.command),
        "settings": redact_password(write_toml(request.settings)),
        "run": run.name,
    }
    if request.each:
        title, expected = request.settings["title"] or "", forecast_outcomes(request, n=loaded.curves.n)
        return make_outcomes_document(fitted, studies, title=title, forecasts=expected, **circumstances)
    return make_result_document(fitted, study, forecast=forecast(request, n=loaded.curves.n), **circumstances)
