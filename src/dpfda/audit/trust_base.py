"""The trust base: which code the guarantee rests on, read from `trust_base.toml`, and its size.

`python -m dpfda.audit.trust_base` prints the list; with `--write` it brings README.md and docs/guarantee.md up to date.
"""

from __future__ import annotations

import argparse
import ast
import io
import sys
import tokenize
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parents[1]
REPOSITORY = PACKAGE.parents[1]
START, END = "<!-- trust-base -->", "<!-- /trust-base -->"
_LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


@dataclass(frozen=True)
class Place:
    """Some modules that have one part in the guarantee, and the proof notes that speak of them."""

    name: str
    modules: tuple[str, ...]
    part: str
    notes: tuple[str, ...]


def first_ring() -> list[Place]:
    """What stands between a curve and its release."""
    return _places("first_ring")


def second_ring() -> list[Place]:
    """What decides which rows become which curve, and what a site agrees to."""
    return _places("second_ring")


def after_release() -> list[Place]:
    """What sees released and public numbers only, with a note that says why."""
    return _places("after_release")


def doors() -> dict[str, tuple[str, ...]]:
    """Modules of the first ring that may import from the second, and from which places."""
    return {module: tuple(places) for module, places in read_list()["doors"].items()}


def modules(places: list[Place]) -> set[str]:
    """All modules of these places, as paths below the package."""
    return {module for place in places for module in place.modules}


@cache
def read_list() -> dict[str, Any]:
    """`trust_base.toml` as it is."""
    return tomllib.loads((PACKAGE / "audit" / "trust_base.toml").read_text())


def _places(ring: str) -> list[Place]:
    found = []
    for entry in read_list()[ring]:
        paths = {path for glob in entry["files"] for path in PACKAGE.glob(glob)}
        names = {path.relative_to(PACKAGE).as_posix() for path in paths} - set(entry.get("without", ()))
        found.append(Place(entry["place"], tuple(sorted(names)), entry["part"], tuple(entry.get("notes", ()))))
    return found


def count_lines(module: str) -> int:
    """Lines with code on them: docstrings, comments and blank lines do not count."""
    text = (PACKAGE / module).read_text()
    prose: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            prose.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _LAYOUT:
            code.update(range(token.start[0], token.end[0] + 1))
    return len(code - prose)


def describe_size(places: list[Place]) -> str:
    """The number of modules and of lines, for a sentence."""
    listed = modules(places)
    return f"{len(listed)} modules, {sum(map(count_lines, listed)):,} lines of code"


def draw_table(places: list[Place]) -> str:
    """One row per place, in Markdown."""
    rows = ["| place | part in the guarantee | modules | lines of code | proof notes |", "|---|---|---|---|---|"]
    for place in places:
        notes = ", ".join(f"[{note.removesuffix('.md')}](proofs/{note})" for note in place.notes) or "none"
        lines = sum(map(count_lines, place.modules))
        rows.append(f"| `{place.name}` | {place.part} | {len(place.modules)} | {lines:,} | {notes} |")
    return "\n".join(rows)


def generated_texts() -> dict[Path, str]:
    """What stands between the markers, page by page."""
    first, second = first_ring(), second_ring()
    names = ", ".join(f"`{place.name}`" for place in first[:-1])
    sentence = f"{describe_size(first)}, comments and docstrings apart: {names} and {first[-1].name}"
    guarantee = (
        f"First ring, between a curve and its release: {describe_size(first)}.\n\n{draw_table(first)}\n\n"
        f"Second ring, which decides what a curve is and what a site agrees to: {describe_size(second)}.\n\n"
        f"{draw_table(second)}"
    )
    return {REPOSITORY / "README.md": sentence, REPOSITORY / "docs" / "guarantee.md": guarantee}


def update_page(page: str, text: str) -> str:
    """The page with this text between its markers."""
    before, rest = page.split(START)
    _, after = rest.split(END)
    return f"{before}{START}\n{text}\n{END}{after}"


def main(arguments: list[str]) -> int:
    """Print the trust base; with --write, say its size in README and guarantee."""
    parser = argparse.ArgumentParser(prog="python -m dpfda.audit.trust_base")
    parser.add_argument("--write", action="store_true", help="bring README.md and docs/guarantee.md up to date")
    if parser.parse_args(arguments).write:
        for path, text in generated_texts().items():
            path.write_text(update_page(path.read_text(), text))
    for title, places in (("first ring", first_ring()), ("second ring", second_ring())):
        print(f"{title}: {describe_size(places)}")
        print("\n".join(f"  {module}" for module in sorted(modules(places))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
