"""Numbers of the default method have names: no literal but the plainest stands in its code."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from dpfda.methods.adaptive import constants

ROOM = Path(constants.__file__).parent
PLAIN = {0, 1, 2, 3, 4, 0.5}  # counts, exponents, halves, and the 4 of (2 radii)^2
FILES = sorted(path for path in ROOM.glob("*.py") if path.name != "constants.py")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_bare_number_stands_in_the_method(path) -> None:
    """Ruff's PLR2004 sees comparisons only; this sees every number but the sizes of caches."""
    tree = ast.parse(path.read_text())
    caches = [node.value for node in ast.walk(tree) if isinstance(node, ast.keyword) and node.arg == "maxsize"]
    numbers = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and type(node.value) in (int, float)]
    bare = [node for node in numbers if node.value not in PLAIN and node not in caches]
    assert [f"line {node.lineno}: {node.value}" for node in bare] == []


def test_every_constant_is_explained_and_used() -> None:
    """A comment stands above every line of constants, and code outside that line reads each of them."""
    text = Path(constants.__file__).read_text()
    code = "\n".join(path.read_text() for path in [*FILES, ROOM.parents[1] / "planning" / "expected_error.py"])
    found = list(re.finditer(r"^(.*)\n([A-Z][A-Z_, ]+) = (.*)$", text, re.MULTILINE))
    assert len(found) == len(re.findall(r"^[A-Z][A-Z_, ]+ = ", text, re.MULTILINE)) > 40
    values = "\n".join(match[3] for match in found)
    for match in found:
        assert match[1].startswith("# "), match[2]
        for name in match[2].split(", "):
            assert re.search(rf"\b{name}\b", code + values), name


def test_rows_that_are_named_are_on_the_pages() -> None:
    text = re.sub(r"\n# ", " ", Path(constants.__file__).read_text())
    docs = ROOM.parents[3] / "docs"
    pages = "".join((docs / name).read_text() for name in ("utility.md", "coverage.md", "utility-covariates.md"))
    comments = " ".join(re.findall(r"Cost: .*", text))
    rows = re.findall(r'"([^"]+)"', comments)
    assert len(rows) > 15
    assert [row for row in rows if row not in pages] == []
