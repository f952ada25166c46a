"""`dpfda budget`: a total set once, and a record that shows who spent what, when."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpfda.cli.new_app import example, new_app
from dpfda.cli.terminal import Terminal

if TYPE_CHECKING:
    from dpfda.cli.ledger_choice import LedgerChoice
    from dpfda.privacy.ledger.ledger import LogEntry

app = new_app(group=True)

_WHICH = "The data set whose ledger to use; if left out, dpfda.ledger or the only ledger in this folder."
_Data = Annotated[str | None, typer.Argument(help=_WHICH, show_default=False)]
_Ledger = Annotated[str | None, typer.Option("--ledger", help="Ledger file or PostgreSQL URL.", show_default=False)]


@app.callback(epilog=example("dpfda budget init visits.csv --epsilon 3 --delta 1e-5"))
def budget() -> None:
    """The privacy budget of a data set: a total that is set once, and a tamper-evident log of what was spent."""


@app.command(epilog=example("dpfda budget init visits.csv --epsilon 3 --delta 1e-5"))
def init(
    ctx: typer.Context,
    epsilon: Annotated[float, typer.Option("--epsilon", help="The most that all studies together may spend.")],
    delta: Annotated[float, typer.Option("--delta", help="Far below one over the number of subjects.")],
    data: _Data = None,
    ledger: _Ledger = None,
    note: Annotated[str, typer.Option("--note", help="Why this total was chosen, for the record.")] = "",
) -> None:
    """Set the total budget of a data set, once."""
    from dpfda import _validate
    from dpfda.cli.ledger_choice import describe_new_ledger
    from dpfda.errors import InvalidInput
    from dpfda.estimators.promises import refuse_absurd_delta
    from dpfda.privacy.ledger.ledger import Ledger

    _validate.positive("--epsilon", epsilon)
    refuse_absurd_delta("--delta", delta)
    choice = _choice(ledger, data, new=True)
    choice.refuse_folder()
    if not choice.is_url and choice.exists:
        raise InvalidInput(
            f"{choice.shown} exists already, and a total is set once; see what is left with: dpfda budget show --ledger "
            f"{choice.shown}"
        )
    Ledger.create(choice.location, epsilon, delta, note)
    ctx.obj.say(describe_new_ledger(choice, epsilon, delta))


@app.command(epilog=example("dpfda budget show visits.csv"))
def show(
    ctx: typer.Context,
    data: _Data = None,
    ledger: _Ledger = None,
    json_: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """What is spent and what is left, as epsilon at the promised delta; with --verbose also mu^2, which adds up."""
    import json
    from dataclasses import asdict

    from dpfda.cli.terminal import count_things
    from dpfda.privacy.accounting import gaussian_epsilon

    choice = _choice(ledger, data)
    opened = choice.open()
    spent = opened.spent()
    left = gaussian_epsilon(opened.remaining() ** 0.5, opened.delta)
    if json_:
        typer.echo(json.dumps({"ledger": choice.shown, **asdict(spent), "epsilon_left": left}, indent=1))
        return
    releases = count_things(spent.debits, "release")
    ctx.obj.out.print(
        f"{choice.shown}: epsilon = {spent.epsilon:.4g} of {spent.total_epsilon:g} is spent, in {releases}, at delta = "
        f"{spent.delta:g}.\nOne more study may use epsilon = {left:.4g} at delta = {spent.delta:g}: "
        "epsilons cannot simply be added.",
        soft_wrap=True,
    )
    if ctx.obj.verbose:
        share = spent.mu_squared / spent.budget_mu_squared
        ctx.obj.out.print(
            f"What adds up: mu^2 = {spent.mu_squared:.4g} of {spent.budget_mu_squared:.4g} ({share:.1%})."
        )


@app.command(epilog=example("dpfda budget log visits.csv --rounds"))
def log(
    ctx: typer.Context,
    data: _Data = None,
    ledger: _Ledger = None,
    rounds: Annotated[bool, typer.Option("--rounds", help="Every release of every study, with its hash.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="As JSON lines, one for each release.")] = False,
) -> None:
    """Who spent what, when, and how much."""
    import json
    from dataclasses import asdict

    opened = _choice(ledger, data).open()
    entries = opened.log()
    if json_:
        for entry in entries:
            typer.echo(json.dumps(asdict(entry)))
    elif rounds:
        _print_rounds(entries, opened.delta, ctx.obj)
    else:
        _print_studies(entries, opened.finished(), opened.delta, ctx.obj)


@app.command(epilog=example("dpfda budget verify visits.csv"))
def verify(
    ctx: typer.Context,
    data: _Data = None,
    ledger: _Ledger = None,
    result: Annotated[
        Path | None, typer.Option("--result", help="A result (JSON) that this ledger must know.", show_default=False)
    ] = None,
) -> None:
    """Check the hash chain and the totals: no line was changed, added or removed; with --result, the ledger is not older."""
    choice = _choice(ledger, data)
    opened = choice.open()
    opened.verify()
    if result is not None:
        from dpfda.cli.restoring import check_result

        check_result(opened, result)
    entries = opened.log()
    head = entries[-1].hash[:16] if entries else "no releases yet"
    ctx.obj.out.print(f"{choice.shown}: {len(entries):,} log lines, unbroken chain, head {head}")


@app.command(epilog=example("dpfda budget migrate visits.csv"))
def migrate(ctx: typer.Context, data: _Data = None, ledger: _Ledger = None) -> None:
    """Convert a ledger of version 0.1, with all its debits and answers; the old one is kept next to the new one."""
    from dpfda.privacy.ledger.takeover import OLD_ENDING
    from dpfda.privacy.ledger.takeover import migrate as take_over

    choice = _choice(ledger, data)
    choice.refuse_folder()
    choice.refuse_other_file()
    spent = take_over(choice.location).spent()
    kept = "tables are kept as *_version_0_1" if choice.is_url else f"file is kept as {choice.shown}{OLD_ENDING}"
    ctx.obj.say(
        f"{choice.shown} is of this version now: {spent.debits:,} debits, epsilon = {spent.epsilon:.4g} of "
        f"{spent.total_epsilon:g} spent. The old {kept}; never use the old ledger again."
    )


@app.command(epilog=example("dpfda budget restore --ledger visits.ledger --copy backup.ledger --log site/audit.jsonl"))
def restore(
    ctx: typer.Context,
    ledger: Annotated[str, typer.Option("--ledger", help="Where the lost ledger was; nothing may be there now.")],
    copy: Annotated[str | None, typer.Option("--copy", help="An older copy of it.", show_default=False)] = None,
    log: Annotated[
        Path | None, typer.Option("--log", help="The site's audit log, which shows what was spent.", show_default=False)
    ] = None,
    epsilon: Annotated[float | None, typer.Option("--epsilon", help="The total, if there is no copy.")] = None,
    delta: Annotated[float | None, typer.Option("--delta", help="The total, if there is no copy.")] = None,
    note: Annotated[str, typer.Option("--note", help="What happened, for the record.")] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
) -> None:
    """Replace a lost ledger: charge what the audit log shows, or everything that was left if there is no log.

    A site writes its log before an answer leaves, so the log shows all that was spent. Without it nobody knows, and the
    whole budget counts as spent. Studies that were under way end here.
    """
    from dpfda.cli.restoring import restore_ledger

    restore_ledger(ctx.obj, ledger, copy, log, (epsilon, delta), note, yes)


@app.command(epilog=example("dpfda budget settle visits.csv"))
def settle(ctx: typer.Context, data: _Data = None, ledger: _Ledger = None) -> None:
    """Pay for answers that were lost in crashes; this reopens a ledger or a study that they had closed."""
    choice = _choice(ledger, data)
    opened = choice.open()
    before = opened.spent().epsilon
    if not opened.settle_lost_draws():
        ctx.obj.say(f"{choice.shown}: no answer was lost, so nothing was paid.")
        return
    spent = opened.spent()
    ctx.obj.say(
        f"{choice.shown}: lost answers are paid for; epsilon {before:.4g} -> {spent.epsilon:.4g} of "
        f"{spent.total_epsilon:g} is spent."
    )


def _choice(ledger: str | None, data: str | None, *, new: bool = False) -> LedgerChoice:
    from dpfda.cli.ledger_choice import LedgerChoice, choose_ledger, find_only_ledger
    from dpfda.curves.tables.source import find_source, is_database_url

    if data is not None and ledger is None and data.endswith(".ledger"):
        return LedgerChoice(data)  # the ledger itself was named
    source = None if data is None else find_source(data, "-" if is_database_url(data) else None)
    if source is None and ledger is None and not new:
        return find_only_ledger()
    if new and source is not None and ledger is None:
        return LedgerChoice(str(source.default_ledger))
    return choose_ledger(ledger, source)


def _print_studies(entries: list[LogEntry], finished: set[str], delta: float, terminal: Terminal) -> None:
    from dpfda.cli.fit.runs import can_resume
    from dpfda.privacy.accounting import event_from_dict, price

    runs: dict[str, list[LogEntry]] = {}
    for entry in entries:
        runs.setdefault(entry.run, []).append(entry)
    table = _table("when", "who", "what", "releases", "epsilon", "run")
    for run, lines in runs.items():
        cost = price([event_from_dict(line.event) for line in lines], delta)
        stopped = " (stopped)" if can_resume(run) and run not in finished else ""
        table.add_row(lines[0].at, lines[0].actor, lines[0].silo, str(len(lines)), f"{cost:.4g}", run + stopped)
    terminal.out.print(table if runs else "nothing spent yet")


def _print_rounds(entries: list[LogEntry], delta: float, terminal: Terminal) -> None:
    from dpfda.privacy.accounting import event_from_dict, price

    table = _table("no.", "when", "who", "what", "release", "epsilon", *(["mu^2"] if terminal.verbose else []), "hash")
    for line in entries:
        cost = f"{price([event_from_dict(line.event)], delta):.4g}"
        more = [f"{line.mu**2:.4g}"] if terminal.verbose else []
        table.add_row(str(line.seq), line.at, line.actor, line.silo, line.label, cost, *more, line.hash[:12])
    terminal.out.print(table if entries else "nothing spent yet")


def _table(*headers: str) -> Any:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for header in headers:
        table.add_column(header, overflow="fold")
    return table
