"""The rows of a source in order, some at a time: what is held at once does not grow with the source."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpfda.curves.tables.database import query_batches, read_query_columns
from dpfda.curves.tables.files import arrow_batches, explain_errors, mended_parquet, scan_parts
from dpfda.curves.tables.stores import local_path
from dpfda.curves.tables.text_files import open_text

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    import polars as pl

    from dpfda.curves.tables.source import Source

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
    narrow: Callable[[pl.LazyFrame], pl.LazyFrame] | None = None,
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
    with local_path(source, scratch) as path, explain_errors(path):
        if source.kind == "arrow":
            with arrow_batches(path, rows, tolerant=tolerant) as (names, arrow_frames):
                yield Batches(arrow_frames(choose(names)), None)
            return
        if source.kind == "parquet" and mending:
            names, parquet_frames = mended_parquet(path, rows)
            yield Batches(parquet_frames(choose(names)), None)
            return
        if source.kind == "csv":
            with open_text(path, separator, tolerant=tolerant, id=id) as text:
                yield Batches(text.frames(choose(text.names), min(rows, _TEXT_ROWS)), None)
            return
        parts = scan_parts(path, source.kind, source.sheet)
        columns = choose(parts[0].collect_schema().names())
        total = sum(map(_count_rows, parts)) if source.kind == "parquet" else None
        at_once = rows if source.kind == "parquet" else min(rows, _TEXT_ROWS)
        parts = [part.select(columns) for part in parts]
        if narrow is not None and source.kind == "parquet" and len(parts) == 1:  # else ids may be of several types
            parts = [narrow(parts[0])]
        yield Batches(_read_parts(parts, at_once), total)


def read_rows(source: Source, choose: Callable[[list[str]], list[str]], first: int, last: int) -> pl.DataFrame:
    """The rows first..last-1 of a source of Parquet of one part, in its order; row groups of other rows are not read."""
    with local_path(source) as path, explain_errors(path):
        (lazy,) = scan_parts(path, source.kind)
        columns = choose(lazy.collect_schema().names())
        return lazy.select(columns).slice(first, last - first).collect(engine="streaming")


def read_column_names(source: Source, separator: str | None = None, *, rows_refuse: bool = True) -> list[str]:
    """The names of the columns; no row is kept."""
    if source.is_database:
        return read_query_columns(source)
    with local_path(source) as path, explain_errors(path):
        if source.kind == "arrow":
            with arrow_batches(path, 1) as (names, _):
                return names
        if source.kind == "csv":
            with open_text(path, separator, tolerant=not rows_refuse) as text:
                return text.names
        return scan_parts(path, source.kind, source.sheet)[0].collect_schema().names()


def _read_parts(parts: list[pl.LazyFrame], rows: int) -> Iterator[pl.DataFrame]:
    for part in parts:
        yield from part.collect_batches(chunk_size=rows, lazy=True, engine="streaming")


def _count_rows(lazy: pl.LazyFrame) -> int:
    import polars as pl

    return int(lazy.select(pl.len()).collect().item())
