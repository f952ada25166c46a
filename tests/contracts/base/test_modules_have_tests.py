"""Every module that the guarantee rests on is imported by a test of its own room."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

import dpfda

SOURCE, TESTS = Path(dpfda.__file__).parent, Path(__file__).parents[2]


def imported(path: Path) -> set[str]:
    """Modules of dpfda that a test file names in its imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
            if node.module.startswith("dpfda"):
                names = [getattr(importlib.import_module(node.module), alias.name, None) for alias in node.names]
                found |= {getattr(name, "__module__", "") for name in names}  # a package lends its modules' names
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found


@pytest.mark.parametrize("room", ["silo", "privacy", "protocol"])
def test_every_module_is_imported_by_a_test_of_its_room(room) -> None:
    modules = {
        ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts)
        for path in (SOURCE / room).rglob("*.py")
        if path.name != "__init__.py"
    }
    tested = set().union(*(imported(path) for path in TESTS.glob(f"*/{room}/**/test_*.py")))
    assert sorted(modules - tested) == []
