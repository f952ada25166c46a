"""Code on pages works: Python and commands run in the order of the page, in a folder with a table of visits."""

from __future__ import annotations

import contextlib
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

pytest.importorskip("typer")
pd = pytest.importorskip("pandas")
distributed = pytest.importorskip("distributed")

from cli_helpers import dpfda  # noqa: E402
from dask_cluster import two_workers  # noqa: E402

from dpfda.cli.main import run  # noqa: E402

ROOT = Path(__file__).parents[3]
PAGES = [path for folder in ("docs", "deploy") for path in sorted((ROOT / folder).rglob("*.md"))]
PAGES += [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")]
PAGES = [page for page in PAGES if not {"examples", "generated"} & set(page.parts) and page.name != "commands.md"]
ELSEWHERE = {  # what another test runs, or what would install or publish something
    "dpfda budget migrate": "tests/redteam/test_ledgers.py",
    "dpfda budget restore": "tests/redteam/test_ledgers.py",
    "dpfda budget settle": "tests/redteam/test_ledgers.py",
    "dpfda fit visits.xlsx": "tests/e2e/cli/test_first_time_analyst.py",
}
FOLLOWED = {  # pages whose blocks another test runs in its own way
    "CONTRIBUTING.md": "tests/contracts/base/test_recipes.py",
    "README.md": "tests/contracts/base/test_readme.py",
    "spark.md": "tests/spark/check_spark.py",
    "run-a-study.md": "tests/e2e/federation/test_federation_how_to.py",
}


class Block(NamedTuple):
    """A code block of a page, or a comment that prepares for the next one."""

    language: str
    text: str


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = re.findall(r"^```([\w-]*)\n(.*?)^```|^<!-- (setup)\n(.*?)^-->", text, re.MULTILINE | re.DOTALL)
    return [Block(language or comment, code or prepared) for language, code, comment, prepared in found]


def name_page(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An analyst's folder: visits.csv and visits.parquet of 400 people."""
    monkeypatch.chdir(tmp_path)
    rng, n, m = np.random.default_rng(3), 400, 5
    pid, male = np.repeat(np.arange(n), m), rng.integers(0, 2, n)
    age = rng.uniform(46, 63, n * m)
    visits = pd.DataFrame(
        {
            "pid": pid, "age": age.round(3), "hdl": (60 - 6 * male[pid] + rng.normal(0, 8, n * m)).round(2),
            "crp": rng.lognormal(1, 0.5, n * m).round(3), "male": male[pid], "bmi": rng.normal(26, 4, n).round(1)[pid],
            "smoker": rng.choice(["never", "former", "current"], n)[pid],
        }
    )  # fmt: skip
    visits.to_csv(tmp_path / "visits.csv", index=False)
    visits.to_parquet(tmp_path / "visits.parquet")
    (tmp_path / "data").mkdir()
    visits.to_parquet(tmp_path / "data" / "part-0.parquet")
    return tmp_path


@contextlib.contextmanager
def substitutes(page: Path, folder: Path) -> Iterator[dict[str, str]]:
    """A cluster of this machine in the place of the one that a page names."""
    if "tls://head:8786" not in page.read_text(encoding="utf-8"):
        yield {}
        return
    with two_workers(folder) as client:
        yield {'"tls://head:8786"': repr(client.scheduler.address), "/data/visits": str(folder / "data")}


PYTHON = [
    page for page in PAGES if any(block.language == "python" for block in blocks(page)) and page.name not in FOLLOWED
]
SHELL = [page for page in PAGES if any(block.language == "sh" for block in blocks(page)) and page.name not in FOLLOWED]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("page", PYTHON, ids=name_page)
def test_python_on_a_page_runs_in_order(page: Path, folder: Path) -> None:
    names: dict[str, object] = {}
    with substitutes(page, folder) as changes:
        for block in blocks(page):
            if block.language in ("python", "setup"):
                text = block.text
                for there, here in changes.items():
                    text = text.replace(there, here)
                exec(compile(text, name_page(page), "exec"), names)
    assert names


def commands(text: str) -> list[str]:
    """Lines of a shell block, with lines that end in a backslash joined."""
    return [line.strip() for line in text.replace("\\\n", " ").splitlines() if line.strip() and line.strip()[0] != "#"]


@pytest.mark.parametrize("page", SHELL, ids=name_page)
def test_commands_on_a_page_run_in_order(page: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ran = 0
    for block in blocks(page):
        if block.language == "setup":
            exec(compile(block.text, name_page(page), "exec"), {})
        if block.language == "toml":
            named = re.match(r"# ([\w-]+\.toml)", block.text)
            if named:
                (folder / named[1]).write_text(block.text)
        for line in commands(block.text) if block.language == "sh" else []:
            words = shlex.split(line, comments=True)
            if words[0] == "dpfda" and "..." not in words and not line.startswith(tuple(ELSEWHERE)):
                done = dpfda(capsys, *words[1:])
                assert done.code == 0, f"{line}: {done.err}"
                ran += 1
            else:
                check_other_line(words)
    assert ran


def check_other_line(words: list[str]) -> None:
    """What is not run is at least there: an extra, a target of make, a command with its options."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    if words[:2] == ["pip", "install"]:
        named = re.findall(r"dpfda\[([\w,]+)\]", " ".join(words))
        assert {extra for names in named for extra in names.split(",")} <= set(extras)
    elif words[0] == "make":
        assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
    else:
        assert words[0] in ("dpfda", "export"), words


def list_command_lines() -> list[tuple[str, list[str]]]:
    """Every line of every page that is a command of ours, in whatever block."""
    found = []
    for page in PAGES:
        for block in blocks(page):
            if block.language in ("", "sh"):
                found += [
                    (name_page(page), shlex.split(line, comments=True))
                    for line in commands(block.text)
                    if line.startswith("dpfda ")
                ]
    return found


def test_every_command_and_option_on_a_page_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    wrong = []
    for page, words in list_command_lines():
        bare = [word for word in words[1:] if re.fullmatch(r"[a-z][a-z-]*", word)][:2]
        for path in (bare, bare[:1], []):
            if run([*path, "--help"]) == 0:
                text = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
                break
            capsys.readouterr()
        known = set(re.findall(r"--[a-z][a-z-]*", text))
        missing = [word for word in words if re.fullmatch(r"--[a-z][a-z-]*", word) and word not in known]
        if missing or (bare and not path):
            wrong.append((page, " ".join(words), missing))
    assert wrong == []


def test_what_is_run_elsewhere_is_run_there() -> None:
    assert [test for test in (*ELSEWHERE.values(), *FOLLOWED.values()) if not (ROOT / test).exists()] == []
