"""A ledger of version 0.1 on a server makes room for one of this version, in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from dpfda.errors import LedgerError
from dpfda.privacy.ledger.sqlalchemy_store import MEANWHILE, SqlStore, SqlTransaction

OLD_TABLES = "_version_0_1"


class SuccessorStore(SqlStore):
    """The place of a ledger of version 0.1 on a server, where `creating` puts one of this version in one transaction.

    The old tables are marked and stay beside the new ones, under names that end in `OLD_TABLES`. `read` verifies what they
    hold; a writer of version 0.1 waits for the same lock, so nothing is written between reading and renaming.
    """

    def __init__(self, url: str, read: Callable[[Callable[[str], Any]], Any], **options: Any) -> None:
        super().__init__(url, **options)
        self._read = read
        self._known: Any = None

    def read(self) -> Any:
        """What the old ledger holds."""
        with self.transaction(write=False) as transaction:
            self._known = self._read(transaction.ask_within)
        return self._known

    @contextmanager
    def creating(self) -> Iterator[SqlTransaction]:
        """Rename the old tables and make the new ones, whole or not at all."""
        with self.transaction(write=True) as transaction:
            if self._read(transaction.ask_within) != self._known:
                raise LedgerError(f"The ledger {self.shown} {MEANWHILE}.")
            transaction.ask_within("UPDATE meta SET value = '1 taken over' WHERE name = 'version'")
            for name in ("meta", "debits", "releases"):
                transaction.ask_within(f"ALTER TABLE {name} RENAME TO {name}{OLD_TABLES}")
            transaction.create()
            yield transaction
