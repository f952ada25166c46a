"""`dpfda site`: a site's side of a consortium. What protects its patients is here, on the site's own machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpfda.cli.new_app import example, new_app
from dpfda.cli.site.deciding import add_commands

app = new_app(group=True)

_Folder = Annotated[Path, typer.Argument(help="The site's own folder.", metavar="FOLDER")]
_Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]
_Simulation = Annotated[bool, typer.Option("--simulation", help="Allow a seed: results are NOT PRIVATE.")]
_Metrics = Annotated[
    int | None, typer.Option("--metrics", help="Serve public counters for Prometheus at this port of 127.0.0.1.")
]
_Json = Annotated[bool, typer.Option("--json", help="As JSON.")]


@app.callback(
    epilog=example("dpfda site enrol north --site north", "dpfda site accept north lipid", "dpfda site run north")
)
def site() -> None:
    """Take part in studies: your data stay here, your policy and your ledger decide what is answered."""


@app.command(epilog=example("dpfda site enrol north --site north"))
def enrol(
    ctx: typer.Context,
    folder: _Folder,
    site: Annotated[str | None, typer.Option("--site", help="The site's name; known already when renewing.")] = None,
    output: Annotated[Path | None, typer.Option("--output", help="Where to write the request.")] = None,
    json_: _Json = False,
) -> None:
    """Make this site's keys, which never leave, and the request for the coordinator; for a renewal, a new request."""
    from dpfda.federation.flare.launch import require_flare

    require_flare()
    from dpfda.cli.outputs import write_whole
    from dpfda.errors import InvalidInput
    from dpfda.federation.enrolment import EnrolmentRequest, request_enrolment, write_request
    from dpfda.federation.folder import SiteFolder
    from dpfda.federation.keys import fingerprint_key
    from dpfda.federation.seal import read_site_name

    own = SiteFolder(folder)
    if own.certificate.exists():
        name = read_site_name(own)
        request = write_request(own, name)
    elif site is None:
        raise InvalidInput("Give the site's name: dpfda site enrol FOLDER --site NAME.")
    else:
        name = site
        request = write_request(own, name) if own.sign_key.exists() else request_enrolment(folder, name)
    target = output or Path(f"{name}.request")
    write_whole(str(target), request)
    key = fingerprint_key(EnrolmentRequest.read(request).signing_key)
    if json_:
        ctx.obj.give_json({"request": str(target), "site": name, "key": key})
    else:
        ctx.obj.out.print(f"key of {name}:\n  {key}", markup=False)
    ctx.obj.say(f"Wrote {target}: send it to the coordinator. Nothing in it is secret; the keys stay in {folder}.")


@app.command(epilog=example("dpfda site take north north.credentials"))
def take(
    ctx: typer.Context,
    folder: _Folder,
    credentials: Annotated[Path, typer.Argument(help="The credentials from the coordinator.", metavar="CREDENTIALS")],
    yes: _Yes = False,
    json_: _Json = False,
) -> None:
    """Take the coordinator's credentials, after comparing the fingerprints by telephone."""
    from dpfda.cli.commands.consortium import show_fingerprints
    from dpfda.federation.enrolment import take_credentials
    from dpfda.federation.folder import SiteFolder

    def confirm(fingerprints: dict[str, str]) -> bool:
        if not json_:
            show_fingerprints(fingerprints, ctx.obj)
        return yes or typer.confirm("Did the coordinator read you the same fingerprints by telephone?")

    taken = take_credentials(SiteFolder(folder), credentials.read_bytes(), confirm)
    address = taken.address
    if json_:
        ctx.obj.give_json({"consortium": address.consortium, "server": f"{address.host}:{address.port}",
                           "fingerprints": taken.fingerprints()})  # fmt: skip
    ctx.obj.say(f"Enrolled in {address.consortium}; the server is {address.host}:{address.port}.")


