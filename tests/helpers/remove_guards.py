"""Takes each guard of tests/redteam/guards.toml out of a copy of the library and runs the test that must then fail.

    python tests/helpers/remove_guards.py [WORDS ...]

Without words all of them; with words those whose names hold one of them. The tree itself is never changed. A guard whose
test passes without it is named at the end, and the exit code is 1.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "dpfda"
TABLE = ROOT / "tests" / "redteam" / "guards.toml"
FAILED, PASSED = 1, 0  # pytest's exit codes; others above 0 mean that the test did not run


def is_missed(code: int) -> bool:
    """Whether a test noticed: it failed, or its process died of a signal, as one that writes out of bounds may."""
    return code == FAILED or code < 0


@dataclass(frozen=True)
class Guard:
    """A guard by the text that makes it, what is left without it, and the test that shows its absence."""

    name: str
    file: str
    text: str
    without: str
    test: str

    def remove_from(self, source: Path) -> None:
        """Take it out of a copy of the library; the text must stand there once."""
        path = source / self.file
        before = path.read_text()
        if before.count(self.text) != 1:
            raise ValueError(f"{self.name}: {self.file} holds the guard's text {before.count(self.text)} times")
        path.write_text(before.replace(self.text, self.without))


def read_guards() -> list[Guard]:
    """The table, in its order."""
    guards = []
    for test_file, entries in tomllib.loads(TABLE.read_text())["guards"].items():
        for entry in entries:
            test = f"tests/redteam/{test_file}.py::{entry.pop('test')}"
            guards.append(Guard(test=test, **entry))
    return guards


class Copy:
    """A copy of the library in which one guard at a time is missing."""

    def __init__(self, folder: Path) -> None:
        self.source = folder / "dpfda"
        shutil.copytree(SOURCE, self.source, ignore=shutil.ignore_patterns("__pycache__"))

    @contextmanager
    def without(self, guard: Guard) -> Iterator[None]:
        """While this lasts the guard is missing."""
        path = self.source / guard.file
        kept = path.read_bytes()
        guard.remove_from(self.source)
        try:
            yield
        finally:
            path.write_bytes(kept)

    def run(self, *tests: str) -> int:
        """Pytest's exit code for these tests with this copy as the library."""
        settings = os.environ | {"PYTHONPATH": str(self.source.parent), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
        return subprocess.run(command, cwd=ROOT, env=settings, capture_output=True, check=False).returncode


def main(words: list[str]) -> int:
    """1 if a test passes without its guard, or does not run."""
    chosen = [guard for guard in read_guards() if not words or any(word in guard.name for word in words)]
    survived = []
    with tempfile.TemporaryDirectory() as folder:
        copy = Copy(Path(folder))
        if copy.run(*sorted({guard.test for guard in chosen})) != PASSED:
            sys.exit("A test fails with all guards in place; mend it first.")
        for guard in chosen:
            with copy.without(guard):
                code = copy.run(guard.test)
            outcome = "fails" if code == FAILED else f"dies of signal {-code}" if code < 0 else f"EXIT CODE {code}"
            print(f"{outcome}  {guard.name}", flush=True)
            survived += [] if is_missed(code) else [guard.name]
    print(f"{len(chosen) - len(survived)} of {len(chosen)} guards are missed by their tests.")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
