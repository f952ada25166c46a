"""Sphinx extension: files of the repository as pages of the site, with links that lead to pages where there are any.

A page named here holds one line in docs/, a link to its file, for those who read the folder without the site.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from sphinx.application import Sphinx

PAGES = {
    "CONTRIBUTING.md": "contributing",
    "CODE_OF_CONDUCT.md": "code-of-conduct",
    "CHANGELOG.md": "changelog",
    "SECURITY.md": "security",
    "deploy/README.md": "how-to/deploy",
    "deploy/security-sheet.md": "how-to/security-sheet",
    "results/RESULTS.md": "paper",
    "benchmarks/challenge/README.md": "challenge",
    "benchmarks/challenge/RESULTS.md": "challenge-results",
    "README.md": "index",
}
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)#\s]+)")


def rewrite(text: str, folder: Path, page: Path, docs: Path) -> str:
    """Every relative link of a file in `folder`, as seen from the folder of `page`."""
    root = docs.parent

    def lead(found: re.Match[str]) -> str:
        target = (folder / found[1]).resolve()
        shown = PAGES.get(str(target.relative_to(root)) if target.is_relative_to(root) else "")
        goal = docs / f"{shown}.md" if shown else target
        return os.path.relpath(goal, page.parent)

    text = LINK.sub(lead, text)
    return re.sub(r"\[([^\]]+)\]\(([^)#\s]+)\)", lambda found: drop_folder(found, page.parent), text)


def drop_folder(found: re.Match[str], folder: Path) -> str:
    """A link to a folder becomes its name: a site has no listing of it."""
    if "://" not in found[2] and (folder / found[2]).is_dir():
        return f"`{found[1].strip('`')}`"
    return found[0]


def read(app: Sphinx, name: str, source: list[str]) -> None:
    """What Sphinx calls for every page that it reads."""
    docs = Path(app.srcdir)
    page = Path(app.env.doc2path(name))
    if page.suffix != ".md":
        return
    files = [file for file, shown in PAGES.items() if shown == name and name != "index"]
    if files:
        file = docs.parent / files[0]
        app.env.note_dependency(str(file))
        source[0] = rewrite(file.read_text(encoding="utf-8"), file.parent, page, docs)
    else:
        source[0] = rewrite(source[0], page.parent, page, docs)


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this. A change of these extensions makes every page be read again."""
    code = b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
    app.add_config_value("code_of_extensions", hashlib.sha256(code).hexdigest(), "env")
    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
