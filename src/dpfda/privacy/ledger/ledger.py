"""The ledger: a durable record of what was released, which refuses what would exceed the budget.

Guarantee: an answer and its debit are written in one durable transaction that checks the budget, and an answer leaves
only as what that transaction wrote. So the releases of all runs together are (epsilon, delta)-DP with the total budget,
across processes, restarts and kills at any moment; and what is charged is what was released, once.

The answer is drawn inside its transaction, which one process at a time holds: nobody draws beside another, and who is
first does not depend on what is drawn. A draw that is lost in a crash is not charged, since nobody has seen it. Who can
time kills could prefer draws that are quick; so lost draws are counted before they are made, a run may lose
`MOST_LOST_DRAWS` and all runs together `MOST_LOST_IN_ALL`.

| case                                         | result                                               |
|----------------------------------------------|------------------------------------------------------|
| empty ledger                                 | nothing spent, epsilon 0                             |
| NaN in a budget or an event                  | refused before anything is written                   |
| same (run, round), same digest, on record    | the recorded release, free of charge                 |
| same (run, round), other digest              | `ProtocolError`                                      |
| a round before the run's last                | `ProtocolError`                                      |
| too many lost draws                          | `ProtocolError`; the run, or the ledger, is closed   |
| over budget                                  | `BudgetExceeded`; nothing is written                 |
| locked, read-only, damaged, altered          | `LedgerError` with what to do                        |
| one point, one curve                         | not seen here: the ledger knows events, never data   |
"""

from __future__ import annotations

import getpass
import json
import math
import os
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from dpfda import _validate
from dpfda.errors import BudgetExceeded, InvalidInput, LedgerError, ProtocolError
from dpfda.privacy.accounting import Event, event_from_dict, event_to_dict, gaussian_epsilon, mu_for, mu_squared
from dpfda.privacy.ledger import chain
from dpfda.privacy.ledger.memory import MemoryStore
from dpfda.privacy.ledger.sqlite import Row, SqliteStore, Store, Transaction

MOST_LOST_DRAWS, MOST_LOST_IN_ALL = 32, 256  # of one run, of a ledger: runs cost nothing to begin
_FINISHED = "finished:"
_KEY, _DATA = "fingerprint key", "data of "  # names of facts outside the chain
_TOLERANCE = 1e-12  # sums of planned mu^2 differ in their last digits; `mu_for` has left room for this


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


