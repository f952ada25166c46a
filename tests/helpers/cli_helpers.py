"""What the tests of the command line share: running it in this process or in its own, and small tables."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dpfda.cli.main import run
from dpfda.privacy.ledger.ledger import Ledger

SOURCE_TREE = Path(__file__).parents[2] / "src"
PROMISE = ["--epsilon", "1", "--delta", "1e-5"]
COLUMNS = ["--id", "pid", "--x", "age", "--y", "hdl"]
PUBLIC = ["--domain", "46:63", "--y-bounds", "0:150"]
ALL = [*COLUMNS, *PUBLIC, *PROMISE]


@dataclass(frozen=True)
class Ran:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def complaints(self) -> list[str]:
        """The lines that say what went wrong."""
        return [line for line in self.err.splitlines() if line.startswith("dpfda: ")]


def visits(path: Path, subjects: int = 60, points: int = 5, seed: int = 1) -> Path:
    """A table of visits, as a clinic would export it."""
    rng = np.random.default_rng(seed)
    lines = ["pid,age,hdl,male,smoker"]
    for subject in range(subjects):
        male, smoker = subject % 2, ("never", "former", "current")[subject % 3]
        for age in rng.uniform(46, 63, points):
            value = 55 + 5 * np.sin(age / 4) - 8 * male + rng.normal(0, 6)
            lines.append(f"p{subject:04d},{age:.3f},{value:.2f},{male},{smoker}")
    path.write_text("\n".join(lines) + "\n")
    return path


def fund(table: Path | str, epsilon: float = 1.0) -> None:
    """Set the total budget of a table, as `dpfda budget init` does."""
    Ledger.create(f"{table}.ledger", epsilon, 1e-5).close()


def dpfda(capsys, *arguments: object) -> Ran:
    """Run a command in this process."""
    capsys.readouterr()
    code = run([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return Ran(code, captured.out, captured.err)


def environment() -> dict[str, str]:
    """The environment of a process of its own."""
    return {**os.environ, "PYTHONPATH": str(SOURCE_TREE), "COLUMNS": "120", "NO_COLOR": "1"}


def command(*arguments: object) -> list[str]:
    """The words of a process of its own."""
    return [sys.executable, "-m", "dpfda", *map(str, arguments)]


def dpfda_process(arguments: Sequence[object], **options: object) -> Ran:
    """Run a command in its own process."""
    how = {"capture_output": True, "text": True, "env": environment(), "timeout": 300, "check": False, **options}
    done = subprocess.run(command(*arguments), **how)  # type: ignore[call-overload] # noqa: PLW1510
    return Ran(done.returncode, done.stdout, done.stderr)


def plain(text: str) -> str:
    """Text without colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)
