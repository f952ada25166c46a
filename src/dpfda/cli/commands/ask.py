"""`dpfda ask`: profiles, contrasts, derivatives, averages, tests and extrema of a result; no data, nothing is spent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpfda.cli.axis import Axis
from dpfda.cli.new_app import example, new_app
from dpfda.cli.terminal import show_plainly

if TYPE_CHECKING:
    from dpfda.cli.terminal import Terminal
    from dpfda.inference.curve import ReleasedCurve
    from dpfda.inference.value import ReleasedValue
    from dpfda.report.results import Result

app = new_app()

_ROWS = 9
_EXAMPLES = example(
    "dpfda ask result.json --curve male=1,bmi=25 --minus male=0,bmi=25 --level 0.9 --figure men-women.png",
    "dpfda ask result.json --effect bmi --derivative --csv slope.csv",
    "dpfda ask hdl.html --curve arm=B --minus arm=A --average 50:60",
    "dpfda ask blood-pressure.json --y dbp --average 50:60",
)

_Result = Annotated[str, typer.Argument(help="The JSON or HTML file that dpfda fit wrote.", show_default=False)]


@app.command(epilog=_EXAMPLES)
def ask(
    ctx: typer.Context,
    result: _Result,
    y: Annotated[str | None, typer.Option("--y", help="Which outcome, if the result holds several.")] = None,
    curve: Annotated[
        str | None, typer.Option("--curve", help="A profile: NAME=VALUE,... What is left out has its reference value.")
    ] = None,
    minus: Annotated[
        str | None,
        typer.Option("--minus", help="Subtract the curve of this profile (with a log transform: divide by it)."),
    ] = None,
    effect: Annotated[str | None, typer.Option("--effect", help="A coefficient curve by its name.")] = None,
    derivative: Annotated[bool, typer.Option("--derivative", help="The slope of the curve.")] = False,
    transformed: Annotated[
        bool, typer.Option("--transformed", help="The curve of transformed y itself, if the fit has a --transform.")
    ] = False,
    average: Annotated[str | None, typer.Option("--average", help="Its average over LOW:HIGH.")] = None,
    integral: Annotated[str | None, typer.Option("--integral", help="Its integral over LOW:HIGH.")] = None,
    x: Annotated[str | None, typer.Option("--x", help="Places, as in 30,40,50, or dates.")] = None,
    points: Annotated[int, typer.Option("--points", help="Rows of the CSV file, without --x.")] = 201,
    level: Annotated[
        float | None, typer.Option("--level", help="Confidence level of bands and tests; that of the fit if left out.")
    ] = None,
    figure: Annotated[str | None, typer.Option("--figure", help="Draw it (.png, .svg, .pdf).")] = None,
    csv: Annotated[str | None, typer.Option("--csv", help="Write x, estimate, standard error and band.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that exist.")] = False,
) -> None:
    """Ask a result: the mean of a profile, a contrast, a slope, an average, where it differs from zero, where it peaks.

    All of it is computed from what was released: no data are read and nothing is spent.
    """
    from dpfda import _validate
    from dpfda.cli.outputs import FIGURE_ENDINGS, check_target
    from dpfda.errors import InvalidInput
    from dpfda.report.results import load_one

    if figure is not None and not figure.lower().endswith(FIGURE_ENDINGS):
        raise InvalidInput(f"--figure {figure} must end in {', '.join(FIGURE_ENDINGS)}.")
    _validate.integer("--points", points, minimum=2)
    for target in (figure, csv):
        if target is not None:
            check_target(target, overwrite)
    loaded = load_one(result, y)
    level = _validate.fraction("--level", loaded.document["study"]["level"] if level is None else level)
    asked = _choose_curve(loaded, curve, minus, effect)
    asked = asked.transformed() if transformed else asked
    asked = asked.derivative() if derivative else asked
    axis = Axis(loaded.document["study"]["x_origin"])
    places = asked.grid([axis.parse("--x", part) for part in x.split(",")]) if x else None
    if average is not None or integral is not None:
        _print_value(asked, average, integral, level, axis, ctx.obj)
    else:
        _print_curve(asked, places, level, axis, ctx.obj)
    if axis.origin is not None and derivative != (integral is not None):
        ctx.obj.out.print("Slopes are per day." if derivative else "Integrals are in units of y times days.")
    for path in _write_files(asked, places, points, level, axis, figure, csv):
        ctx.obj.say(f"Wrote {path}")


def parse_profile(option: str, text: str) -> dict[str, Any]:
    """`male=1,bmi=25` as names and values; what holds a comma stands between double quotes, as in `"arm=A, low",bmi=25`."""
    import csv

    from dpfda.errors import InvalidInput

    profile: dict[str, Any] = {}
    for part in next(csv.reader([text], skipinitialspace=True), [""]):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not name or not value:
            raise InvalidInput(
                f"--{option} must be written NAME=VALUE,..., as in --{option} male=1,bmi=25, got {text!r}."
            )
        profile[name] = value
    return profile


def _choose_curve(result: Result, curve: str | None, minus: str | None, effect: str | None) -> ReleasedCurve:
    from dpfda.errors import InvalidInput

    if effect is not None:
        if curve is not None or minus is not None:
            raise InvalidInput("--effect asks for a coefficient curve; leave out --curve and --minus.")
        return result.effect(effect)
    asked = _profile_curve(result, "curve", curve)
    return asked if minus is None else asked - _profile_curve(result, "minus", minus)


def _profile_curve(result: Result, option: str, text: str | None) -> ReleasedCurve:
    from dpfda.curves.tables.reading import parse_number

    profile = parse_profile(option, text) if text else {}
    numbers = {each.name for each in result.coding_.covariates if each.bounds is not None} | {"intercept"}
    return result.curve_at(
        **{
            name: parse_number(f"{option} {name}", value) if name in numbers else value
            for name, value in profile.items()
        }
    )


def _print_value(
    curve: ReleasedCurve, average: str | None, integral: str | None, level: float, axis: Axis, terminal: Terminal
) -> None:
    from dpfda.report.formatting import format_number

    for name, ends, question in (("average", average, curve.mean_over), ("integral", integral, curve.integral)):
        if ends is None:
            continue
        low, high = axis.parse_interval(f"--{name}", ends, curve.domain)
        value = question(low, high)
        what = curve.scale.average if name == "average" else name
        line = f"{what.capitalize()} of {curve.name} over {axis.write(low)} to {axis.write(high)}: "
        line += format_number(value.estimate)
        if curve.has_band:
            lower, upper = (format_number(side) for side in value.interval(level))
            line += f" ({level:.0%} interval {lower} to {upper}{_write_p(value)})"
        terminal.out.print(show_plainly(line) + ".", markup=False)


def _write_p(value: ReleasedValue) -> str:
    """The test that a number is zero, or a ratio 1; a mean that is taken back is not tested."""
    from dpfda.inference.hypotheses import write_p

    scale = value.curve.scale
    return "" if scale.is_mean else f"; {write_p(value.p_value)} for {'a ratio of 1' if scale.is_ratio else 'zero'}"


def _print_curve(curve: ReleasedCurve, places: Any, level: float, axis: Axis, terminal: Terminal) -> None:
    import numpy as np
    from rich.table import Table
    from rich.text import Text

    from dpfda.inference.showing import curve_columns
    from dpfda.report.formatting import format_number

    x = np.linspace(*curve.domain, _ROWS) if places is None else places
    table = Table(box=None, pad_edge=False, header_style="bold")
    columns = curve_columns(curve, x, level)
    for name in columns:
        table.add_column(Text(show_plainly(curve.x_name if name == "x" else name.replace("_", " "))), justify="right")
    for place, *values in zip(*columns.values(), strict=True):
        table.add_row(axis.write(place), *(format_number(float(value)) for value in values))
    terminal.out.print(show_plainly(curve.name), markup=False, style="italic")
    terminal.out.print(table)
    if curve.has_band:
        terminal.out.print(f"Band: {level:.0%}, simultaneous.", markup=False)
        tests = () if curve.scale.is_mean else (curve.is_zero(level),)
        for answer in (*tests, curve.is_constant(level), curve.argmax(level), curve.argmin(level)):
            terminal.out.print(show_plainly(answer.describe(axis.write)), markup=False)


def _write_files(
    curve: ReleasedCurve, places: Any, points: int, level: float, axis: Axis, figure: str | None, csv: str | None
) -> list[str]:
    import numpy as np

    from dpfda.cli.outputs import write_whole
    from dpfda.inference.showing import curve_columns

    written = []
    if csv is not None:
        x = np.linspace(*curve.domain, points) if places is None else places
        columns = curve_columns(curve, x, level)
        rows = zip(*columns.values(), strict=True)
        lines = [
            ",".join(columns),
            *(",".join([axis.write_exactly(place), *(repr(float(v)) for v in row)]) for place, *row in rows),
        ]
        written.append(write_whole(csv, ("\n".join(lines) + "\n").encode()))
    if figure is not None:
        written.append(write_whole(figure, _draw(curve, level, figure)))
    return written


def _draw(curve: ReleasedCurve, level: float, target: str) -> bytes:
    from matplotlib.figure import Figure

    from dpfda.report.figures import encode_figure

    figure = Figure(figsize=(8, 4.8), dpi=120, layout="constrained")
    curve.plot(figure.add_subplot(), level=level)
    return encode_figure(figure, target.rpartition(".")[2].lower())
