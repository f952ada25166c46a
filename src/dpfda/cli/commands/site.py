"""`dpfda site`: a site's side of a consortium. What protects its patients is here, on the site's own machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpfda.cli.new_app import example, new_app
from dpfda.cli.terminal import Terminal

if TYPE_CHECKING:
    from dpfda.federation.decisions import Offer
    from dpfda.federation.promise import Promise

app = new_app(group=True)

_Folder = Annotated[Path, typer.Argument(help="The site's own folder.", metavar="FOLDER")]
_Study = Annotated[str, typer.Argument(help="The study's name or id, as the inbox shows it.", metavar="STUDY")]
_Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]
_Simulation = Annotated[bool, typer.Option("--simulation", help="Allow a seed: results are NOT PRIVATE.")]
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
) -> None:
    """Make this site's keys, which never leave, and the request for the coordinator; for a renewal, a new request."""
    from dpfda.federation.flare.launch import require_flare

    require_flare()
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
    target.write_bytes(request)
    key = fingerprint_key(EnrolmentRequest.read(request).signing_key)
    ctx.obj.out.print(f"key of {name}:\n  {key}", markup=False)
    ctx.obj.say(f"Wrote {target}: send it to the coordinator. Nothing in it is secret; the keys stay in {folder}.")


@app.command(epilog=example("dpfda site take north north.papers"))
def take(
    ctx: typer.Context,
    folder: _Folder,
    papers: Annotated[Path, typer.Argument(help="The papers from the coordinator.", metavar="PAPERS")],
    yes: _Yes = False,
) -> None:
    """Take the coordinator's papers, after you compared the fingerprints by telephone."""
    from dpfda.cli.commands.consortium import show_fingerprints
    from dpfda.federation.enrolment import take_papers
    from dpfda.federation.folder import SiteFolder

    def confirm(fingerprints: dict[str, str]) -> bool:
        show_fingerprints(fingerprints, ctx.obj)
        return yes or typer.confirm("Did the coordinator read you the same by telephone?")

    taken = take_papers(SiteFolder(folder), papers.read_bytes(), confirm)
    address = taken.address
    ctx.obj.say(f"Enrolled in {address.consortium}; the server is {address.host}:{address.port}.")


@app.command(epilog=example("dpfda site policy north site.toml --new-ledger"))
def policy(
    ctx: typer.Context,
    folder: _Folder,
    file: Annotated[Path, typer.Argument(help="The site's policy (TOML).", metavar="SITE.TOML")],
    new_ledger: Annotated[
        bool, typer.Option("--new-ledger", help="Make the ledger: once for each data set, on purpose.")
    ] = False,
    simulation: _Simulation = False,
) -> None:
    """Set what this site allows: data, promise, total budget, acceptable terms. It holds from the next question on."""
    from dpfda.federation.audit_log import AuditLog
    from dpfda.federation.folder import SiteFolder
    from dpfda.federation.policy import read_policy
    from dpfda.federation.seal import check_seal, write_seal
    from dpfda.federation.site import refuse_seed
    from dpfda.federation.site_ledger import create_ledger, open_ledger

    own, rules = SiteFolder(folder), read_policy(file)
    refuse_seed(rules, simulation=simulation)
    check_seal(own, apart_from="policy.json")
    ledger = create_ledger(rules, AuditLog(own.audit)) if new_ledger else open_ledger(rules)
    rules.save(own.policy_path)
    write_seal(own)
    AuditLog(own.audit).append("policy", outcome="set", epsilon=rules.epsilon, delta=rules.delta)
    ctx.obj.say(f"Ledger {rules.ledger_shown}: total budget epsilon = {ledger.epsilon:g}, delta = {ledger.delta:g}.")


