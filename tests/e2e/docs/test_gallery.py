"""Every example of the gallery and every notebook runs; `make docs` runs the gallery as pages, a slow test as scripts."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[3]
GALLERY = sorted((ROOT / "docs" / "gallery").glob("*.py"))
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def test_there_are_at_least_ten_examples_and_three_notebooks() -> None:
    assert len(GALLERY) >= 10
    assert len(NOTEBOOKS) >= 3


@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_an_example_asks_a_question_and_draws_a_picture(path: Path) -> None:
    assert path.stem.startswith("plot_"), "Sphinx runs plot_*.py only"
    tree = ast.parse(path.read_text(encoding="utf-8"))
    words = ast.get_docstring(tree) or ""
    title, line, *_ = words.splitlines()
    assert line == "=" * len(title)
    assert "**Question.**" in words
    called = {node.func.attr for node in ast.walk(tree) if isinstance(node, ast.Call) and hasattr(node.func, "attr")}
    assert {"subplots", "show"} <= called


@pytest.mark.slow
@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_an_example_runs_as_a_script(path: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "MPLBACKEND": "Agg", "PYTHONPATH": str(ROOT / "src")}
    subprocess.run([sys.executable, str(path)], check=True, cwd=tmp_path, env=environment)
    assert list(tmp_path.iterdir()) == [], "an example leaves nothing behind where it runs"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_what_it_was_saved_with(path: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    saved = nbformat.read(path, as_version=4)
    fresh = nbformat.read(path, as_version=4)
    for cell in fresh.cells:
        cell.pop("outputs", None)
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    NotebookClient(fresh, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert [kinds(cell) for cell in saved.cells] == [kinds(cell) for cell in fresh.cells]
    printed = [output for cell in fresh.cells for output in cell.get("outputs", [])]
    assert not [output for output in printed if output.get("name") == "stderr"]


def kinds(cell: nbformat.NotebookNode) -> set[tuple[str, ...]]:
    """What a cell shows: text or pictures; the numbers are noise."""
    return {(output.output_type, *sorted(output.get("data", {}))) for output in cell.get("outputs", [])}
