"""Parquet: one file, or the files of a folder with the columns that stand in the names of its folders (arm=01).

What a row holds is decided by its own file alone: a column is what the file holds under that name, else the text in the
names of its own folders, always a text, else empty, as is a column of a type that is not read (in a file that is named
itself such a column is refused). A type or a column that suits all files would let the name of one
subject's folder decide what the rows of others mean. For the same reason only columns that are asked for are made, and
readers take paths and names of columns as they are: no letter in them is a wildcard, and no path is too long.
"""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import unquote

from dpfda.curves.tables.arrow_text import mend_texts
from dpfda.curves.tables.column_types import UnreadType, is_read, is_read_in_frames, refuse_unread
from dpfda.errors import InvalidInput

if TYPE_CHECKING:
    import polars as pl

_PATH = "\0path"  # of the file in which a row stands; no column of a table has this name
_NOTED = b"ARROW:schema"  # where Arrow notes its own types in a Parquet file
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_HELD_AT_ONCE = 64  # files that take a handle while they are open
_LONGEST = 2048  # bytes of a path that readers get; the system takes 4,095, and a relative path may become a whole one
_STEP = 15  # names of 255 bytes at most, which the system takes at once
_PASS_THROUGH = getattr(os, "O_PATH", os.O_RDONLY)  # a folder that need not be listed


@dataclass(frozen=True)
class PartFile:
    """A Parquet file: its name below the folder ("" of a file that is named itself), and how to get a path that opens it.

    One that is `held` takes a handle of this process while it is open.
    """

    name: str
    open: Callable[[], AbstractContextManager[str]]
    held: bool = False

    @classmethod
    def at(cls, path: str, name: str) -> PartFile:
        """A file that any reader opens by its path."""
        return cls(name, lambda: nullcontext(path))

    @property
    def folder_columns(self) -> dict[str, str | None]:
        """The columns in the names of its folders; of two with one name the first."""
        found: dict[str, str | None] = {}
        for folder in self.name.split("/")[:-1]:
            name, is_column, value = folder.partition("=")
            if is_column:
                found.setdefault(_decode(name), None if value == _NO_VALUE else _decode(value))
        return found


def is_of_the_table(name: str) -> bool:
    """Whether a file below a folder is one of the table's.

    As Spark and Hive have it, names that begin with _ or . are a writer's own (_temporary, _delta_log, .part-0.parquet).
    Below a folder that is a column only the file's own name counts: a value with a slash makes folders, too.
    """
    *folders, file = name.split("/")
    above = takewhile(lambda folder: "=" not in folder, folders)
    return file.endswith(".parquet") and not any(each.startswith(("_", ".")) for each in (*above, file))


def list_parquet(path: Path) -> tuple[PartFile, ...]:
    """A file, or the files of a folder in the order of their names."""
    if not path.is_dir():
        return (_local_file(path, ""),)
    found = sorted(find_names(path))
    files = tuple(_local_file(path / name, str(name)) for name in found if is_of_the_table(name.as_posix()))
    if not files:
        raise InvalidInput(f"The folder {path} has no .parquet files; name a folder of Parquet files or one file.")
    return files


def find_names(root: Path) -> Iterator[Path]:
    """The names of the Parquet files below a folder, however deep; links to folders are not followed."""
    waiting = [Path()]
    while waiting:
        folder = waiting.pop()
        folders, files = _list_entries(root / folder)
        waiting += [folder / name for name in folders]
        yield from (folder / name for name in files if name.endswith(".parquet"))


def _list_entries(folder: Path) -> tuple[list[str], list[str]]:
    """The folders and the files in a folder; nothing of one that may not be read."""
    try:
        with _open_deep(folder) as handle, os.scandir(handle) as scanned:
            entries = list(scanned)
            folders = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
            return folders, [entry.name for entry in entries if _is_file(entry)]
    except PermissionError:
        return [], []


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:  # a link that leads to itself
        return False


def _local_file(path: Path, name: str) -> PartFile:
    """Readers want paths that are texts, and short; names of the system are bytes, and a value with slashes is long."""
    try:
        if len(str(path).encode()) <= _LONGEST:
            return PartFile.at(str(path), name)
    except UnicodeEncodeError:
        pass
    return PartFile(name, partial(_open_by_handle, path), held=True)


