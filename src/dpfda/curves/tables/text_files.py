"""Text files (CSV and its relatives), read by RFC 4180 in blocks of whole rows.

A quote at the beginning of a cell holds up to its closing quote, line breaks included, if a separator or a line's end
follows that one; any other quote is a letter (`odd_lines.py`). So in a file of any proper writer no cell, whatever stands in
it, makes or removes a row, or changes another one. A row that has another number of cells than the header is refused if a
quote is in it; where rows never refuse, it keeps its id, as far as the row tells where that stands, and nothing else of it.
Cells are texts throughout: what is a number is decided later.
"""

from __future__ import annotations

import gzip
import io
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dpfda.curves.tables.odd_lines import (
    BREAK,
    QUOTED,
    UNREADABLE,
    RowPlace,
    find_id,
    find_rows,
    split_row,
    well_quoted,
    write_line,
)  # fmt: skip
from dpfda.errors import InvalidInput

if TYPE_CHECKING:
    import polars as pl

_BLOCK = 1 << 23  # bytes that are parsed at a time
_SEPARATORS = (",", ";", "\t", "|")
_MARK = "\ufeff"  # of byte order


@dataclass(frozen=True)
class TextFile:
    """A text file with its header read. With `tolerant`, bytes that are no text are replaced, extra cells left out.

    `id` names the column that says whose a line is; it matters with `tolerant` only.
    """

    path: Path
    names: list[str]
    separator: str
    tolerant: bool
    _blocks: Iterator[bytes]
    id: str | None = None

    def frames(self, columns: list[str], rows: int) -> Iterator[pl.DataFrame]:
        """The rows in order, at least one frame; the next block is parsed while a frame is at work."""
        places = [self.names.index(column) for column in columns]
        with ThreadPoolExecutor(1) as pool:
            parsed = self._parse(places)
            ahead = pool.submit(next, parsed, None)
            while (frame := ahead.result()) is not None:
                ahead = pool.submit(next, parsed, None)
                frame.columns = columns
                yield from frame.iter_slices(rows) if frame.height else [frame]

    def _parse(self, places: list[int]) -> Iterator[pl.DataFrame]:
        line, empty, rest = 2, True, b""
        for block, last in _tell_last(self._blocks):
            block, rest, lines = self._settle(rest + block, line, last=last)  # noqa: PLW2901
            yield self._parse_block(block, places)
            line, empty = line + lines, False
        if empty:
            yield self._parse_block(b"", places)

    def _settle(self, block: bytes, first: int, *, last: bool) -> tuple[bytes, bytes, int]:
        """The whole rows of a block, each on a line of its own; the rest, which goes on in the next block; the lines used.

        Rows that are not well quoted on their line, or may hide their id, are written anew.
        """
        if b'"' not in block and not (self.tolerant and self._id_place):
            return block, b"", block.count(b"\n")
        import polars as pl

        text, rest = decode(block, self.path, tolerant=self.tolerant), ""
        lines = pl.Series([text]).str.split("\n").explode(empty_as_null=False)
        wrong = lines.str.contains('"', literal=True) & ~lines.str.contains(well_quoted(self.separator))
        if self.tolerant and self._id_place:
            wrong |= self._hides_id(lines)
        places = wrong.arg_true().to_list()
        if not places:
            return text.encode(), b"", text.count("\n")
        rows = find_rows(text, places, lines.str.len_chars().to_numpy(), self.separator, whole=last)
        if rows[-1].is_open:
            rest, lines = text[rows[-1].start :], lines[: rows[-1].line]
            rows.pop()
        mended = [self._mend_row(text[row.start : row.end], first + row.line) for row in rows]
        return _put_in_place(lines, rows, mended).encode(), rest.encode(), text.count("\n") - rest.count("\n")

    def _parse_block(self, block: bytes, places: list[int]) -> pl.DataFrame:
        import polars as pl

        header = self.separator.join(f"c{place}" for place in range(len(self.names)))
        frame = pl.read_csv(
            io.BytesIO(header.encode() + b"\n" + block),
            columns=[f"c{place}" for place in places],
            separator=self.separator,
            infer_schema=False,
            quote_char='"' if b'"' in block else None,
            truncate_ragged_lines=self.tolerant,
            encoding="utf8-lossy" if self.tolerant else "utf8",
        ).select(f"c{place}" for place in places)
        if BREAK.encode() not in block:
            return frame
        return frame.with_columns(pl.all().str.replace_all(BREAK, "\n", literal=True))

    @property
    def _id_place(self) -> int:
        """Where the id stands in a line; first, if nobody asks."""
        return self.names.index(self.id) if self.id in self.names else 0

    def _hides_id(self, lines: pl.Series) -> pl.Series:
        """Lines with more cells than the header, or with quotes and fewer: what is before the id may have moved it."""
        cells = lines.str.replace_all(QUOTED, "").str.count_matches(re.escape(self.separator)) + 1
        return (cells > len(self.names)) | ((cells < len(self.names)) & lines.str.contains('"', literal=True))

    def _mend_row(self, row: str, number: int) -> str:
        row = row.removesuffix("\r")
        cells = split_row(row, self.separator)
        if not self.tolerant:
            self._refuse_odd_row(row, cells, number)
        if len(cells) != len(self.names):
            cells = self._keep_id(row)
        return write_line(cells, self.separator)

    def _refuse_odd_row(self, row: str, cells: list[str], number: int) -> None:
        """Refuse what is no row, and rows between two quotes, of which nobody can say whether they are one text."""
        if len(cells) != len(self.names):
            raise InvalidInput(
                f"Line {number} of {self.path.name} begins a row of {len(cells)} cells where the header has "
                f"{len(self.names)}, with a quote in it; quote cells that hold quotes, and write each of these twice."
            )
        for line, inner in enumerate(row.split("\n")[1:-1], number + 1):
            if len(split_row(inner, self.separator)) == len(self.names):
                raise InvalidInput(
                    f"Line {line} of {self.path.name} looks like a row and stands between two quotes, the first of them in "
                    f"line {number}; if it is one text of several lines, take line breaks out of it, else the quotes."
                )

    def _keep_id(self, line: str) -> list[str]:
        """The cells of a line of which nothing but the id can be trusted, if that."""
        cells = [UNREADABLE] * len(self.names)
        cells[self._id_place] = find_id(line, self.separator, self._id_place, len(self.names)) or ""
        return cells