@app.command(epilog=example("dpfda site policy north site.toml --new-ledger"))
def policy(
    ctx: typer.Context,
    folder: _Folder,
    file: Annotated[Path, typer.Argument(help="The site's policy (TOML).", metavar="SITE.TOML")],
    new_ledger: Annotated[
        bool, typer.Option("--new-ledger", help="Create the ledger: once for each data set, on purpose.")
    ] = False,
    simulation: _Simulation = False,
    json_: _Json = False,
) -> None:
    """Set what this site allows: data, promise, total budget, acceptable terms. It applies from the next question on."""
    from dpfda.federation.audit_log import AuditLog
    from dpfda.federation.folder import SiteFolder
    from dpfda.federation.policy import read_policy
    from dpfda.federation.seal import check_seal, write_seal
    from dpfda.federation.site import refuse_seed
    from dpfda.federation.site_ledger import create_ledger, open_ledger

    own, rules = SiteFolder(folder), read_policy(file)
    rules.check_columns()
    refuse_seed(rules, simulation=simulation)
    check_seal(own, apart_from="policy.json")
    ledger = create_ledger(rules, AuditLog(own.audit)) if new_ledger else open_ledger(rules)
    rules.save(own.policy_path)
    write_seal(own)
    AuditLog(own.audit).append("policy", outcome="set", epsilon=rules.epsilon, delta=rules.delta)
    if json_:
        budget = {"ledger": rules.ledger_shown, "epsilon": ledger.epsilon, "delta": ledger.delta}
        ctx.obj.give_json(budget)
    ctx.obj.say(f"Ledger {rules.ledger_shown}: total budget epsilon = {ledger.epsilon:g}, delta = {ledger.delta:g}.")


@app.command(epilog=example("dpfda site inbox north", "dpfda site inbox north --add lipid.study/terms.json"))
def inbox(
    ctx: typer.Context,
    folder: _Folder,
    add: Annotated[Path | None, typer.Option("--add", help="Terms that came as a file.")] = None,
    json_: _Json = False,
) -> None:
    """What the coordinator has offered, what it costs, and what you decided."""
    from rich.table import Table

    from dpfda.federation.audit_log import AuditLog
    from dpfda.federation.decisions import Decisions
    from dpfda.federation.folder import SiteFolder
    from dpfda.federation.offers import describe_offers
    from dpfda.federation.study import name_study

    own = SiteFolder(folder)
    decisions = Decisions(own)
    if add is not None:
        terms, new = decisions.keep(add.read_bytes())
        if new:
            AuditLog(own.audit).append("offer", study=name_study(terms), terms=terms.digest(), outcome="kept")
    rows = describe_offers(own)
    if json_:
        ctx.obj.give_json(rows)
        return
    table = Table(box=None, header_style="bold")
    for name in ("study", "what", "subjects here", "epsilon", "delta", "decision"):
        table.add_column(name)
    for row in rows:
        words = (row["study"], row["what"], f"{row['n']:,}", f"{row['epsilon']:g}", f"{row['delta']:g}")
        decision = " ".join(word for word in (row["decision"], row["dates"], row["waits"]) if word)
        table.add_row(*map(_plain, (*words, decision)))
    ctx.obj.out.print(table if rows else "nothing has been offered")


add_commands(app)


@app.command(epilog=example("dpfda site run north"))
def run(
    ctx: typer.Context,
    folder: _Folder,
    simulation: _Simulation = False,
    metrics: _Metrics = None,
    rehearsals: Annotated[
        bool, typer.Option("--rehearsals/--no-rehearsals", help="Let the coordinator rehearse on made-up data.")
    ] = True,
) -> None:
    """Answer the coordinator until you press Ctrl-C. Refuses to start if anything in the folder is not dpfda's."""
    from dpfda.federation.flare.launch import require_flare

    require_flare()
    from dpfda.federation.folder import SiteFolder
    from dpfda.federation.seal import read_site_name
    from dpfda.federation.serving import serve_site

    own = SiteFolder(folder)
    ctx.obj.say(
        f"Site {read_site_name(own)} starts; everything asked and answered is in dpfda site log {folder}. Ctrl-C stops it."
    )
    if simulation:
        ctx.obj.say("NOT PRIVATE if the policy has a seed: this is a simulation.")
    serve_site(own, ctx.obj.say, simulation=simulation, metrics_port=metrics, rehearsals=rehearsals)