class Ledger:
    """A total budget (epsilon, delta), fixed at creation, and the debits against it.

    Make one with `create`, `open` or `in_memory`; a `Silo` writes to it.

    Parameters
    ----------
    store : Store
        Where rows are kept: a SQLite file, PostgreSQL, or memory.

    Attributes
    ----------
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
        self._store = store
        self._key: bytes | None = None
        with store.transaction(write=False) as transaction:
            meta = chain.checked_meta(transaction.meta())
            chain.verify(transaction)
        self.epsilon, self.delta = float(meta["epsilon"]), float(meta["delta"])
        self.budget_mu_squared = mu_for(self.epsilon, self.delta) ** 2

    @classmethod
    def create(cls, path: str | os.PathLike[str], epsilon: float, delta: float, note: str = "") -> Ledger:
        """A new ledger in a new file that only its owner can read, or on PostgreSQL if `path` is a URL."""
        return cls._new(_store_at(path), epsilon, delta, note)

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, timeout: float = 30.0) -> Ledger:
        """An existing ledger, verified first; `timeout` is how many seconds to wait for other processes."""
        return cls(_store_at(path, timeout))

    @classmethod
    def in_memory(cls, epsilon: float, delta: float) -> Ledger:
        """A ledger that ends with the process: for simulations and tests."""
        return cls._new(MemoryStore(), epsilon, delta, "in memory")

    @classmethod
    def _new(cls, store: Store, epsilon: float, delta: float, note: str) -> Ledger:
        epsilon, delta = _validate.privacy_pair(epsilon, delta)
        facts = {
            "version": chain.VERSION,
            "epsilon": repr(epsilon),
            "delta": repr(delta),
            "created": timestamp(),
            "note": note,
        }
        store.new_file()
        with store.transaction(write=True) as transaction:
            transaction.create()
            for name, value in facts.items():
                transaction.set_meta(name, value)
            transaction.set_meta("head", chain.genesis(facts))
        return cls(store)

    def begin(self, run: str, round: int, event: Event, digest: str) -> bytes | None:
        """Refuse what may not be answered; otherwise count a draw, durably, that is lost until it is committed.

        If the round was answered meanwhile, its answer is returned and nothing is counted.

        `digest` names the question: a round is answered for one question only. What stands before its last colon names
        the terms of the run (silo and plan), which cannot change once the run has spent, in this process or another.
        """
        run, digest, round = _text("run", run), _text("digest", digest), _validate.integer("round", round, minimum=0)
        with self._store.transaction(write=True) as transaction:
            rows = transaction.debits()
            kept = _kept(transaction, rows, run, round, digest)
            if kept is None:
                self._refuse(rows, run, round, event)
                chain.checked_head(transaction, rows)
                _count_draw(transaction, run, 1)
        return kept

    def commit(
        self,
        run: str,
        round: int,
        event: Event,
        digest: str,
        draw: Callable[[], bytes],
        *,
        silo: str = "",
        actor: str | None = None,
    ) -> bytes:
        """Write the debit, draw the answer and write it, durably in one transaction, and return what is on record.

        Only that may leave. If another process answered the round meanwhile, its answer is returned and nothing is drawn.
        """
        run, digest, round = _text("run", run), _text("digest", digest), _validate.integer("round", round, minimum=0)
        with self._store.transaction(write=True) as transaction:
            rows = transaction.debits()
            kept = _kept(transaction, rows, run, round, digest)
            if kept is not None:
                _count_draw(transaction, run, -1)
                return kept
            self._refuse(rows, run, round, event)
            row = chain.chained(
                chain.checked_head(transaction, rows), seq=len(rows) + 1, at=timestamp(), actor=actor or _user(), silo=silo,
                run=run, round=round, attempt=1 + sum((each.run, each.round) == (run, round) for each in rows),
                digest=digest, event=json.dumps(event_to_dict(event), sort_keys=True),
            )  # fmt: skip
            transaction.insert(row)
            transaction.set_meta("head", row.hash)
            payload = draw()
            transaction.insert_release(run, round, payload, chain.sha256(payload))
            _count_draw(transaction, run, -1)
        return payload

    def stored(self, run: str, round: int, digest: str) -> bytes | None:
        """The stored release of a round, or None; another question for the same round is refused."""
        with self._store.transaction(write=False) as transaction:
            return _kept(transaction, transaction.debits(), run, round, digest)

    def lost_draws(self, run: str) -> int:
        """Draws of a run that were begun and not committed: by crashes, by races, or under way now."""
        with self._store.transaction(write=False) as transaction:
            return _lost(transaction.meta(), run)

    def releases(self, run: str) -> dict[int, bytes]:
        """All stored releases of a run, by round."""
        with self._store.transaction(write=False) as transaction:
            return {round: payload for name, round, payload, _ in transaction.releases() if name == run}

    def finish(self, run: str) -> None:
        """Note that the result of a run was handed over. A note for readers outside the chain: no price depends on it."""
        with self._store.transaction(write=True) as transaction:
            transaction.set_meta(_FINISHED + _text("run", run), timestamp())

    def finished(self) -> set[str]:
        """The runs that are noted as finished."""
        with self._store.transaction(write=False) as transaction:
            return {name.removeprefix(_FINISHED) for name in transaction.meta() if name.startswith(_FINISHED)}

    def fingerprint_key(self) -> bytes:
        """The key for fingerprints of data that are bound to runs; made on first use, and it never leaves the ledger."""
        if self._key is None:
            with self._store.transaction(write=False) as transaction:
                text = transaction.meta().get(_KEY)
            if text is None:
                with self._store.transaction(write=True) as transaction:
                    text = transaction.meta().get(_KEY) or secrets.token_hex(32)
                    transaction.set_meta(_KEY, text)
            self._key = bytes.fromhex(text)
        return self._key

    def bound_data(self, run: str) -> bytes | None:
        """The fingerprint of the data that a run is bound to, or None."""
        with self._store.transaction(write=False) as transaction:
            text = transaction.meta().get(_DATA + _text("run", run))
        return None if text is None else bytes.fromhex(text)

    def bind_data(self, run: str, fingerprint: bytes) -> bytes:
        """Bind a run to data, durably, unless it is bound already; returns what it is bound to."""
        name = _DATA + _text("run", run)
        with self._store.transaction(write=True) as transaction:
            text = transaction.meta().get(name)
            if text is None:
                text = fingerprint.hex()
                transaction.set_meta(name, text)
        return bytes.fromhex(text)

    def check(self, events: Iterable[Event], run: str) -> None:
        """Raise `BudgetExceeded` if a planned run would not fit; spends nothing.

        For a run that was begun, `events` is still the whole plan: the dearer of plan and record is counted.
        """
        with self._store.transaction(write=False) as transaction:
            rows = transaction.debits()
        planned, recorded = list(events), _events(rows, run)
        self._refuse_excess(rows, max(planned, recorded, key=mu_squared), run)

    def spent(self) -> Spent:
        """The total over all runs."""
        rows = self._rows()
        total = _total(rows)
        epsilon = gaussian_epsilon(total**0.5, self.delta)
        return Spent(total, self.budget_mu_squared, epsilon, self.epsilon, self.delta, len(rows))

    def remaining(self) -> float:
        """The mu^2 that is left."""
        return max(0.0, self.budget_mu_squared - _total(self._rows()))

    def log(self) -> list[LogEntry]:
        """Every debit in the order of writing; times are for the reader, nothing depends on them."""
        return [_log_entry(row) for row in self._rows()]

    def verify(self) -> None:
        """Check every row, the chain, the releases and the total; raise `LedgerError` where something is off."""
        with self._store.transaction(write=False) as transaction:
            chain.verify(transaction)
            total = _total(transaction.debits())
        if not total <= self.budget_mu_squared * (1 + _TOLERANCE):
            raise LedgerError(chain.altered("its debits exceed its budget"))

    def _rows(self) -> list[Row]:
        with self._store.transaction(write=False) as transaction:
            return transaction.debits()

    def _refuse(self, rows: list[Row], run: str, round: int, event: Event) -> None:
        """Raise unless this debit may follow those on record."""
        _only_forward(rows, run, round)
        self._refuse_excess(rows, [*_events(rows, run), event], run)

    def _refuse_excess(self, rows: list[Row], run_events: list[Event], run: str) -> None:
        """Raise unless this run, with these events, fits beside all other runs."""
        asked = _total([row for row in rows if row.run != run]) + mu_squared(run_events)
        if not asked <= self.budget_mu_squared * (1 + _TOLERANCE):
            spent = _total(rows)
            left = max(0.0, self.budget_mu_squared - spent)
            raise BudgetExceeded(
                f"This would bring mu^2 to {asked:.6g}, but the budget (epsilon={self.epsilon:g}, "
                f"delta={self.delta:g}) is {self.budget_mu_squared:.6g}, of which {spent:.6g} is spent and "
                f"{left:.6g} is left; nothing was spent now."
            )


def _store_at(path: str | os.PathLike[str], timeout: float = 30.0) -> Store:
    """The storage that a path or a URL names."""
    if "://" not in str(path):
        return SqliteStore(path, timeout=timeout)
    from dpfda.privacy.ledger.sqlalchemy_store import SqlStore

    return SqlStore(str(path), timeout=timeout)


def _kept(transaction: Transaction, rows: list[Row], run: str, round: int, digest: str) -> bytes | None:
    """The release on record, or None; a round is for one question only."""
    _same_terms(rows, run, digest)
    if any(row.digest != digest for row in rows if (row.run, row.round) == (run, round)):
        raise ProtocolError(f"Round {round} of run {run!r} was asked with another question; it is not answered twice.")
    return transaction.release(run, round)


def _count_draw(transaction: Transaction, run: str, change: int) -> None:
    """A draw counts as lost from before it is made until it is committed, or found to be needless."""
    meta = transaction.meta()
    lost = {name: _lost(meta, name) for name in (run, None)}
    for name, most in ((run, MOST_LOST_DRAWS), (None, MOST_LOST_IN_ALL)):
        if lost[name] + change > most:
            raise ProtocolError(
                f"{lost[name]} answers of {'all runs' if name is None else f'run {name!r}'} were drawn and lost in crashes, "
                f"so {'this ledger' if name is None else 'it'} is closed; find out why the process dies, then begin "
                f"{'a ledger with what is left of the budget' if name is None else 'another study'}."
            )
    for name, count in lost.items():
        transaction.set_meta(_lost_name(name), str(max(0, count + change)))


def _lost(meta: dict[str, str], run: str | None) -> int:
    """Lost draws of one run; None: of all."""
    try:
        return int(meta.get(_lost_name(run), "0"))
    except ValueError:
        raise LedgerError(chain.altered("its count of lost draws cannot be read")) from None


def _lost_name(run: str | None) -> str:
    return "lost draws" if run is None else f"lost draws of {run}"


def _same_terms(rows: list[Row], run: str, digest: str) -> None:
    """A run keeps the terms that it began with, also after a restart."""
    terms = digest.rpartition(":")[0]
    if any(row.digest.rpartition(":")[0] != terms for row in rows if row.run == run):
        raise ProtocolError(f"Run {run!r} began under other terms; a study's plan cannot change.")


def _only_forward(rows: list[Row], run: str, round: int) -> None:
    """Rounds of a run go forward."""
    last = max((row.round for row in rows if row.run == run), default=-1)
    if round < last:
        raise ProtocolError(f"Run {run!r} is at round {last}; round {round} is past and cannot be asked any more.")


def _total(rows: list[Row]) -> float:
    """mu^2 over all runs: within a run by `mu_squared`, over runs the sum."""
    by_run: dict[str, list[Event]] = {}
    for row in rows:
        by_run.setdefault(row.run, []).append(_event(row.event))
    return math.fsum(mu_squared(events) for events in by_run.values())


def _events(rows: list[Row], run: str) -> list[Event]:
    """The events of one run on record."""
    return [_event(row.event) for row in rows if row.run == run]


@lru_cache(maxsize=65536)
def _event(text: str) -> Event:
    """The event of a row; events are frozen, so one object per text is enough."""
    try:
        return event_from_dict(json.loads(text))
    except (TypeError, ValueError):
        raise LedgerError(chain.altered("an event cannot be read")) from None


def _log_entry(row: Row) -> LogEntry:
    event = _event(row.event)
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