@app.command(epilog=example("dpfda site inbox north", "dpfda site inbox north --add lipid.study/terms.json"))
def inbox(
    ctx: typer.Context,
    folder: _Folder,
    add: Annotated[Path | None, typer.Option("--add", help="Terms that came as a file.")] = None,
    json_: _Json = False,
) -> None:
    """What the coordinator has offered, and what you decided."""
    import json

    from rich.table import Table

    from dpfda.federation.audit_log import AuditLog
    from dpfda.federation.decisions import Decisions
    from dpfda.federation.folder import SiteFolder
    from dpfda.federation.study import name_study

    own = SiteFolder(folder)
    decisions = Decisions(own)
    if add is not None:
        terms, new = decisions.keep(add.read_bytes())
        if new:
            AuditLog(own.audit).append("offer", study=name_study(terms), terms=terms.digest(), outcome="kept")
    offers = decisions.offers()
    if json_:
        typer.echo(json.dumps([{"study": offer.study, "decision": offer.decision} for offer in offers]))
        return
    table = Table(box=None, header_style="bold")
    for name in ("study", "what", "subjects here", "epsilon", "delta", "decision"):
        table.add_column(name)
    for offer in offers:
        mine = offer.terms.silo(decisions.site)
        table.add_row(
            *map(_plain, (offer.study, f"{offer.terms.model} of {offer.terms.y} over {offer.terms.x}", f"{mine.n:,}")),
            f"{mine.epsilon:g}", f"{mine.delta:g}", offer.decision,
        )  # fmt: skip
    ctx.obj.out.print(table if offers else "nothing has been offered")


@app.command(epilog=example("dpfda site accept north lipid"))
def accept(
    ctx: typer.Context, folder: _Folder, study: _Study, yes: _Yes = False, simulation: _Simulation = False
) -> None:
    """Check the terms against your policy, data and ledger, see what you are about to promise, and sign it."""
    from dpfda.federation.audit_log import AuditLog
    from dpfda.federation.decisions import Decisions
    from dpfda.federation.folder import SiteFolder
    from dpfda.federation.ledger_record import check_against_log, check_pledges
    from dpfda.federation.policy import SitePolicy
    from dpfda.federation.promise import check_promise
    from dpfda.federation.seal import check_seal
    from dpfda.federation.site import refuse_seed
    from dpfda.federation.site_ledger import open_ledger

    own = SiteFolder(folder)
    check_seal(own)
    decisions, rules = Decisions(own), SitePolicy.load(own.policy_path)
    refuse_seed(rules, simulation=simulation)
    offer, audit = decisions.find(study), AuditLog(own.audit)
    check_pledges(audit, decisions.pledged())
    check_against_log(open_ledger(rules), audit)
    with ctx.obj.waiting("Checking the terms, the data and the ledger"):
        promise = check_promise(offer.terms, rules, decisions.site)
    _show_promise(offer, promise, ctx.obj)
    if not yes and not typer.confirm("Do you accept these terms?"):
        ctx.obj.say("Nothing was accepted, and nothing was changed.")
        raise typer.Exit(1)
    decisions.accept(offer.terms, open_ledger(rules))
    ctx.obj.say(f"Accepted. A running site answers from now on; otherwise start it: dpfda site run {folder}")


@app.command(epilog=example("dpfda site decline north lipid"))
def decline(ctx: typer.Context, folder: _Folder, study: _Study) -> None:
    """Decline a study, or withdraw from one that you accepted: nothing more is answered from now on."""
    from dpfda.federation.decisions import Decisions
    from dpfda.federation.folder import SiteFolder

    decisions = Decisions(SiteFolder(folder))
    offer = decisions.find(study)
    decisions.decline(offer.terms)
    ctx.obj.say(f"Declined {_plain(offer.study)}.")


@app.command(epilog=example("dpfda site run north"))
def run(ctx: typer.Context, folder: _Folder, simulation: _Simulation = False) -> None:
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
    serve_site(own, ctx.obj.say, simulation=simulation)


