"""`dpfda consortium`: who may take part. The coordinator enrols sites once; studies then come and go."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpfda.cli.new_app import example, new_app
from dpfda.cli.terminal import Terminal

app = new_app(group=True)

_Folder = Annotated[Path, typer.Argument(help="The coordinator's folder of the consortium.", metavar="FOLDER")]
_Request = Annotated[Path, typer.Argument(help="The request that the site sent.", metavar="REQUEST")]
_Passphrase = Annotated[
    Path | None, typer.Option("--passphrase-file", help="A file with the CA's passphrase; asked for if left out.")
]
_Output = Annotated[Path | None, typer.Option("--output", help="Where to write the papers; SITE.papers if left out.")]


@app.callback(epilog=example("dpfda consortium init lipids --name lipids --host study.example.org"))
def consortium() -> None:
    """Enrol sites, once: their keys are made at the sites and never travel."""


@app.command(epilog=example("dpfda consortium init lipids --name lipids --host study.example.org --port 8102"))
def init(
    ctx: typer.Context,
    folder: _Folder,
    name: Annotated[str, typer.Option("--name", help="The consortium's name.")],
    host: Annotated[str, typer.Option("--host", help="The name under which sites reach this machine.")],
    port: Annotated[int, typer.Option("--port", help="The one port that must be open here.")] = 8102,
    listen: Annotated[str, typer.Option("--listen", help="The address to listen at.")] = "0.0.0.0",
    passphrase_file: _Passphrase = None,
) -> None:
    """Make the consortium's CA, the coordinator's signing key and the server's key."""
    from dpfda.federation.flare.launch import require_flare

    require_flare()
    from dpfda.federation.consortium import ConsortiumFolder

    secret = _read_passphrase(passphrase_file, new=True)
    with ctx.obj.waiting("Making keys"):
        made = ConsortiumFolder.create(folder, name, host, port, secret, listen)
    show_fingerprints(made.fingerprints(), ctx.obj)
    ctx.obj.say(
        "Read these to each site's owner by telephone when they take their papers. Keep the passphrase and a copy of "
        f"{folder} in a safe place: without them no site can be enrolled or renewed."
    )


@app.command(epilog=example("dpfda consortium sign lipids north.request --site north --organisation clinic_north"))
def sign(
    ctx: typer.Context,
    folder: _Folder,
    request: _Request,
    site: Annotated[str, typer.Option("--site", help="The site's name, as in its request.")],
    organisation: Annotated[str, typer.Option("--organisation", help="Letters, digits and _.")],
    days: Annotated[int, typer.Option("--days", help="How long the certificate lasts.", min=1, max=3650)] = 365,
    output: _Output = None,
    passphrase_file: _Passphrase = None,
    rename: Annotated[bool, typer.Option("--rename", help="Enrol it under another name than it gave itself.")] = False,
) -> None:
    """Enrol a site: sign its certificate and write the papers to send back. Nothing in them is secret."""
    from dpfda.federation.consortium import ConsortiumFolder

    made, data = ConsortiumFolder(folder), request.read_bytes()
    secret = _read_passphrase(passphrase_file)
    papers, fingerprint = made.sign(data, site, organisation, secret, days, rename=rename)
    _write_papers(
        papers, output or Path(f"{site}.papers"), made.fingerprints() | {f"key of {site}": fingerprint}, ctx.obj
    )


@app.command(epilog=example("dpfda consortium renew lipids north.request"))
def renew(
    ctx: typer.Context,
    folder: _Folder,
    request: Annotated[
        Path | None, typer.Argument(help="The site's new request; left out: the server's own certificate.")
    ] = None,
    days: Annotated[int, typer.Option("--days", help="How long the certificate lasts.", min=1, max=3650)] = 365,
    output: _Output = None,
    passphrase_file: _Passphrase = None,
) -> None:
    """Renew a site's certificate, or the server's own; the old one stays valid until it ends, nobody else is touched."""
    from dpfda.federation.consortium import ConsortiumFolder
    from dpfda.federation.enrolment import EnrolmentRequest

    made, data = ConsortiumFolder(folder), None if request is None else request.read_bytes()
    secret = _read_passphrase(passphrase_file)
    if data is None:
        made.renew_server(secret)
        ctx.obj.say("The server's certificate is renewed; it is used from the server's next start on.")
        return
    papers, fingerprint = made.renew(data, secret, days)
    site = EnrolmentRequest.read(data).site
    _write_papers(
        papers, output or Path(f"{site}.papers"), made.fingerprints() | {f"key of {site}": fingerprint}, ctx.obj
    )


