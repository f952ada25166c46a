"""The ledger: a durable record of what was released, which refuses what would exceed the budget.

Guarantee: an answer and its debit are written in one durable transaction that checks the budget, and an answer leaves
only as what that transaction wrote. So the releases of all runs together are (epsilon, delta)-DP with the total budget,
across processes, restarts and kills at any moment; and what is charged is what was released, once.

The answer is drawn inside its transaction, which one process at a time holds: nobody draws beside another, and who is
first does not depend on what is drawn. A draw that is lost in a crash is not charged, since nobody has seen it. Who can
time kills could prefer draws that are quick; so lost draws are counted before they are made, a run may lose
`MOST_LOST_DRAWS` and all runs together `MOST_LOST_IN_ALL`. What fails before a draw is not counted.

A ledger is made once, by `create`; nothing else makes one. It has a random identity, and each run has a head (`chain`).

| case                                         | result                                               |
|----------------------------------------------|------------------------------------------------------|
| missing, a link, readable by others          | `LedgerError` with what to do; nothing is made       |
| empty ledger                                 | nothing spent, epsilon 0                             |
| NaN in a budget or an event                  | refused before anything is written                   |
| same (run, round), same digest, on record    | the recorded release, free of charge                 |
| same (run, round), other digest              | `ProtocolError`                                      |
| a round before the run's last                | `ProtocolError`                                      |
| too many lost draws, too many rounds         | `ProtocolError`; the run, or the ledger, is closed   |
| over budget                                  | `BudgetExceeded`; nothing is written                 |
| locked, read-only, damaged, altered          | `LedgerError` with what to do                        |
| older than a head that was seen, or another  | `LedgerError` with what to do                        |
| one point, one curve                         | not seen here: the ledger knows events, never data   |
"""

from __future__ import annotations

import getpass
import os
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from dpfda import _validate
from dpfda.errors import InvalidInput, LedgerError, ProtocolError
from dpfda.privacy.accounting import Event, GaussianEvent, event_to_dict, gaussian_epsilon, mu_for
from dpfda.privacy.ledger import chain, totals
from dpfda.privacy.ledger.memory import MemoryStore
from dpfda.privacy.ledger.rows import Row, State, Store, altered
from dpfda.privacy.ledger.session import TOLERANCE, Budget, Session
from dpfda.privacy.ledger.sqlite import SqliteStore


@dataclass(frozen=True)
class Spent:
    """What a ledger has spent and may spend: mu^2, and as epsilon at the total delta."""

    mu_squared: float
    budget_mu_squared: float
    epsilon: float
    total_epsilon: float
    delta: float
    debits: int


@dataclass(frozen=True)
class Position:
    """How far a ledger is: its identity, its number of debits and the hash of the last. For its owner's log only."""

    id: str
    debits: int
    head: str


@dataclass(frozen=True)
class LogEntry:
    """One line of the ledger for a reader."""

    seq: int
    at: str
    actor: str
    silo: str
    run: str
    round: int
    attempt: int
    label: str
    mu: float
    event: dict[str, Any]
    digest: str
    hash: str


class _Counts(threading.local):
    """By run: draws that this thread has counted and not committed, and counts of draws that it never made."""

    def __init__(self) -> None:
        self.begun: dict[str, int] = {}
        self.owed: dict[str, list[Event]] = {}


