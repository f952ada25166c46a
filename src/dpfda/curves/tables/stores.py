"""Objects of a store (s3://bucket/visits/) as files of this machine, through fsspec.

They are copied into scratch files without a name, readable by their owner only, and read from there by the code that reads
any file: the same rules, types and bits. No name of an object becomes a name on this machine, so that a value in it (of any
length, with any letters) decides nothing. Many objects are copied into one scratch file, and a few at a time out of it when
they are read: a process has few handles. A copy is used again as long as the store says that no object has changed.

Credentials come from the surroundings (environment, configuration files, the machine's role), never from the URL.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpfda.curves.tables.parquet_files import PartFile, is_of_the_table, list_parquet
from dpfda.curves.tables.scratch import ScratchFile, choose_scratch_folder
from dpfda.curves.tables.source import STORES, Source, redact_password
from dpfda.errors import DpfdaError, InvalidInput, SourceError

if TYPE_CHECKING:
    from types import TracebackType

_HANDLES = Path("/proc/self/fd")  # opens a file without a name anew; Linux has it
_FEW = 64  # objects that keep a handle each
_lock = threading.Lock()
_copies: dict[str, _Copy] = {}  # of each location the newest


@dataclass(frozen=True)
class StoredObject:
    """An object: where it is, its name below the location, and what changes when it is written again."""

    place: str
    name: str
    size: int
    version: str


@dataclass(frozen=True)
class LocalFiles:
    """A source on this machine: its file, or what a folder is called in sentences, and its files if they are Parquet."""

    path: Path
    files: tuple[PartFile, ...] = ()


@contextmanager
def open_locally(source: Source, scratch: str | os.PathLike[str] | None = None) -> Iterator[LocalFiles]:
    """The file or folder of a source on this machine, for as long as the block lasts."""
    if not source.is_store:
        path = Path(source.location)
        yield LocalFiles(path, list_parquet(path) if source.kind == "parquet" else ())
        return
    with _borrow(source, scratch) as files:
        yield files


def describe_state(source: Source) -> str:
    """A hash that changes when an object of the source is written again, added or removed."""
    with _explain(source):
        _, objects = _list_objects(source)
    return hashlib.sha256(repr([(each.name, each.version) for each in objects]).encode()).hexdigest()


@dataclass
class _Copy:
    """Scratch files, and how they are read; given up when the last user is gone and a newer one is there."""

    objects: tuple[StoredObject, ...]
    scratch: Path
    folder: Path | None = None
    local: LocalFiles = field(default_factory=lambda: LocalFiles(Path()))
    kept: list[ScratchFile] = field(default_factory=list)
    users: int = 0
    outdated: bool = False

    def __enter__(self) -> LocalFiles:
        return self.local

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with _lock:
            self.users -= 1
            self.close_if_unused()

    def close_if_unused(self) -> None:
        if self.outdated and not self.users:
            self.close()

    def close(self) -> None:
        """The link goes first: a handle's number may be another file's as soon as it is closed."""
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
        for file in self.kept:
            file.close()

    def add_file(self) -> ScratchFile:
        """A scratch file that is kept as long as the copy."""
        self.kept.append(ScratchFile(self.scratch))
        return self.kept[-1]

    def add_link(self, name: str, file: ScratchFile) -> Path:
        """A path to a scratch file that ends as the source does: readers go by the ending."""
        self.folder = Path(tempfile.mkdtemp(prefix="dpfda-links-", dir=self.scratch))  # of mode 0700
        link = self.folder / name
        link.symlink_to(_path_of(file))
        return link


def _borrow(source: Source, scratch: str | os.PathLike[str] | None) -> _Copy:
    with _explain(source), _lock:
        system, objects = _list_objects(source)
        known = _copies.get(source.location)
        if known is None or known.objects != objects:
            made = _fetch(source, system, objects, choose_scratch_folder(scratch))
            _copies[source.location] = made
            if known is not None:
                known.outdated = True
                known.close_if_unused()
            known = made
        known.users += 1
        return known


def _list_objects(source: Source) -> tuple[Any, tuple[StoredObject, ...]]:
    """The store, and its objects at the location in the order of their names: one table, or the Parquet files below."""
    from fsspec.core import url_to_fs

    system, place = url_to_fs(source.location)
    system.invalidate_cache()
    place = place.rstrip("/")
    found = {place: system.info(place)}
    if found[place]["type"] != "file":
        below = system.find(place, detail=True)
        found = {name: info for name, info in below.items() if is_of_the_table(_name_below(name, place))}
        if source.kind != "parquet" or not found:
            raise InvalidInput(f"{source.shown} has no .parquet files; name a folder of Parquet files or one file.")
    objects = [
        StoredObject(name, _name_below(name, place), int(info["size"]), _version(info)) for name, info in found.items()
    ]
    return system, tuple(sorted(objects, key=lambda each: each.name.split("/")))  # as folders of this machine are


def _name_below(name: str, place: str) -> str:
    return name.removeprefix(place).lstrip("/")


def _version(info: dict[str, Any]) -> str:
    return hashlib.sha256(repr(sorted((str(name), str(value)) for name, value in info.items())).encode()).hexdigest()


def _fetch(source: Source, system: Any, objects: tuple[StoredObject, ...], scratch: Path) -> _Copy:
    if not _HANDLES.is_dir():
        raise InvalidInput("Object stores are read on Linux only; copy the table to a disk and name the file.")
    copy = _Copy(objects, scratch)
    try:
        if not objects[0].name:
            path = copy.add_link(source.name, _fetch_object(source, system, objects[0], copy.add_file()))
            copy.local = LocalFiles(path, list_parquet(path) if source.kind == "parquet" else ())
        else:
            fetch = _fetch_each if len(objects) <= _FEW else _fetch_into_one
            copy.local = LocalFiles(Path(source.name), tuple(fetch(source, system, objects, copy)))
        if _list_objects(source)[1] != objects:
            raise SourceError(f"{source.shown} changed while it was read; read it again when it is at rest.")
    except BaseException:
        copy.close()
        raise
    return copy


def _fetch_object(source: Source, system: Any, each: StoredObject, file: ScratchFile) -> ScratchFile:
    system.get_file(each.place, _path_of(file))
    if os.fstat(file.fileno()).st_size != each.size:
        raise SourceError(f"{source.shown} changed while it was read; read it again when it is at rest.")
    return file


def _fetch_each(source: Source, system: Any, objects: Iterable[StoredObject], copy: _Copy) -> Iterator[PartFile]:
    """Few objects, each in a file of its own."""
    for each in objects:
        file = _fetch_object(source, system, each, copy.add_file())
        yield PartFile.at(_path_of(file), each.name)


def _fetch_into_one(source: Source, system: Any, objects: Iterable[StoredObject], copy: _Copy) -> Iterator[PartFile]:
    """Many objects one after the other in one file: the number of handles does not grow with that of objects."""
    together, start = copy.add_file(), 0
    for each in objects:
        with closing(ScratchFile(copy.scratch)) as file:
            _copy_bytes(_fetch_object(source, system, each, file), 0, each.size, together)
        yield PartFile(each.name, partial(_lend, copy.scratch, together, start, each.size), held=True)
        start += each.size


@contextmanager
def _lend(scratch: Path, together: ScratchFile, start: int, size: int) -> Iterator[str]:
    """One of many objects in a file of its own."""
    with closing(ScratchFile(scratch)) as file:
        _copy_bytes(together, start, size, file)
        yield _path_of(file)


def _copy_bytes(file: ScratchFile, start: int, size: int, target: ScratchFile) -> None:
    """Within the system, to the target's end."""
    while size:
        count = os.sendfile(target.fileno(), file.fileno(), start, size)
        if not count:
            raise SourceError("A scratch file ends too early; check the disk.")
        start, size = start + count, size - count


