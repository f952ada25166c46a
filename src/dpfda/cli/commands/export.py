"""`dpfda export`: coefficients, or values on a grid; from a result, so nothing is spent."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpfda.cli.new_app import example, new_app

if TYPE_CHECKING:
    from dpfda.report.results import Result

app = new_app()

_EXAMPLES = example("dpfda export result.json --coefficients coef.csv --grid curve.csv --points 101")


@app.command(epilog=_EXAMPLES)
def export(
    ctx: typer.Context,
    result: Annotated[str, typer.Argument(help="The JSON or HTML file that dpfda fit wrote.", show_default=False)],
    y: Annotated[str | None, typer.Option("--y", help="Which outcome, if the result holds several.")] = None,
    coefficients: Annotated[
        str | None, typer.Option("--coefficients", help="Basis coefficients: .csv or .json.")
    ] = None,
    grid: Annotated[str | None, typer.Option("--grid", help="Values and band on a grid: .csv or .json.")] = None,
    points: Annotated[int, typer.Option("--points", help="Points of the grid.")] = 201,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that exist.")] = False,
) -> None:
    """Export coefficients or values on a grid to CSV or JSON. Nothing is spent.

    For scikit-fda: `dpfda.load("result.json").curve_.to_skfda()` in Python.
    """
    from dpfda import _validate
    from dpfda.cli.outputs import check_target, write_whole
    from dpfda.errors import InvalidInput
    from dpfda.report.results import load_one

    wanted = {"coefficients": coefficients, "grid": grid}
    targets = {name: path for name, path in wanted.items() if path is not None}
    if not targets:
        raise InvalidInput("Name what to export: --coefficients FILE, --grid FILE, or both.")
    _validate.integer("--points", points, minimum=2)
    for target in targets.values():
        check_target(target, overwrite)
    loaded = load_one(result, y)
    for name, target in targets.items():
        content = _coefficients(loaded, target) if name == "coefficients" else _grid(loaded, target, points)
        ctx.obj.say(f"Wrote {write_whole(target, content)}")


def _coefficients(result: Result, target: str) -> bytes:
    document = result.document
    named = dict(zip(document["model"]["columns"], document["coefficients"], strict=True))
    if _is_json(target):
        return json.dumps({"basis": document["basis"], "coefficients": named}, indent=1).encode()
    rows = [(name, number, value) for name, row in named.items() for number, value in enumerate(row, start=1)]
    return _csv(("function", "number", "coefficient"), rows)


def _grid(result: Result, target: str, points: int) -> bytes:
    """All curves of the summary, with their bands computed at these points."""
    import numpy as np

    from dpfda.cli.axis import Axis

    x, axis = np.linspace(*result.law_.functions.domain, points), Axis(result.document["study"]["x_origin"])
    places = x.tolist() if axis.origin is None else [axis.write_exactly(place) for place in x]
    columns: dict[str, Any] = {result.x_name: places}
    for curve in result.list_curves():
        columns[curve.name] = curve(x).tolist()
        if curve.has_band:
            sides = curve.band(result.document["study"]["level"], x)
            columns |= {
                f"{curve.name} {side}": values.tolist() for side, values in zip(("low", "high"), sides, strict=True)
            }
    if _is_json(target):
        return json.dumps(columns, indent=1, allow_nan=False).encode()
    return _csv(tuple(columns), list(zip(*columns.values(), strict=True)))


def _is_json(target: str) -> bool:
    from dpfda.errors import InvalidInput

    if not target.lower().endswith((".csv", ".json")):
        raise InvalidInput(f"{target} must end in .csv or .json.")
    return target.lower().endswith(".json")


def _csv(header: tuple[str, ...], rows: list[tuple[Any, ...]]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue().encode()
