"""Whether a ledger's file, and what SQLite keeps beside it, are its owner's alone.

SQLite plays back a journal that it finds beside a database. Whoever can put a file there, or swap the ledger for a link,
could undo debits; so both are looked at before every transaction.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from dpfda.errors import LedgerError
from dpfda.privacy.ledger.rows import missing

COMPANIONS = ("-journal", "-wal", "-shm")
NEW = ".new-"  # in the name of a ledger that is being made


def check_place(path: Path) -> tuple[int, int]:
    """The identity of the file (device, inode) if it and its companions are safe to use; else `LedgerError`."""
    found = _look(path)
    if found is None:
        raise LedgerError(missing(path))
    _refuse_foreign(path, found, owner=None)
    for ending in COMPANIONS:
        companion = path.with_name(path.name + ending)
        beside = _look(companion)
        if beside is not None:
            _refuse_foreign(companion, beside, owner=found.st_uid)
    return found.st_dev, found.st_ino


def check_folder(folder: Path) -> None:
    """Refuse a folder in which anybody may put a journal beside the ledger."""
    if os.stat(folder).st_mode & stat.S_IWOTH:
        raise LedgerError(
            f"Everybody can write to the ledger's folder {folder}; keep the ledger in a folder of its owner (chmod o-w)."
        )


def _look(path: Path) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise LedgerError(f"The ledger {path} cannot be inspected: {error.strerror}.") from None


def _refuse_foreign(path: Path, found: os.stat_result, owner: int | None) -> None:
    """A plain file with one name, of this user (or of the ledger's owner), which nobody else can read or write."""
    user = os.geteuid()
    if not stat.S_ISREG(found.st_mode):
        kind = "a symbolic link" if stat.S_ISLNK(found.st_mode) else "no file"
        raise LedgerError(f"{path} is {kind}; a ledger is one plain file: give its own path.")
    if found.st_nlink > 1:
        raise LedgerError(f"{path} has a second name; remove the other one (an interrupted creation leaves .*{NEW}*).")
    if found.st_uid != (user if owner is None and user != 0 else owner if owner is not None else found.st_uid):
        raise LedgerError(f"{path} belongs to another user; find out who put it there before you use this ledger.")
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise LedgerError(f"{path} can be read or written by others; find out why, then give: chmod 600 {path}")
