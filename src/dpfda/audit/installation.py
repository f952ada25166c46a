"""Whether the files of this installation are those that were released: RECORD, a wheel, hashes of kernels and data.

RECORD lies beside the files, so somebody who can change both is found only by a wheel from elsewhere, whose own hash is in
the release's SHA256SUMS.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import importlib.util
import io
import json
import marshal
import sys
import zipfile
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path, PurePosixPath

import dpfda
from dpfda import _objects
from dpfda.curves import shipped
from dpfda.errors import InvalidInput

PACKAGE = Path(dpfda.__file__).parent
_MADE_LATER = {".pyc", ".nbi", ".nbc"}  # by Python and numba, at the first use


@dataclass(frozen=True)
class Check:
    """One comparison: what with what, how many files, and what is wrong with them."""

    what: str
    files: int
    wrong: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.what}: {self.files} files" + (f", {len(self.wrong)} wrong" if self.wrong else ", all as stated")


def verify_installation(wheel: Path | None = None, package: Path = PACKAGE) -> list[Check]:
    """All comparisons that can be made here. A source tree has no RECORD: kernels and data are left."""
    checks = []
    if wheel is not None:
        checks.append(_compare(f"installed files against {wheel.name}", read_wheel(wheel), package))
    recorded = read_record(package)
    if recorded is not None:
        checks.append(_compare("installed files against RECORD", recorded, package))
    return [*checks, _check_bytecode(package), _check_kernels(package), _check_data(package)]


def has_record(package: Path = PACKAGE) -> bool:
    """Whether this is an installed wheel; an editable installation and a source tree are not."""
    return read_record(package) is not None


def read_record(package: Path = PACKAGE) -> dict[str, str] | None:
    """SHA-256 by path below the package's parent, from the RECORD of the installation that is running."""
    try:
        text = distribution("dpfda").read_text("RECORD")
    except PackageNotFoundError:
        return None
    found = _read_rows(text or "")
    installed = Path(str(distribution("dpfda").locate_file("dpfda")))
    if "dpfda/__init__.py" not in found or installed.resolve() != package.resolve():
        return None
    return found


def read_wheel(path: Path) -> dict[str, str]:
    """The same from a wheel, whose files must have the hashes of its own RECORD."""
    try:
        with zipfile.ZipFile(path) as wheel:
            record = next(name for name in wheel.namelist() if name.endswith(".dist-info/RECORD"))
            rows = _read_rows(wheel.read(record).decode())
            content = {name: _digest(wheel.read(name)) for name in wheel.namelist() if name.startswith("dpfda/")}
    except (OSError, zipfile.BadZipFile, StopIteration, UnicodeDecodeError):
        raise InvalidInput(f"--wheel must name a wheel of dpfda; {path} is none that can be read.") from None
    if content != rows:
        raise InvalidInput(f"{path} is damaged: its files are not those of its own RECORD; get it again.")
    return content


def _read_rows(text: str) -> dict[str, str]:
    rows = [row for row in csv.reader(io.StringIO(text)) if len(row) == 3]
    return {row[0]: row[1].partition("=")[2] for row in rows if row[0].startswith("dpfda/") and row[1]}


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def _compare(what: str, stated: Mapping[str, str], package: Path) -> Check:
    return Check(what, len(stated), tuple(_find_differences(stated, package)))


def _find_differences(stated: Mapping[str, str], package: Path) -> Iterator[str]:
    for name, digest in sorted(stated.items()):
        file = package.parent / name
        if not file.is_file():
            yield f"{name} is missing"
        elif _digest(file.read_bytes()) != digest:
            yield f"{name} was changed"
    folders = {parent.as_posix() for name in stated for parent in PurePosixPath(name).parents}
    for file in sorted(package.rglob("*")):
        name = file.relative_to(package.parent).as_posix()
        if file.is_symlink():
            yield f"{name} is a link, which no release has"
        elif name not in stated and name not in folders and not _is_made_later(file, folders, package):
            yield f"{name} does not belong to the release"


def _is_made_later(file: Path, folders: Container[str], package: Path) -> bool:
    """A cache of a folder of the release, or a file of such a kind; bytecode has a check of its own."""
    if file.is_dir():
        return file.name == "__pycache__" and file.parent.relative_to(package.parent).as_posix() in folders
    return file.is_file() and file.suffix in _MADE_LATER


def _check_bytecode(package: Path) -> Check:
    """What this Python would run in place of compiling a source, against what that source compiles to."""
    files = [
        file for file in sorted(package.rglob("*.pyc")) if sys.implementation.cache_tag in file.name or _is_alone(file)
    ]
    wrong = [
        f"{file.relative_to(package.parent)} is not what its source compiles to"
        for file in files
        if not _is_bytecode(file)
    ]
    return Check("bytecode against its sources", len(files), tuple(wrong))


def _is_alone(file: Path) -> bool:
    """Outside __pycache__: Python runs it where there is no source of the name."""
    return file.parent.name != "__pycache__"


def _is_bytecode(file: Path) -> bool:
    """Whether Python compiles the source anew, or the code is that of the source.

    What stands in the head of the file (a time, a size, a hash) says when Python believes it, which anybody can write there.
    """
    if _is_alone(file):
        return False
    try:
        source = Path(importlib.util.source_from_cache(str(file)))
        content, text = file.read_bytes(), source.read_bytes()
        if not _is_believed(content, source, text):
            return True
        level = file.stem.partition(".opt-")[2]
        made = compile(text, str(source), "exec", dont_inherit=True, optimize=int(level or 0))
        return bool(marshal.loads(content[16:]) == made)
    except (OSError, ValueError, EOFError, TypeError, SyntaxError):
        return False


def _is_believed(content: bytes, source: Path, text: bytes) -> bool:
    """Whether Python would run this bytecode and not look at the source (PEP 552)."""
    if content[:4] != importlib.util.MAGIC_NUMBER:
        return False
    if content[4] & 1:
        return not content[4] & 2 or content[8:16] == importlib.util.source_hash(text)
    stated = int.from_bytes(content[8:12], "little"), int.from_bytes(content[12:16], "little")
    state = source.stat()
    return stated == (int(state.st_mtime) & 0xFFFFFFFF, state.st_size & 0xFFFFFFFF)


def _check_kernels(package: Path) -> Check:
    """Every object that is here, and every source that they were compiled from."""
    folder = package / "native" / "objects"
    try:
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return Check("compiled kernels (there are none: numba compiles at the first use)", 0)
    objects = {folder / each["file"]: each["sha256"] for each in manifest["objects"].values()}
    here = {file: digest for file, digest in objects.items() if file.exists()}
    stated = here | {package / name: digest for name, digest in manifest["sources"].items()}
    wrong = [
        f"{file.relative_to(package.parent)} is not what was built"
        for file, digest in stated.items()
        if _objects.digest_of(file) != digest
    ]
    wrong += [
        f"{file.name} does not belong to the release"
        for file in folder.glob("*.so")
        if file not in here and not file.name.startswith("checked-")
    ]
    return Check("compiled kernels and their sources against the manifest", len(stated), tuple(wrong))


def _check_data(package: Path) -> Check:
    """The example data against `sources.toml`."""
    folder, sources = package / "curves" / "shipped", shipped.read_sources().values()
    wrong = [
        f"{each['file']} was changed" for each in sources if _objects.digest_of(folder / each["file"]) != each["sha256"]
    ]
    return Check("example data against sources.toml", len(sources), tuple(wrong))
