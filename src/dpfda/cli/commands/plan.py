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
    domain: Annotated[str | None, typer.Option("--domain", help="Public range of x, for --visit-times.")] = None,
    assume_symmetric: Annotated[
        bool, typer.Option("--assume-symmetric", help="Declare that curves lie symmetrically around their mean.")
    ] = False,
    outcome: Annotated[
        str | None,
        typer.Option(
            "--outcome", help="Declare what y is: binary, count, positive or score. The forecast is the same."
        ),
    ] = None,
    visit_times: Annotated[
        str | None,
        typer.Option(
            "--visit-times", help="Public times of visits: 0,6,12,24 with --domain. The forecast is the same."
        ),
    ] = None,
    sites_file: Annotated[str | None, typer.Option("--sites-file", help="TOML with unequal [[site]] tables.")] = None,
    error: Annotated[
        float | None, typer.Option("--error", help="Target for the typical distance, in units of y.")
    ] = None,
    json_file: Annotated[str | None, typer.Option("--json", help="Write the answers as JSON; - for stdout.")] = None,
    picture: Annotated[str | None, typer.Option("--picture", help="Phase diagram: .png, .svg or .pdf.")] = None,
    against: Annotated[str, typer.Option("--against", help="Second axis of the picture: m or epsilon.")] = "m",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that exist.")] = False,
) -> None:
    """Regime, what helps most, price of privacy, forecast error, budget or subjects needed. Spends nothing."""
    from dpfda.cli.outputs import check_target
    from dpfda.cli.plan.answers import answer
    from dpfda.cli.plan.sentences import print_answers

    for target in (json_file, picture):
        if target not in (None, "-"):
            check_target(str(target), overwrite)
    given = {"n": n, "m": m, "S": sites, "epsilon": epsilon, "delta": delta, "alpha": alpha, "d": covariates}
    guesses = {"spread": spread, "noise_sd": noise, "signal": signal}
    declared = _declarations(assume_symmetric, outcome, domain, visit_times)
    study = _study(given, guesses, y_bounds, sites_file, declared)
    found = answer(study, error)
    _write(study, found, json_file, picture, against)
    if json_file != "-":
        print_answers(found, ctx.obj, units=_UNITS if y_bounds is None and sites_file is None else "y")


def _declarations(symmetric: bool, outcome: str | None, domain: str | None, visit_times: str | None) -> dict[str, Any]:
    """What the default method may take for granted, if anything is declared."""
    from dpfda import _validate
    from dpfda.cli.parsing import parse_domain, parse_visit_times
    from dpfda.errors import InvalidInput
    from dpfda.protocol.terms import OUTCOMES

    declared: dict[str, Any] = {"assume_symmetric": True} if symmetric else {}
    if outcome is not None:
        declared["outcome"] = _validate.choice("--outcome", outcome, OUTCOMES[1:])
    if visit_times is not None:
        if domain is None:
            raise InvalidInput("--visit-times must come with --domain, as in --domain 0:24 --visit-times 0,6,12,24.")
        within = parse_domain(domain)
        declared |= {"domain": within.interval, "visit_times": parse_visit_times(visit_times, within)}
    return declared


def _study(
    given: dict[str, Any], guesses: dict[str, Any], y_bounds: Any, sites_file: str | None, declared: dict[str, Any]
) -> Any:
    from dpfda import _validate
    from dpfda.cli.parsing import parse_interval
    from dpfda.cli.plan.answers import PlannedStudy, average_sites, read_sites
    from dpfda.errors import InvalidInput

    sites: Any = ()
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
        guesses = {**{"spread": table.get("spread"), "noise_sd": table.get("noise"), "signal": table.get("signal")},
                   **{name: value for name, value in guesses.items() if value is not None}}  # fmt: skip
        y_bounds = table.get("y_bounds") if y_bounds is None else y_bounds
    for name in ("n", "m", "epsilon", "delta"):
        if given[name] is None:
            raise InvalidInput(
                f"--{name} must be given, for example: dpfda plan --n 500 --m 6 --epsilon 1 --delta 1e-5"
            )
    epsilon, delta = _validate.privacy_pair(given["epsilon"], given["delta"])
    return PlannedStudy(
        n=_validate.integer("--n", given["n"]),
        m=_validate.within("--m", given["m"], 1.0, 1e6),
        S=_validate.within("--sites", _validate.integer("--sites", given["S"]), 1, 1000).__int__(),
        epsilon=epsilon,
        delta=delta,
        alpha=_validate.within("--alpha", 2.0 if given["alpha"] is None else given["alpha"], 1.01, 10.0),
        d=_validate.integer("--covariates", given["d"] or 0, minimum=0),
        y_bounds=(0.0, 1.0) if y_bounds is None else parse_interval("y-bounds", y_bounds),
        guesses=tuple((name, float(value)) for name, value in guesses.items() if value is not None),
        sites=sites,
        declared=tuple(declared.items()),
    )


def _write(study: Any, found: dict[str, Any], json_file: str | None, picture: str | None, against: str) -> None:
    import json

    from dpfda import _validate
    from dpfda.cli.outputs import FIGURE_ENDINGS, write_whole
    from dpfda.errors import InvalidInput

    _validate.choice("--against", against, ("m", "epsilon"))
    if picture is not None:
        if not picture.lower().endswith(FIGURE_ENDINGS):
            raise InvalidInput(f"--picture {picture} must end in {', '.join(FIGURE_ENDINGS)}.")
        from dpfda.report.figures import encode_figure
        from dpfda.report.phase import draw_phase_diagram

        figure = draw_phase_diagram(study.setting, "epsilon" if against == "epsilon" else "m")
        write_whole(picture, encode_figure(figure, Path(picture).suffix[1:].lower()))
    if json_file is not None:
        text = json.dumps(found, indent=1) + "\n"
        if json_file == "-":
            typer.echo(text, nl=False)
        else:
            write_whole(json_file, text.encode())
