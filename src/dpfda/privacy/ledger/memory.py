"""The ledger's storage in the memory of one process: for simulations, tests and fits whose owner keeps no ledger.

It ends with the process, and a fork of the process, which would have a copy to spend once more, is refused. What a
transaction writes is kept apart until it is through.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from dpfda.errors import LedgerError
from dpfda.privacy.ledger.rows import Release, Row, RunRecord


@dataclass
class Kept:
    """Facts, runs, parts, debits and releases."""

    meta: dict[str, str] = field(default_factory=dict)
    runs: dict[str, RunRecord] = field(default_factory=dict)
    parts: dict[tuple[str, int], str] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    by_run: dict[str, list[Row]] = field(default_factory=dict)
    releases: dict[tuple[str, int], tuple[bytes, str]] = field(default_factory=dict)

    def add(self, new: Kept) -> None:
        """Take over what a transaction wrote."""
        self.meta |= new.meta
        self.runs |= new.runs
        self.parts |= new.parts
        self.releases |= new.releases
        for row in new.rows:
            self.rows.append(row)
            self.by_run.setdefault(row.run, []).append(row)


class MemoryTransaction:
    """What is written here is not in the ledger yet."""

    def __init__(self, kept: Kept) -> None:
        self._kept, self.new = kept, Kept()

    def meta(self) -> dict[str, str]:
        """The fixed facts of the ledger and its running totals."""
        return self._kept.meta | self.new.meta

    def set_meta(self, name: str, value: str) -> None:
        """Write one fact."""
        self.new.meta[name] = value

    def run(self, run: str) -> RunRecord | None:
        """The facts of one run."""
        return self.new.runs.get(run) or self._kept.runs.get(run)

    def runs(self) -> list[RunRecord]:
        """The facts of all runs."""
        return list((self._kept.runs | self.new.runs).values())

    def set_run(self, record: RunRecord) -> None:
        """Write the facts of one run."""
        self.new.runs[record.run] = record

    def part(self, run: str, part: int) -> str:
        """What a part of a run has cost."""
        return self.new.parts.get((run, part)) or self._kept.parts.get((run, part), "0")

    def parts(self) -> list[tuple[str, int, str]]:
        """What all parts have cost."""
        return [(*key, spent) for key, spent in (self._kept.parts | self.new.parts).items()]

    def set_part(self, run: str, part: int, spent: str) -> None:
        """Write what a part has cost."""
        self.new.parts[run, part] = spent

    def last_hash(self) -> str | None:
        """The hash of the last debit."""
        rows = self.new.rows or self._kept.rows
        return rows[-1].hash if rows else None

    def hash_at(self, seq: int) -> str | None:
        """The hash of one debit."""
        return self._kept.rows[seq - 1].hash if 0 < seq <= len(self._kept.rows) else None

    def before(self, run: str, position: int) -> str | None:
        """The run's head before one of its answers; a debit without an answer has none."""
        rows = self._kept.by_run.get(run, [])
        return rows[position].before if 0 <= position < len(rows) and rows[position].sha256 else None

    def asked(self, run: str, round: int) -> tuple[str, str] | None:
        """The question that a round was asked, and the hash of its answer."""
        rows = reversed(self._kept.by_run.get(run, []))
        return next(((row.digest, row.sha256) for row in rows if row.round == round), None)

    def debits(self, run: str | None = None) -> list[Row]:
        """All debits, or those of one run, in the order of writing."""
        return [*self._kept.rows, *self.new.rows] if run is None else self._kept.by_run.get(run, []).copy()

    def insert(self, row: Row) -> None:
        """Append one debit."""
        self.new.rows.append(row)

    def release(self, run: str, round: int) -> tuple[bytes, str] | None:
        """The stored release of one round and its hash."""
        return self._kept.releases.get((run, round))

    def releases(self, run: str | None = None) -> list[Release]:
        """All stored releases, or those of one run."""
        kept = self._kept.releases | self.new.releases
        return [(*key, *stored) for key, stored in kept.items() if run is None or key[0] == run]

    def insert_release(self, run: str, round: int, payload: bytes, sha256: str) -> None:
        """Keep the release of one round."""
        if (run, round) in self._kept.releases:
            raise LedgerError(f"Round {round} of run {run!r} has an answer already; it is not answered twice.")
        self.new.releases[run, round] = bytes(payload), sha256


class MemoryStore:
    """One ledger in memory, safe for threads."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._kept = Kept()

    @contextmanager
    def creating(self) -> Iterator[MemoryTransaction]:
        """There is no file to make."""
        with self.transaction(write=True) as transaction:
            yield transaction

    @contextmanager
    def transaction(self, *, write: bool, count_only: bool = False) -> Iterator[MemoryTransaction]:
        """All or nothing, one at a time."""
        if os.getpid() != self._process:  # before the lock, which another thread may have held in the fork
            raise LedgerError(
                "An in-memory ledger serves the process that made it; give the silo a ledger= on disk to share it."
            )
        with self._lock:
            transaction = MemoryTransaction(self._kept)
            yield transaction
            if write:
                self._kept.add(transaction.new)

    def close(self) -> None:
        """There is nothing to close."""
