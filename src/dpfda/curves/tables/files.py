"""Files into lazy frames. Text files are read as text throughout: what is a number is decided column by column later."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from dpfda.errors import InvalidInput, SourceError

if TYPE_CHECKING:
    import polars as pl

_SAMPLE = 65_536
_SEPARATORS = (",", ";", "\t", "|")

Tolerance = Literal["strict", "tolerant", "plain lines"]  # with rows that are none; plain lines: a quote is a letter
STRICT: Tolerance = "strict"
TOLERANT: Tolerance = "tolerant"
PLAIN_LINES: Tolerance = "plain lines"


class BrokenRows(InvalidInput):
    """A text file in which some row is not a row: a quote that is not closed, too many fields, bytes that are no text."""


def scan_file(
    path: Path,
    kind: str,
    separator: str | None = None,
    tolerance: Tolerance = STRICT,
    sheet: str | None = None,
) -> pl.LazyFrame:
    """The rows of a file or folder, not read yet; a workbook is read at once."""
    with explain_errors(path):
        if kind == "excel":
            from dpfda.curves.tables.workbook import read_sheet

            return read_sheet(path, sheet).lazy()
        if kind == "parquet":
            return _scan_parquet(path)
        if kind == "arrow":
            return _scan_arrow(path)
        return _scan_csv(path, separator, tolerance)


@contextmanager
def explain_errors(path: Path) -> Iterator[None]:
    """Turn what polars and the system say about a file into one sentence with the fix."""
    import polars as pl

    try:
        yield
    except pl.exceptions.NoDataError:
        raise InvalidInput(f"{path.name} is empty; export it again with a header line and rows.") from None
    except pl.exceptions.SchemaError as error:
        raise InvalidInput(f"The files in {path.name} do not have the same columns: {_first_line(error)}.") from None
    except pl.exceptions.PolarsError as error:
        if "fields" in str(error) and "Schema" in str(error):
            raise BrokenRows(
                f"{path.name} has a row with more fields than its header; quote texts that hold the separator, or name "
                "the separator with --separator."
            ) from None
        raise BrokenRows(f"{path.name} is not what its ending says ({_first_line(error)}); export it again.") from None
    except PermissionError:
        raise SourceError(f"This user may not read {path}; ask its owner for read permission.") from None
    except (EOFError, gzip.BadGzipFile):
        raise InvalidInput(f"{path.name} is not a complete gzip file; compress it again.") from None
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror or _first_line(error)}.") from None


def _scan_parquet(path: Path) -> pl.LazyFrame:
    import polars as pl

    if not path.is_dir():
        return pl.scan_parquet(path)
    files = sorted(file for file in path.rglob("*.parquet") if file.is_file())
    if not files:
        raise InvalidInput(f"The folder {path} has no .parquet files; name a folder of Parquet files or one file.")
    return pl.scan_parquet(files, hive_partitioning=True)


def _scan_arrow(path: Path) -> pl.LazyFrame:
    import polars as pl

    return pl.scan_ipc(path) if _has_footer(path) else pl.read_ipc_stream(path).lazy()


def _has_footer(path: Path) -> bool:
    """Whether it is of the file format of Arrow, not of the stream format."""
    with path.open("rb") as file:
        return file.read(6) == b"ARROW1"


@contextmanager
def arrow_batches(path: Path, rows: int) -> Iterator[tuple[list[str], Iterator[pl.DataFrame]]]:
    """The names of the columns, and the rows: one of the file's own record batches is in memory at a time."""
    import polars as pl
    import pyarrow as pa

    def frames() -> Iterator[pl.DataFrame]:
        empty = True
        for batch in record_batches:
            for start in range(0, batch.num_rows, rows):
                empty = False
                yield cast("pl.DataFrame", pl.from_arrow(batch.slice(start, rows)))
        if empty:
            yield cast("pl.DataFrame", pl.from_arrow(reader.schema.empty_table()))

    with pa.OSFile(str(path)) as file:
        try:
            if _has_footer(path):
                reader = pa.ipc.open_file(file)
                record_batches = (reader.get_batch(number) for number in range(reader.num_record_batches))
            else:
                reader = record_batches = pa.ipc.open_stream(file)
            yield reader.schema.names, frames()
        except pa.ArrowInvalid as error:
            raise InvalidInput(
                f"{path.name} is not what its ending says ({_first_line(error)}); export it again."
            ) from None


def _scan_csv(path: Path, separator: str | None, tolerance: Tolerance) -> pl.LazyFrame:
    import polars as pl

    sample = _decode(_read_head(path), path, tolerance)
    if not sample.strip():
        raise InvalidInput(f"{path.name} is empty; export it again with a header line and rows.")
    header = sample.replace("\r\n", "\n").replace("\r", "\n").split("\n", 1)[0]
    separator = _find_separator(header) if separator is None else separator.replace("\\t", "\t").replace("tab", "\t")
    _refuse_repeated(next(csv.reader([header], delimiter=separator)), path)
    lone_returns = "\r" in sample.replace("\r\n", "\n")
    content: Path | io.BytesIO = _convert_line_ends(path) if lone_returns else path
    options: dict[str, Any] = {} if tolerance == STRICT else {"truncate_ragged_lines": True, "encoding": "utf8-lossy"}
    if tolerance == PLAIN_LINES:
        options["quote_char"] = None
    frame = pl.scan_csv(content, separator=separator, infer_schema=False, **options)
    if tolerance == PLAIN_LINES:
        frame = frame.rename(lambda name: name.strip('"')).with_columns(pl.all().str.strip_chars('"'))
    return frame.rename(lambda name: name.strip().lstrip("﻿"))


def _read_head(path: Path) -> bytes:
    with _open(path) as file:
        return file.read(_SAMPLE)


def _open(path: Path) -> io.BufferedIOBase | gzip.GzipFile:
    return gzip.open(path, "rb") if path.name.lower().endswith(".gz") else path.open("rb")


def _decode(head: bytes, path: Path, tolerance: Tolerance) -> str:
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise InvalidInput(f"{path.name} is in UTF-16; save it as 'CSV UTF-8'.")
    if tolerance != STRICT:
        return head.decode("utf-8-sig", errors="replace")
    for cut in range(4):  # the sample may end inside a letter
        try:
            return head[: len(head) - cut].decode("utf-8-sig")
        except UnicodeDecodeError:
            continue
    raise InvalidInput(f"{path.name} is not UTF-8 text; save it as 'CSV UTF-8' (iconv -f latin1 -t utf8 does it).")


def _find_separator(header: str) -> str:
    outside_quotes = "".join(header.split('"')[::2])
    return max(_SEPARATORS, key=outside_quotes.count)


def _refuse_repeated(names: list[str], path: Path) -> None:
    stripped = [name.strip() for name in names]
    repeated = next((name for name in stripped if stripped.count(name) > 1), None)
    if repeated is not None:
        raise InvalidInput(f"{path.name} has two columns named {repeated!r}; rename one.")


def _convert_line_ends(path: Path) -> io.BytesIO:
    with _open(path) as file:
        return io.BytesIO(file.read().replace(b"\r\n", b"\n").replace(b"\r", b"\n"))


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
