"""Every guard of the border is missed by its test: guards.toml names both, and here they are taken out one at a time."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from remove_guards import PASSED, SOURCE, Copy, is_missed, read_guards

GUARDS = read_guards()


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> Copy:
    return Copy(tmp_path_factory.mktemp("library"))


@pytest.mark.slow
def test_with_all_guards_in_place_the_tests_pass(library) -> None:
    assert library.run(*sorted({guard.test for guard in GUARDS})) == PASSED


@pytest.mark.slow
@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_without_its_guard_a_test_fails(library, guard) -> None:
    with library.without(guard):
        assert is_missed(library.run(guard.test))


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_each_guard_stands_in_the_tree_once(guard) -> None:
    """A guard that was rewritten must be rewritten in the table, too."""
    assert (SOURCE / guard.file).read_text().count(guard.text) == 1


def test_each_test_that_names_its_guard_is_in_the_table() -> None:
    named = set()
    for path in Path(__file__).parent.glob("test_*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and "Guard" in (ast.get_docstring(node) or "").partition(":")[0]:
                named.add(f"tests/redteam/{path.name}::{node.name}")
    assert len(named) > 20
    assert named <= {guard.test for guard in GUARDS}
