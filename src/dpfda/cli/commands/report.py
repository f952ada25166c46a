"""`dpfda report`: the report or figures of a result again, from its JSON; costs nothing."""

from __future__ import annotations

from typing import Annotated

import typer

from dpfda.cli.new_app import example, new_app

app = new_app()

_Result = Annotated[str, typer.Argument(help="The JSON or HTML file that dpfda fit wrote.", show_default=False)]


@app.command(epilog=example("dpfda report result.json --report hdl.html --figure hdl.svg"))
def report(
    ctx: typer.Context,
    result: _Result,
    report: Annotated[str | None, typer.Option("--report", help="Write the HTML report here.")] = None,
    figure: Annotated[list[str] | None, typer.Option("--figure", help="Write a figure (.png, .svg, .pdf).")] = None,
    title: Annotated[str | None, typer.Option("--title", help="Another title.")] = None,
    x_label: Annotated[str | None, typer.Option("--x-label", help="A new label for x.")] = None,
    y_label: Annotated[str | None, typer.Option("--y-label", help="A new label for y.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that exist.")] = False,
) -> None:
    """Redraw the report or figures of a result. This is post-processing: nothing is spent."""
    from dpfda.cli.outputs import Outputs
    from dpfda.errors import DpfdaError, InvalidInput
    from dpfda.report.document import has_outcomes, read_any_document

    if report is None and not figure:
        raise InvalidInput("Name what to draw: --report NAME.html, --figure NAME.png, or both.")
    outputs = Outputs(report=report, figures=tuple(figure or ()), overwrite=overwrite)
    outputs.check()
    try:
        document = read_any_document(result)
        if has_outcomes(document) and y_label is not None:
            raise InvalidInput("--y-label must be left out for several outcomes: each has its own.")
        for each in document["outcomes"].values() if has_outcomes(document) and x_label is not None else ():
            each["study"]["x_label"] = x_label
        changes = {"title": title, "x_label": x_label, "y_label": y_label}
        document["study"].update({name: value for name, value in changes.items() if value is not None})
        written = list(outputs.write(document))
    except (DpfdaError, OSError):
        raise
    except Exception as error:  # of templates, charts or numbers: anybody may have written the file
        raise InvalidInput(
            f"{result} holds values that cannot be drawn ({type(error).__name__}); name a file that `dpfda fit` wrote."
        ) from error
    for path in written:
        ctx.obj.say(f"Wrote {path}")
