"""The ledger's hash chain: each row seals the rows before it, and the first seals the budget.

It finds damage and careless edits: a changed, added or removed row, a changed budget, a changed release. It has no
key, so it does not stop an owner of the file from writing a new chain, nor does it notice an older copy of the
file being put back: protect the file as you protect the data.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import Any

from dpfda.errors import LedgerError
from dpfda.privacy.ledger.sqlite import Row, Transaction

VERSION = "1"


def content_hash(fields: dict[str, Any]) -> str:
    """SHA-256 of the canonical JSON; a value of a wrong type, as damage may leave it, hashes to something else."""
    return hashlib.sha256(json.dumps(fields, sort_keys=True, separators=(",", ":"), default=repr).encode()).hexdigest()


def genesis(meta: dict[str, str]) -> str:
    """The start of the chain covers the fixed facts, so that a changed budget breaks it."""
    return content_hash({name: meta[name] for name in ("version", "epsilon", "delta", "created", "note")})


def chained(previous: str, **fields: Any) -> Row:
    """The next row of the chain: its hash covers its fields and the hash before it."""
    linked = {**fields, "previous": previous}
    return Row(**linked, hash=content_hash(linked))


def verify(transaction: Transaction) -> None:
    """Every row hashes to what it says and follows the one before; nothing is missing, at the end either."""
    meta = checked_meta(transaction.meta())
    head = genesis(meta)
    for position, row in enumerate(transaction.debits(), start=1):
        fields = asdict(row)
        if fields.pop("hash") != content_hash(fields) or row.previous != head or row.seq != position:
            raise LedgerError(altered(f"row {position} does not follow from the rows before it"))
        head = row.hash
    if meta["head"] != head:
        raise LedgerError(altered("rows are missing at its end"))
    for run, round, payload, digest in transaction.releases():
        if not isinstance(payload, bytes) or sha256(payload) != digest:
            raise LedgerError(altered(f"the stored release of round {round} of run {run!r} has changed"))


def checked_meta(meta: dict[str, str]) -> dict[str, str]:
    """The fixed facts, if they are those of a ledger."""
    if meta.get("version") != VERSION or not {"epsilon", "delta", "created", "note", "head"} <= meta.keys():
        raise LedgerError(
            "This file is not a ledger of this version of dpfda, or its creation was interrupted; "
            "create a new one only if it never held a debit: an older copy would forget what was spent since."
        )
    return meta


def altered(what: str) -> str:
    """One sentence for the operator."""
    return (
        f"The ledger was altered ({what}); stop releasing and keep the file: what was spent must be settled from it "
        "and from the log of releases."
    )


def checked_head(transaction: Transaction, rows: list[Row]) -> str:
    """The hash to continue from; it must be that of the last row."""
    meta = checked_meta(transaction.meta())
    if meta["head"] != (rows[-1].hash if rows else genesis(meta)):
        raise LedgerError(altered("rows are missing or were added at its end"))
    return meta["head"]


def sha256(payload: bytes) -> str:
    """The seal of a stored release."""
    return hashlib.sha256(payload).hexdigest()
