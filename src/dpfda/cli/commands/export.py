"""`dpfda export`: coefficients, values on a grid, scikit-fda objects; from a result, so nothing is spent."""

from __future__ import annotations

import csv
import io
import json
import math
import pickle
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpfda.cli.new_app import example, new_app

if TYPE_CHECKING:
    from dpfda.report.document import Document

app = new_app()

_EXAMPLES = example(
    "dpfda export result.json --coefficients coef.csv --grid curve.csv --points 101",
    "dpfda export hdl.html --skfda hdl.pickle",
)


@app.command(epilog=_EXAMPLES)
def export(
    ctx: typer.Context,
    result: Annotated[str, typer.Argument(help="The JSON or HTML file that dpfda fit wrote.", show_default=False)],
    coefficients: Annotated[
        str | None, typer.Option("--coefficients", help="Basis coefficients: .csv or .json.")
    ] = None,
    grid: Annotated[str | None, typer.Option("--grid", help="Values and band on a grid: .csv or .json.")] = None,
    points: Annotated[int, typer.Option("--points", help="Points of the grid.")] = 201,
    skfda: Annotated[
        str | None, typer.Option("--skfda", help="A pickle of scikit-fda's FDataBasis or FDataGrid.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that exist.")] = False,
) -> None:
    """Coefficients to CSV or JSON, values on a grid, or a scikit-fda object. Nothing is spent."""
    from dpfda import _validate
    from dpfda.cli.outputs import check_target, write_whole
    from dpfda.errors import InvalidInput
    from dpfda.report.document import read_document

    wanted = {"coefficients": coefficients, "grid": grid, "skfda": skfda}
    targets = {name: path for name, path in wanted.items() if path is not None}
    if not targets:
        raise InvalidInput("Say what to export: --coefficients FILE, --grid FILE, --skfda FILE, or several.")
    _validate.integer("--points", points, minimum=2)
    for target in targets.values():
        check_target(target, overwrite)
    document = read_document(result)
    makers = {"coefficients": _coefficients, "grid": lambda d, p: _grid(d, p, points), "skfda": _skfda}
    for name, target in targets.items():
        ctx.obj.say(f"Wrote {write_whole(target, makers[name](document, target))}")


def _coefficients(document: Document, target: str) -> bytes:
    names = [function["name"] for function in document["functions"]]
    if _is_json(target):
        values = dict(zip(names, document["coefficients"], strict=True))
        return json.dumps({"basis": document["basis"], "coefficients": values}, indent=1).encode()
    rows = [
        (name, number, value)
        for name, row in zip(names, document["coefficients"], strict=True)
        for number, value in enumerate(row, start=1)
    ]
    return _csv(("function", "number", "coefficient"), rows)


def _grid(document: Document, target: str, points: int) -> bytes:
    """Values from the coefficients, exactly; the band interpolated between its stored points."""
    import numpy as np

    from dpfda.basis.basis import basis_from_dict

    basis = basis_from_dict(document["basis"])
    x = np.linspace(basis.domain[0], basis.domain[1], points)
    columns: dict[str, Any] = {document["study"]["x"]: x.tolist()}
    values = basis.evaluate(x) @ np.asarray(document["coefficients"]).T
    for index, function in enumerate(document["functions"]):
        columns[function["name"]] = values[:, index].tolist()
        for side in ("low", "high"):
            if function[side] is not None:
                stored = np.asarray(function[side], dtype=np.float64)
                values_there = np.interp(x, document["grid"], stored).tolist()
                columns[f"{function['name']} {side}"] = [None if math.isnan(value) else value for value in values_there]
    if _is_json(target):
        return json.dumps(columns, indent=1, allow_nan=False).encode()
    return _csv(tuple(columns), list(zip(*columns.values(), strict=True)))


def _skfda(document: Document, target: str) -> bytes:
    import numpy as np

    from dpfda.basis.basis import basis_from_dict
    from dpfda.errors import InvalidInput

    try:
        functions = basis_from_dict(document["basis"]).to_fdata(np.asarray(document["coefficients"]))
    except ImportError:
        raise InvalidInput("--skfda needs scikit-fda; install it with `pip install 'dpfda[fda]'`.") from None
    return pickle.dumps(functions)


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
