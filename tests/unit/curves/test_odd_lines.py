"""Whose a row of a text file is, and where it ends."""

from __future__ import annotations

import numpy as np
import pytest

from dpfda.curves.tables import odd_lines
from dpfda.curves.tables.odd_lines import find_id, find_rows, split_row, write_line


@pytest.mark.parametrize(
    ("line", "place", "width", "found"),
    [
        ('s00,0.5,1"5,0', 0, 3, "s00"), ('"s00","0.5",1"5,0', 0, 3, "s00"), ('"a","s,00",1"5,0', 1, 3, "s,00"),
        ('1"5,0,s00', 2, 3, "s00"), ('1"5,0,"s,00"', 2, 3, "s,00"), ('"p,q",s00,c', 2, 4, "s00"), ('"p,s00,q"', 1, 3, "s00"),
        ("0,5,s00", 1, 2, "s00"), ("s00,a,b", 0, 2, "s00"), ("0,5,s00,c", 1, 3, None), ("y,s00,c,, ", 1, 3, "s00"),
        ("y,s00", 1, 3, "s00"), ("y", 1, 3, None), ('a"b,1,s00,c"d,e', 2, 4, None), ('"Ward 3, East",s00', 1, 3, "s00"),
    ],
)  # fmt: skip
def test_the_row_alone_says_whose_it_is(line, place, width, found) -> None:
    assert find_id(line, ",", place, width) == found


LONGEST = 1 << 12


@pytest.fixture(autouse=True)
def _shorter(monkeypatch) -> None:
    """A limit that is quick to exceed."""
    monkeypatch.setattr(odd_lines, "LONGEST_CELL", LONGEST)


def count_lines(text: str, *, whole: bool = True) -> tuple[int, bool]:
    """Of the row that begins at the first line."""
    lengths = np.array([len(line) for line in text.split("\n")], dtype=np.uint32)
    (row,) = find_rows(text, [0], lengths, ",", whole=whole)
    return row.lines, row.is_open


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ('a,"1\n2",b\nc', 2), ('a,"1\n""\n2"\nc', 3), ('a,"1\r\n2"\r\nc', 2), ('a,"1\n2" b\nc', 1), ('a,b"1\n2",b\nc', 1),
        ('a,"1\n2\nc', 1), ('"\n"', 2), ('a,"' + "x" * LONGEST + '\n",b', 1),
    ],
)  # fmt: skip
def test_a_row_ends_at_a_line_s_end_outside_quotes(text, lines) -> None:
    assert count_lines(text) == (lines, False)


def test_a_quote_may_be_closed_by_what_follows_unless_it_is_too_far() -> None:
    assert count_lines('a,"1\n2\n', whole=False)[1]
    assert not count_lines('a,"1" 2\n', whole=False)[1]
    assert not count_lines('a,"' + "x" * LONGEST + "\n", whole=False)[1]


def test_what_is_written_is_read() -> None:
    cells = ["a", 'b"', "c,d", ""]
    assert split_row(write_line(cells, ","), ",") == cells
