"""`dpfda consortium`: who may take part. The coordinator enrols sites once; studies then come and go."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dpfda.cli.new_app import example, new_app
from dpfda.cli.terminal import Terminal

app = new_app(group=True)

_Folder = Annotated[Path, typer.Argument(help="The coordinator's folder of the consortium.", metavar="FOLDER")]
_Request = Annotated[Path, typer.Argument(help="The request that the site sent.", metavar="REQUEST")]
_Passphrase = Annotated[
    Path | None, typer.Option("--passphrase-file", help="A file with the CA's passphrase; asked for if left out.")
]
_Metrics = Annotated[
    int | None, typer.Option("--metrics", help="Serve public counters for Prometheus at this port of 127.0.0.1.")
]
_Site = Annotated[str, typer.Argument(help="The site's name.", metavar="SITE")]
_Json = Annotated[bool, typer.Option("--json", help="As JSON.")]
_Output = Annotated[
    Path | None, typer.Option("--output", help="Where to write the credentials; SITE.credentials if left out.")
]


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
    json_: _Json = False,
) -> None:
    """Make the consortium's CA, the coordinator's signing key and the server's key."""
    from dpfda.federation.flare.launch import require_flare

    require_flare()
    from dpfda.federation.consortium import ConsortiumFolder

    secret = _read_passphrase(passphrase_file, new=True)
    with ctx.obj.waiting("Making keys"):
        made = ConsortiumFolder.create(folder, name, host, port, secret, listen)
    if json_:
        ctx.obj.give_json({"consortium": name, "folder": str(folder), "fingerprints": made.fingerprints()})
    else:
        show_fingerprints(made.fingerprints(), ctx.obj)
    ctx.obj.say(
        "Read these to each site's owner by telephone when they take their credentials. Keep the passphrase and a copy of "
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
    json_: _Json = False,
) -> None:
    """Enrol a site: sign its certificate and write the credentials to send back. Nothing in them is secret."""
    from dpfda.federation.consortium import ConsortiumFolder

    made, data = ConsortiumFolder(folder), request.read_bytes()
    secret = _read_passphrase(passphrase_file)
    credentials, fingerprint = made.sign(data, site, organisation, secret, days, rename=rename)
    known = made.fingerprints() | {f"key of {site}": fingerprint}
    _write_credentials(credentials, output or Path(f"{site}.credentials"), known, ctx.obj, json_)


@app.command(epilog=example("dpfda consortium renew lipids north.request"))
def renew(
    ctx: typer.Context,
    folder: _Folder,
    request: Annotated[
        Path | None,
        typer.Argument(help="The site's new request; if left out, the server's own certificate is renewed."),
    ] = None,
    days: Annotated[int, typer.Option("--days", help="How long the certificate lasts.", min=1, max=3650)] = 365,
    output: _Output = None,
    passphrase_file: _Passphrase = None,
    json_: _Json = False,
) -> None:
    """Renew a site's certificate, or the server's own; the old one stays valid until it expires."""
    from dpfda.federation.consortium import ConsortiumFolder
    from dpfda.federation.enrolment import EnrolmentRequest

    made, data = ConsortiumFolder(folder), None if request is None else request.read_bytes()
    secret = _read_passphrase(passphrase_file)
    if data is None:
        made.renew_server(secret)
        if json_:
            ctx.obj.give_json({"renewed": "server"})
        ctx.obj.say("The server's certificate is renewed; it is used from the server's next start on.")
        return
    credentials, fingerprint = made.renew(data, secret, days)
    site = EnrolmentRequest.read(data).site
    known = made.fingerprints() | {f"key of {site}": fingerprint}
    _write_credentials(credentials, output or Path(f"{site}.credentials"), known, ctx.obj, json_)


@app.command(epilog=example("dpfda consortium revoke lipids north"))
def revoke(
    ctx: typer.Context,
    folder: _Folder,
    site: _Site,
    json_: _Json = False,
) -> None:
    """Exclude a site immediately; the others are not affected."""
    from dpfda.federation.consortium import ConsortiumFolder

    count = ConsortiumFolder(folder).revoke(site)
    if json_:
        ctx.obj.give_json({"site": site, "revoked": count})
    ctx.obj.say(f"{site} is revoked ({count} certificates); a running server refuses it from now on.")


@app.command(epilog=example("dpfda consortium retire lipids north"))
def retire(ctx: typer.Context, folder: _Folder, site: _Site, json_: _Json = False) -> None:
    """End the overlap of a renewal: only the newest certificate of a site stays enrolled."""
    from dpfda.federation.consortium import ConsortiumFolder

    count = ConsortiumFolder(folder).retire(site)
    if json_:
        ctx.obj.give_json({"site": site, "retired": count})
    ctx.obj.say(f"{count} older certificates of {site} are retired; its newest stays.")


