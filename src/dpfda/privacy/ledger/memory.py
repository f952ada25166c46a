"""The ledger's storage in the memory of one process: for simulations, tests and fits whose owner keeps no ledger.

It ends with the process, and a fork of the process, which would have a copy to spend once more, is refused. A transaction
works on copies, which take the place of the originals when it is through.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from dpfda.errors import LedgerError
from dpfda.privacy.ledger.sqlite import Row


class MemoryTransaction:
    """Facts, debits and releases; what is written here is not in the ledger yet."""

    def __init__(self, meta: dict[str, str], debits: list[Row], releases: dict[tuple[str, int], tuple[bytes, str]]):
        self._meta, self._debits, self._releases = meta, debits, releases

    def copy(self) -> MemoryTransaction:
        """The same, to be changed apart; rows and payloads are never changed."""
        return MemoryTransaction(self._meta.copy(), self._debits.copy(), self._releases.copy())

    def create(self) -> None:
        """There is nothing to make."""

    def meta(self) -> dict[str, str]:
        """The fixed facts of the ledger and the head of its chain."""
        return self._meta.copy()

    def set_meta(self, name: str, value: str) -> None:
        """Write one fact."""
        self._meta[name] = value

    def debits(self) -> list[Row]:
        """All debits in the order of writing."""
        return self._debits.copy()

    def insert(self, row: Row) -> None:
        """Append one debit."""
        self._debits.append(row)

    def release(self, run: str, round: int) -> bytes | None:
        """The stored release of one round."""
        found = self._releases.get((run, round))
        return None if found is None else found[0]

    def releases(self) -> list[tuple[str, int, bytes, str]]:
        """All stored releases: run, round, payload, sha256."""
        return [(*key, *stored) for key, stored in self._releases.items()]

    def insert_release(self, run: str, round: int, payload: bytes, sha256: str) -> None:
        """Keep the release of one round."""
        if (run, round) in self._releases:
            raise LedgerError(f"Round {round} of run {run!r} has an answer already; it is not answered twice.")
        self._releases[run, round] = bytes(payload), sha256


class MemoryStore:
    """One ledger in memory, safe for threads."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._kept = MemoryTransaction({}, [], {})

    def new_file(self) -> None:
        """There is no file."""

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[MemoryTransaction]:
        """All or nothing, one at a time."""
        if os.getpid() != self._process:  # before the lock, which another thread may have held in the fork
            raise LedgerError(
                "An in-memory ledger serves the process that made it; give the silo a ledger= on disk to share it."
            )
        with self._lock:
            transaction = self._kept.copy()
            yield transaction
            if write:
                self._kept = transaction
