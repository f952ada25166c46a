"""The site's own log: append-only, hash-chained, durable, and never sent anywhere.

It is begun once, when a site takes its credentials, and never by writing to it: a lost log is a reason to stop, since it
shows how far the ledger was. Each line is JSON and holds the hash of the line before it. A second file, the head, holds the
number of lines and the last hash, so that lines cut off at the end are noticed as well.

A line is on the disk before `append` returns. The head is written after it, in one sector, and is whole after a power cut,
but may be an older one: of lines about answers, which the ledger has as well, it is not synced. So a log may be ahead of
its head, never behind it, and a line that a crash tore counts as not written. There is no key: whoever owns the files can
write a new chain, so copy the last hash elsewhere now and then if you distrust your own administrators.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from dpfda.errors import LedgerError
from dpfda.federation.files import OWNER_ONLY, sync_folder

GENESIS = "0" * 64
_MAX_TEXT = 500
_END_BYTES = 128


class AuditLog:
    """A log file that several processes of one site may append to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._head = path.with_name(path.name + ".head")

    def append(self, event: str, **fields: Any) -> None:
        """Write one line durably; long texts are cut. A log that was not begun, or was lost, is not begun by this."""
        self._append(event, fields, sync_end=True)

    def append_answer(self, event: str, **fields: Any) -> None:
        """The same for a line about a new answer; a power cut may leave the head as it was some lines before."""
        self._append(event, fields, sync_end=False)

    def _append(self, event: str, fields: dict[str, Any], *, sync_end: bool) -> None:
        with self._lock() as file:
            number, previous = _read_last(file)
            if not number:
                raise LedgerError(self._describe_loss())
            self._refuse_older(number, previous)
            self._write(file, number + 1, previous, event, fields, sync_end=sync_end)

    def begin(self) -> None:
        """Make the log, once, on its owner's word; one that is there stays as it is."""
        with self._lock(os.O_CREAT) as file:
            number, previous = _read_last(file)
            if not number:
                self._write(file, 1, previous, "log", {"outcome": "begun"})
        sync_folder(self.path.parent)

    def lines(self) -> list[dict[str, Any]]:
        """Every line in order; a log that is missing, or a line that cannot be read, raises."""
        try:
            whole, _, _torn = self.path.read_bytes().rpartition(b"\n")
            found = [json.loads(line) for line in whole.splitlines()]
        except FileNotFoundError:
            found = []
        except (ValueError, RecursionError):
            raise LedgerError(_describe_alteration("a line cannot be read")) from None
        if not found:
            raise LedgerError(self._describe_loss())
        if not all(isinstance(line, dict) for line in found):
            raise LedgerError(_describe_alteration("a line cannot be read"))
        return found

    def verify(self) -> int:
        """Check the chain from the first line to the last; the number of lines, or `LedgerError`."""
        lines, previous = self.lines(), GENESIS
        for position, line in enumerate(lines, start=1):
            sealed = {name: value for name, value in line.items() if name != "hash"}
            if line.get("seq") != position or line.get("previous") != previous or line.get("hash") != _hash(sealed):
                raise LedgerError(_describe_alteration(f"line {position} does not follow from the lines before it"))
            previous = line["hash"]
        self._check_end(lines)
        return len(lines)

    def _check_end(self, lines: list[dict[str, Any]]) -> None:
        """A crash may leave the log ahead of its head, never behind it."""
        count, known = self._read_head(len(lines))
        if not 0 <= count <= len(lines) or (count and lines[count - 1]["hash"] != known):
            raise LedgerError(_describe_alteration("lines are missing at its end"))

    def _refuse_older(self, number: int, last: str) -> None:
        """The same by the last line alone: a line in an older log would make a head that hides what is missing."""
        count, known = self._read_head(number)
        if count > number or (count == number and known != last):
            raise LedgerError(_describe_alteration("lines are missing at its end"))

    def _read_head(self, number: int) -> tuple[int, str]:
        """The lines that the head knows of, and the hash of the last of them; `number` are in the log."""
        try:
            head = json.loads(self._head.read_bytes())
            return int(head["lines"]), str(head["hash"])
        except FileNotFoundError:
            if number > 1:
                raise LedgerError(_describe_alteration("the file with its end is missing")) from None
            return 0, GENESIS
        except (ValueError, KeyError, TypeError):
            raise LedgerError(_describe_alteration("the file with its end cannot be read")) from None

    def _write(
        self, file: BinaryIO, number: int, previous: str, event: str, fields: dict[str, Any], *, sync_end: bool = True
    ) -> None:
        line = {"seq": number, "at": _now(), "event": event, **_cut_long_texts(fields), "previous": previous}
        line["hash"] = _hash(line)
        file.seek(0, os.SEEK_END)
        file.write(json.dumps(line, sort_keys=True).encode() + b"\n")
        file.flush()
        os.fdatasync(file.fileno())
        _write_end(self._head, number, str(line["hash"]), sync=sync_end)

    def _describe_loss(self) -> str:
        return (
            f"The audit log {self.path} is missing, and nothing else shows how far the ledger had come: put its copy back; "
            "without one, make a new folder with dpfda site enrol, and settle the ledger with dpfda budget restore."
        )

    @contextmanager
    def _lock(self, flags: int = 0) -> Iterator[BinaryIO]:
        try:
            descriptor = os.open(self.path, os.O_RDWR | flags, OWNER_ONLY)
        except FileNotFoundError:
            raise LedgerError(self._describe_loss()) from None
        with os.fdopen(descriptor, "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file


def _read_last(file: BinaryIO) -> tuple[int, str]:
    """Number and hash of the last whole line; a line torn by a crash is cut off."""
    end = file.seek(0, os.SEEK_END)
    start = max(0, end - 65536)
    file.seek(start)
    tail = file.read()
    if tail and not tail.endswith(b"\n"):
        kept = tail.rfind(b"\n") + 1
        file.truncate(start + kept)
        tail = tail[:kept]
    if not tail.strip():
        return 0, GENESIS
    try:
        line = json.loads(tail.splitlines()[-1])
        return int(line["seq"]), str(line["hash"])
    except (ValueError, KeyError, TypeError):
        raise LedgerError(_describe_alteration("its last line cannot be read")) from None


def _write_end(path: Path, lines: int, digest: str, *, sync: bool) -> None:
    """Overwrite the file with the log's end: one write of a fixed length, within one sector, costs no new name."""
    content = json.dumps({"hash": digest, "lines": lines}).ljust(_END_BYTES).encode()
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, OWNER_ONLY)
    try:
        os.pwrite(descriptor, content, 0)
        if os.fstat(descriptor).st_size != len(content):  # of an earlier version
            os.ftruncate(descriptor, len(content))
        if sync:
            os.fdatasync(descriptor)  # of a length that never changes: the data alone
    finally:
        os.close(descriptor)


def _cut_long_texts(fields: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value[:_MAX_TEXT] if isinstance(value, str) else value
        for name, value in fields.items()
        if value is not None
    }


def _hash(line: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(line, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _describe_alteration(what: str) -> str:
    return f"The audit log was altered ({what}); keep the file and find out who did it."


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