@app.command(epilog=example("dpfda site status north"))
def status(ctx: typer.Context, folder: _Folder, json_: _Json = False) -> None:
    """Whether it runs and hears its server, what was promised, spent and answered."""
    import json

    from rich.table import Table

    from dpfda.federation.folder import SiteFolder
    from dpfda.federation.site_status import read_site_status

    found = read_site_status(SiteFolder(folder))
    if json_:
        typer.echo(json.dumps(found))
        return
    out = ctx.obj.out
    out.print(f"Site {_plain(found['site'])}: {found['process']}; {found['contact']}", markup=False)
    out.print(found["ledger"], markup=False)
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
    last: Annotated[int, typer.Option("--last", help="How many lines to show.")] = 20,
) -> None:
    """Every question, answer and refusal, with what it cost."""
    from dpfda.federation.audit_log import AuditLog
    from dpfda.federation.decisions import Decisions
    from dpfda.federation.folder import SiteFolder
    from dpfda.federation.policy import SitePolicy
    from dpfda.federation.site import check_ledger
    from dpfda.federation.site_ledger import open_ledger

    own = SiteFolder(folder)
    audit = AuditLog(own.audit)
    if verify:
        count, ledger = audit.verify(), open_ledger(SitePolicy.load(own.policy_path))
        ledger.verify()
        check_ledger(ledger, audit, Decisions(own))
        ctx.obj.out.print(f"{count} lines, unbroken from the first to the last; the ledger is whole.")
        return
    for line in audit.lines()[-last:]:
        spent = f"  epsilon {line['epsilon_spent']:.4g} of {line['epsilon_total']:g}" if "epsilon_spent" in line else ""
        what = " ".join(str(line[name]) for name in ("event", "study", "round", "outcome") if name in line)
        reason = f"  {line['reason']}" if "reason" in line else ""
        ctx.obj.out.print(_plain(f"{line['seq']:6d} {line['at']}  {what}{spent}{reason}"), markup=False)


def _show_promise(offer: Offer, promise: Promise, terminal: Terminal) -> None:
    """What is promised, what leaves, what it costs: in words that a data steward can show to a review board."""
    import math

    from dpfda.privacy.accounting import gaussian_epsilon

    terms, mine, spent = promise.terms, promise.terms.silo(promise.site), promise.spent
    after = gaussian_epsilon(promise.spent_after**0.5, spent.delta)
    terminal.owner_notes(promise.owner_notes)
    lines = [
        f"{offer.study}: {terms.model} of {terms.y} over {terms.x}, asked by the coordinator.",
        f"You ({promise.site}) are about to promise each of your {mine.n:,} subjects:",
        f"  whatever anybody learns from all {promise.rounds} answers together, it changes the odds of any guess about one "
        f"subject by at most a factor {math.exp(mine.epsilon):.3g} (epsilon = {mine.epsilon:g}), except with probability "
        f"{mine.delta:g} (delta).",
        f"What leaves this site: {promise.rounds} noisy vectors, and the public number {mine.n:,} of subjects. Nothing "
        "else: no row, no error text, no log.",
        f"What it costs: exactly epsilon = {promise.exact_epsilon:.4g} at delta = {mine.delta:g}. Your ledger "
        f"{promise.policy.ledger_shown} goes from epsilon {spent.epsilon:.4g} to {after:.4g} of {spent.total_epsilon:g} "
        f"(at delta = {spent.delta:g}).",
        f"Taken as public: {terms.x} in {list(terms.domain)}, {terms.y} in {list(terms.y_bounds)}; values outside are left "
        "out or clamped.",
        *(f"  covariate {each.name}: {_describe_covariate(each)}" for each in terms.covariates),
        f"Columns that are read here, by your policy: {', '.join(promise.columns)}. {terms.y} and {terms.x} are the "
        "coordinator's words for them.",
        f"Terms (SHA-256): {terms.digest()}",
    ]
    for line in lines:
        terminal.out.print(_plain(line), markup=False)
    if promise.policy.seed is not None:
        terminal.out.print("NOT PRIVATE: the policy has a seed; this is a simulation.", markup=False)


def _describe_covariate(covariate: Any) -> str:
    if covariate.bounds is not None:
        return f"a number in {list(covariate.bounds)}"
    return f"one of {', '.join(covariate.levels)}; {covariate.levels[0]} is the reference"


def _plain(text: str) -> str:
    from dpfda.federation.quiet import neutralise

    return neutralise(text, 2000)
