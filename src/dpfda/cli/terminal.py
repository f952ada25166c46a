"""Where output goes: results to stdout, everything else to stderr, so that pipes carry results only."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

Advance = Callable[[int, int], None]
_PIPE_WIDTH = 160
_PATIENCE = 1.0  # seconds of silence before a progress bar appears


def count_things(number: int, thing: str) -> str:
    """`1 release`, `2 releases`."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def show_plainly(text: str) -> str:
    """A name from a file as it may stand on a screen: nothing that a terminal would obey."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


@dataclass(frozen=True)
class Terminal:
    """How much to say, and the command line that is being run."""

    quiet: bool = False
    verbose: bool = False
    command: str = ""

    def say(self, sentence: str) -> None:
        """Say it unless --quiet."""
        if not self.quiet:
            sys.stderr.write(sentence + "\n")

    def give_json(self, value: object) -> None:
        """A result for programs, on stdout."""
        import json

        sys.stdout.write(json.dumps(value) + "\n")

    def invite(self, link: str) -> None:
        """A link on stdout, at once, with a sentence beside it."""
        sys.stdout.write(link + "\n")
        sys.stdout.flush()
        self.say("Open this link in a browser on this computer; it works once. Ctrl-C ends the console.")

    def detail(self, sentence: str) -> None:
        """Say it with --verbose."""
        if self.verbose:
            sys.stderr.write(f"  {sentence}\n")

    def owner_notes(self, notes: Sequence[str]) -> None:
        """About real subjects, so never on stdout and never in a report or a result."""
        for note in notes:
            self.say(f"NOT PRIVATE, for the data's owner only: {note}.")

    @property
    def can_ask(self) -> bool:
        """Whether a person sits there."""
        return sys.stdin.isatty() and sys.stderr.isatty()

    def confirm(self, question: str) -> None:
        """Go on only if the person says yes; otherwise the command ends, with nothing spent."""
        import typer

        if not typer.confirm(question, err=True):
            self.say("Nothing was spent.")
            raise typer.Exit(1)

    @property
    def out(self) -> Console:
        """Tables and results."""
        from rich.console import Console

        return Console(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else _PIPE_WIDTH)

    @contextmanager
    def progress(self, task: str) -> Iterator[Advance]:
        """A bar on stderr for work that takes more than a second, also while its first step lasts."""
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        silent = self.quiet or not sys.stderr.isatty()
        bar = Progress(*columns, console=Console(stderr=True), transient=True, disable=silent)
        line = bar.add_task(task, total=None)
        patience = threading.Timer(_PATIENCE, bar.start)
        patience.daemon = True
        patience.start()

        def advance(done: int, planned: int) -> None:
            bar.update(line, completed=done, total=planned)
            self.detail(f"{task}: step {done} of {planned}")

        try:
            yield advance
        finally:
            patience.cancel()
            patience.join()
            bar.stop()

    @contextmanager
    def waiting(self, task: str) -> Iterator[None]:
        """A spinner on stderr for work without steps."""
        from rich.console import Console

        self.detail(task)
        if self.quiet or not sys.stderr.isatty():
            yield
            return
        with Console(stderr=True).status(task):
            yield
