"""What starts with an underscore belongs to its own module: nobody else reaches for it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import dpfda

SOURCE = Path(dpfda.__file__).parent
OWN = ("self", "cls", "super()")
PATCHES = ("patch.object", "getattr", "setattr", "delattr")
OF_PYTHON = {"_exit", "_replace", "_asdict"}  # of os and of named tuples


def is_private(name: object) -> bool:
    return isinstance(name, str) and name.startswith("_") and not name.endswith("__") and name not in ("_", *OF_PYTHON)


def defined(tree: ast.Module) -> set[str]:
    """Private names that a module makes: functions, classes, variables, attributes of its objects."""
    names = {
        node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    }
    names |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    names |= {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) in OWN
    }
    return {name for name in names if is_private(name)}


def used(tree: ast.Module) -> Iterator[tuple[str, bool]]:
    """Private names that a module uses of something else, and whether it takes them for its own."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            yield node.attr, ast.unparse(node.value) in OWN
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dpfda."):
            yield from ((alias.name, False) for alias in node.names if is_private(alias.name))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in PATCHES and len(node.args) > 1:
            name = node.args[1]
            if isinstance(name, ast.Constant) and is_private(name.value):
                yield name.value, False


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0]


def reaches(trees: dict[Path, ast.Module]) -> set[tuple[str, str]]:
    """(module, name) where a module uses a private name that only others make."""
    made = {path: defined(tree) for path, tree in trees.items()}
    everywhere = set().union(*made.values())
    found = set()
    for path, tree in trees.items():
        room = set().union(*(names for other, names in made.items() if room_of(other) == room_of(path)))
        for name, own in used(tree):
            if name in everywhere and name not in (room if own else made[path]):
                found.add((path.relative_to(SOURCE).as_posix(), name))
    return found


def test_no_module_reaches_for_another_module_s_underscores() -> None:
    trees = {path: ast.parse(path.read_text()) for path in SOURCE.rglob("*.py")}
    assert sorted(reaches(trees)) == []


def test_a_reach_is_noticed() -> None:
    silo = ast.parse("class Silo:\n    def __init__(self):\n        self._curves = []\n    def _noise(self): ...\n")
    audit = (
        "from dpfda.silo.silo import _Hidden\nprint(silo._curves)\npatch.object(Silo, '_noise', 1)\n"
        "def wrong(self):\n    return self._curves\nos._exit(1)\n"
    )
    silo.body += ast.parse("class _Hidden: ...").body
    trees = {SOURCE / "silo" / "silo.py": silo, SOURCE / "audit" / "broken.py": ast.parse(audit)}
    assert reaches(trees) == {("audit/broken.py", name) for name in ("_Hidden", "_curves", "_noise")}