class Ledger:
    """A total budget (epsilon, delta), fixed at creation, and the debits against it.

    Make one with `create` or `in_memory`, open one with `open`; a `Silo` writes to it.

    Parameters
    ----------
    store : Store
        Where rows are kept: a SQLite file, PostgreSQL, or memory.

    Attributes
    ----------
    id : str
        Random, given at creation.
    epsilon, delta : float
        The total budget.
    budget_mu_squared : float
        The same as mu^2 of Gaussian differential privacy, in which spending adds up.

    Notes
    -----
    Guarantee: all releases of all runs together are (epsilon, delta)-differentially private with the total budget, across
    processes, restarts and kills at any moment (see the module).

    References
    ----------
    docs/proofs/composition.md; Dong, Roth and Su (2022), "Gaussian differential privacy".

    Examples
    --------
    >>> from dpfda import Ledger, Silo
    >>> from dpfda.curves.simulated import simulate_mean
    >>> ledger = Ledger.create("clinic.ledger", epsilon=2, delta=1e-5, note="lipids, 2020-2024")
    >>> silo = Silo(simulate_mean(500, 6, rng=1), epsilon=1, delta=1e-5, ledger=ledger)

    A file remembers: whoever opens it sees the same spending, and `verify` checks every row of it.

    >>> again = Ledger.open("clinic.ledger")
    >>> again.verify()
    >>> again.spent().epsilon, again.spent().total_epsilon
    (0.0, 2.0)
    """

    def __init__(self, store: Store) -> None:
        if isinstance(store, str | os.PathLike):
            raise InvalidInput(
                "store must not be a path: Ledger.open(path) opens a ledger, Ledger.create(path, ...) makes one."
            )
        self._store = store
        with store.transaction(write=False) as transaction:
            meta = chain.checked_meta(transaction.meta())
            self._seen = chain.verify(transaction)
        self.id, self.epsilon, self.delta = meta["id"], float(meta["epsilon"]), float(meta["delta"])
        self.budget_mu_squared = mu_for(self.epsilon, self.delta) ** 2
        self._budget = Budget(self.epsilon, self.delta, self.budget_mu_squared)
        self._mine = _Counts()

    @classmethod
    def create(cls, path: str | os.PathLike[str], epsilon: float, delta: float, note: str = "") -> Ledger:
        """A new ledger in a new file that only its owner can read, or on PostgreSQL if `path` is a URL."""
        return cls(new_store(store_at(path), epsilon, delta, note))

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, timeout: float = 30.0) -> Ledger:
        """An existing ledger, verified first; `timeout` is how many seconds to wait for other processes."""
        return cls(store_at(path, timeout))

    @classmethod
    def in_memory(cls, epsilon: float, delta: float) -> Ledger:
        """A ledger that ends with the process: for simulations and tests."""
        return cls(new_store(MemoryStore(), epsilon, delta, "in memory"))

    def close(self) -> None:
        """Let go of the file or the server; the next call opens it again."""
        self._store.close()

    def begin(self, run: str, round: int, event: Event, digest: str) -> bytes | None:
        """Refuse what may not be answered; otherwise count a draw, durably, that is lost until it is committed.

        If the round was answered meanwhile, its answer is returned and nothing is counted.

        `digest` names the question: a round is answered for one question only. What stands before its last colon names
        the terms of the run (silo and plan), which cannot change once the run has spent, in this process or another.
        """
        run, digest, round = _text("run", run), _text("digest", digest), _validate.integer("round", round, minimum=0)
        with self.session(write=True, count_only=True) as session:
            record = session.record(run)
            kept = session.kept(record, round, digest)
            if kept is not None:
                return kept
            session.refuse(record, round, event)
            for lost in self._mine.owed.get(run, ()):
                record = session.counted(record, lost, -1)
            session.write(session.counted(record, event, 1))
        self._mine.owed.pop(run, None)
        self._mine.begun[run] = self._mine.begun.get(run, 0) + 1
        return None

    def commit(
        self,
        run: str,
        round: int,
        event: Event,
        digest: str,
        draw: Callable[[str], bytes],
        *,
        silo: str = "",
        actor: str | None = None,
    ) -> bytes:
        """Draw the answer, write it and its debit, durably in one transaction, and return what is on record.

        Only that may leave. `draw` is given the run's head before the debit. If another process answered the round
        meanwhile, its answer is returned and nothing is drawn. If this fails before the draw, the count is taken back.
        """
        run, digest, round = _text("run", run), _text("digest", digest), _validate.integer("round", round, minimum=0)
        mine, drawn = self._mine.begun.get(run, 0) > 0, False
        try:
            with self.session(write=True) as session:
                record = session.record(run)
                kept = session.kept(record, round, digest)
                if kept is None:
                    session.refuse(record, round, event)
                    drawn = True
                    kept = draw(f"{record.debits}:{record.head}")
                    seal = chain.sha256(kept)
                    record = session.debit(
                        record,
                        round,
                        event,
                        sha256=seal,
                        at=timestamp(),
                        actor=actor or _user(),
                        silo=silo,
                        digest=digest,
                    )
                    session.transaction.insert_release(run, round, kept, seal)
                session.write(session.counted(record, event, -1))
        except BaseException:
            if mine and not drawn:
                self._take_back(run, event)
            raise
        finally:
            if mine:
                self._mine.begun[run] -= 1
        return kept

    def _take_back(self, run: str, event: Event) -> None:
        """A count whose draw was never made; if the ledger cannot be written now, with the next draw."""
        try:
            with self.session(write=True, count_only=True) as session:
                session.write(session.counted(session.record(run), event, -1))
        except LedgerError:
            self._mine.owed.setdefault(run, []).append(event)

    def stored(self, run: str, round: int, digest: str) -> bytes | None:
        """The stored release of a round, or None; another question for the same round is refused."""
        with self.session() as session:
            return session.kept(session.record(run), round, digest)

    def lost_draws(self, run: str) -> int:
        """Draws of a run that were begun and not committed: by crashes, by races, or under way now."""
        with self.session() as session:
            return session.record(run).lost

    def settle_lost_draws(self) -> float:
        """Pay for all lost draws as if they had been answers, which opens what they had closed; the mu^2 that it cost."""
        with self.session(write=True) as session:
            lost = [record for record in session.transaction.runs() if record.lost]
            price = sum(totals.read(record.lost_price) for record in lost)
            if not price:
                return 0.0
            event = GaussianEvent(totals.rounded(price) ** 0.5 * (1 + 1e-15), label=f"{session.state.lost} lost draws")
            self._charge(session, "lost-draws", event)
            for record in lost:
                session.transaction.set_run(replace(record, lost=0, lost_price="0"))
            session.state = replace(session.state, lost=0)
            session.transaction.set_meta("state", session.state.encode())
        return event.mu**2

    def _charge(self, session: Session, kind: str, event: Event) -> None:
        """A debit without an answer, in a run of its own."""
        run = f"{kind}-{session.state.debits + 1}"
        record = session.record(run)
        session.refuse(record, 0, event)
        record = session.debit(
            record, 0, event, sha256="", at=timestamp(), actor=_user(), silo="", digest=f"{kind}:{kind}"
        )
        session.write(record)

    def releases(self, run: str) -> dict[int, bytes]:
        """All stored releases of a run, by round, each checked against its hash."""
        with self.session() as session:
            found = session.transaction.releases(run)
        if any(chain.sha256(payload) != seal for _, _, payload, seal in found):
            raise LedgerError(altered(f"a stored release of run {run!r} has changed"))
        return {round: bytes(payload) for _, round, payload, _ in found}

    def finish(self, run: str) -> None:
        """Note that the result of a run was handed over. A note for readers outside the chain: no price depends on it."""
        with self.session(write=True) as session:
            session.write(replace(session.record(_text("run", run)), finished=timestamp()))
        self.close()  # so that the file is whole by itself

    def finished(self) -> set[str]:
        """The runs that are noted as finished."""
        with self.session() as session:
            return {record.run for record in session.transaction.runs() if record.finished}

    def head(self, run: str) -> str:
        """The run's head as the next release will carry it: public values only."""
        with self.session() as session:
            record = session.record(run)
        return f"{record.debits}:{record.head}"

    def check_not_older(self, run: str, head: str) -> None:
        """Raise `LedgerError` unless this ledger holds the very event that a release with this head belongs to."""
        position, before = chain.parse_head(head)
        with self.session() as session:
            if session.transaction.before(run, position) != before:
                raise LedgerError(older(f"a release of run {run!r} that it does not hold"))

    def position(self) -> Position:
        """How far this ledger is, for the owner's own log: not public, since it counts all runs."""
        with self.session() as session:
            return Position(self.id, session.state.debits, session.state.head)

    def check_position(self, position: Position) -> None:
        """Raise `LedgerError` if this ledger is another one than, or is behind, what the owner's log shows."""
        with self.session() as session:
            if position.id != self.id:
                raise LedgerError(older("another ledger"))
            there = session.transaction.hash_at(position.debits) or chain.genesis(session.meta)
            if session.state.debits < position.debits or there != position.head:
                raise LedgerError(older(f"{position.debits} debits that are not those of this ledger"))

    def fingerprint_key(self) -> bytes:
        """The key of fingerprints of data: random, made with the ledger. It must not leave the silo."""
        with self.session() as session:
            return bytes.fromhex(session.meta["key"])

    def bind_data(self, run: str, fingerprint: bytes) -> None:
        """Remember the data of a run, once; `ProtocolError` if it began with others."""
        with self.session(write=True) as session:
            record = session.record(_text("run", run))
            if record.data not in ("", fingerprint.hex()):
                raise ProtocolError(f"Run {run!r} began with other data; it ends here.")
            if not record.data:
                session.write(replace(record, data=fingerprint.hex()))

    def bound_data(self, run: str) -> bytes | None:
        """The fingerprint of the data that a run began with, if any. It must not leave the silo."""
        with self.session() as session:
            data = session.record(run).data
        return bytes.fromhex(data) if data else None

    def check(self, events: Iterable[Event], run: str) -> None:
        """Raise `BudgetExceeded` if a planned run would not fit; spends nothing.

        For a run that was begun, `events` is still the whole plan: the dearer of plan and record is counted.
        """
        planned = totals.price_of(events)
        with self.session() as session:
            spent, recorded = totals.read(session.state.spent), chain.price(session.record(run))
        self._budget.refuse_excess(spent - recorded + max(planned, recorded), spent)

    def spent(self) -> Spent:
        """The total over all runs."""
        with self.session() as session:
            total, debits = totals.rounded(totals.read(session.state.spent)), session.state.debits
        epsilon = gaussian_epsilon(total**0.5, self.delta)
        return Spent(total, self.budget_mu_squared, epsilon, self.epsilon, self.delta, debits)

    def spent_by(self, run: str) -> float:
        """The mu^2 of one run."""
        with self.session() as session:
            return totals.rounded(chain.price(session.record(run)))

    def remaining(self) -> float:
        """The mu^2 that is left."""
        return max(0.0, self.budget_mu_squared - self.spent().mu_squared)

    def log(self) -> list[LogEntry]:
        """Every debit in the order of writing; times are for the reader, nothing depends on them."""
        with self.session() as session:
            return [_log_entry(row) for row in session.transaction.debits()]

    def verify(self) -> None:
        """Check every row, the chain, the releases and the totals; raise `LedgerError` where something is off."""
        with self.session() as session:
            state = chain.verify(session.transaction)
        if not totals.rounded(totals.read(state.spent)) <= self.budget_mu_squared * (1 + TOLERANCE):
            raise LedgerError(altered("its debits exceed its budget"))

    @contextmanager
    def session(self, *, write: bool = False, count_only: bool = False) -> Iterator[Session]:
        """A transaction on this very ledger, and no older than this object has seen it."""
        with self._store.transaction(write=write, count_only=count_only) as transaction:
            meta = chain.checked_meta(transaction.meta())
            session = Session(transaction, meta, self._budget)
            if meta["id"] != self.id:
                raise LedgerError(older("another ledger, which was at this place before"))
            self._refuse_older(session.state, transaction.hash_at)
            yield session
        if session.state.debits >= self._seen.debits:
            self._seen = session.state

    def _refuse_older(self, state: State, hash_at: Callable[[int], str | None]) -> None:
        """Whoever swaps the file under a running process is noticed."""
        seen = self._seen
        if state.head != seen.head and seen.debits and hash_at(seen.debits) != seen.head:
            raise LedgerError(older("debits that this process has seen in it"))


