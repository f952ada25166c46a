"""Numbers on pages carry the command, commit, day and a hash of the code that made them.

`python -m benchmarks.stamp PAGE ...` stamps pages that were just made; benchmarks do so themselves. Without a page it lists
all of them and marks those whose code has changed since, as the documentation site does whenever it is built. The hash
leaves out comments, docstrings and the text of errors: rewording them makes no number older.
"""

from __future__ import annotations

import argparse
import ast
import datetime
import fnmatch
import functools
import hashlib
import os
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]

_SILO = tuple(f"src/dpfda/{room}/*.py" for room in ("silo", "privacy", "protocol", "basis"))
_METHOD = (*_SILO, *(f"src/dpfda/{room}/*.py" for room in ("methods", "inference", "estimators")))
_SIMULATED = (*_METHOD, "src/dpfda/curves/simulated.py")
_FORECASTS = tuple(f"src/dpfda/planning/{name}.py" for name in ("expected_error", "outcomes", "planned_study"))


@dataclass(frozen=True)
class Made:
    """How a page is made: the command, and the code whose change makes its numbers old ("*" crosses folders)."""

    command: str
    code: tuple[str, ...]


PAGES = {
    "benchmarks/challenge/RESULTS.md": Made(
        "python -m benchmarks.challenge",
        (*_METHOD, "benchmarks/challenge/*.py", "benchmarks/peers.py", "benchmarks/utility_problems.py"),
    ),
    "docs/ablation.md": Made("python -m benchmarks.ablation", (*_SIMULATED, "benchmarks/ablation.py")),
    "docs/audit.md": Made("make audit", (*_SILO, "src/dpfda/audit/*.py")),
    "docs/coverage.md": Made("python -m benchmarks.coverage", (*_SIMULATED, "benchmarks/coverage.py")),
    "docs/federation.md": Made(
        "python -m benchmarks.federation",
        (*_METHOD, "src/dpfda/federation/*.py", "src/dpfda/transports/*.py", "benchmarks/federat*.py"),
    ),
    "docs/monte-carlo.md": Made(
        "python -m benchmarks.monte_carlo", (*_SIMULATED, "src/dpfda/reproduce/*.py", "benchmarks/monte_carlo.py")
    ),
    "docs/performance-scale.md": Made(
        "python -m benchmarks.scale",
        (*_METHOD, "src/dpfda/curves/*.py", "src/dpfda/cli/fit/*.py", "benchmarks/scale.py"),
    ),
    "docs/performance-sources.md": Made(
        "python -m benchmarks.sources", ("src/dpfda/curves/*.py", "benchmarks/sources.py")
    ),
    "docs/performance.md": Made(
        "python -m benchmarks.speed",
        (*_METHOD, "src/dpfda/curves/*.py", "benchmarks/speed*.py", "benchmarks/versions.py"),
    ),
    "docs/planner.md": Made("python -m benchmarks.planner", (*_SIMULATED, *_FORECASTS, "benchmarks/planner.py")),
    "docs/questions-coverage.md": Made("python -m benchmarks.questions", (*_SIMULATED, "benchmarks/questions.py")),
    "docs/real-data.md": Made(
        "python -m benchmarks.real_data", (*_METHOD, "src/dpfda/curves/datasets.py", "benchmarks/real_*.py")
    ),
    "docs/reliability.md": Made(
        "python -m dpfda.audit.reliability --runs 100", (*_SILO, "src/dpfda/transports/*.py", "src/dpfda/audit/*.py")
    ),
    "docs/utility-covariates.md": Made("python -m benchmarks.utility", (*_SIMULATED, "benchmarks/utility*.py")),
    "docs/utility-outcomes.md": Made("python -m benchmarks.outcomes", (*_SIMULATED, "benchmarks/outcomes.py")),
    "docs/utility.md": Made("python -m benchmarks.utility", (*_SIMULATED, "benchmarks/utility*.py")),
    "results/RESULTS.md": Made("dpfda reproduce all", (*_SIMULATED, "src/dpfda/reproduce/*.py")),
}

STAMP = re.compile(
    r"^\*Numbers: `(?P<command>[^`]+)`, commit `(?P<commit>[^`]+)`, (?P<day>\d{4}-\d\d-\d\d), "
    r"code `(?P<code>[0-9a-f]{16})`\.\*\n",
    re.MULTILINE,
)
MARK = re.compile(r"^\n> \*\*These numbers are older than the code\.\*\*[^\n]*\n", re.MULTILINE)