@app.command("list", epilog=example("dpfda consortium list lipids", "dpfda consortium list lipids --json"))
def list_(
    ctx: typer.Context,
    folder: _Folder,
    json_: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Every enrolled site, its certificates' last days, and whether it is connected now."""
    from dpfda.federation.consortium import ConsortiumFolder
    from dpfda.federation.consortium_status import list_sites

    rows = list_sites(ConsortiumFolder(folder))
    if json_:
        ctx.obj.give_json(rows)
        return
    _show_sites(rows, ctx.obj)


@app.command(epilog=example("dpfda consortium status lipids", "dpfda consortium status lipids --json"))
def status(ctx: typer.Context, folder: _Folder, json_: _Json = False) -> None:
    """Whether the server runs, who is connected, and which certificates end soon."""
    from dpfda.federation.consortium import ConsortiumFolder
    from dpfda.federation.consortium_status import read_consortium_status

    found = read_consortium_status(ConsortiumFolder(folder))
    if json_:
        ctx.obj.give_json(found)
        return
    words = {
        "running": f"runs (process {found['pid']})",
        "ended": "does not run",
        "killed": "was killed",
        "never": "never ran",
    }
    out = ctx.obj.out
    out.print(
        f"Consortium {found['consortium']}: the server at {found['address']} {words[found['server']]}.", markup=False
    )
    ends = ", ".join(f"{name} {day}" for name, day in found["certificates"].items())
    out.print(f"Certificates end: {ends}.", markup=False)
    _show_sites(found["sites"], ctx.obj)
    for sentence in found["sentences"]:
        out.print(sentence, markup=False)


@app.command(epilog=example("dpfda consortium serve lipids"))
def serve(ctx: typer.Context, folder: _Folder, metrics: _Metrics = None) -> None:
    """Keep the server running between studies, until you press Ctrl-C. `study run` starts its own if none is running."""
    import contextlib
    import time

    from dpfda.federation.flare.launch import ended_politely, require_flare

    require_flare()
    from dpfda.federation.consortium import ConsortiumFolder
    from dpfda.federation.consortium_status import serve_metrics
    from dpfda.federation.running import Server

    made = ConsortiumFolder(folder)
    address = made.address()
    with ended_politely(), Server(made) as server, contextlib.ExitStack() as stack:
        if metrics is not None:
            stack.enter_context(serve_metrics(made, metrics))
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


@app.command(epilog=example("dpfda consortium console lipids --studies ."))
def console(
    ctx: typer.Context,
    folder: _Folder,
    studies: Annotated[Path, typer.Option("--studies", help="The folder of the studies' TOML files.")] = Path(),
    port: Annotated[int, typer.Option("--port", help="A port of 127.0.0.1; any free one if left out.")] = 0,
) -> None:
    """Open a local web page: sites, proposals with a forecast, rounds, results. Only for this computer."""
    from dpfda.cli.console.serving import require_console, serve_console

    require_console()
    from dpfda.cli.console.coordinator import CoordinatorPages
    from dpfda.federation.consortium import ConsortiumFolder

    pages = CoordinatorPages(ConsortiumFolder(folder), studies)
    serve_console(pages.routes, port, ctx.obj.invite)


def _show_sites(rows: list[dict[str, Any]], terminal: Terminal) -> None:
    from rich.table import Table

    table = Table(box=None, header_style="bold")
    for name in ("site", "organisation", "certificates end", "state"):
        table.add_column(name)
    for row in rows:
        table.add_row(row["site"], row["organisation"], ", ".join(row["certificates end"]), row["state"])
    terminal.out.print(table if rows else "no site is enrolled yet")


def show_fingerprints(fingerprints: dict[str, str], terminal: Terminal) -> None:
    """In groups of four, for reading aloud."""
    for name, digits in fingerprints.items():
        terminal.out.print(f"{name}:\n  {digits}", markup=False)


def _write_credentials(
    credentials: bytes, path: Path, known: dict[str, str], terminal: Terminal, as_json: bool
) -> None:
    from dpfda.cli.outputs import write_whole

    write_whole(str(path), credentials)
    if as_json:
        terminal.give_json({"credentials": str(path), "fingerprints": known})
    else:
        show_fingerprints(known, terminal)
    terminal.say(f"Wrote {path}: send it to the site. Its owner compares the fingerprints with you, then takes it.")


def _read_passphrase(path: Path | None, *, new: bool = False) -> bytes:
    if path is not None:
        return path.read_bytes().strip()
    typed: str = typer.prompt("Passphrase of the CA", hide_input=True, confirmation_prompt=new)
    return typed.encode()
