"""What a ledger keeps, as plain values, and what it may ask of the place that keeps it."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, fields
from typing import Any, Protocol

from dpfda.errors import LedgerError


@dataclass(frozen=True)
class Row:
    """One debit as stored; `event` is JSON text, `hash` covers all other fields.

    `position` counts the debits of the same run before this one and `before` is the run's head before it: public values.
    `sha256` is that of the answer, which is the run's head after it; empty where no answer is kept.
    """

    seq: int
    at: str
    actor: str
    silo: str
    run: str
    round: int
    attempt: int
    digest: str
    event: str
    position: int
    before: str
    sha256: str
    previous: str
    hash: str


@dataclass(frozen=True)
class RunRecord:
    """Running facts of one run; prices are exact (`totals`). `verify` holds all but the last four against the debits."""

    run: str
    terms: str = ""
    debits: int = 0
    last_round: int = -1
    common: str = "0"
    dearest: str = "0"
    head: str = ""
    lost: int = 0
    lost_price: str = "0"
    finished: str = ""
    data: str = ""


@dataclass(frozen=True)
class State:
    """Running facts of the whole ledger: head of the chain, number of debits, exact price, lost draws."""

    head: str
    debits: int = 0
    spent: str = "0"
    lost: int = 0

    def encode(self) -> str:
        """As one text, so that it is written in one statement."""
        return json.dumps(asdict(self))

    @staticmethod
    def decode(text: str) -> State:
        """The facts, or `LedgerError`."""
        try:
            state = State(**json.loads(text))
            int(state.spent, 16)
        except (TypeError, ValueError):
            raise LedgerError(altered("its running totals cannot be read")) from None
        if type(state.debits) is not int or type(state.lost) is not int:
            raise LedgerError(altered("its running totals cannot be read"))
        return state


Release = tuple[str, int, bytes, str]  # run, round, payload, sha256
ROW_FIELDS = tuple(field.name for field in fields(Row))
RUN_FIELDS = tuple(field.name for field in fields(RunRecord))
WHOLE = ("seq", "round", "attempt", "position", "debits", "last_round", "lost", "part")  # columns of whole numbers


class Transaction(Protocol):
    """What the ledger may ask of its storage inside one transaction."""

    def meta(self) -> dict[str, str]: ...

    def set_meta(self, name: str, value: str) -> None: ...

    def run(self, run: str) -> RunRecord | None: ...

    def runs(self) -> list[RunRecord]: ...

    def set_run(self, record: RunRecord) -> None: ...

    def part(self, run: str, part: int) -> str: ...

    def parts(self) -> list[tuple[str, int, str]]: ...

    def set_part(self, run: str, part: int, spent: str) -> None: ...

    def last_hash(self) -> str | None: ...

    def hash_at(self, seq: int) -> str | None: ...

    def before(self, run: str, position: int) -> str | None: ...

    def asked(self, run: str, round: int) -> tuple[str, str] | None: ...

    def debits(self, run: str | None = None) -> list[Row]: ...

    def insert(self, row: Row) -> None: ...

    def release(self, run: str, round: int) -> tuple[bytes, str] | None: ...

    def releases(self, run: str | None = None) -> list[Release]: ...

    def insert_release(self, run: str, round: int, payload: bytes, sha256: str) -> None: ...


class Store(Protocol):
    """A place for one ledger."""

    def creating(self) -> AbstractContextManager[Transaction]:
        """Make a new place, whole or not at all; one that exists is never touched."""
        ...

    def transaction(self, *, write: bool, count_only: bool = False) -> AbstractContextManager[Transaction]:
        """All or nothing, one writer at a time; `count_only` may forgo what only a power failure could undo."""
        ...

    def close(self) -> None: ...


def altered(what: str) -> str:
    """One sentence for the operator."""
    return (
        f"The ledger was altered ({what}); stop releasing and keep the file: what was spent must be settled with "
        "`dpfda budget restore`."
    )


def missing(place: Any) -> str:
    """One sentence for who opens what is not there."""
    return (
        f"There is no ledger at {place}, and opening never makes one: correct the path, create it once with `dpfda budget "
        f"init --ledger {place} --epsilon E --delta D` or `Ledger.create`, or, if there was one, use `dpfda budget restore`."
    )
