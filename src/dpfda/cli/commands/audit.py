"""`dpfda audit`: attack this installation and compare what is found with what is claimed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpfda.cli.new_app import example, new_app

app = new_app()


@app.command(epilog=example("dpfda audit --quick", "dpfda audit --output docs/audit.md"))
def audit(
    ctx: typer.Context,
    quick: Annotated[bool, typer.Option("--quick", help="Under a minute instead of about ten.")] = False,
    output: Annotated[
        str, typer.Option("--output", help="Where to write the page (Markdown).", show_default=False)
    ] = "",
) -> None:
    """Run the real release path on worst-case data and test every privacy claim; exit code 1 if one is refuted."""
    from dpfda.audit.command import FULL, QUICK
    from dpfda.audit.command import audit as run_audit
    from dpfda.audit.report import markdown, summary

    verdict = run_audit(QUICK if quick else FULL, ctx.obj.say)
    page = markdown(verdict)
    if output:
        Path(output).write_text(page, encoding="utf-8")
    typer.echo(page)
    typer.echo(summary(verdict))
    if not verdict.passed:
        raise typer.Exit(1)