def older(than: str) -> str:
    """One sentence for the operator."""
    return (
        f"This ledger is older than, or another one than, the record shows ({than}): it would forget what was spent; stop "
        "releasing, look for the ledger that was in use, or settle what it spent with `dpfda budget restore`."
    )


def store_at(path: str | os.PathLike[str], timeout: float = 30.0) -> Store:
    """The storage that a path or a URL names."""
    if "://" not in str(path):
        return SqliteStore(path, timeout=timeout)
    from dpfda.privacy.ledger.sqlalchemy_store import SqlStore

    return SqlStore(str(path), timeout=timeout)


def new_store(
    store: Store, epsilon: float, delta: float, note: str, fill: Callable[[Session], None] | None = None
) -> Store:
    """Make a ledger at a place where there is none; `fill` writes what it begins with."""
    epsilon, delta = _validate.privacy_pair(epsilon, delta)
    facts = {
        "version": chain.VERSION,
        "id": secrets.token_hex(16),
        "epsilon": repr(epsilon),
        "delta": repr(delta),
        "created": timestamp(),
        "note": note,
    }
    meta = {**facts, "key": secrets.token_hex(32), "state": State(chain.genesis(facts)).encode()}
    with store.creating() as transaction:
        if fill is not None:
            session = Session(transaction, meta, Budget(epsilon, delta, mu_for(epsilon, delta) ** 2))
            fill(session)  # may replace the key
            meta["state"] = session.state.encode()
        for name, value in meta.items():
            transaction.set_meta(name, value)
    return store


def _log_entry(row: Row) -> LogEntry:
    event = chain.event_of(row.event)
    return LogEntry(
        row.seq, row.at, row.actor, row.silo, row.run, row.round, row.attempt, event.label, event.mu,
        event_to_dict(event), row.digest, row.hash,
    )  # fmt: skip


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidInput(f"{name} must be a non-empty text, got {value!r}.")
    return value


def timestamp() -> str:
    """The time that a row is written with. Nothing depends on it: order is by number."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _user() -> str:
    return _name_of(os.getuid())


@lru_cache(maxsize=8)
def _name_of(uid: int) -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # a container user without a name
        return f"uid {uid}"
