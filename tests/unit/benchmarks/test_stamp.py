"""Numbers on pages say what made them, and whether the code has changed since."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks import stamp as stamps

ROOT = Path(__file__).parents[3]
PAGE = "docs/coverage.md"


@pytest.mark.parametrize("name", stamps.PAGES)
def test_every_page_of_numbers_is_stamped_below_its_title(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    found = stamps.STAMP.search(text)
    assert found is not None, f"{name} has no stamp: run `python -m benchmarks.stamp {name}` after making it"
    assert text[: found.start()].count("\n") == 2
    assert found["command"] == stamps.PAGES[name].command


@pytest.mark.parametrize("name", stamps.PAGES)
def test_every_pattern_names_code(name: str) -> None:
    paths = stamps._list_files(None)
    patterns = stamps.PAGES[name].code
    empty = [pattern for pattern in patterns if not any(stamps.fnmatch.fnmatchcase(path, pattern) for path in paths)]
    assert empty == []


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A page of numbers and the one module that makes them."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "src").mkdir()
    (tmp_path / PAGE).write_text("# Coverage\n\nA table.\n")
    (tmp_path / "benchmarks" / "coverage.py").write_text('"""Words."""\n\nLEVEL = 0.95\n')
    stamps._ask_git("init", "--quiet", str(tmp_path))
    monkeypatch.setattr(stamps, "ROOT", tmp_path)
    stamps._ask_git("-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qm", "first", "--allow-empty")
    forget()
    yield tmp_path
    forget()


def forget() -> None:
    stamps._list_files.cache_clear()
    stamps._hash_file.cache_clear()


def edit(tree: Path, text: str) -> str:
    (tree / "benchmarks" / "coverage.py").write_text(text)
    forget()
    return stamps.mark(PAGE, (tree / PAGE).read_text())


def test_a_page_is_marked_when_its_code_changes_and_not_when_words_do(tree: Path) -> None:
    stamps.stamp(tree / PAGE)
    made = (tree / PAGE).read_text()
    assert stamps.STAMP.search(made) is not None
    assert edit(tree, '"""Other words."""  # and a comment\n\nLEVEL = 0.95\n') == made
    marked = edit(tree, '"""Words."""\n\nLEVEL = 0.9\n')
    assert "older than the code" in marked
    assert stamps.mark(PAGE, marked) == marked
    (tree / PAGE).write_text(marked)
    stamps.stamp(tree / PAGE)
    assert "older than the code" not in (tree / PAGE).read_text()
    assert (tree / PAGE).read_text().count("Numbers:") == 1


def test_the_words_of_an_error_are_no_code(tree: Path) -> None:
    (tree / "benchmarks" / "coverage.py").write_text('def f(x):\n    raise ValueError(f"no {x}")\n')
    stamps.stamp(tree / PAGE)
    assert "older" not in edit(tree, 'def f(x):\n    raise ValueError(f"not a {x}")\n')
    assert "older" in edit(tree, 'def f(x):\n    raise TypeError(f"no {x}")\n')


def test_numbers_of_several_commits_are_as_old_as_the_oldest(tree: Path) -> None:
    first = stamps.name_commit()
    stamps._ask_git("add", "-A")
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    stamps._ask_git(*identity, "commit", "-qm", "second")
    stamps.stamp_oldest(tree / PAGE, [stamps.name_commit(), first])
    found = stamps.STAMP.search((tree / PAGE).read_text())
    assert found is not None
    assert found["commit"] == first
    assert "older" in stamps.mark(PAGE, (tree / PAGE).read_text())


def test_a_copy_elsewhere_is_left_alone(tree: Path) -> None:
    (tree / "copy.md").write_text("# Coverage\n")
    stamps.stamp(tree / "copy.md")
    assert (tree / "copy.md").read_text() == "# Coverage\n"
