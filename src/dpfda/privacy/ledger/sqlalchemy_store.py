"""The ledger's storage on a PostgreSQL server: the same tables and the same promises as the SQLite file.

`postgresql://user@host/database?ledger=clinic` keeps the ledger in the schema `clinic` (`dpfda` if none is named), so
that one database can hold the ledgers of several data sets. Durability: every writing transaction sets
`synchronous_commit = on`, whatever the server's default is. Writers are serialised by an advisory lock that is taken before
anything is read, at READ COMMITTED whatever the server's default is: at a higher level the statement that waits for the
lock would fix what is seen after it. Readers see one snapshot.
"""

from __future__ import annotations

import os
import re
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from dpfda import _validate
from dpfda.errors import InvalidInput, LedgerError
from dpfda.privacy.ledger.rows import ROW_FIELDS, RUN_FIELDS, WHOLE, Release, Row, RunRecord

try:
    import sqlalchemy as sa
    from sqlalchemy.dialects.postgresql import insert as upsert
except ImportError:
    raise InvalidInput(
        "A ledger on a server needs SQLAlchemy and psycopg; install them with `pip install 'dpfda[postgres]'`."
    ) from None

DEFAULT_SCHEMA = "dpfda"
_CONNECT_SECONDS = 10
_SCHEMES = ("postgresql", "postgres", "postgresql+psycopg")
_WRITING: dict[str, Any] = {"isolation_level": "READ COMMITTED", "postgresql_readonly": False}
_READING: dict[str, Any] = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
MEANWHILE = "was written by another process at the same moment; try again"
_NONE = (
    "does not exist, and opening never makes one: correct the address, create it once with `dpfda budget init`, or, if \
there was one, use `dpfda budget restore`"
)
_ADVICE = {
    "3F000": _NONE,  # no such schema
    "42P01": _NONE,  # no such table
    "42703": "is not of this version of dpfda; take one of version 0.1 over with `dpfda budget migrate`",
    "23505": MEANWHILE,
    "40001": MEANWHILE,
    "42P07": "exists already; open it, or name another one with ?ledger=NAME",
    "42501": "may not be used by this database user; ask for the right to read and write its schema",
    "55P03": "is in use by another process; wait for it to finish and try again",
    "25006": "is on a read-only server; use the primary server",
    "53100": "could not be written because the server's disk is full; free some space",
}


