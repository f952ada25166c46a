"""Rows of text files that are not one plain line: rows with line breaks, and rows with odd quotes.

Where a row ends depends on its own cells only, if a proper writer wrote them (RFC 4180). Of a row that does not have the
header's number of cells, the row alone says whose it is: it must stay its subject's whatever stands in its other cells, or
the ids of a table, which are public, would depend on them. Cells before the first odd quote, or behind the last one, are
where the header has them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

LONGEST_CELL = 1 << 26  # letters up to which a closing quote is looked for: so much memory may one stray quote take
_OPEN = -1
BREAK = "\ufdd0"  # a line break within a cell while its row is one line; Unicode keeps it for such uses
UNREADABLE = "\ufffd"  # stands in a cell of which nobody can say what it was: no number, no level, not a blank
QUOTED = '"(?:[^"]|"")*"'  # for polars, whose patterns take the same room whatever they match
_WITHIN = '(?:[^"]++|"")*+'  # what is between quotes, for Python: nothing is kept of the way to the end of a long cell


@dataclass(frozen=True)
class RowPlace:
    """Where a row stands in a text: its first line and its lines, its letters; whether it goes on behind the text."""

    line: int
    lines: int
    start: int
    end: int
    is_open: bool


def find_rows(
    text: str, wrong: Sequence[int], lengths: NDArray[np.uint32], separator: str, *, whole: bool
) -> list[RowPlace]:
    """The rows that begin at the lines `wrong` and are not within another; `lengths` are those of all lines.

    Unless the text is `whole`, more may follow: then the last row may be open.
    """
    starts = np.concatenate([[0], np.cumsum(lengths.astype(np.int64) + 1)])
    rows: list[RowPlace] = []
    free = 0
    for line in wrong:
        if line >= free:
            start = int(starts[line])
            end, is_open = _find_end(text, start, separator, whole=whole)
            free = int(np.searchsorted(starts, end, side="right"))
            rows.append(RowPlace(line, free - line, start, end, is_open))
    return rows


def _find_end(text: str, start: int, separator: str, *, whole: bool) -> tuple[int, bool]:
    """The end of the row that begins at `start`, and whether it may go on behind the text."""
    place, ends = start, re.compile(rf"[{re.escape(separator)}\n]")
    while True:
        closed = _find_close(text, place, separator) if text.startswith('"', place) else None
        if closed == _OPEN and not whole:
            return len(text), True
        found = ends.search(text, place if closed is None or closed == _OPEN else closed)
        if found is None or found[0] == "\n":
            return len(text) if found is None else found.start(), False
        place = found.end()


def _find_close(text: str, opening: int, separator: str) -> int | None:
    """The place behind the quote that closes this one; None if that is no end of a cell, `_OPEN` if the text has none."""
    place, limit = opening + 1, opening + LONGEST_CELL
    while (place := text.find('"', place, limit)) >= 0:
        if not text.startswith('"', place + 1):
            is_end = text[place + 1 : place + 2] in ("", separator, "\n") or text[place + 1 : place + 3] in (
                "\r",
                "\r\n",
            )
            return place + 1 if is_end else None
        place += 2
    return _OPEN if len(text) <= limit else None


def split_row(line: str, separator: str) -> list[str]:
    """The cells of one row: one in quotes may hold separators, line breaks, doubled quotes; any other quote is a letter."""
    mark = re.escape(separator)
    cell = re.compile(rf' *"({_WITHIN})" *(?={mark}|\Z)|([^{mark}]*)')
    cells, place = [], 0
    while True:
        found = cell.match(line, place)
        assert found is not None  # the second form matches anything
        cells.append(found[2] if found[1] is None else found[1].replace('""', '"'))
        place = found.end() + 1
        if place > len(line):
            return cells


def write_line(cells: list[str], separator: str) -> str:
    """The cells as one line that any parser reads in the same way."""
    return separator.join('"' + cell.replace('"', '""').replace("\n", BREAK) + '"' for cell in cells)


def well_quoted(separator: str) -> str:
    """The pattern of a line that any parser reads in the same way: quotes around whole cells, doubled within."""
    mark = re.escape(separator)
    cell = rf'(?:{QUOTED}|[^"{mark}]*)'
    return rf"^{cell}(?:{mark}{cell})*\r?$"


def find_id(line: str, separator: str, place: int, width: int) -> str | None:
    """The cell at this place of a line that should have `width` cells and has more or fewer; None if the line cannot tell.

    The first of these that holds: it is a cell before the first quote; the line has `width` cells if no quote is more than
    a letter; it is a whole cell before the first odd one; it is one behind the last odd one, counted from the end.
    """
    if '"' not in line:
        return _find_in_plain_cells(line.split(separator), place, width)
    before = line.partition('"')[0].split(separator)[:-1]
    if place < len(before):
        return before[place]
    letters = line.split(separator)
    if len(letters) == width and (found := _find_whole_cells(letters[place], separator)[0]):
        return found[0]
    front, all_whole = _find_whole_cells(line, separator)
    if all_whole:
        return _find_in_plain_cells(front, place, width)
    if place < len(front):
        return front[place]
    back, _ = _find_whole_cells(line[::-1], separator)
    return back[width - 1 - place][::-1] if width - 1 - place < len(back) else None


def _find_in_plain_cells(cells: list[str], place: int, width: int) -> str | None:
    """Of a row without odd quotes: a short one lacks cells at its end, a long one may have blanks there."""
    if len(cells) <= width or not any(map(str.strip, cells[width:])):
        return cells[place] if place < len(cells) else None
    if place == 0:
        return cells[0]
    return cells[-1] if place == width - 1 else None


def _find_whole_cells(line: str, separator: str) -> tuple[list[str], bool]:
    """The cells at the beginning of a line up to the first one with an odd quote, and whether these are all."""
    mark = re.escape(separator)
    cell = re.compile(rf' *("{_WITHIN}") *(?={mark}|\Z)|([^"{mark}]*)(?={mark}|\Z)')
    cells, place = [], 0
    while place <= len(line) and (found := cell.match(line, place)):
        cells.append(found[2] if found[1] is None else found[1][1:-1].replace('""', '"'))
        place = found.end() + 1
    return cells, place > len(line)
