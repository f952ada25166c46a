"""`dpfda`: registers commands and turns every failure into one sentence and an exit code. Imports nothing heavy."""

from __future__ import annotations

import importlib
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from dpfda import __version__
from dpfda.cli.failures import run_for_exit_code
from dpfda.cli.terminal import Terminal

_ANYWHERE = {"-q": "--quiet", "--quiet": "--quiet", "-v": "--verbose", "--verbose": "--verbose"}


@dataclass(frozen=True)
class Entry:
    """Where a command lives: a module with a Typer named `app`, and its line in `dpfda --help`."""

    module: str
    help: str
    panel: str


ANALYSE, BUDGET, SITES, EXAMPLES = "Analyse", "Privacy budget", "Studies across sites", "Examples and simulation"

COMMANDS: dict[str, Entry] = {
    "fit": Entry(
        "dpfda.cli.commands.fit", "Estimate a mean or coefficient curves under differential privacy.", ANALYSE
    ),
    "describe": Entry("dpfda.cli.commands.describe", "Help you choose public bounds without leaking.", ANALYSE),
    "plan": Entry(
        "dpfda.cli.commands.plan", "Forecast what a study can learn, before anything is collected or spent.", ANALYSE
    ),
    "report": Entry("dpfda.cli.commands.report", "Redraw the report or figures of a result.", ANALYSE),
    "ask": Entry(
        "dpfda.cli.commands.ask", "Ask a result for profiles, contrasts, slopes, averages and tests.", ANALYSE
    ),
    "export": Entry("dpfda.cli.commands.export", "Export coefficients or grid values of a result.", ANALYSE),
    "budget": Entry("dpfda.cli.commands.budget", "Set, show and verify the privacy budget of a data set.", BUDGET),
    "audit": Entry("dpfda.cli.commands.audit", "Attack this installation and test every privacy claim.", BUDGET),
    "verify-install": Entry(
        "dpfda.cli.commands.verify_install", "Check that the installed files are those that were released.", BUDGET
    ),
    "consortium": Entry("dpfda.cli.commands.consortium", "Enrol the sites that may take part in studies.", SITES),
    "study": Entry("dpfda.cli.commands.study", "Coordinate a study across sites that keep their data.", SITES),
    "site": Entry("dpfda.cli.commands.site", "Take part in studies: policy, promise, log.", SITES),
    "federate-demo": Entry(
        "dpfda.cli.commands.federate_demo", "Run a whole study here: a server, three sites, real data.", SITES
    ),
    "demo": Entry("dpfda.cli.commands.demo", "Fit a private curve of 15,205 real subjects, with a report.", EXAMPLES),
    "datasets": Entry("dpfda.cli.commands.datasets", "List and export the public example data.", EXAMPLES),
    "simulate": Entry("dpfda.cli.commands.simulate", "Write simulated curves with a known truth.", EXAMPLES),
    "reproduce": Entry(
        "dpfda.cli.commands.reproduce", "Rerun the paper's experiments, with a verdict on each claim.", EXAMPLES
    ),
}


class LazyGroup(TyperGroup):
    """A group that lists its commands from `COMMANDS` and imports one only when it is run or asked for help."""

    _listing = False

    def list_commands(self, ctx: Any) -> list[str]:
        """The names, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command itself, or, while help is written, its name and its line."""
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        if self._listing:
            return TyperCommand(cmd_name, help=entry.help, rich_help_panel=entry.panel)
        command = typer.main.get_command(importlib.import_module(entry.module).app)
        command.name = cmd_name
        return command

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The help page, written from the table alone."""
        self._listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._listing = False


app = typer.Typer(
    cls=LazyGroup,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,  # a traceback with local variables would print raw data
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dpfda {__version__}")
        raise typer.Exit


@app.callback(epilog="Example: [bold]dpfda fit visits.csv --id pid --x age --y hdl --domain 20:90 --y-bounds 0:150 "
              "--epsilon 1 --delta 1e-5 --report hdl.html[/bold]")  # fmt: skip
def root(
    ctx: typer.Context,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Errors and results only.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Report every step.")] = False,
    version: Annotated[bool, typer.Option("--version", callback=_print_version, is_eager=True)] = False,
) -> None:
    """Private functional data analysis: curves of sensitive longitudinal data, with a guarantee for every subject."""
    ctx.obj = Terminal(quiet=quiet, verbose=verbose, command=ctx.obj or "dpfda")


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code: 0 done, 2 the user's mistake, 1 the system's, 130 interrupted."""
    flags = [_ANYWHERE[argument] for argument in arguments if argument in _ANYWHERE]
    rest = [argument for argument in arguments if argument not in _ANYWHERE]
    command = shlex.join(["dpfda", *rest])
    ordered = [*dict.fromkeys(flags), *rest]
    return run_for_exit_code(lambda: app(ordered, prog_name="dpfda", standalone_mode=False, obj=command), rest)


def main() -> None:
    """The console script."""
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
