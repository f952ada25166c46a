"""The ledger's storage in one SQLite file: every SQL statement, and nothing of what an entry means.

Durability: a write-ahead log with `synchronous=EXTRA` (for such a log, FULL): one sync makes a transaction durable, where
a rollback journal needs four. The count of a draw is written with `synchronous=NORMAL`: it outlives the death of the process
without a sync, and the next sync covers it. While the ledger is open its last entries may be in `FILE-wal`, so copy it only
when it is closed. Keep the file on a local disk: network file systems may not lock. One connection per object, for all
threads; a fork opens its own.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from dpfda.errors import LedgerError
from dpfda.privacy.ledger.place import NEW, check_folder, check_place
from dpfda.privacy.ledger.rows import ROW_FIELDS, RUN_FIELDS, WHOLE, Release, Row, RunRecord


def _columns(names: tuple[str, ...]) -> str:
    return ", ".join(f"{name} {'INTEGER' if name in WHOLE else 'TEXT'} NOT NULL" for name in names)


_SCHEMA = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    f"CREATE TABLE runs ({_columns(RUN_FIELDS)}, PRIMARY KEY (run))",
    f"CREATE TABLE parts ({_columns(('run', 'part', 'spent'))}, PRIMARY KEY (run, part))",
    f"CREATE TABLE debits ({_columns(ROW_FIELDS)}, PRIMARY KEY (seq), UNIQUE (run, round, attempt), UNIQUE (run, position))",
    "CREATE TABLE releases (run TEXT NOT NULL, round INTEGER NOT NULL, payload BLOB NOT NULL, "
    "sha256 TEXT NOT NULL, PRIMARY KEY (run, round))",
)
_ROW, _RUN = ", ".join(ROW_FIELDS), ", ".join(RUN_FIELDS)

_ADVICE = {
    "locked": "is in use by another process; wait for it to finish and try again",
    "readonly": "is read-only; make the file and its folder writable for this user",
    "unable to open": "cannot be opened; make the file and its folder writable for this user",
    "is full": "could not be written because the disk is full; free some space",
    "disk I/O": "could not be read or written (disk I/O error); check space, quota and disk, and try again",
    "no such": "has no tables of this version of dpfda; use `dpfda budget migrate` if it is of version 0.1, else "
    "`dpfda budget restore`",
}
_INHERITED: list[sqlite3.Connection] = []  # connections of a parent process: never used, never closed


class SqliteTransaction:
    """What the ledger may ask of its storage, on a connection to SQLite."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._ask = connection.execute

    def create(self) -> None:
        """Make the empty tables."""
        for statement in _SCHEMA:
            self._ask(statement)

    def meta(self) -> dict[str, str]:
        """The fixed facts of the ledger and its running totals."""
        return dict(self._ask("SELECT name, value FROM meta"))

    def set_meta(self, name: str, value: str) -> None:
        """Write one fact."""
        self._ask("INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)", (name, value))

    def run(self, run: str) -> RunRecord | None:
        """The facts of one run."""
        found = self._ask(f"SELECT {_RUN} FROM runs WHERE run = ?", (run,)).fetchone()
        return None if found is None else RunRecord(*found)

    def runs(self) -> list[RunRecord]:
        """The facts of all runs."""
        return [RunRecord(*fields) for fields in self._ask(f"SELECT {_RUN} FROM runs")]

    def set_run(self, record: RunRecord) -> None:
        """Write the facts of one run."""
        values = tuple(vars(record).values())
        self._ask(f"INSERT OR REPLACE INTO runs ({_RUN}) VALUES ({_marks(values)})", values)

    def part(self, run: str, part: int) -> str:
        """What a part of a run has cost."""
        return str(self._value("SELECT spent FROM parts WHERE run = ? AND part = ?", run, part) or "0")

    def parts(self) -> list[tuple[str, int, str]]:
        """What all parts have cost."""
        return list(self._ask("SELECT run, part, spent FROM parts"))

    def set_part(self, run: str, part: int, spent: str) -> None:
        """Write what a part has cost."""
        self._ask("INSERT OR REPLACE INTO parts (run, part, spent) VALUES (?, ?, ?)", (run, part, spent))

    def last_hash(self) -> str | None:
        """The hash of the last debit."""
        return self._value("SELECT hash FROM debits ORDER BY seq DESC LIMIT 1")

    def hash_at(self, seq: int) -> str | None:
        """The hash of one debit."""
        return self._value("SELECT hash FROM debits WHERE seq = ?", seq)

    def before(self, run: str, position: int) -> str | None:
        """The run's head before one of its answers; a debit without an answer has none."""
        return self._value("SELECT before FROM debits WHERE run = ? AND position = ? AND sha256 <> ''", run, position)

    def asked(self, run: str, round: int) -> tuple[str, str] | None:
        """The question that a round was asked, and the hash of its answer."""
        query = "SELECT digest, sha256 FROM debits WHERE run = ? AND round = ? ORDER BY attempt DESC LIMIT 1"
        found = self._ask(query, (run, round)).fetchone()
        return None if found is None else (found[0], found[1])

    def debits(self, run: str | None = None) -> list[Row]:
        """All debits, or those of one run, in the order of writing."""
        some = ("", ()) if run is None else (" WHERE run = ?", (run,))
        return [Row(*fields) for fields in self._ask(f"SELECT {_ROW} FROM debits{some[0]} ORDER BY seq", some[1])]

    def insert(self, row: Row) -> None:
        """Append one debit."""
        values = tuple(vars(row).values())
        self._ask(f"INSERT INTO debits ({_ROW}) VALUES ({_marks(values)})", values)

    def release(self, run: str, round: int) -> tuple[bytes, str] | None:
        """The stored release of one round and its hash."""
        query = "SELECT payload, sha256 FROM releases WHERE run = ? AND round = ?"
        found = self._ask(query, (run, round)).fetchone()
        return None if found is None else (found[0], found[1])

    def releases(self, run: str | None = None) -> list[Release]:
        """All stored releases, or those of one run."""
        some = ("", ()) if run is None else (" WHERE run = ?", (run,))
        return list(self._ask(f"SELECT run, round, payload, sha256 FROM releases{some[0]}", some[1]))

    def insert_release(self, run: str, round: int, payload: bytes, sha256: str) -> None:
        """Keep the release of one round."""
        query = "INSERT INTO releases (run, round, payload, sha256) VALUES (?, ?, ?, ?)"
        self._ask(query, (run, round, payload, sha256))

    def _value(self, query: str, *values: str | int) -> str | None:
        found = self._ask(query, values).fetchone()
        return None if found is None else found[0]