def hash_code(patterns: tuple[str, ...], commit: str | None = None) -> str:
    """A hash of what the matching files do, as they are now or at a commit."""
    digest = hashlib.sha256()
    for path in sorted(_list_files(commit)):
        if any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns):
            digest.update(f"{path} {_hash_file(path, commit)}\n".encode())
    return digest.hexdigest()[:16]


def find_made(page: Path) -> Made | None:
    """How a page of this repository is made; None for any other file."""
    return PAGES.get(os.path.relpath(page.resolve(), ROOT))


def stamp(page: Path, commit: str | None = None) -> None:
    """Put command, commit, day and hash below the title of a page made just now, or at a commit; copies elsewhere stay."""
    made = find_made(page)
    if made is None:
        return
    text = MARK.sub("", STAMP.sub("", page.read_text(encoding="utf-8")))
    day = _ask_git("show", "-s", "--format=%cs", commit) if commit else datetime.date.today().isoformat()
    line = f"*Numbers: `{made.command}`, commit `{commit or name_commit()}`, {day}, code `{hash_code(made.code, commit)}`.*"
    title, _, rest = text.partition("\n")
    page.write_text(f"{title}\n\n{line}\n\n{rest.lstrip()}", encoding="utf-8")


def stamp_oldest(page: Path, commits: Iterable[str]) -> None:
    """Stamp a page whose numbers were measured at several commits as made at the oldest of them."""
    if find_made(page) is None:
        return
    older = {commit.split()[0] for commit in commits if commit != name_commit()}
    stamp(page, min(older, key=lambda commit: int(_ask_git("show", "-s", "--format=%ct", commit)), default=None))


def mark(name: str, text: str) -> str:
    """The text of a page, with a sentence below the stamp if its code has changed since, and without one if it has not."""
    found = STAMP.search(text)
    if name not in PAGES or found is None:
        return text
    text = MARK.sub("", text)
    if is_current(name, text):
        return text
    sentence = (
        "\n> **These numbers are older than the code.** The code that makes them has changed since commit "
        f"`{found['commit']}`; `{found['command']}` measures again.\n"
    )
    return text[: found.end()] + sentence + text[found.end() :]


def is_current(name: str, text: str) -> bool:
    """Whether the code that made the numbers of a page is the code that is here."""
    found = STAMP.search(text)
    return found is not None and found["code"] == hash_code(PAGES[name].code)


def name_commit() -> str:
    """The commit that is checked out, marked if tracked files differ from it."""
    changed = _ask_git("status", "--porcelain", "--untracked-files=no", "src", "benchmarks")
    return _ask_git("rev-parse", "--short=7", "HEAD") + (" with changes" if changed else "")


def _ask_git(*words: str) -> str:
    done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@functools.cache
def _list_files(commit: str | None) -> tuple[str, ...]:
    if commit:
        return tuple(_ask_git("ls-tree", "-r", "--name-only", commit, "src", "benchmarks").splitlines())
    return tuple(
        str(path.relative_to(ROOT)) for folder in ("src", "benchmarks") for path in (ROOT / folder).rglob("*.py")
    )


@functools.cache
def _hash_file(path: str, commit: str | None) -> str:
    text = _ask_git("show", f"{commit}:{path}") if commit else (ROOT / path).read_text(encoding="utf-8")
    return hashlib.sha256(ast.dump(_Plain().visit(ast.parse(text))).encode()).hexdigest()


class _Plain(ast.NodeTransformer):
    """Code without docstrings and without the words of what it raises."""

    def _without_docstring(self, node: ast.AST) -> ast.AST:
        self.generic_visit(node)
        if ast.get_docstring(node, clean=False) is not None:  # type: ignore[arg-type]
            node.body = node.body[1:]  # type: ignore[attr-defined]
        return node

    visit_Module = visit_ClassDef = visit_FunctionDef = visit_AsyncFunctionDef = _without_docstring  # noqa: N815

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        for part in ast.walk(node):
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                part.value = ""
        return node


def main() -> None:
    """Stamp the pages that are named; without any, mark old ones and list all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stamp", description=__doc__)
    parser.add_argument("pages", nargs="*", type=Path, help="pages that were just made")
    parser.add_argument("--at", default=None, help="the commit at which they were made, if not now")
    options = parser.parse_args()
    for page in options.pages:
        stamp(page, options.at)
    for name in PAGES if not options.pages else ():
        page = ROOT / name
        text = page.read_text(encoding="utf-8")
        page.write_text(mark(name, text), encoding="utf-8")
        print(f"{'current' if is_current(name, text) else 'OLDER THAN ITS CODE':20} {name}")


if __name__ == "__main__":
    main()
