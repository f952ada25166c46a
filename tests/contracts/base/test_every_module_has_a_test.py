"""Every module is imported by some test, directly or through the package that re-exports its names; commands are run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import house

from dpfda.cli.main import COMMANDS

RUNNERS = {"dpfda", "dpfda_process", "command", "run", "spawn"}
TESTS = Path(__file__).parents[2]


def name_of(path: Path) -> str:
    return ".".join(("dpfda", *path.relative_to(house.PACKAGE).with_suffix("").parts)).removesuffix(".__init__")


def imported(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """(module, name) of every import; the name is empty for a plain `import module`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, alias.name) for alias in node.names)


def run_by_name(tree: ast.AST) -> Iterator[str]:
    """Modules of commands that a test runs, and modules that it names in a string (python -m)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in RUNNERS:
            words = {word.value for word in ast.walk(node) if isinstance(word, ast.Constant)}
            yield from (entry.module for name, entry in COMMANDS.items() if name in words)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def modules_with_a_test() -> set[str]:
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in TESTS.rglob("*.py")}
    shown = {name_of(path): dict(_shown(path)) for path in house.PACKAGE.rglob("__init__.py")}
    found: set[str] = set()
    for tree in trees.values():
        found |= set(run_by_name(tree))
        for module, name in imported(tree):
            home = module
            found |= {home, f"{home}.{name}"}
            while name in shown.get(home, {}):  # a package passes the name on
                home = shown[home][name]
                found.add(home)
    return found


def _shown(init: Path) -> Iterator[tuple[str, str]]:
    return ((name, module) for module, name in imported(ast.parse(init.read_text(encoding="utf-8"))))


def test_every_module_has_a_test() -> None:
    modules = {name_of(path) for path in house.PACKAGE.rglob("*.py") if not path.stem.startswith("__")}
    missing = sorted(modules - modules_with_a_test())
    assert missing == [], f"{len(missing)} modules have no test"
