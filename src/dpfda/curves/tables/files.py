"""Files into frames: Parquet, Arrow and workbooks, and one sentence for what goes wrong with any file."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, cast
from urllib.parse import unquote

from dpfda.curves.tables.arrow_text import check_texts
from dpfda.errors import InvalidInput, SourceError

if TYPE_CHECKING:
    import polars as pl

Frames = Callable[[list[str]], "Iterator[pl.DataFrame]"]  # of the columns that are named

_PATH = "\0path"  # of the file in which a row stands; no column of a table has this name
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


class NotText(InvalidInput):
    """A Parquet file has bytes that are no text in a column of texts."""


def scan_parts(path: Path, kind: str, sheet: str | None = None) -> list[pl.LazyFrame]:
    """The rows of a file or folder of Parquet, not read yet, or of a workbook, which is read at once.

    In order; consecutive files whose columns have the same types are one part, and every part keeps its own types.
    """
    with explain_errors(path):
        if kind == "excel":
            from dpfda.curves.tables.workbook import read_sheet

            return [read_sheet(path, sheet).lazy()]
        if kind == "parquet":
            return _scan_parquet(path)
        raise InvalidInput(f"{path.name} is of the kind {kind!r}, which is not read as a whole.")


@contextmanager
def explain_errors(path: Path) -> Iterator[None]:
    """Turn what polars and the system say about a file into one sentence with the fix."""
    import polars as pl

    try:
        yield
    except pl.exceptions.NoDataError:
        raise InvalidInput(f"{path.name} is empty; export it again with a header line and rows.") from None
    except (pl.exceptions.SchemaError, pl.exceptions.ColumnNotFoundError) as error:
        raise InvalidInput(f"The files in {path.name} do not have the same columns: {_first_line(error)}.") from None
    except pl.exceptions.PolarsError as error:
        if "fields" in str(error) and "Schema" in str(error):
            raise InvalidInput(
                f"{path.name} has a row with more fields than its header; quote texts that hold the separator, or name "
                "the separator with --separator."
            ) from None
        kind = NotText if "invalid UTF-8" in str(error) else InvalidInput
        raise kind(f"{path.name} is not what its ending says ({_first_line(error)}); export it again.") from None
    except PermissionError:
        raise SourceError(f"This user may not read {path}; ask its owner for read permission.") from None
    except (EOFError, gzip.BadGzipFile):
        raise InvalidInput(f"{path.name} is not a complete gzip file; compress it again.") from None
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror or _first_line(error)}.") from None


def _scan_parquet(path: Path) -> list[pl.LazyFrame]:
    import polars as pl

    if not path.is_dir():
        return [pl.scan_parquet(path, hive_partitioning=False)]
    files = _list_parquet(path)
    folders = _read_folder_names(files, path)
    alike = groupby(files, key=lambda file: dict(pl.read_parquet_schema(file)))
    return [_scan_alike(list(part), folders) for _, part in alike]


def _scan_alike(files: list[Path], folders: dict[str, dict[str, str | None]]) -> pl.LazyFrame:
    """Files of the same types as one table, with the columns that stand in the names of folders."""
    import polars as pl

    if not folders:
        return pl.scan_parquet(files, hive_partitioning=False)
    rows = pl.scan_parquet(files, hive_partitioning=False, include_file_paths=_PATH)
    columns = {name: pl.col(_PATH).replace_strict(values, return_dtype=pl.String) for name, values in folders.items()}
    return rows.with_columns(**columns).drop(_PATH)


def _read_folder_names(files: list[Path], folder: Path) -> dict[str, dict[str, str | None]]:
    """The columns in the names of folders (arm=01), each as the text that every file has there, always a text.

    A type that suits all names would let the name of one subject's folder decide what those of others mean.
    """
    found: dict[str, dict[str, str | None]] = {}
    for file in files:
        for part in file.relative_to(folder).parts[:-1]:
            name, is_column, value = part.partition("=")
            if is_column:
                known = found.setdefault(unquote(name), dict.fromkeys(map(str, files)))
                known[str(file)] = None if value == _NO_VALUE else unquote(value)
    return found


def _list_parquet(folder: Path) -> list[Path]:
    files = sorted(file for file in folder.rglob("*.parquet") if file.is_file())
    if not files:
        raise InvalidInput(f"The folder {folder} has no .parquet files; name a folder of Parquet files or one file.")
    return files


def mended_parquet(path: Path, rows: int) -> tuple[list[str], Frames]:
    """The names of the columns, and the rows in the same order, with bytes that are no text replaced: polars gives up."""
    import polars as pl
    from pyarrow.parquet import ParquetFile, read_schema

    files = _list_parquet(path) if path.is_dir() else [path]
    folders = _read_folder_names(files, path) if path.is_dir() else {}

    def frames(columns: list[str]) -> Iterator[pl.DataFrame]:
        inside = [column for column in columns if column not in folders]
        for file in files:
            named = [pl.lit(folders[name][str(file)], pl.String).alias(name) for name in columns if name in folders]
            with ParquetFile(file) as data:
                for batch in data.iter_batches(columns=inside, batch_size=rows):
                    checked = check_texts(batch, path.name, tolerant=True)
                    yield cast("pl.DataFrame", pl.from_arrow(checked)).with_columns(named).select(columns)

    names = [name for name in read_schema(files[0]).names if name not in folders]
    return [*names, *folders], frames


def _has_footer(path: Path) -> bool:
    """Whether it is of the file format of Arrow, not of the stream format."""
    with path.open("rb") as file:
        return file.read(6) == b"ARROW1"


@contextmanager
def arrow_batches(path: Path, rows: int, *, tolerant: bool = False) -> Iterator[tuple[list[str], Frames]]:
    """The names of the columns, and the rows: one of the file's own record batches is in memory at a time.

    With `tolerant`, bytes that are no text are replaced.
    """
    import polars as pl
    import pyarrow as pa

    def frames(columns: list[str]) -> Iterator[pl.DataFrame]:
        empty = True
        for batch in record_batches:
            checked = check_texts(batch.select(columns), path.name, tolerant=tolerant)
            for start in range(0, checked.num_rows, rows):
                empty = False
                yield cast("pl.DataFrame", pl.from_arrow(checked.slice(start, rows)))
        if empty:
            yield cast("pl.DataFrame", pl.from_arrow(reader.schema.empty_table().select(columns)))

    with pa.OSFile(str(path)) as file:
        try:
            if _has_footer(path):
                reader = pa.ipc.open_file(file)
                record_batches = (reader.get_batch(number) for number in range(reader.num_record_batches))
            else:
                reader = record_batches = pa.ipc.open_stream(file)
            yield reader.schema.names, frames
        except pa.ArrowInvalid as error:
            raise InvalidInput(
                f"{path.name} is not what its ending says ({_first_line(error)}); export it again."
            ) from None


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
