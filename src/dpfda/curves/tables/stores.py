"""Objects of a store (s3://bucket/visits/) as files of this machine, through fsspec.

They are copied into scratch files without a name, readable by their owner only, and read from there by the code that reads
any file: the same rules, types and bits. A folder of links with the objects' names leads to them while they are read; it
holds no data. A copy is used again as long as the store says that no object has changed.

Credentials come from the surroundings (environment, configuration files, the machine's role), never from the URL.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpfda.curves.tables.scratch import ScratchFile, choose_scratch_folder
from dpfda.curves.tables.source import STORES, Source, redact_password
from dpfda.errors import DpfdaError, InvalidInput, SourceError

if TYPE_CHECKING:
    from types import TracebackType

_HANDLES = Path("/proc/self/fd")  # opens a file without a name anew; Linux has it
_lock = threading.Lock()
_copies: dict[str, _Copy] = {}  # of each location the newest


@dataclass(frozen=True)
class StoredObject:
    """An object: where it is, its name below the location, and what changes when it is written again."""

    place: str
    name: str
    size: int
    version: str


@contextmanager
def local_path(source: Source, scratch: str | os.PathLike[str] | None = None) -> Iterator[Path]:
    """The file or folder of a source on this machine, for as long as the block lasts."""
    if not source.is_store:
        yield Path(source.location)
        return
    with _borrow(source, scratch) as path:
        yield path


def describe_state(source: Source) -> str:
    """A hash that changes when an object of the source is written again, added or removed."""
    with _explain(source):
        _, objects = _list_objects(source)
    return hashlib.sha256(repr([(each.name, each.version) for each in objects]).encode()).hexdigest()


@dataclass
class _Copy:
    """Scratch files and the links that lead to them; given up when the last user is gone and a newer one is there."""

    objects: tuple[StoredObject, ...]
    folder: Path
    path: Path
    files: list[ScratchFile] = field(default_factory=list)
    users: int = 0
    outdated: bool = False

    def __enter__(self) -> Path:
        return self.path

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
        """The links go first: a handle's number may be another file's as soon as it is closed."""
        shutil.rmtree(self.folder, ignore_errors=True)
        for file in self.files:
            file.close()


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
        found = {name: info for name, info in below.items() if name.endswith((".parquet", ".pq"))}
        if source.kind != "parquet" or not found:
            raise InvalidInput(f"{source.shown} has no .parquet files; name a folder of Parquet files or one file.")
    objects = [
        StoredObject(name, _check_name(name.removeprefix(place).lstrip("/"), source), int(info["size"]), _version(info))
        for name, info in sorted(found.items())
    ]
    return system, tuple(objects)


def _version(info: dict[str, Any]) -> str:
    return hashlib.sha256(repr(sorted((str(name), str(value)) for name, value in info.items())).encode()).hexdigest()


def _check_name(name: str, source: Source) -> str:
    """A name that leads nowhere but below its folder."""
    parts = name.split("/")
    if name and ({"", ".", ".."} & set(parts) or "\0" in name):
        raise InvalidInput(f"{source.shown} has an object whose name is no path ({name!r}); rename it.")
    return name


def _fetch(source: Source, system: Any, objects: tuple[StoredObject, ...], scratch: Path) -> _Copy:
    if not _HANDLES.is_dir():
        raise InvalidInput("Object stores are read on Linux only; copy the table to a disk and name the file.")
    folder = Path(tempfile.mkdtemp(prefix="dpfda-links-", dir=scratch))  # of mode 0700
    copy = _Copy(objects, folder, folder / source.name)
    try:
        for each in objects:
            file = ScratchFile(scratch)
            copy.files.append(file)
            handle = f"/proc/{os.getpid()}/fd/{file.fileno()}"
            system.get_file(each.place, handle)
            if os.fstat(file.fileno()).st_size != each.size:
                raise SourceError(f"{source.shown} changed while it was read; read it again when it is at rest.")
            link = copy.path / each.name if each.name else copy.path
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(handle)
        if _list_objects(source)[1] != objects:
            raise SourceError(f"{source.shown} changed while it was read; read it again when it is at rest.")
    except BaseException:
        copy.close()
        raise
    return copy


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
    """Give up every copy, now or when its last reader is done; at the end of the process the links go, too."""
    with _lock:
        for copy in _copies.values():
            copy.outdated = True
            copy.close_if_unused()
        _copies.clear()
