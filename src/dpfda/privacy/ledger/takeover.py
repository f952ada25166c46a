"""Ledgers that take over what others hold: one of version 0.1 (`migrate`), or a copy after a loss (`restore`).

Neither ever spends less than was spent: a version 0.1 ledger is verified and comes with all its debits; a restored one is
charged what the owner's log shows beyond the copy, or everything that is left if there is no log.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dpfda.errors import InvalidInput, LedgerError
from dpfda.privacy.accounting import GaussianEvent
from dpfda.privacy.ledger import chain, totals
from dpfda.privacy.ledger.ledger import Ledger, new_store, store_at, timestamp
from dpfda.privacy.ledger.place import check_place
from dpfda.privacy.ledger.rows import RunRecord, Store, altered
from dpfda.privacy.ledger.session import MOST_LOST_IN_ALL, Session
from dpfda.privacy.ledger.sqlite import SqliteStore, sync_folder

Ask = Callable[[str], Iterable[Any]]
OLD_ENDING = ".version-0.1"
_NO_RUN = "lost-draws-0"  # `settle_lost_draws` numbers its own from 1
_OLD_COLUMNS = ("seq", "at", "actor", "silo", "run", "round", "attempt", "digest", "event", "previous", "hash")


@dataclass(frozen=True)
class Old:
    """All that a ledger of version 0.1 holds."""

    meta: dict[str, str]
    rows: list[dict[str, Any]]
    releases: dict[tuple[str, int], bytes]


def migrate(path: str | os.PathLike[str]) -> Ledger:
    """Put a ledger of this version, with the same debits, in the place of one of version 0.1, which is kept beside it.

    Interrupted at any moment it can be given again: the old file is marked before the new one takes its name. On a server
    all of it is one transaction.
    """
    if "://" in str(path):
        return _migrate_on_server(str(path))
    place = Path(path).absolute()
    new, kept = place.with_name(f"{place.name}.migrating"), place.with_name(place.name + OLD_ENDING)
    if not os.path.lexists(place) and new.exists() and kept.exists():  # interrupted between the two names
        os.rename(new, place)
        return Ledger.open(place)
    check_place(place)
    if os.path.lexists(kept):
        raise LedgerError(f"{kept} exists already; it was kept by an earlier migration: move it away, then try again.")
    with closing(sqlite3.connect(f"{place.as_uri()}?mode=rw", uri=True, isolation_level=None)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
            mark = dict(connection.execute("SELECT name, value FROM meta")).get("version", "")
            if mark == "1":
                old = _read_old(connection.execute)
                with suppress(FileNotFoundError):
                    new.unlink()  # of an interrupted migration, never used
                _write(SqliteStore(new), old)
                connection.execute("UPDATE meta SET value = '1 taken over' WHERE name = 'version'")
            elif mark != "1 taken over" or not new.exists():
                raise InvalidInput(f"{place} is not a ledger of version 0.1; open it as it is.")
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise LedgerError(f"The ledger {place} cannot be taken over ({error}); nothing was changed.") from None
    os.rename(place, kept)
    os.rename(new, place)
    sync_folder(place.parent)
    return Ledger.open(place)


def restore(
    path: str | os.PathLike[str],
    *,
    copy: str | os.PathLike[str] | None = None,
    spent: float | None = None,
    total: tuple[float, float] | None = None,
    note: str = "",
) -> Ledger:
    """A new ledger at a place where there is none, for one that was lost; it never forgets what was spent.

    Parameters
    ----------
    copy : path, optional
        An older copy: its debits and answers are taken over, and its runs end. Without one, `total` is the (epsilon,
        delta) that was set.
    spent : float, optional
        The mu^2 that the owner's log shows as spent by the lost ledger; what the copy lacks of it is charged. None:
        unknown, so that all that is left is charged.
    """
    source = None if copy is None else Ledger.open(copy)
    if source is None and total is None:
        raise InvalidInput("Without a copy, state the total that was set: --epsilon and --delta.")
    epsilon, delta = total if source is None and total is not None else (source.epsilon, source.delta)  # type: ignore[union-attr]

    def fill(session: Session) -> None:
        if source is not None:
            _copy(source, session)
        known = totals.rounded(totals.read(session.state.spent))
        missing = (session.budget.mu_squared if spent is None else spent) - known
        if missing > 0:
            label = "unknown: all that was left" if spent is None else "shown by the log, not by the copy"
            record = session.record(f"restored-{session.state.debits + 1}")  # a copy may be of a restored one
            event = GaussianEvent(missing**0.5, label=label)
            after = session.debit(
                record, 0, event, sha256="", at=timestamp(), actor="", silo="", digest="restored:restored"
            )
            session.transaction.set_run(replace(after, finished=timestamp()))

    return Ledger(new_store(store_at(path), epsilon, delta, note or "restored after a loss", fill))


def _copy(source: Ledger, session: Session) -> None:
    """Debits, answers and facts of runs, under the identity of the new ledger; runs end, since what followed is lost."""
    with source.session() as old:
        rows, releases, runs = old.transaction.debits(), old.transaction.releases(), old.transaction.runs()
    records: dict[str, RunRecord] = {}
    for row in rows:
        record = records.get(row.run) or session.record(row.run)
        records[row.run] = session.debit(
            record, row.round, chain.event_of(row.event), sha256=row.sha256, at=row.at, actor=row.actor, silo=row.silo,
            digest=row.digest, attempt=row.attempt,
        )  # fmt: skip
    for run, round, payload, seal in releases:
        session.transaction.insert_release(run, round, payload, seal)
    for known in runs:
        record = session.end(records.get(known.run) or session.record(known.run), timestamp())
        lasting = {name: getattr(known, name) for name in ("lost", "lost_price", "finished", "data")}
        session.transaction.set_run(replace(record, **lasting))
    session.state = replace(session.state, lost=sum(run.lost for run in runs))
    session.meta["key"] = old.meta["key"]


def _migrate_on_server(url: str) -> Ledger:
    """What is read is verified first, and must still be the same when the tables change their names."""
    from dpfda.privacy.ledger.successor import SuccessorStore

    def read(ask: Ask) -> Old:
        if dict(ask("SELECT name, value FROM meta")).get("version") != "1":
            raise InvalidInput("The ledger at this address is not of version 0.1; open it as it is.")
        return _read_old(ask)

    store = SuccessorStore(url, read)
    _write(store, store.read())
    return Ledger.open(url)


def _read_old(ask: Ask) -> Old:
    """Everything of a ledger of version 0.1, its chain and its releases verified."""
    meta = dict(ask("SELECT name, value FROM meta"))
    found = ask(f"SELECT {', '.join(_OLD_COLUMNS)} FROM debits ORDER BY seq")
    rows = [dict(zip(_OLD_COLUMNS, fields, strict=True)) for fields in found]
    head = chain.content_hash({name: meta.get(name) for name in ("version", "epsilon", "delta", "created", "note")})
    for position, row in enumerate(rows, start=1):
        sealed = {name: value for name, value in row.items() if name != "hash"}
        if row["hash"] != chain.content_hash(sealed) or row["previous"] != head or row["seq"] != position:
            raise LedgerError(altered(f"row {position} does not follow from the rows before it"))
        head = row["hash"]
    if meta.get("head") != head:
        raise LedgerError(altered("rows are missing at its end"))
    releases = {}
    for run, round, payload, seal in ask("SELECT run, round, payload, sha256 FROM releases"):
        if not isinstance(payload, bytes) or hashlib.sha256(payload).hexdigest() != seal:
            raise LedgerError(altered(f"the stored release of round {round} of run {run!r} has changed"))
        releases[run, round] = payload
    return Old(meta, rows, releases)


def _write(store: Store, old: Old) -> None:
    """A ledger of this version with the debits, answers, notes and counts of an old one."""
    last = {(row["run"], row["round"]): row["seq"] for row in old.rows}

    def fill(session: Session) -> None:
        records: dict[str, RunRecord] = {}
        for row in old.rows:
            key = row["run"], row["round"]
            payload = old.releases.get(key) if last[key] == row["seq"] else None
            record = records.get(row["run"]) or session.record(row["run"])
            records[row["run"]] = session.debit(
                record, row["round"], chain.event_of(row["event"]), sha256=chain.sha256(payload) if payload else "",
                at=row["at"], actor=row["actor"], silo=row["silo"], digest=row["digest"], attempt=row["attempt"],
            )  # fmt: skip
            if payload is not None:
                session.transaction.insert_release(*key, payload, chain.sha256(payload))
        _keep_notes(session, old, records)

    note = json.dumps({"taken over from version 0.1, created": old.meta["created"], "note": old.meta["note"]})
    new_store(store, float(old.meta["epsilon"]), float(old.meta["delta"]), note, fill)
    store.close()


def _keep_notes(session: Session, old: Old, records: dict[str, RunRecord]) -> None:
    """Finished runs and lost draws, each with a price that `settle_lost_draws` charges."""
    least, lost = _price_lost_draw(session, old), 0
    for name, value in old.meta.items():
        for start, field in (("finished:", "finished"), ("lost draws of ", "lost")):
            run = name.removeprefix(start)
            if name.startswith(start) and run:
                record = records.get(run) or session.record(run)
                changed: dict[str, Any] = {field: value if field == "finished" else int(value)}
                if field == "lost":
                    lost += int(value)
                    changed["lost_price"] = totals.text(int(value) * max(least, chain.price(record)))
                records[run] = replace(record, **changed)
    beyond = int(old.meta.get("lost draws", "0")) - lost
    if beyond > 0:  # counted for no run
        records[_NO_RUN] = replace(session.record(_NO_RUN), lost=beyond, lost_price=totals.text(beyond * least))
    session.state = replace(session.state, lost=lost + max(0, beyond))
    for record in records.values():
        session.transaction.set_run(record)


def _price_lost_draw(session: Session, old: Old) -> int:
    """What a lost draw costs at least: version 0.1 counted them without their prices, so this is stated, not a bound.

    The dearest debit of the ledger, and never less than the share at which all draws that a ledger may lose cost half of
    the total.
    """
    share = totals.exact(session.budget.mu_squared / (2 * MOST_LOST_IN_ALL))
    return max([share, *(totals.cost(chain.event_of(row["event"])) for row in old.rows)])
