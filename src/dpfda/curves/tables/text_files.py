"""Text files (CSV and its relatives) in blocks of whole lines. ONE LINE IS ONE ROW: what a line becomes depends on it alone.

Quotes hold within their line. A quote that is not closed there is a letter; where the line then has another number of cells
than the header, it is refused. Where rows never refuse, it keeps its id, as far as the line tells where that stands
(`odd_lines.py`), and nothing else of it can be read. So no cell, whatever stands in it, changes how another line is read, nor
whose line its own is. Cells are texts throughout: what is a number is decided later.
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

from dpfda.curves.tables.odd_lines import QUOTED, UNREADABLE, find_id, split_line, well_quoted, write_line
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
        line, empty = 2, True
        for block in self._blocks:
            yield self._parse_block(block, places, line)
            line, empty = line + block.count(b"\n"), False
        if empty:
            yield self._parse_block(b"", places, line)

    def _parse_block(self, block: bytes, places: list[int], line: int) -> pl.DataFrame:
        import polars as pl

        if b'"' in block or (self.tolerant and self._id_place):
            block = self._mend_lines(block, line)
        header = self.separator.join(f"c{place}" for place in range(len(self.names)))
        return pl.read_csv(
            io.BytesIO(header.encode() + b"\n" + block),
            columns=[f"c{place}" for place in places],
            separator=self.separator,
            infer_schema=False,
            quote_char='"' if b'"' in block else None,
            truncate_ragged_lines=self.tolerant,
            encoding="utf8-lossy" if self.tolerant else "utf8",
        ).select(f"c{place}" for place in places)

    @property
    def _id_place(self) -> int:
        """Where the id stands in a line; first, if nobody asks."""
        return self.names.index(self.id) if self.id in self.names else 0

    def _mend_lines(self, block: bytes, first: int) -> bytes:
        """The block with each line that is not well quoted, or may hide its id, written anew: every quote is closed."""
        import polars as pl

        text = decode(block, self.path, tolerant=self.tolerant)
        lines = pl.Series([text]).str.split("\n").explode(empty_as_null=False)
        wrong = lines.str.contains('"', literal=True) & ~lines.str.contains(well_quoted(self.separator))
        if self.tolerant and self._id_place:
            wrong |= self._hides_id(lines)
        places = wrong.arg_true()
        if not len(places):
            return block if not self.tolerant else text.encode()
        mended = [self._mend_line(lines[place], first + place) for place in places.to_list()]
        return str(lines.scatter(places, mended).str.join("\n").item()).encode()

    def _hides_id(self, lines: pl.Series) -> pl.Series:
        """Lines with more cells than the header, or with quotes and fewer: what is before the id may have moved it."""
        cells = lines.str.replace_all(QUOTED, "").str.count_matches(re.escape(self.separator)) + 1
        return (cells > len(self.names)) | ((cells < len(self.names)) & lines.str.contains('"', literal=True))

    def _mend_line(self, line: str, number: int) -> str:
        line = line.removesuffix("\r")
        cells = split_line(line, self.separator)
        if len(cells) == len(self.names):
            return write_line(cells, self.separator)
        if self.tolerant:
            return write_line(self._keep_id(line), self.separator)
        raise InvalidInput(
            f"Line {number} of {self.path.name} has {len(cells)} cells where the header has {len(self.names)}, with a quote "
            "that its own line does not close; one line is one row, so take line breaks out of cells and write a quote "
            "within a quoted cell twice."
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
            raise InvalidInput(f"--separator must be one letter such as ; or | (or tab), got {separator!r}.")
        names = [name.strip().lstrip(_MARK) for name in split_line(line, separator)]
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
