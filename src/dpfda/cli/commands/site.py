"""`dpfda site`: a site's side of a study. What protects its patients is here, on the site's own machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpfda.cli.new_app import example, new_app
from dpfda.cli.terminal import Terminal

if TYPE_CHECKING:
    from dpfda.federation.joining import Promise

app = new_app(group=True)

_Kit = Annotated[Path, typer.Argument(help="The kit from the coordinator: its zip file or folder.", metavar="KIT")]


@app.callback(epilog=example("dpfda site join north.zip --policy site.toml", "dpfda site run north"))
def site() -> None:
    """Take part in a study: your data stay here, your policy and your ledger decide what is answered."""


@app.command(epilog=example("dpfda site join north.zip --policy site.toml"))
def join(
    ctx: typer.Context,
    kit: _Kit,
    policy: Annotated[Path, typer.Option("--policy", help="The site's policy (TOML).")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    simulation: Annotated[bool, typer.Option("--simulation", help="Allow a seed: results are NOT PRIVATE.")] = False,
) -> None:
    """Check the study against your policy and your data, show what you are about to promise, and accept it."""
    from dpfda.errors import InvalidInput
    from dpfda.federation.flare.processes import site_name
    from dpfda.federation.joining import check_promise, check_study, unpack
    from dpfda.federation.joining import join as accept
    from dpfda.federation.policy import read_policy

    folder = unpack(kit)
    rules, name = read_policy(policy), site_name(folder)
    if rules.seed is not None and not simulation:
        raise InvalidInput(
            "The policy has a seed, which voids every promise; remove [simulation], or add --simulation."
        )
    with ctx.obj.waiting("Checking the study, the data and the ledger"):
        promise = check_promise(check_study(folder), rules, name)
    _show_promise(promise, ctx.obj)
    if not yes and not typer.confirm("Do you accept these terms?"):
        ctx.obj.say("Nothing was accepted.")
        raise typer.Exit(1)
    accept(folder, promise)
    ctx.obj.say(f"Accepted. Start with: dpfda site run {folder}")


@app.command(epilog=example("dpfda site run north"))
def run(ctx: typer.Context, kit: _Kit) -> None:
    """Answer the coordinator until you press Ctrl-C. Refuses to start with unsafe settings."""
    from dpfda.federation.flare.processes import site_name
    from dpfda.federation.flare.supervisor import supervise
    from dpfda.federation.joining import check_ready, unpack

    folder = unpack(kit)
    name = site_name(folder)
    rules = check_ready(folder, name)
    if rules.seed is not None:
        ctx.obj.say("NOT PRIVATE: the policy has a seed; this is a simulation.")
    ctx.obj.say(
        f"Site {name} is running; everything asked and answered is in dpfda site log {folder}. Ctrl-C stops it."
    )
    supervise(folder, name, ctx.obj.say)


@app.command(epilog=example("dpfda site status north"))
def status(ctx: typer.Context, kit: _Kit) -> None:
    """What was promised, spent and answered so far."""
    from rich.table import Table

    from dpfda.federation.hardening import find_unsafe_settings
    from dpfda.federation.joining import site_folder, unpack
    from dpfda.federation.site import open_ledger

    folder = unpack(kit)
    own, out = site_folder(folder), ctx.obj.out
    policy, lines = own.policy(), own.audit.lines()
    spent = open_ledger(policy).spent()
    out.print(
        f"Ledger {policy.ledger_shown}: epsilon {spent.epsilon:.4g} of {spent.total_epsilon:g} spent at delta = "
        f"{spent.delta:g}, {spent.debits} releases."
    )
    table = Table(box=None, header_style="bold")
    for name in ("study", "rounds", "released", "replayed", "refused", "last"):
        table.add_column(name, justify="left" if name in ("study", "last") else "right")
    for document in own.studies():
        mine = [line for line in lines if line.get("study") == document.id]
        counts = [
            str(sum(line.get("outcome") == word for line in mine)) for word in ("released", "replayed", "refused")
        ]
        table.add_row(document.id, str(len(document.plan.rounds)), *counts, mine[-1]["at"] if mine else "never")
    out.print(table)
    for problem in find_unsafe_settings(folder):
        out.print(f"[bold red]UNSAFE[/bold red]: {problem}")


@app.command(epilog=example("dpfda site log north --verify"))
def log(
    ctx: typer.Context,
    kit: _Kit,
    verify: Annotated[bool, typer.Option("--verify", help="Check the chain of hashes and the ledger.")] = False,
    last: Annotated[int, typer.Option("--last", help="How many lines to show.")] = 20,
) -> None:
    """Every question, answer and refusal, with what it cost."""
    from dpfda.federation.joining import site_folder, unpack
    from dpfda.federation.site import open_ledger

    own = site_folder(unpack(kit))
    if verify:
        count = own.audit.verify()
        open_ledger(own.policy()).verify()
        ctx.obj.out.print(f"{count} lines, unbroken from the first to the last; the ledger is whole.")
        return
    for line in own.audit.lines()[-last:]:
        spent = f"  epsilon {line['epsilon_spent']:.4g} of {line['epsilon_total']:g}" if "epsilon_spent" in line else ""
        what = " ".join(str(line[name]) for name in ("event", "study", "topic", "round", "outcome") if name in line)
        reason = f"  {line['reason']}" if "reason" in line else ""
        ctx.obj.out.print(f"{line['seq']:6d} {line['at']}  {what}{spent}{reason}", markup=False)


def _show_promise(promise: Promise, terminal: Terminal) -> None:
    """What is promised, what leaves, what it costs: in words that a data manager can show to a review board."""
    import math

    from dpfda.privacy.accounting import gaussian_epsilon

    document, spent, out = promise.document, promise.spent, terminal.out
    terms, mine, rounds = document.terms, document.terms.silo(promise.site), len(document.plan.rounds)
    after = gaussian_epsilon(promise.spent_after**0.5, spent.delta)
    terminal.owner_notes(promise.owner_notes)
    out.print(f"\n[bold]{document.id}[/bold]: {terms.model} of {terms.y} over {terms.x}, asked by the coordinator.\n")
    out.print(
        f"You ({promise.site}) are about to promise each of your {mine.n:,} subjects:\n"
        f"  whatever anybody learns from all {rounds} answers together, it changes the odds of any guess about one "
        f"subject by at most a factor {math.exp(mine.epsilon):.3g} (epsilon = {mine.epsilon:g}), except with probability "
        f"{mine.delta:g} (delta).\n"
        f"What leaves this site: {rounds} noisy vectors, and the public number {mine.n:,} of subjects. Nothing else: no "
        "row, no error text, no log.\n"
        f"What it costs: exactly epsilon = {promise.exact_epsilon:.4g} at delta = {mine.delta:g}. Your ledger "
        f"{promise.policy.ledger_shown} goes from epsilon {spent.epsilon:.4g} to {after:.4g} of {spent.total_epsilon:g} "
        f"(at delta = {spent.delta:g}).\n"
        f"Taken as public: x in {list(terms.domain)}, y in {list(terms.y_bounds)}; values outside are left out or clamped."
    )
    if promise.policy.seed is not None:
        out.print("[bold red]NOT PRIVATE[/bold red]: the policy has a seed; this is a simulation.")
