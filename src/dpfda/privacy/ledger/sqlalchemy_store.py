"""The ledger's storage on a PostgreSQL server: the same tables and the same promises as the SQLite file.

`postgresql://user@host/database?ledger=clinic` keeps the ledger in the schema `clinic` (`dpfda` if none is named), so
that one database can hold the ledgers of several data sets. Durability: every writing transaction sets
`synchronous_commit = on`, whatever the server's default is. Writers are serialised by an advisory lock that is taken before
anything is read; readers see one snapshot.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from dpfda.errors import InvalidInput, LedgerError
from dpfda.privacy.ledger.sqlite import Row

try:
    import sqlalchemy as sa
except ImportError:
    raise InvalidInput(
        "A ledger on a server needs SQLAlchemy and psycopg; install them with `pip install 'dpfda[postgres]'`."
    ) from None

DEFAULT_SCHEMA = "dpfda"
_CONNECT_SECONDS = 10
_SCHEMES = ("postgresql", "postgres", "postgresql+psycopg")
_ADVICE = {
    "3F000": "does not exist; create it with `dpfda budget init`",  # no such schema
    "42P01": "does not exist; create it with `dpfda budget init`",  # no such table
    "42P07": "exists already; open it, or name another one with ?ledger=NAME",
    "42501": "may not be used by this database user; ask for the right to read and write its schema",
    "55P03": "is in use by another process; wait for it to finish and try again",
    "25006": "is on a read-only server; use the primary server",
    "53100": "could not be written because the server's disk is full; free some space",
}


class SqlTransaction:
    """What the ledger may ask of its storage inside one transaction."""

    def __init__(self, connection: sa.Connection, tables: _Tables) -> None:
        self._connection = connection
        self._tables = tables

    def create(self) -> None:
        """Make the empty tables, in their own schema."""
        self._connection.execute(sa.schema.CreateSchema(self._tables.schema, if_not_exists=True))
        for table in self._tables.all:
            self._connection.execute(sa.schema.CreateTable(table))

    def meta(self) -> dict[str, str]:
        """The fixed facts of the ledger and the head of its chain."""
        table = self._tables.meta
        return {row.name: row.value for row in self._connection.execute(sa.select(table.c.name, table.c.value))}

    def set_meta(self, name: str, value: str) -> None:
        """Write one fact."""
        table = self._tables.meta
        self._connection.execute(sa.delete(table).where(table.c.name == name))
        self._connection.execute(sa.insert(table).values(name=name, value=value))

    def debits(self) -> list[Row]:
        """All debits in the order of writing."""
        table = self._tables.debits
        return [Row(*fields) for fields in self._connection.execute(sa.select(table).order_by(table.c.seq))]

    def insert(self, row: Row) -> None:
        """Append one debit."""
        self._connection.execute(sa.insert(self._tables.debits).values(**asdict(row)))

    def release(self, run: str, round: int) -> bytes | None:
        """The stored release of one round, checked against its hash by `Ledger`."""
        table = self._tables.releases
        wanted = sa.select(table.c.payload).where(table.c.run == run, table.c.round == round)
        found = self._connection.execute(wanted).scalar_one_or_none()
        return None if found is None else bytes(found)

    def releases(self) -> list[tuple[str, int, bytes, str]]:
        """All stored releases: run, round, payload, sha256."""
        found = self._connection.execute(sa.select(self._tables.releases))
        return [(run, number, bytes(payload), digest) for run, number, payload, digest in found]

    def insert_release(self, run: str, round: int, payload: bytes, sha256: str) -> None:
        """Keep the release of one round."""
        values = {"run": run, "round": round, "payload": payload, "sha256": sha256}
        self._connection.execute(sa.insert(self._tables.releases).values(**values))


class SqlStore:
    """One ledger on a server; a fresh connection for each transaction, safe for threads, processes and hosts."""

    def __init__(self, url: str, *, timeout: float = 30.0) -> None:
        self._timeout = timeout
        address = _parsed(url)
        schema = address.query.get("ledger", DEFAULT_SCHEMA)
        if not isinstance(schema, str) or not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", schema):
            raise InvalidInput(f"?ledger= must be lower-case letters, digits and underscores, got {schema!r}.")
        bare = address.difference_update_query(["ledger"])
        self._shown = f"{bare.render_as_string(hide_password=True)} ({schema})"
        self._tables = _Tables(schema)
        try:
            self._engine = sa.create_engine(
                bare, poolclass=sa.NullPool, connect_args={"connect_timeout": _CONNECT_SECONDS}
            )
        except ModuleNotFoundError:
            raise InvalidInput(
                "A ledger on PostgreSQL needs psycopg; install it with `pip install 'dpfda[postgres]'`."
            ) from None

    def new_file(self) -> None:
        """Nothing to prepare: `create` makes the tables, and fails if they are there."""

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[SqlTransaction]:
        """All or nothing: committed durably on leaving, rolled back on any error, serialised when writing."""
        try:
            with self._engine.begin() as connection:
                self._prepare(connection, write)
                yield SqlTransaction(connection, self._tables)
        except sa.exc.DBAPIError as error:
            raise LedgerError(self._explain(error)) from None

    def _prepare(self, connection: sa.Connection, write: bool) -> None:
        if not write:
            connection.execute(sa.text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"))
            return
        connection.execute(sa.text("SET LOCAL synchronous_commit = on"))
        connection.execute(sa.text(f"SET LOCAL lock_timeout = {int(self._timeout * 1000)}"))
        # Serialises writers of this ledger, also while it is being made; what is read afterwards is the latest.
        lock = sa.text("SELECT pg_advisory_xact_lock(hashtext(:name))")
        connection.execute(lock, {"name": f"dpfda ledger {self._tables.schema}"})

    def _explain(self, error: sa.exc.DBAPIError) -> str:
        """One sentence for the operator: what is wrong and what to do."""
        state = getattr(error.orig, "sqlstate", None)
        advice = _ADVICE.get(str(state))
        if advice is not None:
            return f"The ledger {self._shown} {advice}."
        reason = (str(error.orig).strip().splitlines() or ["no answer"])[0].rstrip(".")
        return f"The ledger {self._shown} cannot be reached ({reason}); check address, name and password."


class _Tables:
    """The three tables, as in the SQLite file."""

    def __init__(self, schema: str) -> None:
        self.schema = schema
        known = sa.MetaData(schema=schema)
        text: Any = sa.Text
        self.meta = sa.Table(
            "meta", known, sa.Column("name", text, primary_key=True), sa.Column("value", text, nullable=False)
        )
        kinds = {"seq": sa.BigInteger, "round": sa.Integer, "attempt": sa.Integer}
        columns = [
            sa.Column(name, kinds.get(name, text), primary_key=name == "seq", nullable=False, autoincrement=False)
            for name in Row.__dataclass_fields__
        ]
        self.debits = sa.Table("debits", known, *columns, sa.UniqueConstraint("run", "round", "attempt"))
        self.releases = sa.Table(
            "releases",
            known,
            sa.Column("run", text, primary_key=True),
            sa.Column("round", sa.Integer, primary_key=True, autoincrement=False),
            sa.Column("payload", sa.LargeBinary, nullable=False),
            sa.Column("sha256", text, nullable=False),
        )
        self.all = (self.meta, self.debits, self.releases)


def _parsed(url: str) -> sa.URL:
    try:
        address = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError):
        raise InvalidInput("The ledger's URL cannot be read; write it as postgresql://user@host/database.") from None
    if address.drivername not in _SCHEMES:
        raise InvalidInput(f"A ledger by URL is on PostgreSQL (postgresql://...), got {address.drivername}://.")
    return address.set(drivername="postgresql+psycopg")
