"""`dpfda describe`: how to choose bounds without leaking, and a range estimated privately where nothing is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpfda.cli.fit import options
from dpfda.cli.new_app import example, new_app
from dpfda.cli.terminal import Terminal, show_plainly

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dpfda._typing import Interval
    from dpfda.curves.known_ranges import KnownMeasure
    from dpfda.estimators.private_quantiles import PrivateQuantiles

app = new_app()

LEVELS = (0.01, 0.99)
GUIDE = """\
Domain and bounds are part of the promise, so they must be known without the data:
  1. x: see the study's design (ages that could enter, length of follow-up).
  2. y: see the instrument, the definition of the score, or physiology; be generous, the method adapts to the data inside.
  3. Covariates: the questionnaire lists the levels; numbers have physical limits.
  4. Look it up: the protocol, the data dictionary, a published table of ANOTHER population.
  5. Do not look at minima, maxima, histograms or outliers of these data: every such look leaks and is not counted.
Bounds ten times too wide cost the default method little; bounds that cut off real values bias the curve.
"""

_EXAMPLES = example(
    "dpfda describe hdl",
    "dpfda describe visits.csv",
    "dpfda describe visits.csv --id pid --x age --y crp --search 0:500 --epsilon 0.1 --delta 1e-6",
)
_What = Annotated[str | None, typer.Argument(help="A measure (hdl, bmi, ...) or your table.", show_default=False)]
_Y = Annotated[
    str | None,
    typer.Option(
        "--y",
        rich_help_panel=options.DATA,
        help="Column of the value; with --wide, how the names of its columns begin.",
        show_default=False,
    ),
]
_Search = Annotated[
    str | None, typer.Option("--search", help="PUBLIC range that certainly contains y: releases quantiles.")
]


@app.command(epilog=_EXAMPLES)
def describe(
    ctx: typer.Context,
    what: _What = None,
    query: options.Query = None,
    id_: options.Id = None,
    x: options.X = None,
    y: _Y = None,
    domain: options.Domain = None,
    search: _Search = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    ledger: options.Ledger = None,
    run: options.Run = None,
    separator: options.Separator = None,
    decimal: options.Decimal = None,
    sheet: options.Sheet = None,
    date_format: options.DateFormat = None,
    missing: options.Missing = None,
    strip_units: options.StripUnits = None,
    yes: options.Yes = False,
) -> None:
    """Show which public facts to look up, plausible ranges of common measures and, with --search, private quantiles of y.

    Without --search no value of the data is read, only the names of a table's columns. With --search the 1% and
    99% quantiles of y are released for the stated epsilon, debited to the ledger like a fit; choose a small one. A
    stopped search resumes with the same command without spending budget twice.
    """
    if search is not None:
        _release(ctx.params, ctx.obj)
    elif what is None:
        ctx.obj.out.print(GUIDE)
        _print_known(None, ctx.obj)
    else:
        _advise(what, query, sheet, ctx.obj)


def _advise(what: str, query: str | None, sheet: str | None, terminal: Terminal) -> None:
    from pathlib import Path

    from dpfda.curves.known_ranges import find_measures

    if "://" in what or Path(what).exists() or "." in what:
        _print_columns(what, query, sheet, terminal)
        return
    _print_known(find_measures(what), terminal)


def _print_known(found: list[KnownMeasure] | None, terminal: Terminal) -> None:
    from rich.table import Table

    from dpfda.curves.known_ranges import KNOWN

    if found is not None and not found:
        terminal.out.print("No common measure of that name.\n\n" + GUIDE)
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for header in ("measure", "plausible range", "unit", "note"):
        table.add_column(header)
    for known in found or KNOWN:
        table.add_row(known.name, f"{known.low:g}:{known.high:g}", known.unit, known.why)
    terminal.out.print(table)


def _print_columns(what: str, query: str | None, sheet: str | None, terminal: Terminal) -> None:
    from dpfda.curves.known_ranges import find_measures
    from dpfda.curves.tables.batches import read_column_names
    from dpfda.curves.tables.source import find_source

    source = find_source(what, query, sheet)
    columns = read_column_names(source)
    terminal.out.print(f"Columns of {show_plainly(source.name)} (only their names were read):", markup=False)
    for column in columns:
        known = next(iter(find_measures(column)), None)
        hint = f"{known.name}: {known.low:g}:{known.high:g} {known.unit}" if known else "look it up"
        terminal.out.print(f"  {show_plainly(column):24} {hint}", markup=False)
    terminal.out.print("\n" + GUIDE, soft_wrap=True)


def _release(params: Mapping[str, Any], terminal: Terminal) -> None:
    """Release private quantiles: check, compare with the budget, read, spend, in this order."""
    from dpfda.cli import parsing
    from dpfda.cli.fit.request import make_request
    from dpfda.cli.fit.runs import choose_run, explain_changed_terms, resume_run
    from dpfda.cli.fit.spending import confirm_large_delta, refuse_overspending
    from dpfda.cli.settings import merge_settings
    from dpfda.curves.tables import load_curves
    from dpfda.errors import ProtocolError
    from dpfda.estimators.private_quantiles import private_quantiles, quantile_terms
    from dpfda.protocol.plans import make_plan
    from dpfda.protocol.terms import plain_name
    from dpfda.silo.silo import Silo

    typed = {name.rstrip("_"): value for name, value in params.items() if name not in ("what", "search", "yes")}
    wide_open = parsing.parse_ends("domain", params["domain"] or "-1e12:1e12")
    settings = merge_settings({**typed, "source": params["what"], "y-bounds": params["search"], "duplicates": "keep"})
    request = make_request({**settings, "domain": wide_open, "json": "-"})
    ledger = request.ledger.open()
    run = choose_run(request, ledger, terminal, kind="quantiles")
    if run.is_new:
        refuse_overspending(ledger, request.ledger, request.epsilon, request.delta)
    with terminal.waiting(f"Reading {request.source.shown}"):
        loaded = load_curves(request.source, request.reading)
    confirm_large_delta(request.delta, loaded.curves.n, terminal, yes=params["yes"])
    name = plain_name(f"quantiles of {request.reading.y}, {request.source.name}")
    silo = Silo(loaded.curves, epsilon=request.epsilon, delta=request.delta, name=name, ledger=ledger)
    domain, bounds = request.reading.domain.interval, request.reading.y_bounds
    plan = make_plan(quantile_terms(silo.terms(), LEVELS, domain=domain, search=bounds))
    resume_run(run, ledger, plan, silo.name, loaded.curves, terminal)
    try:
        with terminal.progress("Releasing") as advance:
            found = private_quantiles(silo, LEVELS, domain=domain, search=bounds, run=run.name, progress=advance)
    except ProtocolError as error:
        raise explain_changed_terms(run) from error
    _print_quantiles(found, str(request.reading.y), bounds, terminal)
    ledger.finish(run.name)
    spent = ledger.spent()
    terminal.say(f"Budget: epsilon = {spent.epsilon:.3g} of {spent.total_epsilon:g} spent (delta = {spent.delta:g}).")


def _print_quantiles(found: PrivateQuantiles, column: str, search: Interval, terminal: Terminal) -> None:
    """The quantiles, and bounds around them within the range that certainly contains y."""
    from dpfda.report.formatting import format_number

    low, high = found.values
    room = 0.1 * (high - low)
    terminal.out.print(
        f"Private quantiles of {show_plainly(column)}, every subject counting equally: 1% at {format_number(low)}, 99% at "
        f"{format_number(high)} (found to {format_number(found.resolution)}; the noise of one comparison is "
        f"{100 * found.share_sd:.2g}% of the subjects).",
        markup=False,
    )
    if found.share_sd > min(LEVELS):
        terminal.out.print(
            "The noise exceeds 1% of the subjects: these quantiles are rough; widen the bounds, or spend more."
        )
    if not low < high:
        terminal.out.print("They are too rough to suggest bounds.")
        return
    below = f"{search[0]:.15g}" if low - room <= search[0] else format_number(low - room).replace(",", "")
    above = f"{search[1]:.15g}" if high + room >= search[1] else format_number(high + room).replace(",", "")
    terminal.out.print(f"Suggested: --y-bounds={below}:{above}")
