"""`dpfda reproduce`: the paper's experiments, for its method and for the default one, with a verdict on each claim."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpfda.cli.new_app import example, new_app

if TYPE_CHECKING:
    from dpfda.reproduce.catalogue import Experiment
    from dpfda.reproduce.compute import Progress

app = new_app()

_EXAMPLES = example(
    "dpfda reproduce all --quick",
    "dpfda reproduce dense sensitivity --out out/some",
    "dpfda reproduce dense --reading C,F",
    "dpfda reproduce real-data --swan swan.csv",
    "dpfda reproduce all --only published,nonprivate",
)
METHODS = ("published", "full-batch", "adaptive", "nonprivate")
FULL, QUICK = "results", "out/results-quick"


@app.command(epilog=_EXAMPLES)
def reproduce(
    ctx: typer.Context,
    names: Annotated[list[str], typer.Argument(help="`all`, `list`, or names of experiments.", show_default=False)],
    quick: Annotated[bool, typer.Option("--quick", help="About two minutes instead of most of an hour.")] = False,
    out: Annotated[str | None, typer.Option("--out", help=f"A folder; {FULL}, or {QUICK} with --quick.")] = None,
    jobs: Annotated[int, typer.Option("--jobs", help="Processes that work at the same time.")] = 2,
    swan: Annotated[
        str | None,
        typer.Option(
            "--swan", help="Your copy of the paper's data, in long format; what is shown of it is NOT private."
        ),
    ] = None,
    adaptive_repetitions: Annotated[
        int | None, typer.Option("--adaptive-repetitions", help="Maximum number of repetitions of the default method.")
    ] = None,
    reading: Annotated[
        str,
        typer.Option(
            "--reading",
            help="How the published algorithm is read: A (default), B, C, C-eta-0.1, F, literal, full-batch.",
        ),
    ] = "A",
    only: Annotated[
        str | None,
        typer.Option(
            "--only", help="Compute and store these methods only, as in published,nonprivate; write nothing yet."
        ),
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Do not use stored results.")] = False,
) -> None:
    """Run the paper's experiments and write figures, tables and RESULTS.md (RESULTS-name.md for some of them alone).

    An interrupted run resumes when the same command is given again.
    """
    from dpfda import _validate
    from dpfda.reproduce import catalogue

    if names == ["list"]:
        for name in catalogue.list_experiments():
            typer.echo(f"{name:<12} {catalogue.load_experiment(name).title}")
        return
    wanted = catalogue.list_experiments() if "all" in names else list(dict.fromkeys(names))
    readings = list(dict.fromkeys(each.strip() for each in reading.split(",")))
    if readings != ["A"]:
        wanted = [name for name in wanted if name != "readings"]  # it has all of them
    experiments = [
        catalogue.load_experiment(name, quick=quick, swan=swan, adaptive_at_most=adaptive_repetitions, reading=one)
        for name in wanted
        for one in readings
    ]
    folder = Path(out or (QUICK if quick else FULL))
    jobs = _validate.integer("--jobs", jobs)
    if only is not None:
        _compute_only(ctx, experiments, folder, only, jobs)
    else:
        _run(ctx, experiments, folder, jobs=jobs, fresh=fresh)


def _compute_only(ctx: typer.Context, experiments: list[Experiment], folder: Path, only: str, jobs: int) -> None:
    """Fill the store for some methods, so that a later run without --only finds them there."""
    from dpfda import _validate
    from dpfda.reproduce.compute import compute_missing, find_missing
    from dpfda.reproduce.store import Store

    names = [_validate.choice("--only", name.strip(), METHODS) for name in only.split(",")]
    store = Store(folder / ".cache")
    with _progress(ctx) as advance:
        compute_missing(experiments, store, jobs=jobs, only=names, progress=advance)
    left = len(find_missing(experiments, store))
    ctx.obj.say(f"Stored in {store.folder}; {left} cells still lack other methods: run it again without --only.")


@contextmanager
def _progress(ctx: typer.Context) -> Iterator[Progress]:
    """A bar on a terminal, a line for every tenth of the work in a log, and a note on resuming after an interruption."""
    said = 0

    with ctx.obj.progress("simulating (estimated seconds)") as advance:

        def report(done: float, planned: float) -> None:
            nonlocal said
            advance(int(done), int(planned) + 1)
            tenths = int(10 * done / planned)
            if tenths > said and not sys.stderr.isatty():
                ctx.obj.say(f"{10 * tenths}% of the simulations (by estimated time) are done.")
            said = max(said, tenths)

        try:
            yield report
        except KeyboardInterrupt:
            ctx.obj.say("Finished cells are stored; give the same command again to resume.")
            raise


def _run(ctx: typer.Context, experiments: list[Experiment], folder: Path, *, jobs: int, fresh: bool) -> None:
    import tempfile

    from dpfda.reproduce.claims.claim import FAILS
    from dpfda.reproduce.compute import find_missing, run_all
    from dpfda.reproduce.document import Run, write_all
    from dpfda.reproduce.store import Store

    with tempfile.TemporaryDirectory() as nowhere:
        store = Store(Path(nowhere) if fresh else folder / ".cache")
        begun, count = time.monotonic(), len(find_missing(experiments, store))
        cells = sum(len(one.points) for one in experiments)
        ctx.obj.say(f"{len(experiments)} experiments, {cells} cells, {count} of them still to be computed.")
        with _progress(ctx) as advance:
            results = run_all(experiments, store, jobs=jobs, progress=advance)
    run = Run(ctx.obj.command, experiments[0].quick, time.monotonic() - begun, count)
    ctx.obj.say("Drawing figures and writing tables.")
    written = write_all(folder, results, run)
    ctx.obj.say(f"Wrote {len(written)} files.")
    summary = written[-1]
    typer.echo(str(summary))
    count = summary.read_text(encoding="utf-8").count(f"**{FAILS}**")
    ctx.obj.say(f"{count} claims do not hold; the reasons are in {summary.name}.")