@app.command(epilog=example("dpfda site console north"))
def console(
    ctx: typer.Context,
    folder: _Folder,
    port: Annotated[int, typer.Option("--port", help="A port of 127.0.0.1; any free one if left out.")] = 0,
    simulation: _Simulation = False,
) -> None:
    """Open a local web page: inbox, decisions, budget, rounds, log. Only for this computer; the link works once."""
    from dpfda.cli.console.serving import require_console, serve_console

    require_console()
    from dpfda.cli.console.steward import StewardPages
    from dpfda.federation.folder import SiteFolder

    pages = StewardPages(SiteFolder(folder), simulation=simulation)
    serve_console(pages.routes, port, ctx.obj.invite)


@app.command(epilog=example("dpfda site status north"))
def status(ctx: typer.Context, folder: _Folder, json_: _Json = False) -> None:
    """Show whether it runs and is in contact with its server, and what was promised, spent and answered."""
    from rich.table import Table

    from dpfda.federation.folder import SiteFolder
    from dpfda.federation.site_status import read_site_status

    found = read_site_status(SiteFolder(folder))
    if json_:
        ctx.obj.give_json(found)
        return
    out = ctx.obj.out
    out.print(f"Site {_plain(found['site'])}: {found['process']}; {found['contact']}", markup=False)
    out.print(found["ledger"], markup=False)
    for sentence in filter(None, (found["certificate"]["sentence"], *found["notes"])):
        out.print(sentence, markup=False)
    table = Table(box=None, header_style="bold")
    for name in ("study", "decision", "released", "replayed", "refused", "last"):
        table.add_column(name, justify="right" if name in ("released", "replayed", "refused") else "left")
    for row in found["studies"]:
        table.add_row(*(_plain(str(value)) for value in row.values()))
    out.print(table)
    for problem in found["problems"]:
        out.print(f"NOT SAFE: {_plain(problem)}", markup=False)


@app.command(epilog=example("dpfda site log north --verify"))
def log(
    ctx: typer.Context,
    folder: _Folder,
    verify: Annotated[bool, typer.Option("--verify", help="Check the chain of hashes and the ledger.")] = False,
    last: Annotated[int, typer.Option("--last", help="How many lines to show.", min=1)] = 20,
    json_: _Json = False,
) -> None:
    """Every question, answer and refusal, with what it cost."""
    from dpfda.errors import InvalidInput
    from dpfda.federation.audit_log import AuditLog
    from dpfda.federation.decisions import Decisions
    from dpfda.federation.folder import SiteFolder
    from dpfda.federation.policy import SitePolicy
    from dpfda.federation.site import check_ledger
    from dpfda.federation.site_ledger import open_ledger

    own = SiteFolder(folder)
    if not folder.is_dir():
        raise InvalidInput(f"There is no folder {folder} of a site; correct the path.")
    audit = AuditLog(own.audit)
    if verify:
        count, ledger = audit.verify(), open_ledger(SitePolicy.load(own.policy_path))
        ledger.verify()
        check_ledger(ledger, audit, Decisions(own))
        if json_:
            ctx.obj.give_json({"lines": count, "whole": True})
        else:
            ctx.obj.out.print(f"{count} lines, unbroken from the first to the last; the ledger is intact.")
        return
    if json_:
        ctx.obj.give_json(audit.lines()[-last:])
        return
    for line in audit.lines()[-last:]:
        spent = f"  epsilon {line['epsilon_spent']:.4g} of {line['epsilon_total']:g}" if "epsilon_spent" in line else ""
        what = " ".join(str(line[name]) for name in ("event", "study", "round", "outcome") if name in line)
        reason = f"  {line['reason']}" if "reason" in line else ""
        ctx.obj.out.print(_plain(f"{line['seq']:6d} {line['at']}  {what}{spent}{reason}"), markup=False)


def _plain(text: str) -> str:
    from dpfda.federation.quiet import neutralise

    return neutralise(text, 2000)
