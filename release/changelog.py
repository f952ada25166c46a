"""Collect fragments: `python -m release.changelog` moves each file of changelog.d/ below its heading in CHANGELOG.md."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from release.sbom import ROOT

README = "README.md"


def find_themes(text: str) -> list[str]:
    """The headings of the newest version, as file names write them."""
    newest = re.split(r"^## ", text, flags=re.MULTILINE)[1]
    return [heading.lower().replace(" ", "-") for heading in re.findall(r"^### (.+)$", newest, flags=re.MULTILINE)]


def add_fragment(text: str, theme: str, items: str) -> str:
    """The changelog with these items at the end of a theme of its newest version; `ValueError` for an unknown theme."""
    themes = find_themes(text)
    if theme not in themes:
        raise ValueError(f"there is no theme {theme!r}; choose from {', '.join(themes)}")
    if not items.startswith("- "):
        raise ValueError("a fragment is a list: begin it with '- '")
    start = [found.end() for found in re.finditer(r"^### .+$", text, flags=re.MULTILINE)][themes.index(theme)]
    following = re.search(r"^##", text[start:], flags=re.MULTILINE)
    end = len(text) if following is None else start + following.start()
    return text[:end].rstrip() + f"\n{items.rstrip()}\n" + ("" if following is None else "\n" + text[end:])


def collect(changelog: Path, fragments: Iterable[Path]) -> list[Path]:
    """Add all fragments, in the order of their names, and delete their files; nothing is changed if one of them is wrong."""
    text, taken = changelog.read_text(encoding="utf-8"), []
    for path in sorted(fragments):
        theme = path.name.removesuffix(".md").partition(".")[2]
        try:
            text = add_fragment(text, theme, path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise SystemExit(f"{path.name}: {error}.") from None
        taken.append(path)
    changelog.write_text(text, encoding="utf-8")
    for path in taken:
        path.unlink()
    return taken


def list_fragments(root: Path = ROOT) -> list[Path]:
    """The fragments that wait."""
    return [path for path in (root / "changelog.d").glob("*.md") if path.name != README]


if __name__ == "__main__":
    print(f"{len(collect(ROOT / 'CHANGELOG.md', list_fragments()))} fragments are in CHANGELOG.md.")
