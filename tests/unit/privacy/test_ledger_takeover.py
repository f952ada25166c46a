"""Ledgers that were lost or are of version 0.1: what takes their place never forgets what was spent."""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from dpfda.errors import InvalidInput, LedgerError
from dpfda.privacy.ledger.ledger import Ledger
from dpfda.privacy.ledger.takeover import migrate, restore

OLD = Path(__file__).parents[2] / "corpus" / "ledgers" / "version-0.1.ledger"
TEXTS = ("at", "actor", "silo", "run", "digest", "event", "previous", "hash")


def test_a_ledger_of_version_0_1_is_taken_over_with_its_debits(tmp_path) -> None:
    place = tmp_path / "visits.ledger"
    shutil.copy(OLD, place)
    place.chmod(0o600)
    with pytest.raises(LedgerError, match="migrate"):
        Ledger.open(place)
    taken = migrate(place)
    assert taken.spent().debits > 0
    assert taken.spent().mu_squared > 0
    taken.verify()


@pytest.fixture
def old_on_a_server(postgres_url) -> Iterator[str]:
    """The ledger of version 0.1 in the tables that version 0.1 makes on a server."""
    import psycopg

    schema = f"old_{time.monotonic_ns()}"
    with closing(sqlite3.connect(OLD)) as file, psycopg.connect(postgres_url) as server:
        server.execute(f"CREATE SCHEMA {schema}")
        server.execute(f"SET search_path TO {schema}")
        server.execute("CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
        texts = ", ".join(f"{name} TEXT NOT NULL" for name in TEXTS)
        numbers = "seq BIGINT PRIMARY KEY, round INTEGER NOT NULL, attempt INTEGER NOT NULL"
        server.execute(f"CREATE TABLE debits ({numbers}, {texts}, UNIQUE (run, round, attempt))")
        server.execute(
            "CREATE TABLE releases (run TEXT, round INTEGER, payload BYTEA NOT NULL, sha256 TEXT NOT NULL, "
            "PRIMARY KEY (run, round))"
        )
        for table in ("meta", "debits", "releases"):
            rows = file.execute(f"SELECT * FROM {table}")
            names = ", ".join(column[0] for column in rows.description)
            for row in rows:
                server.execute(f"INSERT INTO {table} ({names}) VALUES ({', '.join(['%s'] * len(row))})", row)
    yield f"{postgres_url}?ledger={schema}"
    with psycopg.connect(postgres_url) as server:
        server.execute(f"DROP SCHEMA {schema} CASCADE")


def tables_of(url: str) -> dict[str, list[tuple]]:
    import psycopg

    address, _, schema = url.partition("?ledger=")
    with psycopg.connect(address) as server:
        names = server.execute("SELECT table_name FROM information_schema.tables WHERE table_schema = %s", (schema,))
        return {name: server.execute(f"SELECT * FROM {schema}.{name}").fetchall() for (name,) in names.fetchall()}


def test_a_ledger_of_version_0_1_on_a_server_is_taken_over_with_its_debits(old_on_a_server, tmp_path) -> None:
    from dpfda.privacy.ledger.successor import OLD_TABLES

    before = tables_of(old_on_a_server)
    with pytest.raises(LedgerError, match="migrate"):
        Ledger.open(old_on_a_server)
    assert tables_of(old_on_a_server) == before, "a refusal changes nothing"
    taken = migrate(old_on_a_server)
    taken.verify()
    place = Path(shutil.copy(OLD, tmp_path / "visits.ledger"))
    place.chmod(0o600)
    same = migrate(place)
    assert taken.spent() == same.spent()
    assert taken.finished() == same.finished()
    assert taken.lost_draws("other") == same.lost_draws("other") == 1
    assert taken.stored("study", 2, "silo:plan:q2") == b"answer"
    assert [(entry.run, entry.round, entry.mu) for entry in taken.log()] == [
        (entry.run, entry.round, entry.mu) for entry in same.log()
    ]
    after = tables_of(old_on_a_server)
    assert after[f"debits{OLD_TABLES}"] == before["debits"]
    assert after[f"releases{OLD_TABLES}"] == before["releases"]
    assert ("version", "1 taken over") in after[f"meta{OLD_TABLES}"]
    with pytest.raises(InvalidInput, match=r"not of version 0\.1"):
        migrate(old_on_a_server)
    assert Ledger.open(old_on_a_server).spent() == taken.spent()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE debits SET event = replace(event, '1', '0')",
        "DELETE FROM debits WHERE seq = 3",
        "UPDATE releases SET payload = 'other'",
        "UPDATE meta SET value = '9' WHERE name = 'epsilon'",
    ],
)
def test_an_altered_ledger_of_version_0_1_on_a_server_is_not_taken_over(old_on_a_server, change) -> None:
    import psycopg

    address, _, schema = old_on_a_server.partition("?ledger=")
    with psycopg.connect(address) as server:
        server.execute(f"SET search_path TO {schema}")
        assert server.execute(change).rowcount > 0
    before = tables_of(old_on_a_server)
    with pytest.raises(LedgerError, match="altered"):
        migrate(old_on_a_server)
    assert tables_of(old_on_a_server) == before


def test_a_debit_between_reading_and_renaming_is_not_lost(old_on_a_server, monkeypatch) -> None:
    """A writer of version 0.1 who comes first makes the takeover stop, and nothing is changed by it."""
    import psycopg

    from dpfda.privacy.ledger import takeover

    address, _, schema = old_on_a_server.partition("?ledger=")
    write = takeover._write

    def after_another(store, old) -> None:
        with psycopg.connect(address) as server:
            server.execute(f"INSERT INTO {schema}.meta VALUES ('finished:other', 'now')")
        write(store, old)

    monkeypatch.setattr(takeover, "_write", after_another)
    with pytest.raises(LedgerError, match="at the same moment"):
        migrate(old_on_a_server)
    monkeypatch.undo()
    assert migrate(old_on_a_server).finished() == {"study", "other"}


def test_where_there_is_none_on_a_server_nothing_is_made(postgres_url) -> None:
    with pytest.raises(LedgerError, match="does not exist"):
        migrate(f"{postgres_url}?ledger=nowhere")
    assert tables_of(f"{postgres_url}?ledger=nowhere") == {}


def test_a_lost_ledger_without_a_copy_is_charged_with_everything(tmp_path) -> None:
    place = tmp_path / "visits.ledger"
    ledger = restore(place, total=(1.0, 1e-5))
    assert ledger.spent().mu_squared == pytest.approx(ledger.budget_mu_squared)
    with pytest.raises((InvalidInput, LedgerError)):
        restore(place, total=(1.0, 1e-5))


def test_a_restored_ledger_is_charged_with_what_is_known_to_be_spent(tmp_path) -> None:
    ledger = restore(tmp_path / "visits.ledger", total=(1.0, 1e-5), spent=0.01)
    assert ledger.spent().mu_squared == pytest.approx(0.01)