class SqliteStore:
    """One file and one connection to it; safe for threads, processes and forks."""

    def __init__(self, path: str | os.PathLike[str], *, timeout: float = 30.0) -> None:
        self.path = Path(path).absolute()
        self._timeout = timeout
        self._process, self._lock = os.getpid(), threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._wal = False  # a file that was made so; without, every write is synced

    @contextmanager
    def creating(self) -> Iterator[SqliteTransaction]:
        """Make the file, readable by its owner only, under another name; it gets its own when it is whole."""
        if os.path.lexists(self.path):
            raise LedgerError(f"{self.path} exists already; open it, or choose another path.")
        unfinished = self.path.with_name(f".{self.path.name}{NEW}{secrets.token_hex(4)}")
        try:
            check_folder(self.path.parent)
            os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            other = SqliteStore(unfinished)
            with closing(sqlite3.connect(unfinished)) as connection:
                connection.execute("PRAGMA journal_mode = WAL")  # the file remembers it
            with other.transaction(write=True) as transaction:
                transaction.create()
                yield transaction
            other.close()
            os.link(unfinished, self.path)  # fails if another process was quicker
        except FileExistsError:
            raise LedgerError(f"{self.path} exists already; open it, or choose another path.") from None
        except OSError as error:
            raise LedgerError(f"The ledger {self.path} cannot be created: {error.strerror}.") from None
        finally:
            with suppress(OSError):
                os.unlink(unfinished)
        sync_folder(self.path.parent)

    @contextmanager
    def transaction(self, *, write: bool, count_only: bool = False) -> Iterator[SqliteTransaction]:
        """All or nothing: committed durably on leaving, rolled back on any error, serialised when writing."""
        self._renew_in_fork()
        if not self._lock.acquire(timeout=self._timeout):
            raise LedgerError(
                f"The ledger {self.path} is in use by another thread; wait for it to finish and try again."
            )
        try:
            connection = self._connected()
            with _begun(connection, write, count_only and self._wal) as transaction:
                yield transaction
        except (sqlite3.Error, UnicodeDecodeError) as error:  # SQLite may quote damaged bytes
            raise LedgerError(self._explain(error)) from error
        finally:
            self._lock.release()

    def __del__(self) -> None:
        with suppress(Exception):
            self.close()  # a connection refers to itself, so that it would wait for the garbage collector

    def close(self) -> None:
        """Let go of the file; everything is in it then. The next transaction opens it again."""
        connection, self._connection = self._connection, None
        if connection is not None and self._process == os.getpid():
            connection.close()
        elif connection is not None:
            _INHERITED.append(connection)

    def _renew_in_fork(self) -> None:
        """A connection must not be used, or closed, by a fork: the fork begins with its own."""
        if self._process != os.getpid():
            self.close()
            self._process, self._lock = os.getpid(), threading.Lock()

    def _connected(self) -> sqlite3.Connection:
        """The connection to the file that is at the path now, if nobody else can touch it."""
        file = check_place(self.path)
        if self._connection is not None and file != self._file:
            self.close()
        if self._connection is None:
            check_folder(self.path.parent)
            self._connection, self._file = self._connect(), file
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        """A connection that never creates a file."""
        address = f"{self.path.as_uri()}?mode=rw"
        connection = sqlite3.connect(
            address, uri=True, timeout=self._timeout, isolation_level=None, check_same_thread=False
        )
        try:
            self._wal = connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
            connection.execute("PRAGMA trusted_schema = OFF")
        except BaseException:
            connection.close()
            raise
        return connection

    def _explain(self, error: sqlite3.Error | UnicodeDecodeError) -> str:
        """One sentence for the operator: what is wrong and what to do."""
        for word, sentence in _ADVICE.items():
            if word in str(error):
                return f"The ledger {self.path} {sentence}."
        return (
            f"The ledger {self.path} is damaged or not a ledger ({error}); stop releasing and keep the file: "
            "an older copy would forget what was spent since, so use `dpfda budget restore`."
        )


@contextmanager
def _begun(connection: sqlite3.Connection, write: bool, count_only: bool) -> Iterator[SqliteTransaction]:
    """BEGIN, the caller's work, COMMIT or ROLLBACK."""
    if write:
        connection.execute(f"PRAGMA synchronous = {'NORMAL' if count_only else 'EXTRA'}")
    connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
    try:
        yield SqliteTransaction(connection)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def sync_folder(folder: Path) -> None:
    """Make names in a folder durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _marks(values: tuple[object, ...]) -> str:
    return ", ".join("?" * len(values))
