"""Fragments of the changelog are collected below the headings that their names give."""

from __future__ import annotations

from pathlib import Path

import pytest
from release.changelog import add_fragment, collect, find_themes, list_fragments
from release.sbom import ROOT

TEXT = """\
# Changelog

## [0.2.0]

### Reading data
- Old item.

### Project
- Another.

## [0.1.0]

### Reading data
- Very old item.
"""


def test_an_item_comes_last_below_its_heading_in_the_newest_version() -> None:
    changed = add_fragment(TEXT, "reading-data", "- New item,\n  on two lines.\n")
    assert changed == TEXT.replace("- Old item.\n", "- Old item.\n- New item,\n  on two lines.\n")
    assert add_fragment(TEXT, "project", "- New.") == TEXT.replace("- Another.\n", "- Another.\n- New.\n")
    short = TEXT.partition("## [0.1.0]")[0].rstrip() + "\n"
    assert add_fragment(short, "project", "- New.") == short + "- New.\n"


def test_an_unknown_theme_and_a_text_that_is_no_list_are_refused_and_nothing_changes(tmp_path: Path) -> None:
    changelog = tmp_path / "CHANGELOG.md"
    for name, text in (("a.cooking.md", "- Soup.\n"), ("a.project.md", "Soup.\n")):
        changelog.write_text(TEXT)
        good, bad = tmp_path / "0.project.md", tmp_path / name
        good.write_text("- Bread.\n")
        bad.write_text(text)
        with pytest.raises(SystemExit, match=name):
            collect(changelog, [bad, good])
        assert changelog.read_text() == TEXT
        assert bad.exists()
        assert good.exists()


def test_fragments_are_moved_in_the_order_of_their_names(tmp_path: Path) -> None:
    changelog, folder = tmp_path / "CHANGELOG.md", tmp_path / "changelog.d"
    changelog.write_text(TEXT)
    folder.mkdir()
    (folder / "README.md").write_text("How to.\n")
    (folder / "b.project.md").write_text("- Second.\n")
    (folder / "a.project.md").write_text("- First.\n")
    assert [path.name for path in collect(changelog, list_fragments(tmp_path))] == ["a.project.md", "b.project.md"]
    assert "- Another.\n- First.\n- Second.\n" in changelog.read_text()
    assert [path.name for path in folder.iterdir()] == ["README.md"]


def test_every_fragment_that_waits_can_be_collected() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert {"upgrading-from-0.1", "the-default-method", "reading-data", "project"} <= set(find_themes(text))
    for path in list_fragments():
        theme = path.name.removesuffix(".md").partition(".")[2]
        text = add_fragment(text, theme, path.read_text(encoding="utf-8"))
