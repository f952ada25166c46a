"""`dpfda site check | accept | decline | counter | approver`: what a data steward looks at, and the decision."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpfda.cli.new_app import example
from dpfda.cli.terminal import Terminal

if TYPE_CHECKING:
    from dpfda.federation.decisions import Offer
    from dpfda.federation.promise import Promise

_Folder = Annotated[Path, typer.Argument(help="The site's own folder.", metavar="FOLDER")]
_Study = Annotated[str, typer.Argument(help="The study's name or id, as the inbox shows it.", metavar="STUDY")]
_Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]
_Simulation = Annotated[bool, typer.Option("--simulation", help="Allow a seed: results are NOT PRIVATE.")]
_Json = Annotated[bool, typer.Option("--json", help="As JSON.")]
_From = Annotated[str | None, typer.Option("--from", help="First day on which the study is answered, as 2027-01-31.")]
_Until = Annotated[str | None, typer.Option("--until", help="Last day on which the study is answered.")]
_Person = Annotated[str, typer.Option("--person", help="Who approves, if the policy lists people.")]
_Key = Annotated[Path | None, typer.Option("--key", help="That person's own key file.")]
_Secret = Annotated[Path | None, typer.Option("--passphrase-file", help="A file with the key's passphrase.")]


def add_commands(app: typer.Typer) -> None:
    """Register these with `dpfda site`."""
    app.command(epilog=example("dpfda site check north lipid"))(check)
    app.command(
        epilog=example(
            "dpfda site accept north lipid",
            "dpfda site accept north lipid --until 2027-06-30 --person ada --key ada.key",
        )
    )(accept)
    app.command(epilog=example("dpfda site decline north lipid"))(decline)
    app.command(epilog=example("dpfda site counter north lipid --epsilon 0.5"))(counter)
    app.command(epilog=example("dpfda site approver ada --key ada.key"))(approver)


def check(ctx: typer.Context, folder: _Folder, study: _Study, json_: _Json = False) -> None:
    """Compare a study with your own table: columns, units, missing values, rows outside, subjects. For your eyes only."""
    from dpfda.federation.data_checks import WARNING, check_data
    from dpfda.federation.decisions import Decisions
    from dpfda.federation.folder import SiteFolder
    from dpfda.federation.policy import SitePolicy

    own = SiteFolder(folder)
    decisions = Decisions(own)
    found = check_data(SitePolicy.load(own.policy_path), decisions.find(study).terms, decisions.site)
    if json_:
        ctx.obj.give_json({"warning": WARNING, "checks": [each.fields() for each in found]})
        return
    for each in found:
        ctx.obj.out.print(f"{'ok  ' if each.good else 'LOOK'}  {_plain(each.what)}: {_plain(each.found)}", markup=False)
    ctx.obj.say(WARNING)


def accept(
    ctx: typer.Context,
    folder: _Folder,
    study: _Study,
    yes: _Yes = False,
    begins: _From = None,
    ends: _Until = None,
    person: _Person = "",
    key: _Key = None,
    passphrase_file: _Secret = None,
    simulation: _Simulation = False,
    json_: _Json = False,
) -> None:
    """Check the terms against your policy, data and ledger, see what you are about to promise, and sign it."""
    from dpfda.federation.approvals import Window, parse_day
    from dpfda.federation.folder import SiteFolder
    from dpfda.federation.offers import Person, approve_offer, look_at_offer

    own, window = SiteFolder(folder), Window(parse_day("--from", begins), parse_day("--until", ends, end=True))
    who = Person(person, None if key is None else _read_personal_key(key, passphrase_file))
    with ctx.obj.waiting("Checking the terms, the data and the ledger"):
        offer, promise = look_at_offer(own, study, simulation=simulation)
    if not json_:
        _show_promise(offer, promise, ctx.obj)
    if not yes and not typer.confirm("Do you accept these terms?"):
        ctx.obj.say("Nothing was accepted, and nothing was changed.")
        raise typer.Exit(1)
    missing = approve_offer(own, offer, promise.policy, window, who)
    if json_:
        ctx.obj.give_json({"study": offer.study, "accepted": not missing, "people missing": missing})
    if missing:
        ctx.obj.say(
            f"Signed by {person}; {missing} more of {', '.join(promise.policy.approvers)} must sign before it holds."
        )
        return
    dates = f" It holds {window.describe()}." if window.describe() else ""
    ctx.obj.say(f"Accepted.{dates} A running site answers from now on; otherwise start it: dpfda site run {folder}")


def decline(ctx: typer.Context, folder: _Folder, study: _Study, json_: _Json = False) -> None:
    """Decline a study, or withdraw from one that you accepted: nothing more is answered from now on."""
    from dpfda.federation.folder import SiteFolder
    from dpfda.federation.offers import decline_offer

    offer = decline_offer(SiteFolder(folder), study)
    if json_:
        ctx.obj.give_json({"study": offer.study, "decision": "declined"})
    ctx.obj.say(f"Declined {_plain(offer.study)}.")


def counter(
    ctx: typer.Context,
    folder: _Folder,
    study: _Study,
    epsilon: Annotated[float | None, typer.Option("--epsilon", help="What you would promise instead.")] = None,
    delta: Annotated[float | None, typer.Option("--delta", help="What you would promise instead.")] = None,
    begins: _From = None,
    ends: _Until = None,
    output: Annotated[
        Path | None, typer.Option("--output", help="Where to write it; SITE.counter if left out.")
    ] = None,
    json_: _Json = False,
) -> None:
    """Propose another epsilon, delta or dates to the coordinator; domain, bounds and levels cannot be changed this way."""
    from dpfda.cli.outputs import write_whole
    from dpfda.federation.approvals import Window, parse_day
    from dpfda.federation.folder import SiteFolder
    from dpfda.federation.offers import counter_offer
    from dpfda.federation.seal import read_site_name

    own, window = SiteFolder(folder), Window(parse_day("--from", begins), parse_day("--until", ends, end=True))
    data = counter_offer(own, study, epsilon, delta, window)
    target = output or Path(f"{read_site_name(own)}.counter")
    write_whole(str(target), data)
    if json_:
        ctx.obj.give_json({"counter": str(target)})
    ctx.obj.say(f"Wrote {target}: send it to the coordinator. It accepts nothing.")


def approver(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="The person's name: letters, digits, - and _.", metavar="NAME")],
    key: Annotated[Path, typer.Option("--key", help="Where to write the person's own key, outside the site's folder.")],
    passphrase_file: _Secret = None,
    json_: _Json = False,
) -> None:
    """Make a personal key for a person who approves studies, and the line for the policy."""
    from dpfda.federation.keys import make_signing_key, public_text, write_key
    from dpfda.federation.names import check_site_name

    check_site_name(name)
    secret, made = _read_secret(passphrase_file, new=True), make_signing_key()
    write_key(key, made, secret)
    if json_:
        ctx.obj.give_json({"name": name, "key": str(key), "public": public_text(made)})
        return
    ctx.obj.out.print(f'{name} = "{public_text(made)}"', markup=False)
    ctx.obj.say("Put this line under [approval.people] of site.toml, and give the command dpfda site policy again.")


def _read_personal_key(path: Path, secret: Path | None) -> Any:
    from dpfda.federation.keys import read_signing_key

    return read_signing_key(path, _read_secret(secret))


def _read_secret(path: Path | None, *, new: bool = False) -> bytes:
    if path is not None:
        return path.read_bytes().strip()
    typed: str = typer.prompt("Passphrase of this key", hide_input=True, confirmation_prompt=new)
    return typed.encode()


def _show_promise(offer: Offer, promise: Promise, terminal: Terminal) -> None:
    """For the owner: notes about the data, then the promise."""
    from dpfda.federation.promise import describe_promise

    terminal.owner_notes(promise.owner_notes)
    for line in describe_promise(promise):
        terminal.out.print(_plain(line), markup=False)
    if promise.policy.seed is not None:
        terminal.out.print("NOT PRIVATE: the policy has a seed; this is a simulation.", markup=False)


def _plain(text: str) -> str:
    from dpfda.federation.quiet import neutralise

    return neutralise(text, 2000)
