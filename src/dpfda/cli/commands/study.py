"""`dpfda study`: the coordinator's side of a study across sites."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpfda.cli.new_app import example, new_app
from dpfda.cli.terminal import Terminal

if TYPE_CHECKING:
    from dpfda.federation.status import Status
    from dpfda.federation.workspace import StudyFolder
    from dpfda.protocol.terms import StudyTerms

app = new_app(group=True)

_Study = Annotated[Path, typer.Argument(help="The study's TOML file.", metavar="STUDY.TOML")]
_Wait = Annotated[float, typer.Option("--wait", help="Seconds to wait until enough sites have joined.")]
_Late = Annotated[float, typer.Option("--late", help="Seconds to wait for further sites once the minimum has joined.")]
_Patience = Annotated[float, typer.Option("--patience", help="Seconds to wait for slow sites in a round.")]


@app.callback(epilog=example("dpfda study propose lipid.toml", "dpfda study run lipid.toml"))
def study() -> None:
    """Coordinate a study across sites: each keeps its data and its promise, only privatised messages travel."""


@app.command(epilog=example("dpfda study propose lipid.toml"))
def propose(ctx: typer.Context, study: _Study) -> None:
    """Sign the study's terms. Sites get them as a file or, while a server runs, over the wire; each decides by itself."""
    from dpfda.federation.flare.launch import require_flare

    require_flare()
    from dpfda.federation.study import name_study
    from dpfda.federation.workspace import propose_study
    from dpfda.protocol.plans.registry import make_plan

    folder = propose_study(study)
    terms, out = folder.terms(), ctx.obj.out
    rounds = len(make_plan(terms).rounds)
    out.print(f"Study {name_study(terms)}: {terms.model} of {terms.y} over {terms.x}, {rounds} rounds.", markup=False)
    for site in terms.silos:
        out.print(
            f"  {site.name}: {site.n:,} subjects, epsilon = {site.epsilon:g}, delta = {site.delta:g}", markup=False
        )
    sent = _send(folder, terms)
    told = f" Sent to {', '.join(sent)}." if sent else ""
    ctx.obj.say(
        f"The signed terms are {folder.terms_path}; nothing in them is secret.{told} dpfda study run sends them to every "
        "connected site, too. Each site's owner looks at them (dpfda site inbox) and accepts or declines."
    )


@app.command(epilog=example("dpfda study run lipid.toml"))
def run(ctx: typer.Context, study: _Study, wait: _Wait = 600.0, late: _Late = 20.0, patience: _Patience = 5.0) -> None:
    """Offer the terms, wait until enough sites have joined, run the study to its end."""
    from dpfda.errors import InvalidInput
    from dpfda.federation.workspace import check_unchanged

    folder = check_unchanged(study)
    if folder.rounds_done():
        raise InvalidInput(f"This study has begun (round {folder.rounds_done()}); use dpfda study resume {study}.")
    _to_end(folder, ctx.obj, wait, late, patience)


@app.command(epilog=example("dpfda study resume lipid.toml"))
def resume(
    ctx: typer.Context, study: _Study, wait: _Wait = 600.0, late: _Late = 20.0, patience: _Patience = 5.0
) -> None:
    """Resume after a crash: recorded rounds are replayed, sites repeat stored answers, nothing is spent twice."""
    from dpfda.federation.workspace import check_unchanged

    _to_end(check_unchanged(study), ctx.obj, wait, late, patience)