@contextmanager
def _open_by_handle(path: Path) -> Iterator[str]:
    with _open_deep(path) as handle:
        yield f"/dev/fd/{handle}"


@contextmanager
def _open_deep(path: Path) -> Iterator[int]:
    """A handle of a file or folder whose path may be longer than the system takes at once."""
    steps = [os.path.join(*path.parts[start : start + _STEP]) for start in range(0, len(path.parts), _STEP)] or ["."]
    handle: int | None = None
    try:
        for place, step in enumerate(steps, 1):
            how = os.O_RDONLY if place == len(steps) else _PASS_THROUGH
            above, handle = handle, os.open(step, how, dir_fd=handle)
            if above is not None:
                os.close(above)
        assert handle is not None
        yield handle
    finally:
        if handle is not None:
            os.close(handle)


def _decode(text: str) -> str:
    return unquote(text).encode(errors="surrogateescape").decode(errors="replace")


@dataclass(frozen=True)
class Part:
    """Consecutive files whose columns have the same types, as one table.

    `inside` has the columns of each file, `anywhere` those of the whole folder.
    """

    files: tuple[PartFile, ...]
    inside: dict[str, pl.DataType]
    anywhere: dict[str, pl.DataType]

    def find_type(self, column: str) -> pl.DataType:
        """What neither a file nor its folders hold is empty, of the type that it has elsewhere: it brings no new one."""
        import polars as pl

        if column in self.inside:
            return self.inside[column]
        return pl.String() if any(column in file.folder_columns for file in self.files) else self.anywhere[column]

    @contextmanager
    def open(self, columns: Iterable[str]) -> Iterator[pl.LazyFrame]:
        """Some columns of the rows, not read yet, for as long as the block lasts."""
        import polars as pl

        columns = list(columns)
        with ExitStack() as opened:
            files = {opened.enter_context(file.open()): file.folder_columns for file in self.files}
            rows = pl.scan_parquet(list(files), hive_partitioning=False, glob=False, include_file_paths=_PATH)
            others = [
                _find_by_path({path: folders.get(name) for path, folders in files.items()}, self.find_type(name)).alias(
                    name
                )
                for name in columns
                if name not in self.inside
            ]
            yield rows.with_columns(others).select(take_columns(columns))

    def read_mended(self, columns: list[str], rows: int) -> Iterator[pl.DataFrame]:
        """Some columns of the rows in order, with bytes that are no text replaced, at which polars gives up.

        Another reader reads the texts, as bytes; all other columns are read as ever, so that no cell of a text changes
        what stands in them.
        """
        import polars as pl

        texts = [name for name in columns if self.inside.get(name) in (pl.String, pl.Categorical, pl.Enum)]
        for file in self.files:
            one, start = replace(self, files=(file,)), 0
            with one.open([name for name in columns if name not in texts]) as others, ExitStack() as opened:
                path = opened.enter_context(file.open())
                data = opened.enter_context(_open_plainly(opened.enter_context(open(path, "rb"))))
                for batch in data.iter_batches(columns=texts, batch_size=rows):
                    frame = others.slice(start, batch.num_rows).collect(engine="streaming")
                    mended = [pl.Series(name, mend_texts(batch.column(name))) for name in texts]
                    yield pl.DataFrame([*frame.get_columns(), *mended]).select(take_columns(columns))
                    start += batch.num_rows


def _open_plainly(file: BinaryIO) -> Any:
    """A Parquet file without the types that Arrow has noted beside the file's own (categories, extensions): texts are bytes
    in it, and nothing looks at them.
    """
    from pyarrow.parquet import ParquetFile, read_metadata

    file.seek(-8, os.SEEK_END)
    length = int.from_bytes(file.read(4), "little")
    file.seek(-8 - length, os.SEEK_END)
    footer = file.read().replace(_NOTED, _NOTED.swapcase())
    return ParquetFile(file, metadata=read_metadata(io.BytesIO(b"PAR1" + footer)))


