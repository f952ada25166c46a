"""Sphinx extension: docstrings may hold Markdown tables and bars, which reStructuredText would read otherwise."""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

RULE = re.compile(r"^\s*\|[-:| ]+\|\s*$")
ROW = re.compile(r"^\s*\|.*\|\s*$")


def convert(lines: list[str]) -> list[str]:
    """Tables as list tables, other bars as plain characters."""
    made: list[str] = []
    position = 0
    while position < len(lines):
        if position + 1 < len(lines) and ROW.match(lines[position]) and RULE.match(lines[position + 1]):
            end = position
            while end < len(lines) and ROW.match(lines[end]):
                end += 1
            made += list_table(lines[position:end])
            position = end
        else:
            made.append(escape_marks(lines[position]))
            position += 1
    return made


def list_table(rows: list[str]) -> list[str]:
    """A Markdown table as a list table."""
    indent = re.match(r"\s*", rows[0]).group()  # type: ignore[union-attr]
    made = ["", f"{indent}.. list-table::", f"{indent}   :header-rows: 1", ""]
    for row in [rows[0], *rows[2:]]:
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", row.strip().strip("|"))]
        made += [f"{indent}   {'*' if number == 0 else ' '} - {cell}" for number, cell in enumerate(cells)]
    return [*made, ""]


def escape_marks(line: str) -> str:
    """Outside of code |phi| is an absolute value, not a substitution, and T_ no link."""
    if line.lstrip().startswith((">>>", "...")):
        return line
    parts = re.split(r"(`+[^`]*`+)", line)
    return "".join(
        part if part.startswith("`") else re.sub(r"(?<=\w)_(?!\w)|(?<!\\)\|", r"\\\g<0>", part) for part in parts
    )


def process(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """What autodoc calls for every docstring."""
    lines[:] = convert(lines)


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this."""
    app.connect("autodoc-process-docstring", process, priority=900)  # after napoleon
    return {"parallel_read_safe": True, "parallel_write_safe": True}
