"""Arrow files and workbooks into frames, and one sentence for what goes wrong with any file."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from dpfda.curves.tables.arrow_text import check_texts
from dpfda.curves.tables.column_types import find_unread, refuse_unread
from dpfda.errors import InvalidInput, SourceError

if TYPE_CHECKING:
    import polars as pl

Frames = Callable[[list[str]], "Iterator[pl.DataFrame]"]  # of the columns that are named


class NotText(InvalidInput):
    """A Parquet file has bytes that are no text in a column of texts."""


def scan_file(path: Path, kind: str, sheet: str | None = None) -> pl.LazyFrame:
    """The rows of a file that is neither text, Arrow nor Parquet: of a workbook, which is read at once."""
    if kind == "excel":
        from dpfda.curves.tables.workbook import read_sheet

        return read_sheet(path, sheet).lazy()
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


@contextmanager
def arrow_batches(path: Path, rows: int, *, tolerant: bool = False) -> Iterator[tuple[list[str], Frames]]:
    """The names of the columns, and the rows: one of the file's own record batches is in memory at a time.

    Columns that are not named are not looked at. With `tolerant`, bytes that are no text are replaced.
    """
    import polars as pl
    import pyarrow as pa

    def frames(columns: list[str]) -> Iterator[pl.DataFrame]:
        places = [place for place, name in enumerate(schema.names) if name in columns]
        if len(places) > len(set(columns)):
            raise InvalidInput(f"{path.name} has two columns of the same name; rename one.")
        refuse_unread(columns, find_unread(schema))
        return make_frames(columns, places)

    def make_frames(columns: list[str], places: list[int]) -> Iterator[pl.DataFrame]:
        empty = True
        for batch in _open_arrow(file, pa.ipc.IpcReadOptions(included_fields=places))[1]:
            checked = check_texts(batch.select(columns), path.name, tolerant=tolerant)
            for start in range(0, checked.num_rows, rows):
                empty = False
                yield cast("pl.DataFrame", pl.from_arrow(checked.slice(start, rows)))
        if empty:
            yield cast("pl.DataFrame", pl.from_arrow(schema.empty_table().select(columns)))

    with pa.OSFile(str(path)) as file:
        try:
            schema = _open_arrow(file, None)[0]
            yield schema.names, frames
        except pa.ArrowInvalid as error:
            raise InvalidInput(
                f"{path.name} is not what its ending says ({_first_line(error)}); export it again."
            ) from None


def _open_arrow(file: Any, options: Any) -> tuple[Any, Iterator[Any]]:
    """The schema and the record batches of an open file, which is of the file format of Arrow or of the stream format."""
    import pyarrow as pa

    file.seek(0)
    has_footer = file.read(6) == b"ARROW1"
    file.seek(0)
    if not has_footer:
        stream = pa.ipc.open_stream(file, options=options)
        return stream.schema, stream
    reader = pa.ipc.open_file(file, options=options)
    return reader.schema, (reader.get_batch(number) for number in range(reader.num_record_batches))


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
