"""`dpfda audit`: attack this installation and compare what is found with what is claimed."""

from __future__ import annotations

from typing import Annotated

import typer

from dpfda.cli.new_app import example, new_app

app = new_app()


@app.command(epilog=example("dpfda audit --quick", "dpfda audit --output docs/audit.md"))
def audit(
    ctx: typer.Context,
    quick: Annotated[bool, typer.Option("--quick", help="Under a minute instead of about ten.")] = False,
    parsed: Annotated[
        int | None, typer.Option("--parsed", help="How many hostile terms and messages to parse.", min=0)
    ] = None,
    ran: Annotated[int | None, typer.Option("--ran", help="How many accepted ones to run.", min=0)] = None,
    output: Annotated[
        str, typer.Option("--output", help="Where to write the page (Markdown).", show_default=False)
    ] = "",
) -> None:
    """Run the real release path on worst-case data and test every privacy claim; exit code 1 if one is refuted."""
    from dataclasses import replace

    from dpfda.audit.command import FULL, QUICK
    from dpfda.audit.command import audit as run_audit
    from dpfda.audit.report import markdown, summary
    from dpfda.cli.outputs import write_whole

    effort = QUICK if quick else FULL
    effort = replace(
        effort,
        hostile_terms=effort.hostile_terms if parsed is None else parsed,
        hostile_runs=effort.hostile_runs if ran is None else ran,
    )
    verdict = run_audit(effort, ctx.obj.say)
    page = markdown(verdict)
    if output:
        write_whole(output, page.encode())
    typer.echo(page)
    typer.echo(summary(verdict))
    if not verdict.passed:
        raise typer.Exit(1)
