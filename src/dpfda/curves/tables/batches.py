"""The rows of a source in order, some at a time: what is held at once does not grow with the source."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpfda.curves.tables.database import query_batches, read_query_columns
from dpfda.curves.tables.files import arrow_batches, explain_errors, scan_file
from dpfda.curves.tables.parquet_files import Part, scan_parquet, take_columns
from dpfda.curves.tables.stores import open_locally
from dpfda.curves.tables.text_files import open_text

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    import polars as pl

    from dpfda.curves.tables.source import Source

    Narrow = Callable[[pl.LazyFrame], pl.LazyFrame]

BATCH_ROWS = 1 << 19
_TEXT_ROWS = 1 << 18  # text takes more room than the numbers in it


@dataclass(frozen=True)
class Batches:
    """An iterator over frames with the same columns, and the number of all rows if the source tells it at once."""

    frames: Iterator[pl.DataFrame]
    rows: int | None


@contextmanager
def open_batches(
    source: Source,
    choose: Callable[[list[str]], list[str]],
    separator: str | None,
    rows: int = BATCH_ROWS,
    *,
    tolerant: bool = False,
    mending: bool = False,
    narrow: Narrow | None = None,
    scratch: str | os.PathLike[str] | None = None,
    id: str | None = None,
) -> Iterator[Batches]:
    """Open a source. `choose` gets the names of its columns and says which ones to read.

    With `tolerant`, a line of a text file that is no row keeps its `id` and nothing else, and bytes that are no text are
    replaced; of Parquet, where that is slower, with `mending` (see `files.NotText`).
    `narrow` may leave out rows of a Parquet file: where its row groups say which values they hold, they are not even read.
    Objects of a store are copied to the folder `scratch` first.
    """
    if source.is_database:
        with query_batches(source, choose, rows, any_text=tolerant) as frames:
            yield Batches(frames, None)
        return
    with open_locally(source, scratch) as local, explain_errors(local.path):
        path = local.path
        if source.kind == "arrow":
            with arrow_batches(path, rows, tolerant=tolerant) as (names, arrow_frames):
                yield Batches(arrow_frames(choose(names)), None)
            return
        if source.kind == "csv":
            with open_text(path, separator, tolerant=tolerant, id=id) as text:
                yield Batches(text.frames(choose(text.names), min(rows, _TEXT_ROWS)), None)
            return
        if source.kind != "parquet":
            lazy = scan_file(path, source.kind, source.sheet)
            chosen = lazy.select(take_columns(choose(lazy.collect_schema().names())))
            yield Batches(_read_lazily(chosen, min(rows, _TEXT_ROWS)), None)
            return
        table = scan_parquet(local.files, rows_refuse=not tolerant)
        columns = table.choose(choose)
        if mending:
            yield Batches((frame for part in table.parts for frame in part.read_mended(columns, rows)), None)
            return
        if len(table.parts) > 1:  # ids may be of several types
            narrow = None
        frames = (frame for part in table.parts for frame in _read_part(part, columns, rows, narrow))
        yield Batches(frames, sum(_count_rows(part, columns) for part in table.parts))


def read_rows(
    source: Source, choose: Callable[[list[str]], list[str]], first: int, last: int, *, rows_refuse: bool = True
) -> pl.DataFrame:
    """The rows first..last-1 of a source of Parquet of one part, in its order; row groups of other rows are not read."""
    with open_locally(source) as local, explain_errors(local.path):
        table = scan_parquet(local.files, rows_refuse=rows_refuse)
        (part,) = table.parts
        with part.open(table.choose(choose)) as lazy:
            return lazy.slice(first, last - first).collect(engine="streaming")


def read_column_names(source: Source, separator: str | None = None, *, rows_refuse: bool = True) -> list[str]:
    """The names of the columns; no row is kept. Of a folder those that all files have, or any if rows may not refuse."""
    if source.is_database:
        return read_query_columns(source)
    with open_locally(source) as local, explain_errors(local.path):
        path = local.path
        if source.kind == "arrow":
            with arrow_batches(path, 1) as (names, _):
                return names
        if source.kind == "csv":
            with open_text(path, separator, tolerant=not rows_refuse) as text:
                return text.names
        if source.kind != "parquet":
            return scan_file(path, source.kind, source.sheet).collect_schema().names()
        table = scan_parquet(local.files, rows_refuse=rows_refuse)
        return list(table.shared if rows_refuse else table.columns)


def _read_part(part: Part, columns: list[str], rows: int, narrow: Narrow | None) -> Iterator[pl.DataFrame]:
    with part.open(columns) as lazy:
        yield from _read_lazily(lazy if narrow is None else narrow(lazy), rows)


def _read_lazily(lazy: pl.LazyFrame, rows: int) -> Iterator[pl.DataFrame]:
    yield from lazy.collect_batches(chunk_size=rows, lazy=True, engine="streaming")


def _count_rows(part: Part, columns: list[str]) -> int:
    import polars as pl

    with part.open(columns) as lazy:
        return int(lazy.select(pl.len()).collect().item())
