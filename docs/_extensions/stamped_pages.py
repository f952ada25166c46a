"""Sphinx extension: a page whose numbers are older than the code that makes them says so, whenever the site is built."""

from __future__ import annotations

from pathlib import Path

from benchmarks.stamp import MARK, PAGES, is_current, mark
from repository_pages import PAGES as SHOWN
from sphinx.application import Sphinx


def read(app: Sphinx, name: str, source: list[str]) -> None:
    """Bring the mark of a stamped page up to date; it is the site's, not the file's."""
    file = next((file for file, shown in SHOWN.items() if shown == name), f"docs/{name}.md")
    if file in PAGES:
        source[0] = mark(file, source[0])


def list_stale(app: Sphinx, *_: object) -> list[str]:
    """Pages whose mark is not what the last build showed are read again."""
    names = {SHOWN.get(file, file.removeprefix("docs/").removesuffix(".md")): file for file in PAGES}
    texts = {name: (Path(app.srcdir).parent / file).read_text(encoding="utf-8") for name, file in names.items()}
    marked = {name for name, text in texts.items() if MARK.search(text)}
    return [name for name, file in names.items() if is_current(file, texts[name]) == (name in marked)]


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this."""
    app.connect("source-read", read, priority=600)  # after the files of the repository
    app.connect("env-get-outdated", list_stale)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