@app.command(epilog=example("dpfda study status lipid.toml --watch"))
def status(
    ctx: typer.Context,
    study: _Study,
    watch: Annotated[bool, typer.Option("--watch", help="Keep showing until the study is over.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """How far the study is: rounds, sites, weights."""
    import json
    import time
    from dataclasses import asdict

    from rich.live import Live

    from dpfda.federation.workspace import StudyFolder

    folder = StudyFolder.of(study)
    terms = folder.terms()
    if json_:
        now = folder.true_status()
        typer.echo(json.dumps({"phase": "not begun"} if now is None else asdict(now)))
        return
    if not watch:
        ctx.obj.out.print(_table(terms, folder.true_status(), folder.rounds_done()))
        return
    with Live(console=ctx.obj.out, refresh_per_second=4) as live:
        while True:
            now = folder.true_status()
            live.update(_table(terms, now, folder.rounds_done()))
            if now is not None and now.phase in ("finished", "stopped", "killed"):
                return
            time.sleep(0.5)


@app.command(epilog=example("dpfda study result lipid.toml --report lipid.html --json lipid.json"))
def result(
    ctx: typer.Context,
    study: _Study,
    report: Annotated[str | None, typer.Option("--report", help="Write an HTML report.")] = None,
    json_: Annotated[str | None, typer.Option("--json", help="Write the result as JSON; - for stdout.")] = None,
    figure: Annotated[list[str] | None, typer.Option("--figure", help="Write a figure (.png, .svg, .pdf).")] = None,
    level: Annotated[float, typer.Option("--level", help="Confidence level of the bands.")] = 0.95,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace existing files.")] = False,
) -> None:
    """The curve, its bands, and what every site promised."""
    from dpfda.cli.outputs import Outputs
    from dpfda.cli.summary import print_summary
    from dpfda.errors import InvalidInput
    from dpfda.federation.workspace import StudyFolder
    from dpfda.protocol.plans.registry import make_plan
    from dpfda.report.document import make_result_document

    outputs = Outputs(report, json_, tuple(figure or ()), overwrite)
    outputs.check()
    folder = StudyFolder.of(study)
    done, rounds = folder.rounds_done(), len(make_plan(folder.terms()).rounds)
    if done < rounds:
        how = f"dpfda study {'resume' if done else 'run'} {study}"
        raise InvalidInput(f"This study has {done} of {rounds} rounds, so there is no result yet; give: {how}")
    fitted = folder.load_estimator()
    document = make_result_document(fitted, description(folder.terms(), level), command=f"dpfda study result {study}")
    written = outputs.write(document)
    if json_ != "-":
        if fitted.privacy_.private:
            print_summary(document, ctx.obj)
        print_cards(folder, fitted.privacy_, ctx.obj)
    for path in written:
        ctx.obj.say(f"Wrote {path}")


def description(terms: StudyTerms, level: float = 0.95) -> Any:
    """The study's public description for the report."""
    from dpfda.report.document import StudyDescription

    covariates = tuple({"name": each.name, "bounds": each.bounds, "levels": each.levels} for each in terms.covariates)
    return StudyDescription(
        source=f"{len(terms.silos)} sites",
        x=terms.x,
        y=terms.y,
        functions=terms.functions,
        title=f"{terms.name}: {terms.y} over {terms.x}, {len(terms.silos)} sites",
        x_label=terms.x,
        y_label=terms.y,
        level=level,
        covariates=covariates,
    )


def print_cards(folder: StudyFolder, privacy: Any, terminal: Terminal) -> None:
    """One privacy card per site: what its patients were promised, and how often it answered."""
    from rich.table import Table

    from dpfda.protocol.plans.registry import make_plan
    from dpfda.transports.checkpoint import Transcript

    answers = Transcript(folder.transcript).answers()
    table = Table(title="What every site promised its patients", title_justify="left", box=None, header_style="bold")
    for name in ("site", "subjects", "epsilon", "delta", "exact cost at most", "rounds answered"):
        table.add_column(name, justify="left" if name == "site" else "right")
    rounds = len(make_plan(folder.terms()).rounds)
    for silo in privacy.silos:
        table.add_row(
            silo.name, f"{silo.n:,}", f"{silo.epsilon:g}", f"{silo.delta:g}", f"epsilon = {silo.epsilon_spent:.4g}",
            f"{answers.get(silo.name, 0)} of {rounds}",
        )  # fmt: skip
    terminal.out.print(table)
    if not privacy.private:
        terminal.out.print("[bold red]NOT PRIVATE[/bold red]: at least one site used a seed; this is a simulation.")


def _send(folder: StudyFolder, terms: StudyTerms) -> list[str]:
    """Hand the terms to the sites that are connected to a running server."""
    from dpfda.federation.rounds import Closing
    from dpfda.federation.running import running_link
    from dpfda.federation.study import name_study
    from dpfda.federation.wire import StudyWire

    consortium = folder.consortium()
    wire = StudyWire(consortium.questions(), terms)
    with running_link(consortium) as link:
        if link is None:
            return []
        connected = {name for name, contact in link.look().items() if contact.connected}
        sites = [silo.name for silo in terms.silos if silo.name in connected]
        if sites:
            link.ask(sites, wire.write_invitation(terms, name_study(terms)), Closing(len(sites), 0.0, 2.0))
        return sites


def _to_end(folder: StudyFolder, terminal: Terminal, wait: float, late: float, patience: float) -> None:
    from rich.live import Live

    from dpfda.federation.flare.launch import require_flare

    require_flare()
    from dpfda.federation.running import RunOptions, StudyRun
    from dpfda.federation.study import name_study
    from dpfda.protocol.plans.registry import make_plan

    terms, address = folder.terms(), folder.consortium().address()
    terminal.say(f"Study {name_study(terms)}; sites reach the server at {address.host}:{address.port}.")
    options = RunOptions(for_sites=wait, for_late_sites=late, after_enough=patience)
    with Live(console=terminal.out, refresh_per_second=4, transient=True) as live:

        def show(now: Status) -> None:
            if terminal.out.is_terminal and not terminal.quiet:
                live.update(_table(terms, now, now.done))

        StudyRun(folder, options, show).to_end()
    terminal.say(f"Finished: {len(make_plan(terms).rounds)} rounds. See dpfda study result.")
    _tell_missed(folder, terms, terminal)


def _tell_missed(folder: StudyFolder, terms: StudyTerms, terminal: Terminal) -> None:
    from dpfda.protocol.plans.registry import make_plan
    from dpfda.transports.checkpoint import Transcript

    answers, rounds = Transcript(folder.transcript).answers(), len(make_plan(terms).rounds)
    for silo in terms.silos:
        missed = rounds - answers.get(silo.name, 0)
        if missed:
            terminal.say(
                f"{silo.name} missed {missed} of {rounds} rounds; the result is that of the sites that answered."
            )


def _table(terms: StudyTerms, now: Status | None, done: int) -> Any:
    from rich.table import Table

    from dpfda.federation.study import name_study
    from dpfda.protocol.plans.registry import make_plan

    plan = make_plan(terms)
    rounds, phase, pace = len(plan.rounds), "not begun" if now is None else now.phase, ""
    if now is not None and now.round_seconds:
        pace = f", {sorted(now.round_seconds)[len(now.round_seconds) // 2]:.2f} s a round"
    title = f"{name_study(terms)}: {phase}, round {done} of {rounds} ({rounds - done} left){pace}"
    table = Table(title=title, box=None)
    for name in ("site", "weight", "state", "rounds answered"):
        table.add_column(name, justify="left" if name in ("site", "state") else "right")
    total = sum(silo.weight for silo in plan.silos)
    for silo in plan.silos:
        site = {} if now is None else now.sites.get(silo.name, {})
        weight = "by noise" if plan.method == "adaptive" else f"{silo.weight / total:.3f}"
        table.add_row(silo.name, weight, str(site.get("state", "not asked")), str(site.get("answered", 0)))
    if now is not None and now.message:
        table.caption = now.message
    return table