def _path_of(file: ScratchFile) -> str:
    return f"/proc/{os.getpid()}/fd/{file.fileno()}"


@contextmanager
def _explain(source: Source) -> Iterator[None]:
    """One sentence for what goes wrong with a store; no credentials are in it."""
    try:
        yield
    except DpfdaError:
        raise
    except ImportError:
        package = STORES[source.scheme]
        hint = "pip install 'dpfda[s3]'" if package == "s3fs" else f"pip install {package}"
        raise InvalidInput(f"{source.shown} needs the package {package!r}; install it with `{hint}`.") from None
    except FileNotFoundError:
        raise InvalidInput(f"There is no object {source.shown}; correct the URL.") from None
    except PermissionError:
        raise SourceError(
            f"The store refuses to show {source.shown}; check the credentials of this environment."
        ) from None
    except Exception as error:  # every store has errors of its own
        raise SourceError(f"{source.shown} cannot be read ({_first_line(error)}); check the store's address.") from None


def _first_line(error: Exception) -> str:
    words = str(error).strip().splitlines()
    return redact_password(words[0] if words else type(error).__name__).rstrip(".")


@atexit.register
def forget_copies() -> None:
    """Give up every copy, now or when its last reader is done; at the end of the process the link goes, too."""
    with _lock:
        for copy in _copies.values():
            copy.outdated = True
            copy.close_if_unused()
        _copies.clear()
