"""`dpfda study`: the coordinator's side of a study across sites."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpfda.cli.new_app import example, new_app
from dpfda.cli.terminal import Terminal

if TYPE_CHECKING:
    from dpfda.federation.status import Status
    from dpfda.federation.study import StudyDocument
    from dpfda.federation.workspace import StudyFolder

app = new_app(group=True)

_Study = Annotated[Path, typer.Argument(help="The study's TOML file.", metavar="STUDY.TOML")]
_Wait = Annotated[float, typer.Option("--wait", help="Seconds to wait for the sites to connect.")]
_Late = Annotated[float, typer.Option("--late", help="Seconds to wait for further sites once the minimum is there.")]
_Patience = Annotated[float, typer.Option("--patience", help="Seconds to wait for slow sites in a round.")]


@app.callback(epilog=example("dpfda study init lipid.toml", "dpfda study run lipid.toml"))
def study() -> None:
    """Coordinate a study across sites: each keeps its data and its promise, only privatised messages travel."""


@app.command(epilog=example("dpfda study init lipid.toml"))
def init(ctx: typer.Context, study: _Study) -> None:
    """Freeze the study's public terms and make a start-up kit for every site."""
    from dpfda.federation.flare.provision import require_flare
    from dpfda.federation.workspace import init_study

    require_flare()
    with ctx.obj.waiting("Making certificates and kits"):
        folder, document = init_study(study)
    terms, out = document.terms, ctx.obj.out
    out.print(f"Study {document.id}: {terms.model} of {terms.y} over {terms.x}, {len(document.plan.rounds)} rounds.")
    for site in terms.silos:
        promise = f"{site.n:,} subjects, epsilon = {site.epsilon:g}, delta = {site.delta:g}"
        out.print(f"  {folder.kits / (site.name + '.zip')}  ->  site {site.name} ({promise})")
    ctx.obj.say(
        "Give each site its own kit over a safe channel: it holds that site's private key. The site runs dpfda site join, "
        f"then dpfda site run; you run dpfda study run {study}."
    )


@app.command(epilog=example("dpfda study run lipid.toml"))
def run(ctx: typer.Context, study: _Study, wait: _Wait = 600.0, late: _Late = 20.0, patience: _Patience = 5.0) -> None:
    """Start the server, wait for the sites, run the study to its end."""
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
) -> None:
    """How far the study is: rounds, sites, weights."""
    import time

    from rich.live import Live

    from dpfda.federation.workspace import StudyFolder

    folder = StudyFolder.of(study)
    document = folder.document()
    if not watch:
        ctx.obj.out.print(_table(document, folder.status(), folder.rounds_done()))
        return
    with Live(console=ctx.obj.out, refresh_per_second=4) as live:
        while True:
            now = folder.status()
            live.update(_table(document, now, folder.rounds_done()))
            if now is not None and now.phase in ("finished", "stopped"):
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
    from dpfda.federation.workspace import StudyFolder
    from dpfda.report.document import make_result_document

    outputs = Outputs(report, json_, tuple(figure or ()), overwrite)
    outputs.check()
    folder = StudyFolder.of(study)
    fitted = folder.load_estimator()
    document = make_result_document(
        fitted, description(folder.document(), level), command=f"dpfda study result {study}"
    )
    written = outputs.write(document)
    if json_ != "-":
        if fitted.privacy_.private:
            print_summary(document, ctx.obj)
        print_cards(folder, fitted.privacy_, ctx.obj)
    for path in written:
        ctx.obj.say(f"Wrote {path}")


def description(document: StudyDocument, level: float = 0.95) -> Any:
    """The study's public description for the report."""
    from dpfda.report.document import StudyDescription

    terms = document.terms
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

    from dpfda.transports.checkpoint import Transcript

    answers = Transcript(folder.transcript).answers()
    table = Table(title="What every site promised its patients", title_justify="left", box=None, header_style="bold")
    for name in ("site", "subjects", "epsilon", "delta", "exact cost at most", "rounds answered"):
        table.add_column(name, justify="left" if name == "site" else "right")
    rounds = len(folder.document().plan.rounds)
    for silo in privacy.silos:
        table.add_row(
            silo.name, f"{silo.n:,}", f"{silo.epsilon:g}", f"{silo.delta:g}", f"epsilon = {silo.epsilon_spent:.4g}",
            f"{answers.get(silo.name, 0)} of {rounds}",
        )  # fmt: skip
    terminal.out.print(table)
    if not privacy.private:
        terminal.out.print("[bold red]NOT PRIVATE[/bold red]: at least one site used a seed; this is a simulation.")


def _to_end(folder: StudyFolder, terminal: Terminal, wait: float, late: float, patience: float) -> None:
    from rich.live import Live

    from dpfda.federation.flare.provision import require_flare
    from dpfda.federation.flare.run_study import RunOptions, StudyRun

    require_flare()
    document, address = folder.document(), folder.address()
    terminal.say(f"Study {document.id}; the server listens on {address.host}:{address.port}.")
    options = RunOptions(for_sites=wait, for_late_sites=late, after_enough=patience)
    with Live(console=terminal.out, refresh_per_second=4, transient=True) as live:

        def show(now: Status | None, connected: list[str]) -> None:
            if terminal.out.is_terminal and not terminal.quiet:
                live.update(_table(document, now, folder.rounds_done(), connected))

        StudyRun(folder, options, show).to_end()
    terminal.say(f"Finished: {len(document.plan.rounds)} rounds. See dpfda study result.")


def _table(document: StudyDocument, now: Status | None, done: int, connected: list[str] | None = None) -> Any:
    from rich.table import Table

    rounds = len(document.plan.rounds)
    phase = "not begun" if now is None else now.phase
    pace = ""
    if now is not None and now.round_seconds:
        pace = f", {sorted(now.round_seconds)[len(now.round_seconds) // 2]:.2f} s a round"
    table = Table(title=f"{document.id}: {phase}, round {done} of {rounds} ({rounds - done} left){pace}", box=None)
    for name in ("site", "weight", "state", "rounds answered"):
        table.add_column(name, justify="left" if name in ("site", "state") else "right")
    total = sum(silo.weight for silo in document.plan.silos)
    for silo in document.plan.silos:
        site = {} if now is None else now.sites.get(silo.name, {})
        waiting = "connected" if connected and silo.name in connected else "not seen"
        weight = "by noise" if document.plan.method == "adaptive" else f"{silo.weight / total:.3f}"
        table.add_row(silo.name, weight, str(site.get("state", waiting)), str(site.get("answered", 0)))
    if now is not None and now.message:
        table.caption = now.message
    return table