class SqlTransaction:
    """What the ledger may ask of its storage inside one transaction."""

    def __init__(self, connection: sa.Connection, tables: _Tables) -> None:
        self._ask, self._tables = connection.execute, tables

    def ask_within(self, statement: str) -> list[tuple[Any, ...]]:
        """A statement of our own about tables of this ledger's schema, whatever their version is."""
        self._ask(sa.text("SELECT set_config('search_path', :schema, true)"), {"schema": self._tables.schema})
        found = self._ask(sa.text(statement))
        return [tuple(row) for row in found] if found.returns_rows else []

    def create(self) -> None:
        """Make the empty tables, in their own schema."""
        self._ask(sa.schema.CreateSchema(self._tables.schema, if_not_exists=True))
        for table in self._tables.all:
            self._ask(sa.schema.CreateTable(table))

    def meta(self) -> dict[str, str]:
        """The fixed facts of the ledger and its running totals."""
        table = self._tables.meta
        return {row.name: row.value for row in self._ask(sa.select(table.c.name, table.c.value))}

    def set_meta(self, name: str, value: str) -> None:
        """Write one fact."""
        self._put(self._tables.meta, name=name, value=value)

    def run(self, run: str) -> RunRecord | None:
        """The facts of one run."""
        table = self._tables.runs
        found = self._ask(sa.select(table).where(table.c.run == run)).one_or_none()
        return None if found is None else RunRecord(*found)

    def runs(self) -> list[RunRecord]:
        """The facts of all runs."""
        return [RunRecord(*fields) for fields in self._ask(sa.select(self._tables.runs))]

    def set_run(self, record: RunRecord) -> None:
        """Write the facts of one run."""
        self._put(self._tables.runs, **asdict(record))

    def part(self, run: str, part: int) -> str:
        """What a part of a run has cost."""
        table = self._tables.parts
        return self._value(sa.select(table.c.spent).where(table.c.run == run, table.c.part == part)) or "0"

    def parts(self) -> list[tuple[str, int, str]]:
        """What all parts have cost."""
        return [(run, part, spent) for run, part, spent in self._ask(sa.select(self._tables.parts))]

    def set_part(self, run: str, part: int, spent: str) -> None:
        """Write what a part has cost."""
        self._put(self._tables.parts, run=run, part=part, spent=spent)

    def last_hash(self) -> str | None:
        """The hash of the last debit."""
        table = self._tables.debits
        return self._value(sa.select(table.c.hash).order_by(table.c.seq.desc()).limit(1))

    def hash_at(self, seq: int) -> str | None:
        """The hash of one debit."""
        table = self._tables.debits
        return self._value(sa.select(table.c.hash).where(table.c.seq == seq))

    def before(self, run: str, position: int) -> str | None:
        """The run's head before one of its answers; a debit without an answer has none."""
        table = self._tables.debits
        answered = (table.c.run == run, table.c.position == position, table.c.sha256 != "")
        return self._value(sa.select(table.c.before).where(*answered))

    def asked(self, run: str, round: int) -> tuple[str, str] | None:
        """The question that a round was asked, and the hash of its answer."""
        table = self._tables.debits
        wanted = sa.select(table.c.digest, table.c.sha256).where(table.c.run == run, table.c.round == round)
        found = self._ask(wanted.order_by(table.c.attempt.desc()).limit(1)).one_or_none()
        return None if found is None else (found.digest, found.sha256)

    def debits(self, run: str | None = None) -> list[Row]:
        """All debits, or those of one run, in the order of writing."""
        table = self._tables.debits
        some = sa.true() if run is None else table.c.run == run
        return [Row(*fields) for fields in self._ask(sa.select(table).where(some).order_by(table.c.seq))]

    def insert(self, row: Row) -> None:
        """Append one debit."""
        self._ask(sa.insert(self._tables.debits).values(**asdict(row)))

    def release(self, run: str, round: int) -> tuple[bytes, str] | None:
        """The stored release of one round and its hash."""
        table = self._tables.releases
        wanted = sa.select(table.c.payload, table.c.sha256).where(table.c.run == run, table.c.round == round)
        found = self._ask(wanted).one_or_none()
        return None if found is None else (bytes(found.payload), found.sha256)

    def releases(self, run: str | None = None) -> list[Release]:
        """All stored releases, or those of one run."""
        table = self._tables.releases
        some = sa.true() if run is None else table.c.run == run
        found = self._ask(sa.select(table).where(some))
        return [(run, number, bytes(payload), digest) for run, number, payload, digest in found]

    def insert_release(self, run: str, round: int, payload: bytes, sha256: str) -> None:
        """Keep the release of one round."""
        self._ask(sa.insert(self._tables.releases).values(run=run, round=round, payload=payload, sha256=sha256))

    def _value(self, query: Any) -> str | None:
        found: str | None = self._ask(query).scalar_one_or_none()
        return found

    def _put(self, table: sa.Table, **values: str | int) -> None:
        keys = [column.name for column in table.primary_key]
        others = {name: value for name, value in values.items() if name not in keys}
        self._ask(upsert(table).values(**values).on_conflict_do_update(index_elements=keys, set_=others))


