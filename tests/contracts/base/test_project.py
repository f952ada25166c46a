"""What surrounds the code: citation, templates, workflows, version. What cannot run here is checked by its schema."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import dpfda

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
MAKEFILE = (ROOT / "Makefile").read_text()
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
BY_SCHEMA = {
    "vendor.github-workflows": WORKFLOWS,
    "vendor.github-issue-forms": [ROOT / ".github" / "ISSUE_TEMPLATE" / name for name in ("bug.yml", "idea.yml")],
    "vendor.github-issue-config": [ROOT / ".github" / "ISSUE_TEMPLATE" / "config.yml"],
    "vendor.dependabot": [ROOT / ".github" / "dependabot.yml"],
    "vendor.citation-file-format": [ROOT / "CITATION.cff"],
}


def validate(schema: str, *files: Path) -> int:
    words = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *map(str, files)]
    return subprocess.run(words, check=False, capture_output=True).returncode


@pytest.mark.parametrize("schema", BY_SCHEMA)
def test_files_for_the_forge_are_valid(schema: str) -> None:
    assert validate(schema, *BY_SCHEMA[schema]) == 0


def test_a_broken_workflow_is_noticed(tmp_path: Path) -> None:
    broken = tmp_path / "ci.yml"
    broken.write_text("on: push\njobs:\n  test:\n    steps:\n      - run: make test\n")  # runs-on is missing
    assert validate("vendor.github-workflows", broken) != 0


def test_workflows_run_targets_that_exist_on_the_pythons_that_are_claimed() -> None:
    texts = {path.name: path.read_text() for path in WORKFLOWS}
    named = set(re.findall(r"run: make ([a-z-]+)", "".join(texts.values())))
    assert {"setup", "test", "check", "docs", "release"} <= named
    assert [target for target in sorted(named) if not re.search(rf"^{target}:", MAKEFILE, re.MULTILINE)] == []
    matrix = yaml.safe_load(texts["ci.yml"])["jobs"]["test"]["strategy"]["matrix"]
    claimed = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["classifiers"]))
    assert matrix["python"] == claimed == ["3.11", "3.12", "3.13", "3.14"]
    assert {name.split("-")[0] for name in matrix["os"]} == {"ubuntu", "macos"}
    for path in WORKFLOWS:
        assert yaml.safe_load(path.read_text())["permissions"] == {"contents": "read"}, path.name


def test_the_version_stands_in_one_place_and_the_others_agree() -> None:
    release = re.sub(r"\.dev\d+$", "", dpfda.__version__)
    assert PROJECT["dynamic"] == ["version"]
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == release
    assert f"\n## [{release}]" in (ROOT / "CHANGELOG.md").read_text()
    assert f"\nVersion: {release}\n" in (ROOT / "r" / "dpfda" / "DESCRIPTION").read_text()
    minor = ".".join(release.split(".")[:2])
    assert re.search(rf"\| {re.escape(minor)}\.x \| yes", (ROOT / "SECURITY.md").read_text())


def test_the_citation_names_the_paper_and_its_authors() -> None:
    paper = yaml.safe_load((ROOT / "CITATION.cff").read_text())["preferred-citation"]
    assert paper["title"] == "Optimal estimation in private distributed functional data analysis"
    assert [author["family-names"] for author in paper["authors"]] == ["Xue", "Lin", "Yu"]


def test_hooks_run_what_make_check_runs() -> None:
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    hooks = [hook for repository in config["repos"] for hook in repository["hooks"]]
    assert {repository["repo"] for repository in config["repos"]} == {"local"}, "a hook from elsewhere is not pinned"
    entries = " ".join(hook["entry"] for hook in hooks)
    assert all(tool in entries for tool in ("ruff check", "ruff format", "mypy", "lint-imports"))
    assert {hook["language"] for hook in hooks} == {"system"}


def test_pages_that_a_newcomer_looks_for_are_there() -> None:
    for name in ("CODE_OF_CONDUCT.md", "SECURITY.md", "CONTRIBUTING.md", ".github/pull_request_template.md"):
        assert (ROOT / name).stat().st_size > 300
    hosts = re.compile(r"pypi\.org|pythonhosted|registry\.npmjs|anaconda\.org|conda-forge\.org", re.IGNORECASE)
    listed = subprocess.run(["git", "ls-files", "-z"], check=True, capture_output=True, cwd=ROOT).stdout.decode()
    texts = [
        ROOT / name for name in listed.split("\0") if name.endswith((".md", ".toml", ".yml", ".yaml", ".cff", ".txt"))
    ]
    assert [path.name for path in texts if path.is_file() and hosts.search(path.read_text(encoding="utf-8"))] == []
