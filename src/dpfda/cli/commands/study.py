"""`dpfda study`: the coordinator's side of a study across sites."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpfda.cli.new_app import example, new_app
from dpfda.cli.terminal import Terminal

if TYPE_CHECKING:
    from dpfda.federation.status import Status
    from dpfda.federation.workspace import StudyFolder

app = new_app(group=True)

_Study = Annotated[Path, typer.Argument(help="The study's TOML file.", metavar="STUDY.TOML")]
_Wait = Annotated[float, typer.Option("--wait", help="Seconds to wait until enough sites have joined.")]
_Late = Annotated[float, typer.Option("--late", help="Seconds to wait for further sites once the minimum has joined.")]
_Json = Annotated[bool, typer.Option("--json", help="As JSON.")]
_Metrics = Annotated[
    int | None, typer.Option("--metrics", help="Serve public counters for Prometheus at this port of 127.0.0.1.")
]
_Patience = Annotated[
    float | None,
    typer.Option("--patience", help="Seconds to wait for slow sites in a round; the terms say it if left out."),
]


@app.callback(epilog=example("dpfda study propose lipid.toml", "dpfda study run lipid.toml"))
def study() -> None:
    """Coordinate a study across sites: each keeps its data and its promise, only privatised messages travel."""


@app.command(epilog=example("dpfda study propose lipid.toml"))
def propose(ctx: typer.Context, study: _Study, json_: _Json = False) -> None:
    """Sign the study's terms. Sites get them as a file or, while a server runs, over the network, and each decides."""
    from dpfda.federation.flare.launch import require_flare

    require_flare()
    from dpfda.federation.running import send_terms
    from dpfda.federation.study import name_study
    from dpfda.federation.workspace import propose_study
    from dpfda.protocol.plans.registry import make_plan

    folder = propose_study(study)
    terms, out = folder.terms(), ctx.obj.out
    rounds = len(make_plan(terms).rounds)
    sent = send_terms(folder)
    if json_:
        ctx.obj.give_json({"study": name_study(terms), "terms": terms.digest(), "rounds": rounds,
                           "file": str(folder.terms_path), "sent": sent})  # fmt: skip
    else:
        out.print(
            f"Study {name_study(terms)}: {terms.model} of {terms.y} over {terms.x}, {rounds} rounds.", markup=False
        )
        for site in terms.silos:
            cost = f"epsilon = {site.epsilon:g}, delta = {site.delta:g}"
            out.print(f"  {site.name}: {site.n:,} subjects, {cost}", markup=False)
    told = f" Sent to {', '.join(sent)}." if sent else ""
    ctx.obj.say(
        f"The signed terms are {folder.terms_path}; nothing in them is secret.{told} dpfda study run sends them to every "
        "connected site as well. Each site's owner looks at them (dpfda site inbox) and accepts or declines."
    )


@app.command(epilog=example("dpfda study rehearse lipid.toml"))
def rehearse(ctx: typer.Context, study: _Study, json_: _Json = False) -> None:
    """Run the study's rounds at the connected sites on made-up data: nothing is spent, nothing is kept."""
    from dpfda.federation.flare.launch import ended_politely, require_flare

    require_flare()
    from dpfda.federation.rehearsing import rehearse as run_rehearsal
    from dpfda.federation.workspace import check_unchanged

    with ended_politely(), ctx.obj.waiting("Rehearsing on made-up data"):
        found = run_rehearsal(check_unchanged(study))
    if json_:
        ctx.obj.give_json(found.fields())
    else:
        pace = found.fields()["median_seconds"]
        speed = "" if pace is None else f", {1000 * pace:.0f} ms a round"
        ctx.obj.out.print(f"Rehearsal on made-up data: {found.done} of {found.rounds} rounds{speed}.", markup=False)
        for site, count in found.answered.items():
            why = f" ({found.missing[site]})" if site in found.missing else ""
            ctx.obj.out.print(f"  {site}: {count} rounds answered{why}", markup=False)
    if found.message:
        ctx.obj.say(found.message)
    if found.done < found.rounds:
        raise typer.Exit(1)


@app.command(epilog=example("dpfda study counter lipid.toml north.counter --output lipid-2.toml"))
def counter(
    ctx: typer.Context,
    study: _Study,
    file: Annotated[Path, typer.Argument(help="The counter-proposal that a site sent.", metavar="COUNTER")],
    output: Annotated[Path, typer.Option("--output", help="The new study's TOML file.")],
    json_: _Json = False,
) -> None:
    """Write a new study file with the epsilon and delta that a site has counter-proposed; nothing else changes."""
    from dpfda.federation.counter import rewrite_study, take_counter
    from dpfda.federation.workspace import check_unchanged

    folder = check_unchanged(study)
    asked = take_counter(file.read_bytes(), folder.terms(), folder.consortium().questions().sites)
    rewrite_study(study, output, asked)
    if json_:
        ctx.obj.give_json({"site": asked.site, "epsilon": asked.epsilon, "delta": asked.delta,
                           "dates": asked.window.describe(), "file": str(output)})  # fmt: skip
    dates = f", {asked.window.describe()}" if asked.window.describe() else ""
    ctx.obj.say(
        f"{asked.site} would promise epsilon = {asked.epsilon:g}, delta = {asked.delta:g}{dates}. Wrote {output}: "
        "another study, to be proposed to every site anew."
    )