class SqlStore:
    """One ledger on a server and one connection to it; safe for threads, processes and hosts."""

    def __init__(self, url: str, *, timeout: float = 30.0) -> None:
        self._timeout = timeout
        address = _parsed(url)
        schema = address.query.get("ledger", DEFAULT_SCHEMA)
        if not isinstance(schema, str) or not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", schema):
            raise InvalidInput(f"?ledger= must be lower-case letters, digits and underscores, got {schema!r}.")
        bare = address.difference_update_query(["ledger"])
        self.shown = f"{bare.render_as_string(hide_password=True)} ({schema})"
        self._tables = _Tables(schema)
        try:
            self._engine = sa.create_engine(
                bare, poolclass=sa.QueuePool, pool_size=1, max_overflow=0, pool_timeout=timeout, pool_pre_ping=True,
                connect_args={"connect_timeout": _CONNECT_SECONDS},
            )  # fmt: skip
        except ModuleNotFoundError:
            raise InvalidInput(
                "A ledger on PostgreSQL needs psycopg; install it with `pip install 'dpfda[postgres]'`."
            ) from None
        self._process = os.getpid()
        weakref.finalize(self, _dispose, self._engine, self._process)

    @contextmanager
    def creating(self) -> Iterator[SqlTransaction]:
        """Make the tables, which fails if they are there; a transaction, so whole or not at all."""
        with self.transaction(write=True) as transaction:
            transaction.create()
            yield transaction

    @contextmanager
    def transaction(self, *, write: bool, count_only: bool = False) -> Iterator[SqlTransaction]:
        """All or nothing: committed durably on leaving, rolled back on any error, serialised when writing."""
        if self._process != os.getpid():  # a fork leaves its parent's connection alone
            self._engine.dispose(close=False)
            self._process = os.getpid()
        try:
            with self._engine.connect() as raw:
                connection = raw.execution_options(**(_WRITING if write else _READING))
                with connection.begin():
                    if write:
                        self._lock(connection)
                    yield SqlTransaction(connection, self._tables)
        except sa.exc.TimeoutError:
            raise LedgerError(f"The ledger {self.shown} {_ADVICE['55P03']}.") from None
        except sa.exc.DBAPIError as error:
            raise LedgerError(self._explain(error)) from None

    def _lock(self, connection: sa.Connection) -> None:
        """Serialise writers of this ledger, also while it is being made; what is read afterwards is the latest."""
        setting = sa.text(
            "SELECT set_config('synchronous_commit', 'on', true), set_config('lock_timeout', :wait, true)"
        )
        connection.execute(setting, {"wait": str(int(self._timeout * 1000))})
        lock = sa.text("SELECT pg_advisory_xact_lock(hashtext(:name))")
        connection.execute(lock, {"name": f"dpfda ledger {self._tables.schema}"})

    def close(self) -> None:
        """Let go of the connection; the next transaction makes another."""
        _dispose(self._engine, self._process)

    def _explain(self, error: sa.exc.DBAPIError) -> str:
        """One sentence for the operator: what is wrong and what to do."""
        state = getattr(error.orig, "sqlstate", None)
        advice = _ADVICE.get(str(state))
        if advice is not None:
            return f"The ledger {self.shown} {advice}."
        reason = (str(error.orig).strip().splitlines() or ["no answer"])[0].rstrip(".")
        return f"The ledger {self.shown} cannot be reached ({reason}); check address, name and password."


def _dispose(engine: sa.Engine, process: int) -> None:
    """Close the connection, if it is this process's own."""
    engine.dispose(close=process == os.getpid())


class _Tables:
    """The tables, as in the SQLite file."""

    def __init__(self, schema: str) -> None:
        self.schema = schema
        known = sa.MetaData(schema=schema)
        text: Any = sa.Text
        self.meta = sa.Table(
            "meta", known, sa.Column("name", text, primary_key=True), sa.Column("value", text, nullable=False)
        )
        self.runs = sa.Table("runs", known, *_columns(RUN_FIELDS, "run"))
        self.parts = sa.Table("parts", known, *_columns(("run", "part", "spent"), "run", "part"))
        self.debits = sa.Table(
            "debits", known, *_columns(ROW_FIELDS, "seq"),
            sa.UniqueConstraint("run", "round", "attempt"), sa.UniqueConstraint("run", "position"),
        )  # fmt: skip
        self.releases = sa.Table(
            "releases",
            known,
            sa.Column("run", text, primary_key=True),
            sa.Column("round", sa.Integer, primary_key=True, autoincrement=False),
            sa.Column("payload", sa.LargeBinary, nullable=False),
            sa.Column("sha256", text, nullable=False),
        )
        self.all = (self.meta, self.runs, self.parts, self.debits, self.releases)


def _columns(names: tuple[str, ...], *keys: str) -> list[sa.Column[Any]]:
    return [
        sa.Column(
            name,
            sa.BigInteger if name in WHOLE else sa.Text,
            primary_key=name in keys,
            nullable=False,
            autoincrement=False,
        )
        for name in names
    ]


def _parsed(url: str) -> sa.URL:
    _validate.url_without_password_option("ledger", url)
    try:
        address = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError):
        raise InvalidInput("The ledger's URL cannot be read; write it as postgresql://user@host/database.") from None
    if address.drivername not in _SCHEMES:
        raise InvalidInput(f"A ledger by URL is on PostgreSQL (postgresql://...), got {address.drivername}://.")
    return address.set(drivername="postgresql+psycopg")
