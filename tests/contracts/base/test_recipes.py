"""The recipes of CONTRIBUTING.md, followed to the letter in a copy of the source: write, insert, run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
RECIPES = dict(re.findall(r"^### How to add an? (\w+)\n(.*?)(?=^##)", PAGE, re.MULTILINE | re.DOTALL))
STEP = re.compile(
    r"(?:^(?P<verb>Write|Insert into) `(?P<path>[^`]+)`(?: (?P<side>below|above) `(?P<anchor>[^`]+)`)?|(?P<run>Try it:))"
    r"[^`]*?\n\n```(?:python|text)\n(?P<block>.*?)^```",
    re.MULTILINE | re.DOTALL,
)


def follow(recipe: str, root: Path) -> list[str]:
    """Do what the steps say; the blocks to run are returned."""
    to_run = []
    for step in STEP.finditer(recipe):
        if step["run"]:
            to_run.append(step["block"])
            continue
        path = root / step["path"]
        if step["verb"] == "Write":
            assert not path.exists(), f"{step['path']} exists already"
            path.write_text(step["block"], encoding="utf-8")
            continue
        text = path.read_text(encoding="utf-8")
        anchor = step["anchor"] + "\n"
        assert text.count("\n" + anchor) == 1, f"{step['path']} must have one line {step['anchor']!r}"
        parts = [anchor, step["block"]] if step["side"] == "below" else [step["block"], anchor]
        path.write_text(text.replace("\n" + anchor, "\n" + "".join(parts)), encoding="utf-8")
    return to_run


def test_the_recipes_that_the_page_promises_are_there() -> None:
    assert {"statistic", "basis", "engine", "source"} <= set(RECIPES)


@pytest.mark.parametrize("name", ["statistic", "basis", "engine", "source"])
def test_a_recipe_works_to_the_letter(name: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    recipe = RECIPES[name]
    assert recipe.count("```") == 2 * len(STEP.findall(recipe)), "a block that no step speaks of"
    (block,) = follow(recipe, tmp_path)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "src")}
    ran = subprocess.run(
        [sys.executable, "-c", block], check=False, capture_output=True, text=True, cwd=tmp_path, env=environment
    )
    assert ran.returncode == 0, ran.stderr
    written = {str(tmp_path / step["path"]) for step in STEP.finditer(recipe) if step["path"]}
    ruff = [sys.executable, "-m", "ruff", "check", "--config", str(ROOT / "pyproject.toml"), *sorted(written)]
    checked = subprocess.run(ruff, check=False, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout


def test_a_recipe_that_is_out_of_date_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text("other = 1\n")
    recipe = "Insert into `module.py` below `line = 1`:\n\n```python\nnew = 2\n```\n"
    with pytest.raises(AssertionError, match="must have one line"):
        follow(recipe, tmp_path)