@app.command(epilog=example("dpfda study run lipid.toml"))
def run(
    ctx: typer.Context,
    study: _Study,
    wait: _Wait = 600.0,
    late: _Late = 20.0,
    patience: _Patience = None,
    metrics: _Metrics = None,
    json_: _Json = False,
) -> None:
    """Offer the terms, wait until enough sites have joined, run the study to its end."""
    from dpfda.errors import InvalidInput
    from dpfda.federation.workspace import check_unchanged

    folder = check_unchanged(study)
    if folder.rounds_done():
        raise InvalidInput(f"This study has begun (round {folder.rounds_done()}); use dpfda study resume {study}.")
    _to_end(folder, ctx.obj, (wait, late, patience), metrics, json_)


@app.command(epilog=example("dpfda study resume lipid.toml"))
def resume(
    ctx: typer.Context,
    study: _Study,
    wait: _Wait = 600.0,
    late: _Late = 20.0,
    patience: _Patience = None,
    metrics: _Metrics = None,
    json_: _Json = False,
) -> None:
    """Resume after a crash: recorded rounds are replayed, sites repeat stored answers, nothing is spent twice."""
    from dpfda.federation.workspace import check_unchanged

    _to_end(check_unchanged(study), ctx.obj, (wait, late, patience), metrics, json_)


@app.command(epilog=example("dpfda study status lipid.toml --watch"))
def status(
    ctx: typer.Context,
    study: _Study,
    watch: Annotated[bool, typer.Option("--watch", help="Keep showing until the study is over.")] = False,
    json_: _Json = False,
) -> None:
    """Show how far the study has come: rounds, sites, weights."""
    import time
    from dataclasses import asdict

    from rich.live import Live

    from dpfda.cli.study_table import look_at_sites, make_table
    from dpfda.federation.workspace import StudyFolder

    folder = StudyFolder.of(study)
    terms = folder.terms()
    if json_:
        now, contacts = folder.true_status(), look_at_sites(folder)
        seen = None if contacts is None else {name: asdict(each) for name, each in contacts.items()}
        ctx.obj.give_json({"phase": "not begun"} if now is None else {**asdict(now), "contacts": seen})
        return
    if not watch:
        ctx.obj.out.print(make_table(terms, folder.true_status(), folder.rounds_done(), look_at_sites(folder)))
        return
    with Live(console=ctx.obj.out, refresh_per_second=4) as live:
        while True:
            now = folder.true_status()
            live.update(make_table(terms, now, folder.rounds_done(), look_at_sites(folder)))
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
    from dpfda.cli.study_result import describe_study, print_cards
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
    document = make_result_document(
        fitted, describe_study(folder.terms(), level), command=f"dpfda study result {study}"
    )
    written = outputs.write(document)
    if json_ != "-":
        if fitted.privacy_.private:
            print_summary(document, ctx.obj)
        print_cards(folder, fitted.privacy_, ctx.obj)
    for path in written:
        ctx.obj.say(f"Wrote {path}")


def _to_end(
    folder: StudyFolder,
    terminal: Terminal,
    waits: tuple[float, float, float | None],
    metrics: int | None,
    as_json: bool,
) -> None:
    import contextlib
    from dataclasses import asdict

    from rich.live import Live

    from dpfda.federation.flare.launch import require_flare

    require_flare()
    from dpfda.cli.study_table import find_missed, make_table, tell_missed
    from dpfda.federation.running import RunOptions, StudyRun
    from dpfda.federation.study import name_study
    from dpfda.federation.study_metrics import serve_metrics
    from dpfda.protocol.plans.registry import make_plan

    terms, address = folder.terms(), folder.consortium().address()
    terminal.say(f"Study {name_study(terms)}; sites reach the server at {address.host}:{address.port}.")
    options = RunOptions(for_sites=waits[0], for_late_sites=waits[1], after_enough=waits[2])
    with contextlib.ExitStack() as stack:
        live = stack.enter_context(Live(console=terminal.out, refresh_per_second=4, transient=True))
        if metrics is not None:
            stack.enter_context(serve_metrics(folder, metrics))

        def show(now: Status) -> None:
            if terminal.out.is_terminal and not terminal.quiet:
                live.update(make_table(terms, now, now.done))

        StudyRun(folder, options, show).to_end()
    rounds, missed = len(make_plan(terms).rounds), find_missed(folder, terms)
    terminal.say(f"Finished: {rounds} rounds. See dpfda study result.")
    tell_missed(missed, rounds, terminal)
    if as_json:
        found = folder.true_status()
        terminal.give_json({**({} if found is None else asdict(found)), "missed": missed})
