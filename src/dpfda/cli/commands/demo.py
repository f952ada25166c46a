"""`dpfda demo`: one command that shows everything on public data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpfda.cli.new_app import example, new_app

app = new_app()


@app.command(epilog=example("dpfda demo --folder out"))
def demo(
    ctx: typer.Context,
    folder: Annotated[str, typer.Option("--folder", help="Where the report and the picture go.")] = "out",
    epsilon: Annotated[float, typer.Option("--epsilon", help="The promise.")] = 1.0,
    delta: Annotated[float, typer.Option("--delta", help="The promise.")] = 1e-5,
) -> None:
    """Fit the private mean of a blood lipid over age from 15,205 real subjects, and compare it with least squares."""
    from dpfda.cli.example_fit import show_example

    with ctx.obj.waiting("Loading and fitting"):
        show_example(Path(folder), epsilon, delta)
