"""`dpfda datasets`: the public example data, with public bounds, ready to fit."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from dpfda.cli.new_app import example, new_app

if TYPE_CHECKING:
    from dpfda.curves.dataset_list import DatasetInfo

app = new_app()


@app.callback(invoke_without_command=True, epilog=example("dpfda datasets export nafld-lipid lipid.csv"))
def datasets(ctx: typer.Context) -> None:
    """List the public example data sets; `export` writes one as a file that `dpfda fit` reads."""
    if ctx.invoked_subcommand is None:
        list_(ctx)


@app.command("list", epilog=example("dpfda datasets list"))
def list_(ctx: typer.Context) -> None:
    """The names, sizes and public ranges."""
    from rich.table import Table

    from dpfda.curves.datasets import list_datasets

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name, justify in (
        ("name", "left"),
        ("subjects", "right"),
        ("rows", "right"),
        ("x", "left"),
        ("y", "left"),
        ("covariates", "left"),
    ):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    for info in list_datasets():
        ranges = f"{info.x} {_range(info.domain)}", f"{info.y} {_range(info.y_bounds)}"
        table.add_row(info.name, f"{info.subjects:,}", f"{info.rows:,}", *ranges, ", ".join(info.covariates))
    ctx.obj.out.print(table)


@app.command(epilog=example("dpfda datasets export nafld-lipid lipid.csv", "dpfda datasets export pbcseq pbc.parquet"))
def export(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="A name from the list.", show_default=False)],
    target: Annotated[str, typer.Argument(help="A .csv, .csv.gz or .parquet file.", show_default=False)],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a file that exists.")] = False,
) -> None:
    """Write a data set in long format: id, x, y and covariates."""
    from dpfda.cli.outputs import check_target, write_whole
    from dpfda.cli.tables_out import encode_table
    from dpfda.curves.datasets import get_dataset_info, load_table

    check_target(target, overwrite)
    info = get_dataset_info(name)
    with ctx.obj.waiting(f"Loading {name}"):
        content = encode_table(load_table(name), target)
    write_whole(target, content)
    ctx.obj.say(f"Wrote {target}: {info.title} ({info.source}, {info.licence}). To fit it:")
    typer.echo(fit_command(info, target))


def fit_command(info: DatasetInfo, target: str) -> str:
    """The command that fits an exported set."""
    labels = ["--x-label", info.x, "--y-label", f"{info.y} ({info.units.split(' over ')[0]})"]
    words = ["dpfda", "fit", target, "--id", "id", "--x", "x", "--y", "y", "--domain", _range(info.domain)]
    words += [
        f"--y-bounds={_range(info.y_bounds)}",
        "--epsilon",
        "1",
        "--delta",
        "1e-5",
        "--duplicates",
        "keep",
        *labels,
    ]
    return shlex.join([*words, "--report", f"{info.name}.html"])


def _range(bounds: tuple[float, float]) -> str:
    return f"{bounds[0]:g}:{bounds[1]:g}"
