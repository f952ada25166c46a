"""Text files (CSV and its relatives) in blocks of whole lines. ONE LINE IS ONE ROW: what a line becomes depends on it alone.

Quotes hold within their line. A quote that is not closed there is a letter; where the line then has another number of cells
than the header, no cell of it can be trusted: it is refused, or is blank where rows never refuse. So no cell, whatever
stands in it, changes how another line is read. Cells are texts throughout: what is a number is decided later.
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

from dpfda.errors import InvalidInput

if TYPE_CHECKING:
    import polars as pl

_BLOCK = 1 << 23  # bytes that are parsed at a time
_SEPARATORS = (",", ";", "\t", "|")
_MARK = "\ufeff"  # of byte order


@dataclass(frozen=True)
class TextFile:
    """A text file with its header read. With `tolerant`, bytes that are no text are replaced, extra cells left out."""

    path: Path
    names: list[str]
    separator: str
    tolerant: bool
    _blocks: Iterator[bytes]

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
        line, empty = 2, True
        for block in self._blocks:
            yield self._parse_block(block, places, line)
            line, empty = line + block.count(b"\n"), False
        if empty:
            yield self._parse_block(b"", places, line)

    def _parse_block(self, block: bytes, places: list[int], line: int) -> pl.DataFrame:
        import polars as pl

        quoted = b'"' in block
        if quoted:
            block = self._mend_lines(block, line)
        header = self.separator.join(f"c{place}" for place in range(len(self.names)))
        return pl.read_csv(
            io.BytesIO(header.encode() + b"\n" + block),
            columns=[f"c{place}" for place in places],
            separator=self.separator,
            infer_schema=False,
            quote_char='"' if quoted else None,
            truncate_ragged_lines=self.tolerant,
            encoding="utf8-lossy" if self.tolerant else "utf8",
        ).select(f"c{place}" for place in places)

    def _mend_lines(self, block: bytes, first: int) -> bytes:
        """The block with each line that is not well quoted written anew, so that every quote is closed on its line."""
        import polars as pl

        text = decode(block, self.path, tolerant=self.tolerant)
        lines = pl.Series([text]).str.split("\n").explode(empty_as_null=False)
        wrong = lines.str.contains('"', literal=True) & ~lines.str.contains(_well_quoted(self.separator))
        places = wrong.arg_true()
        if not len(places):
            return block if not self.tolerant else text.encode()
        mended = [self._mend_line(lines[place], first + place) for place in places.to_list()]
        return str(lines.scatter(places, mended).str.join("\n").item()).encode()

    def _mend_line(self, line: str, number: int) -> str:
        cells = split_line(line.removesuffix("\r"), self.separator)
        if len(cells) == len(self.names):
            return self.separator.join('"' + cell.replace('"', '""') + '"' for cell in cells)
        if self.tolerant:
            return ""
        raise InvalidInput(
            f"Line {number} of {self.path.name} has {len(cells)} cells where the header has {len(self.names)}, with a quote "
            "that its own line does not close; one line is one row, so take line breaks out of cells and write a quote "
            "within a quoted cell twice."
        )


@contextmanager
def open_text(path: Path, separator: str | None, *, tolerant: bool) -> Iterator[TextFile]:
    """Open a text file and read its header."""
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
            raise InvalidInput(f"--separator must be one letter such as ; or | (or tab), got {separator!r}.")
        names = [name.strip().lstrip(_MARK) for name in split_line(line, separator)]
        _refuse_repeated(names, path)
        yield TextFile(path, names, separator, tolerant, blocks)


def decode(content: bytes, path: Path, *, tolerant: bool) -> str:
    """Bytes as text; what is none is replaced or refused."""
    try:
        return content.decode(errors="replace" if tolerant else "strict")
    except UnicodeDecodeError:
        raise InvalidInput(
            f"{path.name} is not UTF-8 text; save it as 'CSV UTF-8' (iconv -f latin1 -t utf8 does it)."
        ) from None


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


def _well_quoted(separator: str) -> str:
    """The pattern of a line that any parser reads in the same way: quotes around whole cells, doubled within."""
    mark = re.escape(separator)
    cell = rf'(?:"(?:[^"]|"")*"|[^"{mark}]*)'
    return rf"^{cell}(?:{mark}{cell})*\r?$"


def _read_blocks(file: io.BufferedIOBase | gzip.GzipFile, *, any_end: bool) -> Iterator[bytes]:
    """The header line without its end, then the other lines in blocks.

    Lines end in LF, or in CR if the header does; with `any_end` in either. Without it a CR elsewhere is a letter, so that no
    cell decides where lines end.
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
