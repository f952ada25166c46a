"""`dpfda verify-install`: are the files of this installation those that were released?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpfda.cli.new_app import example, new_app

app = new_app()


@app.command(
    epilog=example(
        "dpfda verify-install", "dpfda verify-install --wheel dpfda-0.2.0-py3-none-manylinux_2_17_x86_64.whl"
    )
)
def verify_install(
    ctx: typer.Context,
    wheel: Annotated[
        Path | None,
        typer.Option(
            "--wheel",
            help="Compare with this wheel as well; check its own hash in SHA256SUMS first.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Compare installed files with RECORD (or a wheel), compiled kernels and example data with their hashes.

    Exit code 1 if a file is missing, was changed or does not belong there. RECORD lies beside the files: who
    changed both is found only with `--wheel`.
    """
    from dpfda import __version__
    from dpfda.audit.installation import PACKAGE, has_record, verify_installation

    checks = verify_installation(wheel)
    typer.echo(f"dpfda {__version__} in {PACKAGE}")
    if not has_record():
        typer.echo("This is a source tree or an editable installation: it has no RECORD to compare with.")
    for check in checks:
        typer.echo(f"{'WRONG' if check.wrong else 'ok':>5}  {check}")
        for wrong in check.wrong:
            typer.echo(f"       {wrong}")
    if any(check.wrong for check in checks):
        raise typer.Exit(1)