@dataclass(frozen=True)
class ParquetTable:
    """The parts of a table in order, the columns that every file or its folders have, those that any has, and those of a
    type for which the table is refused if they are chosen.
    """

    parts: tuple[Part, ...]
    shared: tuple[str, ...]
    columns: tuple[str, ...]
    unread: dict[str, Any]

    def choose(self, choose: Callable[[list[str]], list[str]]) -> list[str]:
        """What is chosen of the columns that every file has, or, where one lacks what is asked for, of all.

        So no file adds a column for the others, and none takes one away from them.
        """
        try:
            chosen = choose(list(self.shared))
        except InvalidInput:
            chosen = choose(list(self.columns))
        refuse_unread(chosen, self.unread)
        return chosen


def take_columns(names: Iterable[str]) -> list[pl.Expr]:
    """Columns by their very names, of which polars takes some for patterns (*, ^x$)."""
    from polars import selectors

    return [selectors.by_name(name).as_expr() for name in names]


def scan_parquet(files: Iterable[PartFile], *, rows_refuse: bool = True) -> ParquetTable:
    """The table that files are together; no row is read.

    A column of a type that is not read (`column_types`) refuses a file that is named itself. A file of a folder may be one
    subject's: unless rows may refuse, it is as if the file had no such column.
    """
    import polars as pl

    files = list(files)
    refuses = rows_refuse or [file.name for file in files] == [""]
    read = [(file, types) for file in files if (types := _read_types(file, refuses=refuses)) is not None]
    every: dict[str, pl.DataType] = {}
    unread: dict[str, Any] = {}
    for file, types in read:
        for name, kind in (types | dict.fromkeys(file.folder_columns.keys() - types.keys(), pl.String())).items():
            (every if is_read_in_frames(kind) else unread).setdefault(name, kind)
    every |= {name: pl.Null() for name in unread if name not in every}
    parts = [
        Part(
            tuple(file for file, _ in alike),
            {name: kind for name, kind in types.items() if is_read_in_frames(kind)},
            every,
        )
        for types, group in groupby(read, key=lambda each: each[1])
        for alike in _divide(list(group))
    ]
    shared = set(every).intersection(*(types.keys() | file.folder_columns.keys() for file, types in read))
    names = tuple(name for name in every if name in shared)
    return ParquetTable(tuple(parts), names, tuple(every), unread if refuses else {})


def _read_types(file: PartFile, *, refuses: bool) -> dict[str, Any] | None:
    """The types of a file's columns; None of a file with a type that polars does not have at all, unless that refuses."""
    import polars as pl

    try:
        with file.open() as path:
            types = dict(pl.scan_parquet(path, hive_partitioning=False, glob=False).collect_schema())
            return types | _find_long_decimals(path, [name for name, kind in types.items() if kind.is_decimal()])
    except (pl.exceptions.InvalidOperationError, pl.exceptions.PanicException) as error:
        if not refuses:
            return None
        reason = " ".join(str(error).split())[:100]
        raise UnreadType(
            f"A column of the table has a type that is not read ({reason}); make it text, a number or a date before you "
            "save the table."
        ) from None


def _find_long_decimals(path: str, decimals: list[str]) -> dict[str, Any]:
    """Those of them that Arrow keeps in 256 bits: polars takes them for shorter ones, and gives up at some cells."""
    if not decimals:
        return {}
    import pyarrow as pa
    from pyarrow.parquet import read_metadata

    with open(path, "rb") as handle:
        written = (read_metadata(handle).metadata or {}).get(_NOTED)
    if written is None:
        return {}
    schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(written)))
    return {each.name: each.type for each in schema if each.name in decimals and not is_read(each.type)}


def _divide(
    alike: list[tuple[PartFile, dict[str, Any]]],
) -> Iterator[list[tuple[PartFile, dict[str, Any]]]]:
    """All at once, unless that takes more handles than a process has."""
    size = _HELD_AT_ONCE if any(file.held for file, _ in alike) else len(alike)
    for start in range(0, len(alike), size):
        yield alike[start : start + size]


def _find_by_path(values: dict[str, str | None], kind: pl.DataType) -> pl.Expr:
    """The text in the name of each row's file; empty where all are, of this type."""
    import polars as pl

    if all(value is None for value in values.values()):
        return pl.lit(None, kind)
    return pl.col(_PATH).replace_strict(values, return_dtype=pl.String)
