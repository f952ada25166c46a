"""What the README shows works: its Python runs in order, its commands are there, its links lead somewhere."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest

import dpfda
from dpfda.audit.claims import exists
from dpfda.cli.main import COMMANDS, run

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def test_the_python_blocks_run_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in blocks("python"):
        exec(compile(block, "README.md", "exec"), names)
    fit = names["fit"]
    assert isinstance(fit, dpfda.PrivateMean)
    assert fit.privacy_.private
    assert [silo.name for silo in fit.privacy_.silos] == ["north", "south"]


def shell_lines() -> list[list[str]]:
    return [shlex.split(line, comments=True) for block in blocks("sh") for line in block.splitlines() if line.strip()]


def test_every_shell_line_is_a_command_of_ours() -> None:
    assert shell_lines()
    assert {words[0] for words in shell_lines()} <= {"make", "dpfda", "pip"}
    extras = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])
    assert {name for words in shell_lines() for name in re.findall(r"^\.\[(\w+)\]$", words[-1])} <= extras


def test_every_make_target_that_it_names_is_there() -> None:
    named = {words[1] for words in shell_lines() if words[0] == "make"} | set(re.findall(r"`make ([a-z-]+)`", README))
    assert named
    assert [target for target in sorted(named) if not re.search(rf"^{target}:", MAKEFILE, re.MULTILINE)] == []


@pytest.mark.parametrize("words", [words for words in shell_lines() if words[0] == "dpfda"], ids=" ".join)
def test_every_dpfda_line_parses(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*words[1:], "--help"]) == 0
    options = set(re.findall(r"--[a-z][a-z-]*", re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)))
    assert {word for word in words if word.startswith("--")} <= options


def test_every_dpfda_command_that_it_names_is_there() -> None:
    named = set(re.findall(r"`dpfda ([a-z-]+)", README))
    assert named <= set(COMMANDS)


def test_every_link_leads_to_a_file() -> None:
    targets = {target.split("#")[0] for target in re.findall(r"\]\(([^)]+)\)", README) if "://" not in target}
    assert [target for target in sorted(targets) if not (ROOT / target).exists()] == []


def test_every_path_of_the_source_that_it_names_is_there() -> None:
    paths = set(re.findall(r"`(src/dpfda/[\w/.]*)`", README))
    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []


def test_the_first_screen_has_what_a_newcomer_looks_for() -> None:
    screen = README[: README.index("## Is this for you?")]
    assert len(screen.splitlines()) <= 45
    wanted = ("**What:**", "**For whom:**", "![", "make demo", "pip install", "dpfda fit")
    assert [words for words in wanted if words not in screen] == []
    first = [line for line in blocks("python")[0].splitlines() if line.strip()]
    assert len(first) <= 10, "it says ten lines"


# Every figure in the prose, with what shows it.
FIGURES = {
    "15,205": "tests/unit/curves/test_datasets.py::test_counts_bounds_and_covariates_are_as_described",
    "10 million rows in about half a gigabyte": "docs/performance-scale.md",
    "epsilon 1": "tests/e2e/cli/test_commands.py::test_demo_writes_report_and_picture",
}


def test_every_figure_is_shown_by_something() -> None:
    prose = re.sub(
        r"^```.*?^```|<!-- trust-base -->.*?<!-- /trust-base -->", "", README, flags=re.MULTILINE | re.DOTALL
    )
    prose = re.sub(r"\]\([^)]*\)|`[^`]*`|Apache-2\.0|Python 3\.11", "", prose)
    for figure in FIGURES:
        assert figure in prose, f"{figure} is not there any more"
        prose = prose.replace(figure, "")
    assert re.findall(r"[^\n]{0,40}\d[^\n]{0,40}", prose) == []
    assert [proof for proof in FIGURES.values() if not exists(proof)] == []


def test_half_a_gigabyte_is_what_was_measured() -> None:
    page = (ROOT / "docs" / "performance-scale.md").read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if line.startswith("| 10,000,000 "))
    megabytes = float(row.split("|")[5].split("/")[1])
    assert 350 <= megabytes <= 650
