"""Lines of text files that do not have the header's number of cells: whose line it is, from the line alone.

A subject's line must stay that subject's whatever stands in its other cells, or the ids of a table, which are public, would
depend on them. Cells on the near side of the first odd quote, or behind the last one, are where the header has them.
"""

from __future__ import annotations

import re

UNREADABLE = "\ufffd"  # stands in a cell of which nobody can say what it was: no number, no level, not a blank
QUOTED = '"(?:[^"]|"")*"'


def split_line(line: str, separator: str) -> list[str]:
    """The cells of one line: a cell in quotes may hold separators and doubled quotes; any other quote is a letter."""
    mark = re.escape(separator)
    cell = re.compile(rf' *"((?:[^"]|"")*)" *(?={mark}|$)|([^{mark}]*)')
    cells, place = [], 0
    while True:
        found = cell.match(line, place)
        assert found is not None  # the second form matches anything
        cells.append(found[2] if found[1] is None else found[1].replace('""', '"'))
        place = found.end() + 1
        if place > len(line):
            return cells


def write_line(cells: list[str], separator: str) -> str:
    """The cells as a line that any parser reads in the same way."""
    return separator.join('"' + cell.replace('"', '""') + '"' for cell in cells)


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
    """Of a line without odd quotes: a short one lacks cells at its end, a long one may have blanks there; else it is unclear."""
    if len(cells) <= width or not any(map(str.strip, cells[width:])):
        return cells[place] if place < len(cells) else None
    if place == 0:
        return cells[0]
    return cells[-1] if place == width - 1 else None


def _find_whole_cells(line: str, separator: str) -> tuple[list[str], bool]:
    """The cells at the beginning of a line up to the first one with an odd quote, and whether these are all."""
    mark = re.escape(separator)
    cell = re.compile(rf' *({QUOTED}) *(?={mark}|$)|([^"{mark}]*)(?={mark}|$)')
    cells, place = [], 0
    while place <= len(line) and (found := cell.match(line, place)):
        cells.append(found[2] if found[1] is None else found[1][1:-1].replace('""', '"'))
        place = found.end() + 1
    return cells, place > len(line)