@app.command(epilog=example("dpfda consortium revoke lipids north"))
def revoke(
    ctx: typer.Context,
    folder: _Folder,
    site: Annotated[str, typer.Argument(help="The site's name.", metavar="SITE")],
) -> None:
    """Shut a site out at once; the others do not notice."""
    from dpfda.federation.consortium import ConsortiumFolder

    count = ConsortiumFolder(folder).revoke(site)
    ctx.obj.say(f"{site} is revoked ({count} certificates); a running server refuses it from now on.")


@app.command("list", epilog=example("dpfda consortium list lipids", "dpfda consortium list lipids --json"))
def list_(
    ctx: typer.Context,
    folder: _Folder,
    json_: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Every enrolled site, its certificates' last days, and whether it is connected now."""
    import json

    from rich.table import Table

    from dpfda.federation.consortium import ConsortiumFolder
    from dpfda.federation.running import running_link

    made = ConsortiumFolder(folder)
    with running_link(made) as link:
        contacts = {} if link is None else link.look()
    rows = []
    for member in made.members().values():
        contact = contacts.get(member.name)
        state = "no server runs" if not contacts else "connected" if contact and contact.connected else "not connected"
        rows.append(
            {
                "site": member.name,
                "organisation": member.organisation,
                "certificates end": member.ends(),
                "state": state,
            }
        )
    if json_:
        typer.echo(json.dumps(rows))
        return
    table = Table(box=None, header_style="bold")
    for name in ("site", "organisation", "certificates end", "state"):
        table.add_column(name)
    for row in rows:
        ends = ", ".join(row["certificates end"])
        table.add_row(str(row["site"]), str(row["organisation"]), ends, str(row["state"]))
    ctx.obj.out.print(table if rows else "no site is enrolled yet")


@app.command(epilog=example("dpfda consortium serve lipids"))
def serve(ctx: typer.Context, folder: _Folder) -> None:
    """Keep the server running between studies, until you press Ctrl-C. `study run` starts one by itself if none runs."""
    import time

    from dpfda.federation.flare.launch import ended_politely, require_flare

    require_flare()
    from dpfda.federation.consortium import ConsortiumFolder
    from dpfda.federation.running import Server

    made = ConsortiumFolder(folder)
    address = made.address()
    with ended_politely(), Server(made) as server:
        if not server.is_own:
            ctx.obj.say("The server of this consortium is already running.")
            return
        ctx.obj.say(f"The server of {address.consortium} listens on port {address.port}. Ctrl-C stops it.")
        try:
            while True:
                time.sleep(1.0)
                server.ensure()
        except KeyboardInterrupt:
            ctx.obj.say("The server has stopped.")


def show_fingerprints(fingerprints: dict[str, str], terminal: Terminal) -> None:
    """In groups of four, for reading aloud."""
    for name, digits in fingerprints.items():
        terminal.out.print(f"{name}:\n  {digits}", markup=False)


def _write_papers(papers: bytes, path: Path, fingerprints: dict[str, str], terminal: Terminal) -> None:
    path.write_bytes(papers)
    show_fingerprints(fingerprints, terminal)
    terminal.say(f"Wrote {path}: send it to the site. Its owner compares the fingerprints with you, then takes it.")


def _read_passphrase(path: Path | None, *, new: bool = False) -> bytes:
    if path is not None:
        return path.read_bytes().strip()
    typed: str = typer.prompt("Passphrase of the CA", hide_input=True, confirmation_prompt=new)
    return typed.encode()
