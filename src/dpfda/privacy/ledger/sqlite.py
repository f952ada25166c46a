"""The ledger's storage in one SQLite file: every SQL statement, and nothing of what an entry means.

Durability: a rollback journal (no WAL) with `synchronous=EXTRA`, which is FULL plus a sync of the folder after
the journal is removed. With FULL alone a power failure could bring the journal back and undo a debit. Keep
the file on a local disk: network file systems may not lock.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from dpfda.errors import LedgerError

_SCHEMA = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE debits (seq INTEGER PRIMARY KEY, at TEXT NOT NULL, actor TEXT NOT NULL, silo TEXT NOT NULL, "
    "run TEXT NOT NULL, round INTEGER NOT NULL, attempt INTEGER NOT NULL, digest TEXT NOT NULL, "
    "event TEXT NOT NULL, previous TEXT NOT NULL, hash TEXT NOT NULL, UNIQUE (run, round, attempt))",
    "CREATE TABLE releases (run TEXT NOT NULL, round INTEGER NOT NULL, payload BLOB NOT NULL, "
    "sha256 TEXT NOT NULL, PRIMARY KEY (run, round))",
)
_COLUMNS = "seq, at, actor, silo, run, round, attempt, digest, event, previous, hash"

_ADVICE = {
    "locked": "is in use by another process; wait for it to finish and try again",
    "readonly": "is read-only; make the file and its folder writable for this user",
    "is full": "could not be written because the disk is full; free some space",
    "disk I/O": "could not be read or written (disk I/O error); check space, quota and disk, and try again",
    "no such table": "has no tables (its creation was interrupted, or it is another file); create a new ledger",
}


@dataclass(frozen=True)
class Row:
    """One debit as stored; `event` is JSON text, `hash` covers all other fields."""

    seq: int
    at: str
    actor: str
    silo: str
    run: str
    round: int
    attempt: int
    digest: str
    event: str
    previous: str
    hash: str


class Transaction(Protocol):
    """What the ledger may ask of its storage inside one transaction."""

    def create(self) -> None: ...

    def meta(self) -> dict[str, str]: ...

    def set_meta(self, name: str, value: str) -> None: ...

    def debits(self) -> list[Row]: ...

    def insert(self, row: Row) -> None: ...

    def release(self, run: str, round: int) -> bytes | None: ...

    def releases(self) -> list[tuple[str, int, bytes, str]]: ...

    def insert_release(self, run: str, round: int, payload: bytes, sha256: str) -> None: ...


class Store(Protocol):
    """A place for one ledger."""

    def new_file(self) -> None: ...

    def transaction(self, *, write: bool) -> AbstractContextManager[Transaction]: ...


class SqliteTransaction:
    """The same, on a connection to SQLite."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def create(self) -> None:
        """Make the empty tables."""
        for statement in _SCHEMA:
            self._connection.execute(statement)

    def meta(self) -> dict[str, str]:
        """The fixed facts of the ledger and the head of its chain."""
        return dict(self._connection.execute("SELECT name, value FROM meta"))

    def set_meta(self, name: str, value: str) -> None:
        """Write one fact."""
        self._connection.execute("INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)", (name, value))

    def debits(self) -> list[Row]:
        """All debits in the order of writing."""
        found = self._connection.execute(f"SELECT {_COLUMNS} FROM debits ORDER BY seq")
        return [Row(*fields) for fields in found]

    def insert(self, row: Row) -> None:
        """Append one debit."""
        fields = tuple(vars(row).values())
        marks = ", ".join("?" * len(fields))
        self._connection.execute(f"INSERT INTO debits ({_COLUMNS}) VALUES ({marks})", fields)

    def release(self, run: str, round: int) -> bytes | None:
        """The stored release of one round, checked against its hash by `Ledger`."""
        query = "SELECT payload FROM releases WHERE run = ? AND round = ?"
        found = self._connection.execute(query, (run, round)).fetchone()
        return None if found is None else bytes(found[0])

    def releases(self) -> list[tuple[str, int, bytes, str]]:
        """All stored releases: run, round, payload, sha256."""
        return list(self._connection.execute("SELECT run, round, payload, sha256 FROM releases"))

    def insert_release(self, run: str, round: int, payload: bytes, sha256: str) -> None:
        """Keep the release of one round."""
        query = "INSERT INTO releases (run, round, payload, sha256) VALUES (?, ?, ?, ?)"
        self._connection.execute(query, (run, round, payload, sha256))


class SqliteStore:
    """One file, a fresh connection per transaction, safe for threads, processes and forks."""

    def __init__(self, path: str | os.PathLike[str], *, timeout: float = 30.0) -> None:
        self.path = Path(path).absolute()
        self._timeout = timeout

    def new_file(self) -> None:
        """Make the file, readable by its owner only; an existing file is never touched."""
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            folder = os.open(self.path.parent, os.O_RDONLY)
            os.fsync(folder)
            os.close(folder)
        except FileExistsError:
            raise LedgerError(f"{self.path} exists already; open it, or choose another path.") from None
        except OSError as error:
            raise LedgerError(f"The ledger {self.path} cannot be created: {error.strerror}.") from None

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[SqliteTransaction]:
        """All or nothing: committed durably on leaving, rolled back on any error, serialised when writing."""
        if not self.path.is_file():
            raise LedgerError(f"There is no ledger at {self.path}; create one, or correct the path.")
        try:
            with closing(self._connect()) as connection, _begun(connection, write) as transaction:
                yield transaction
        except (sqlite3.Error, UnicodeDecodeError) as error:  # SQLite may quote damaged bytes
            raise LedgerError(self._explain(error)) from error

    def _connect(self) -> sqlite3.Connection:
        """A connection that never creates a file."""
        connection = sqlite3.connect(f"{self.path.as_uri()}?mode=rw", uri=True, timeout=self._timeout)
        connection.execute("PRAGMA synchronous = EXTRA")
        return connection

    def _explain(self, error: sqlite3.Error | UnicodeDecodeError) -> str:
        """One sentence for the operator: what is wrong and what to do."""
        for word, sentence in _ADVICE.items():
            if word in str(error):
                return f"The ledger {self.path} {sentence}."
        return (
            f"The ledger {self.path} is damaged or not a ledger ({error}); stop releasing and keep the file: "
            "an older copy would forget what was spent since."
        )


@contextmanager
def _begun(connection: sqlite3.Connection, write: bool) -> Iterator[SqliteTransaction]:
    """BEGIN, the caller's work, COMMIT or ROLLBACK."""
    connection.isolation_level = None
    connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
    try:
        yield SqliteTransaction(connection)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
