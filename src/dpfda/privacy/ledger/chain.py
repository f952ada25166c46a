"""The ledger's hash chain: each row seals the rows before it, and the first seals identity and budget.

It finds damage and careless edits: a changed, added or removed row, a changed budget, a changed or missing release, a
running total that is not the sum. It has no key, so it does not stop an owner of the file from writing a new chain.

Each run has a head of its own, made of public values only: it begins as a hash of the ledger's identity and the run's
name, and is then the SHA-256 of the run's last answer. An answer carries the head BEFORE it, with the number of answers
so far (`3:9f...`), so that whoever keeps answers or a log can tell an older copy of the ledger, or another one, from it.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, replace
from typing import Any

from dpfda.errors import LedgerError
from dpfda.privacy.accounting import Event, event_from_dict
from dpfda.privacy.ledger import totals
from dpfda.privacy.ledger.rows import Row, RunRecord, State, Transaction, altered

VERSION = "2"
FACTS = ("version", "id", "epsilon", "delta", "created", "note")
_HEAD = re.compile(r"(0|[1-9][0-9]{0,8}):([0-9a-f]{64})")


def content_hash(fields: dict[str, Any]) -> str:
    """SHA-256 of the canonical JSON; a value of a wrong type, as damage may leave it, hashes to something else."""
    return hashlib.sha256(json.dumps(fields, sort_keys=True, separators=(",", ":"), default=repr).encode()).hexdigest()


def genesis(meta: dict[str, str]) -> str:
    """The start of the chain covers the fixed facts, so that a changed budget breaks it."""
    return content_hash({name: meta[name] for name in FACTS})


def first_head(identity: str, run: str) -> str:
    """The head of a run before its first debit."""
    return content_hash({"dpfda run": run, "ledger": identity})


def parse_head(head: str) -> tuple[int, str]:
    """Number of answers and hash of a run's head."""
    found = _HEAD.fullmatch(head) if isinstance(head, str) else None
    if found is None:
        raise LedgerError(
            f"{head!r} is not the head of a run; give it as a release, a result or the audit log shows it."
        )
    return int(found[1]), found[2]


def chained(previous: str, **fields: Any) -> Row:
    """The next row of the chain: its hash covers its fields and the hash before it."""
    linked = {**fields, "previous": previous}
    return Row(**linked, hash=content_hash(linked))


def followed(record: RunRecord, row: Row, event: Event, part: int) -> tuple[RunRecord, int]:
    """The facts of a run after a debit, and what its part has cost by then (`part`: before; events of no part keep it)."""
    common, dearest = totals.read(record.common), totals.read(record.dearest)
    if event.part is None:
        common += totals.cost(event)
    else:
        part += totals.cost(event)
        dearest = max(dearest, part)
    after = replace(
        record, terms=record.terms or terms_of(row.digest), debits=record.debits + 1,
        last_round=max(record.last_round, row.round),
        common=totals.text(common), dearest=totals.text(dearest), head=row.sha256 or row.before,
    )  # fmt: skip
    return after, part


def price(record: RunRecord) -> int:
    """The exact price of a run."""
    return totals.run_price(totals.read(record.common), totals.read(record.dearest))


def terms_of(digest: str) -> str:
    """What stands before the last colon of a question's digest names silo and plan."""
    return digest.rpartition(":")[0]


def event_of(text: str) -> Event:
    """The event of a row."""
    try:
        return event_from_dict(json.loads(text))
    except (TypeError, ValueError):
        raise LedgerError(altered("an event cannot be read")) from None


def verify(transaction: Transaction) -> State:
    """Every row hashes to what it says and follows the one before; nothing is missing; totals are the sums."""
    meta = checked_meta(transaction.meta())
    head, rows = genesis(meta), transaction.debits()
    for position, row in enumerate(rows, start=1):
        fields = asdict(row)
        if fields.pop("hash") != content_hash(fields) or row.previous != head or row.seq != position:
            raise LedgerError(altered(f"row {position} does not follow from the rows before it"))
        head = row.hash
    state = State.decode(meta["state"])
    if state.head != head or state.debits != len(rows):
        raise LedgerError(altered("rows are missing at its end"))
    _verify_totals(transaction, meta["id"], rows, state)
    _verify_releases(transaction, rows)
    return state


def _verify_totals(transaction: Transaction, identity: str, rows: list[Row], state: State) -> None:
    """Running totals, heads and positions of every run are what its debits add up to."""
    runs: dict[str, RunRecord] = {}
    parts: dict[tuple[str, int], int] = {}
    for row in rows:
        event, record = event_of(row.event), runs.get(row.run) or RunRecord(row.run, head=first_head(identity, row.run))
        if (row.position, row.before) != (record.debits, record.head):
            raise LedgerError(altered(f"row {row.seq} does not follow from the rows of its run"))
        key = (row.run, -1 if event.part is None else event.part)
        runs[row.run], spent = followed(record, row, event, parts.get(key, 0))
        if event.part is not None:
            parts[key] = spent
    for record in transaction.runs():
        known = runs.pop(record.run, None) or RunRecord(record.run, head=first_head(identity, record.run))
        same = replace(
            known, lost=record.lost, lost_price=record.lost_price, finished=record.finished, data=record.data
        )
        if same != record:
            raise LedgerError(altered(f"the running totals of run {record.run!r} are not those of its debits"))
    written = {(run, part): spent for run, part, spent in transaction.parts()}
    total = sum(price(record) for record in transaction.runs())
    if (
        runs
        or written != {key: totals.text(spent) for key, spent in parts.items()}
        or state.spent != totals.text(total)
    ):
        raise LedgerError(altered("its running totals are not the sum of its debits"))


def _verify_releases(transaction: Transaction, rows: list[Row]) -> None:
    """One answer for each round that was paid for, with the hash that its debit names; and no other."""
    paid = {(row.run, row.round): row.sha256 for row in rows if row.sha256}
    for run, round, payload, digest in transaction.releases():
        if not isinstance(payload, bytes) or sha256(payload) != digest or paid.pop((run, round), None) != digest:
            raise LedgerError(altered(f"the stored release of round {round} of run {run!r} has changed"))
    for run, round in paid:
        raise LedgerError(altered(f"the stored release of round {round} of run {run!r} is missing"))


def checked_meta(meta: dict[str, str]) -> dict[str, str]:
    """The fixed facts, if they are those of a ledger."""
    if meta.get("version", "").partition(" ")[0] == "1":
        raise LedgerError("This ledger is of version 0.1; take it over, with its debits, by `dpfda budget migrate`.")
    if meta.get("version") != VERSION or not {*FACTS, "state", "key"} <= meta.keys():
        raise LedgerError(
            "This is not a ledger of this version of dpfda; stop releasing and use `dpfda budget restore`."
        )
    return meta


def sha256(payload: bytes) -> str:
    """The seal of a stored release, and the head of its run after it."""
    return hashlib.sha256(payload).hexdigest()