@contextmanager
def open_text(path: Path, separator: str | None, *, tolerant: bool, id: str | None = None) -> Iterator[TextFile]:
    """Open a text file and read its header; `id` is the column that says whose a line is."""
    with _open(path) as file:
        blocks = _read_blocks(file, any_end=not tolerant)
        header = next(blocks, b"")
        if header[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise InvalidInput(f"{path.name} is in UTF-16; save it as 'CSV UTF-8'.")
        line = decode(header, path, tolerant=tolerant).removeprefix(_MARK)
        if not line.strip():
            raise InvalidInput(f"{path.name} is empty; export it again with a header line and rows.")
        separator = _find_separator(line) if separator is None else separator.replace("\\t", "\t").replace("tab", "\t")
        if len(separator.encode()) != 1 or separator in '"\r\n':
            raise InvalidInput(f"--separator must be one character such as ; or | (or tab), got {separator!r}.")
        names = [name.strip().lstrip(_MARK) for name in split_row(line, separator)]
        _refuse_repeated(names, path)
        yield TextFile(path, names, separator, tolerant, blocks, id)


def decode(content: bytes, path: Path, *, tolerant: bool) -> str:
    """Bytes as text; what is none is replaced or refused."""
    try:
        return content.decode(errors="replace" if tolerant else "strict")
    except UnicodeDecodeError:
        raise InvalidInput(
            f"{path.name} is not UTF-8 text; save it as 'CSV UTF-8' (iconv -f latin1 -t utf8 does it)."
        ) from None


def _put_in_place(lines: pl.Series, rows: list[RowPlace], mended: list[str]) -> str:
    """The lines with each of these rows as one line, written anew."""
    import polars as pl

    if not rows:
        return "\n".join(lines.to_list())
    inner = [line for row in rows for line in range(row.line + 1, row.line + row.lines)]
    lines = lines.scatter([row.line for row in rows], mended)
    if inner:
        lines = lines.filter(pl.Series(np.isin(np.arange(len(lines)), inner, invert=True)))
    return str(lines.str.join("\n").item())


def _tell_last(blocks: Iterator[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Each block, and whether it is the last."""
    before: bytes | None = None
    for block in blocks:
        if before is not None:
            yield before, False
        before = block
    if before is not None:
        yield before, True


def _read_blocks(file: io.BufferedIOBase | gzip.GzipFile, *, any_end: bool) -> Iterator[bytes]:
    """The header line without its end, then the other lines in blocks.

    Lines end in LF, or in CR if the header does; with `any_end` in either. Without it a CR elsewhere is a letter.
    """
    parts: list[bytes] = []
    end, header = None, True
    while part := file.read(_BLOCK):
        if end is None:
            part = part.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n")
            end = b"\r" if re.match(rb"[^\r\n]*\r[^\n]", part) else b"\n"
        whole, found, rest = part.rpartition(end)
        if not found:
            parts.append(part)
            continue
        block = b"".join([*parts, whole, b"\n"])
        parts = [rest]
        if end == b"\r" or any_end:
            block = block.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if header:
            line, _, block = block.partition(b"\n")
            header = False
            yield line.removesuffix(b"\r")
        if block:
            yield block
    last = b"".join(parts)
    if last:
        yield last.replace(b"\r", b"\n") if end == b"\r" or any_end else last


def _open(path: Path) -> io.BufferedIOBase | gzip.GzipFile:
    return gzip.open(path, "rb") if path.name.lower().endswith(".gz") else path.open("rb")


def _find_separator(header: str) -> str:
    outside_quotes = "".join(header.split('"')[::2])
    return max(_SEPARATORS, key=outside_quotes.count)


def _refuse_repeated(names: list[str], path: Path) -> None:
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise InvalidInput(f"{path.name} has two columns named {repeated!r}; rename one.")
