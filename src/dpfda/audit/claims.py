"""Every promise in the pages, with the test or proof that shows it: docs/claims.md is made from here.

A sentence that holds a strong word (never, cannot, only, nothing, refused, ...) must be known: as a claim, with what shows
it, or as plain, because it advises, measures or limits and promises nothing. `claims_data/*.toml` lists both by page and by
words of the sentence. `python -m dpfda.audit.claims` lists what is missing, with `--write` it writes the page.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from dpfda.audit.trust_base import PACKAGE, REPOSITORY

DATA = PACKAGE / "audit" / "claims_data"
PAGE = REPOSITORY / "docs" / "claims.md"
STRICT = ("README.md", "docs/guarantee.md", "docs/federation.md")  # pages in which no strong sentence may be unknown
STRONG = re.compile(
    r"\b(never|cannot|always|guarantees?|guaranteed|nothing|only|refuses?|refused|nobody|ever|at most|no \w+ leaves)\b",
    re.IGNORECASE,
)
_HEADER = """\
# What is promised, and what shows it

Written by `python -m dpfda.audit.claims --write` from `src/dpfda/audit/claims_data/`; do not edit. A test fails if a
sentence with a strong word in README, guarantee or federation is not listed, if a listed sentence is not on its page any
more, or if a test or proof that is named here does not exist.

Claims: {claims}; sentences with strong words that promise nothing: {plain}.
"""


@dataclass(frozen=True)
class Entry:
    """A sentence of a page, known by some of its words; `shown_by` is empty for one that promises nothing."""

    page: str
    says: str
    shown_by: tuple[str, ...]


def read_entries(folder: Path = DATA) -> list[Entry]:
    """All entries, in the order of the files."""
    found = []
    for path in sorted(folder.glob("*.toml")):
        listed = tomllib.loads(path.read_text(encoding="utf-8"))
        found += [Entry(each["page"], each["says"], tuple(each["shown_by"])) for each in listed.get("claim", [])]
        found += [Entry(each["page"], each["says"], ()) for each in listed.get("plain", [])]
    return found


def find_sentences(text: str) -> Iterator[str]:
    """The sentences of a Markdown page; a row of a table is one. Code, comments and generated parts are left out."""
    text = re.sub(r"```.*?```|<!-- trust-base -->.*?<!-- /trust-base -->|<!--.*?-->", "", text, flags=re.DOTALL)
    for unit in _units(text):
        if unit.startswith("|"):
            yield unit.strip("| ")
        else:
            yield from (part.strip() for part in re.split(r"(?<=[.!?])\s+(?=[A-Z`*\[(\"])", unit) if part.strip())


def _units(text: str) -> Iterator[str]:
    """Paragraphs and items of lists on one line each, and rows of tables."""
    unit: list[str] = []
    for line in [*text.splitlines(), ""]:
        alone = line.startswith(("|", "#")) or not line.strip()
        if (alone or re.match(r"\s*([*-]|\d+\.) ", line)) and unit:
            yield " ".join(unit)
            unit = []
        if not alone:
            unit.append(line.strip())
        elif line.startswith("|") and set(line) - set("|- "):
            yield line
    if unit:
        yield " ".join(unit)


def find_problems(entries: list[Entry], root: Path = REPOSITORY) -> list[str]:
    """What is missing or wrong, in sentences."""
    found = []
    for page in STRICT:
        known = [entry.says for entry in entries if entry.page == page]
        found += [
            f"{page}: nothing is said to show this: {sentence[:160]}"
            for sentence in find_sentences((root / page).read_text(encoding="utf-8"))
            if STRONG.search(sentence) and not any(words in sentence for words in known)
        ]
    for entry in entries:
        if not any(entry.says in text for text in _texts(root / entry.page)):
            found.append(f"{entry.page}: this is not there any more: {entry.says}")
        found += [f"{entry.says}: {proof} does not exist" for proof in entry.shown_by if not exists(proof, root)]
    return found


def _texts(path: Path) -> list[str]:
    """The sentences of a page, or the texts in a module."""
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return list(find_sentences(text))
    return [
        node.value
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]


def exists(proof: str, root: Path = REPOSITORY) -> bool:
    """Whether there is such a test (`path::name`), proof note, contract or page."""
    path, _, name = proof.partition("::")
    if not (root / path).is_file():
        return False
    return name in _functions(root / path) if path.endswith(".py") else not name


@cache
def _functions(path: Path) -> frozenset[str]:
    """The tests in a file, by reading it; nothing is imported."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(
        node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    )


def write_page(entries: list[Entry]) -> str:
    """docs/claims.md."""
    claims = [entry for entry in entries if entry.shown_by]
    lines = [_HEADER.format(claims=len(claims), plain=len(entries) - len(claims))]
    for page in dict.fromkeys(entry.page for entry in claims):
        lines += [f"## {page}", "", "| promise | shown by |", "|---|---|"]
        for entry in claims:
            if entry.page == page:
                sentence = next((text for text in _texts(REPOSITORY / page) if entry.says in text), entry.says)
                lines.append(f"| {_cell(sentence)} | {'<br>'.join(f'`{proof}`' for proof in entry.shown_by)} |")
        lines.append("")
    return "\n".join(lines)


def _cell(text: str) -> str:
    """A sentence inside a table: no links (they lead from another folder), no columns of its own."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text).replace("|", "/").strip()
    return re.sub(r"^(\* |\d+\. )", "", plain)


def main(arguments: list[str]) -> int:
    """0 if every promise is shown by something that exists, and the page is current."""
    parser = argparse.ArgumentParser(prog="python -m dpfda.audit.claims")
    parser.add_argument("--write", action="store_true", help="write docs/claims.md")
    entries = read_entries()
    if parser.parse_args(arguments).write:
        PAGE.write_text(write_page(entries), encoding="utf-8")
    found = find_problems(entries)
    print("\n".join(found) or f"{len(entries)} sentences, each known.")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
