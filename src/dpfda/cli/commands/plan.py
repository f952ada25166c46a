"""`dpfda plan`: what a study can learn under which promise, before anything is collected or spent."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dpfda.cli.new_app import example, new_app

app = new_app()

_EXAMPLES = example(
    "dpfda plan --n 500 --m 6 --epsilon 1 --delta 1e-5 --y-bounds 0:150 --error 3",
    "dpfda plan --n 300 --m 8 --sites 5 --epsilon 0.5 --delta 1e-5 --picture phase.png",
    "dpfda plan --sites-file sites.toml --m 6 --json -",
    "dpfda plan --n 2000 --m 5 --epsilon 1 --delta 1e-6 --outcome binary --prevalence 0.2 --target-width 0.05",
    "dpfda plan --n 300 --m 8 --sites 5 --epsilon 1 --delta 1e-5 --sweep budget.png --verbose",
)
_UNITS = "the width of y_bounds"


@app.command(epilog=_EXAMPLES)
def plan(
    ctx: typer.Context,
    n: Annotated[int | None, typer.Option("--n", help="Subjects at each site.")] = None,
    m: Annotated[float | None, typer.Option("--m", help="Visits of each subject.")] = None,
    sites: Annotated[int, typer.Option("--sites", help="Sites that keep their data; 1 is central privacy.")] = 1,
    epsilon: Annotated[float | None, typer.Option("--epsilon", help="Budget of each site.")] = None,
    delta: Annotated[float | None, typer.Option("--delta", help="Delta of each site.")] = None,
    alpha: Annotated[float | None, typer.Option("--alpha", help="Smoothness for the rates; 2 if left out.")] = None,
    covariates: Annotated[int | None, typer.Option("--covariates", help="Number of covariates; 0 is a mean.")] = None,
    y_bounds: Annotated[str | None, typer.Option("--y-bounds", help="Public range of y; 0:1 if left out.")] = None,
    spread: Annotated[float | None, typer.Option("--spread", help="Guess: sd of subjects around the mean.")] = None,
    noise: Annotated[float | None, typer.Option("--noise", help="Guess: sd of one measurement.")] = None,
    signal: Annotated[float | None, typer.Option("--signal", help="Guess: sd of the mean around its level.")] = None,
    transform: Annotated[
        str | None,
        typer.Option(
            "--transform",
            help="Transform of y: log, log1p or sqrt. Errors and guesses are then those of the transformed y.",
        ),
    ] = None,
    sites_file: Annotated[str | None, typer.Option("--sites-file", help="TOML with unequal [[site]] tables.")] = None,
    outcome: Annotated[
        str | None,
        typer.Option(
            "--outcome",
            help="What y is, as for dpfda fit: 'binary' (with --prevalence), 'count' or 'positive' (with --level, "
            "--variation) or 'score'.",
        ),
    ] = None,
    prevalence: Annotated[
        float | None, typer.Option("--prevalence", help="PUBLIC share of the upper value of a binary y.")
    ] = None,
    level: Annotated[float | None, typer.Option("--level", help="PUBLIC mean of a count or positive y.")] = None,
    variation: Annotated[
        float | None, typer.Option("--variation", help="PUBLIC sd of a count or positive y over its mean.")
    ] = None,
    correlation: Annotated[
        float, typer.Option("--correlation", help="Guess: correlation of two visits of one subject, for --outcome.")
    ] = 0.3,
    error: Annotated[
        float | None, typer.Option("--error", help="Target for the typical distance, in units of y.")
    ] = None,
    target_width: Annotated[
        float | None, typer.Option("--target-width", help="Target for the width of a pointwise 95% band.")
    ] = None,
    json_file: Annotated[str | None, typer.Option("--json", help="Write the answers as JSON; - for stdout.")] = None,
    picture: Annotated[str | None, typer.Option("--picture", help="Phase diagram: .png, .svg or .pdf.")] = None,
    sweep: Annotated[str | None, typer.Option("--sweep", help="Error over epsilon: .png, .svg or .pdf.")] = None,
    against: Annotated[
        str, typer.Option("--against", help="Second axis of the picture: m, epsilon, or panels: three ranges of m.")
    ] = "m",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that exist.")] = False,
) -> None:
    """Find the privacy model, epsilon, sites and subjects for the precision you need. Spends nothing.

    With --verbose also the regimes, rates and bounds of the theory.
    """
    from dpfda.cli.outputs import check_target
    from dpfda.cli.plan.answers import answer
    from dpfda.cli.plan.sentences import print_answers
    from dpfda.planning.outcomes import find_law

    for target in (json_file, picture, sweep):
        if target not in (None, "-"):
            check_target(str(target), overwrite)
    given = {"n": n, "m": m, "S": sites, "epsilon": epsilon, "delta": delta, "alpha": alpha, "d": covariates}
    facts = {"prevalence": prevalence, "level": level, "variation": variation, "correlation": correlation}
    typed = {"spread": spread, "noise_sd": noise, "signal": signal}
    law = find_law(outcome)
    study = _study(given, typed, (outcome, facts), y_bounds, sites_file, _check_transform(transform, y_bounds, outcome))
    found = answer(study, error, target_width, law)
    units = _UNITS if y_bounds is None and sites_file is None and law == "symmetric" else study.units
    _write(found, json_file)
    _draw(study, found, {"picture": picture, "sweep": sweep}, against, units)
    if json_file != "-":
        print_answers(found, ctx.obj, units=units, verbose=ctx.obj.verbose)


def _check_transform(transform: str | None, y_bounds: Any, outcome: str | None) -> str | None:
    from dpfda import _validate
    from dpfda.errors import InvalidInput
    from dpfda.protocol.transforms import TRANSFORMS

    if transform is None:
        return None
    _validate.choice("--transform", transform, TRANSFORMS[1:])
    if y_bounds is None:
        raise InvalidInput("--y-bounds must be given with --transform, in the units of y.")
    if outcome is not None:
        raise InvalidInput("--outcome must be left out with --transform: guesses are those of the transformed y.")
    return transform


def _study(
    given: dict[str, Any],
    typed: dict[str, Any],
    declared: tuple[str | None, dict[str, Any]],
    y_bounds: Any,
    sites_file: str | None,
    transform: str | None,
) -> Any:
    """The study; guesses that are typed count before those of a file, and those before what follows from the outcome."""
    from dpfda import _validate
    from dpfda.cli.parsing import parse_interval
    from dpfda.cli.plan.answers import average_sites, read_sites
    from dpfda.errors import InvalidInput
    from dpfda.planning.outcomes import guess_outcome
    from dpfda.planning.planned_study import PlannedStudy

    sites: Any = ()
    filed: dict[str, Any] = {}
    if sites_file is not None:
        if given["n"] is not None or given["epsilon"] is not None or given["delta"] is not None or given["S"] != 1:
            raise InvalidInput(
                "--sites-file already states n, epsilon and delta of every site; leave those options out."
            )
        sites, table = read_sites(sites_file)
        given = {**given, **average_sites(sites)}
        given["m"], given["alpha"] = (
            table.get(name) if given[name] is None else given[name] for name in ("m", "alpha")
        )
        given["d"] = table.get("covariates") if given["d"] is None else given["d"]
        filed = {"spread": table.get("spread"), "noise_sd": table.get("noise"), "signal": table.get("signal")}
        y_bounds = table.get("y_bounds") if y_bounds is None else y_bounds
    for name in ("n", "m", "epsilon", "delta"):
        if given[name] is None:
            raise InvalidInput(
                f"--{name} must be given, for example: dpfda plan --n 500 --m 6 --epsilon 1 --delta 1e-5"
            )
    epsilon, delta = _validate.privacy_pair(given["epsilon"], given["delta"])
    bounds = (0.0, 1.0) if y_bounds is None else parse_interval("y-bounds", y_bounds)
    guesses = guess_outcome(declared[0], bounds, **declared[1])
    for source in (filed, typed):
        guesses.update({name: value for name, value in source.items() if value is not None})
    return PlannedStudy(
        n=_validate.integer("--n", given["n"]),
        m=_validate.within("--m", given["m"], 1.0, 1e6),
        S=_validate.within("--sites", _validate.integer("--sites", given["S"]), 1, 1000).__int__(),
        epsilon=epsilon,
        delta=delta,
        alpha=_validate.within("--alpha", 2.0 if given["alpha"] is None else given["alpha"], 1.01, 10.0),
        d=_validate.integer("--covariates", given["d"] or 0, minimum=0),
        y_bounds=bounds,
        guesses=tuple((name, float(value)) for name, value in guesses.items()),
        sites=sites,
        transform=transform,
    )


def _write(found: dict[str, Any], json_file: str | None) -> None:
    import json

    from dpfda.cli.outputs import write_whole

    if json_file is not None:
        text = json.dumps(found, indent=1) + "\n"
        if json_file == "-":
            typer.echo(text, nl=False)
        else:
            write_whole(json_file, text.encode())


def _draw(study: Any, found: dict[str, Any], files: dict[str, str | None], against: str, units: str) -> None:
    """The phase diagram and the sweep over epsilon, where they are asked for."""
    from dpfda import _validate
    from dpfda.cli.outputs import FIGURE_ENDINGS, write_whole
    from dpfda.errors import InvalidInput

    _validate.choice("--against", against, ("m", "epsilon", "panels"))
    for option, name in files.items():
        if name is None:
            continue
        if not name.lower().endswith(FIGURE_ENDINGS):
            raise InvalidInput(f"--{option} {name} must end in {', '.join(FIGURE_ENDINGS)}.")
        from dpfda.report.budget_sweep import draw_budget_sweep
        from dpfda.report.figures import encode_figure
        from dpfda.report.phase import draw_phase_diagram, draw_phase_panels

        if option == "sweep":
            figure = draw_budget_sweep(study, found.get("target", {}).get("typical_distance"), units)
        elif against == "panels":
            figure = draw_phase_panels(study.setting)
        else:
            figure = draw_phase_diagram(study.setting, "epsilon" if against == "epsilon" else "m")
        write_whole(name, encode_figure(figure, Path(name).suffix[1:].lower()))
