"""Writing results: checked before the budget is spent, written whole or not at all, and never lost.

One rule for every file that a command writes: folders that are missing are made. A ledger is not such a file.
"""

from __future__ import annotations

import os
import shlex
import stat
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dpfda.errors import DpfdaError, InvalidInput
from dpfda.report.document import Document, to_json

FIGURE_ENDINGS = (".png", ".svg", ".pdf")
REPORT_ENDINGS = (".html", ".htm")
JSON_ENDINGS = (".json",)


class NotWritten(DpfdaError):
    """A paid-for result could not be written where it should go; the message says where it is."""


@dataclass(frozen=True)
class Outputs:
    """Where a result goes."""

    report: str | None = None
    json: str | None = None
    figures: tuple[str, ...] = ()
    overwrite: bool = False

    def check(self) -> None:
        """Refuse what cannot be written, before anything is spent."""
        for option, target, endings in (
            ("json", self.json, JSON_ENDINGS),
            ("report", self.report, REPORT_ENDINGS),
            *(("figure", figure, FIGURE_ENDINGS) for figure in self.figures),
        ):
            if target is not None and not (option == "json" and target == "-"):
                check_ending(option, target, endings)
                check_target(target, self.overwrite)
        self._refuse_twice()

    def _refuse_twice(self) -> None:
        named = [str(Path(target).absolute()) for target in (self.json, self.report, *self.figures) if target]
        twice = next((name for name in named if named.count(name) > 1), None)
        if twice is not None:
            raise InvalidInput(f"{twice} is named for two outputs; give each its own file.")

    def write(self, document: Document, rescue_in: Sequence[Path] = ()) -> list[str]:
        """Write everything, the JSON first; if something fails, the result is kept in the first folder that takes it."""
        written: list[str] = []
        try:
            if self.json == "-":
                sys.stdout.write(to_json(document))
            elif self.json is not None:
                written.append(write_whole(self.json, to_json(document).encode()))
            if self.report is not None:
                written.append(write_whole(self.report, _html(document)))
            written.extend(write_whole(figure, _figure(document, figure)) for figure in self.figures)
        except OSError as error:
            raise self._rescue(error, document, written, rescue_in) from error
        return written

    def _rescue(
        self, error: OSError, document: Document, written: Sequence[str], folders: Sequence[Path]
    ) -> NotWritten:
        failed = f"{error.filename} could not be written ({error.strerror or error})"
        kept = self.json if self.json in written else _keep(document, folders) if self.json != "-" else None
        if kept is None:
            return NotWritten(f"{failed}; choose another place and give the command again, which spends nothing")
        return NotWritten(
            f"{failed}, but nothing is lost: the result is in {kept}; choose another place and run: "
            f"dpfda report {shlex.quote(kept)} --report NAME.html (or the same command again, which is then free)"
        )


def _keep(document: Document, folders: Sequence[Path]) -> str | None:
    """Where the result was saved: in the first of the folders that takes it; None if none does."""
    for folder in folders:
        try:
            return write_whole(free_name(str(folder / "result"), ".json"), to_json(document).encode())
        except OSError:
            continue
    return None


def write_whole(target: str, content: bytes) -> str:
    """Write to a file beside the target and put it in place at once; a device is written as it is."""
    path = Path(target)
    try:
        if path.exists() and not stat.S_ISREG(path.stat().st_mode):
            with path.open("wb", buffering=0) as device:
                device.write(content)
            return target
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, content)
    except OSError as error:
        raise OSError(error.errno, error.strerror, target) from error
    return target


def _replace(path: Path, content: bytes) -> None:
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def free_name(stem: str, ending: str) -> str:
    """The first of stem.json, stem-2.json, ... that does not exist."""
    number, name = 1, f"{stem}{ending}"
    while Path(name).exists():
        number += 1
        name = f"{stem}-{number}{ending}"
    return name


def check_ending(option: str, target: str, endings: tuple[str, ...]) -> None:
    """Refuse a name whose ending says something else than what will be in the file; a device has none."""
    path = Path(target)
    is_device = path.exists() and not path.is_file() and not path.is_dir()
    if not is_device and not target.lower().endswith(endings):
        shown = " or ".join([", ".join(endings[:-1]), endings[-1]] if len(endings) > 1 else endings)
        raise InvalidInput(f"--{option} {target} must end in {shown}.")


def check_target(target: str, overwrite: bool) -> None:
    """Refuse a file that cannot or should not be written."""
    path = Path(target)
    if path.is_dir():
        raise InvalidInput(f"{path} is a folder; name a file in it.")
    if path.is_file() and not overwrite:
        raise InvalidInput(f"{path} exists; choose another name, or add --overwrite.")
    folder = next((parent for parent in path.absolute().parents if parent.exists()), Path("/"))
    if not folder.is_dir() or not os.access(folder, os.W_OK) or not (path.exists() or _takes_files(folder)):
        raise InvalidInput(f"This user may not write to the folder {folder}; choose another place for {path.name}.")


def _takes_files(folder: Path) -> bool:
    """Whether a file can be made there: of /proc and the like the permissions do not tell."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _html(document: Document) -> bytes:
    from dpfda.report.html import render_report

    return render_report(document).encode()


def _figure(document: Document, target: str) -> bytes:
    from dpfda.report.figures import draw_document, encode_figure

    return encode_figure(draw_document(document), Path(target).suffix[1:].lower())
