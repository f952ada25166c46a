"""`dpfda simulate`: curves with a known truth, to try settings without touching a real budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpfda.cli.new_app import example, new_app

if TYPE_CHECKING:
    from dpfda.curves.curves import Curves

app = new_app()

_EXAMPLES = example(
    "dpfda simulate trial.csv --n 1000 --m 8 --seed 1",
    "dpfda simulate trial.parquet --n 5000 --m 6 --covariates 2 --noise t3 --points falling",
)


@app.command(epilog=_EXAMPLES)
def simulate(
    ctx: typer.Context,
    target: Annotated[str, typer.Argument(help="A .csv, .csv.gz, .parquet or .feather file.", show_default=False)],
    n: Annotated[int, typer.Option("--n", help="Number of subjects.")] = 250,
    m: Annotated[int, typer.Option("--m", help="Points of each subject.")] = 10,
    covariates: Annotated[int, typer.Option("--covariates", help="Number of covariates; 0 for a mean.")] = 0,
    mean: Annotated[
        str, typer.Option("--mean", help="'periodic' (the paper's mu_1) or 'growing' (mu_2).")
    ] = "periodic",
    points: Annotated[str, typer.Option("--points", help="Where x falls: uniform, wave, falling, gap.")] = "uniform",
    noise: Annotated[str, typer.Option("--noise", help="gaussian, t3 or skewed.")] = "gaussian",
    seed: Annotated[int, typer.Option("--seed", help="The same seed gives the same table.")] = 0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a file that exists.")] = False,
) -> None:
    """Write the paper's simulated curves: id, x in [0, 1], y, the covariates and the truth at x."""
    from dpfda.cli.outputs import check_target, write_whole
    from dpfda.cli.tables_out import encode_table

    check_target(target, overwrite)
    table = _table(n, m, covariates, mean, seed, design_density=points, noise=noise)
    write_whole(target, encode_table(table, target))
    ctx.obj.say(f"Wrote {target}: {n:,} subjects with {m} points each. To fit it:")
    names = [f"g{number}" for number in range(1, covariates + 1)]
    design = f" --design {','.join(names)} " + " ".join(f"--bounds {name}=-1:1" for name in names) if names else ""
    bounds = "--domain 0:1 --y-bounds=-4:5 --epsilon 1 --delta 1e-5"
    typer.echo(f"dpfda fit {target} --id id --x x --y y{design} {bounds} --points-per-curve {m} --report trial.html")


def _table(n: int, m: int, covariates: int, mean: str, seed: int, **law: str) -> Any:
    import numpy as np
    import polars as pl

    from dpfda import _validate
    from dpfda.curves import simulated as simulate

    _validate.integer("--m", m)
    _validate.integer("--covariates", covariates, minimum=0)
    function = {"periodic": simulate.mean_1, "growing": simulate.mean_2}[
        _validate.choice("--mean", mean, ("periodic", "growing"))
    ]
    functions = [function, *simulate.make_vcm_coefficients(covariates)[1:]]
    curves: Curves
    if covariates:
        curves = simulate.simulate_vcm(n, m, covariates, rng=seed, coefficients=functions, **law)  # type: ignore[arg-type]
    else:
        curves = simulate.simulate_mean(n, m, rng=seed, mean=function, **law)  # type: ignore[arg-type]
    rows = curves.point_design
    truth = sum(rows[:, k] * each(curves.x) for k, each in enumerate(functions))
    columns = {"id": curves.owners + 1, "x": curves.x, "y": curves.y}
    columns |= {f"g{number}": rows[:, number] for number in range(1, covariates + 1)}
    return pl.DataFrame({**columns, "truth": np.asarray(truth)})
