"""The ledger in the site's own log: a line about an answer says how far the ledger was, so that an older one is noticed."""

from __future__ import annotations

from typing import Any

from dpfda.errors import InvalidInput
from dpfda.federation.audit_log import AuditLog
from dpfda.privacy.ledger.ledger import Ledger, Position


def record_position(ledger: Ledger) -> dict[str, Any]:
    """What a line of the log keeps: never sent anywhere."""
    position, spent = ledger.position(), ledger.spent()
    return {
        "ledger": position.id,
        "ledger_debits": position.debits,
        "ledger_head": position.head,
        "epsilon_spent": spent.epsilon,
        "epsilon_total": spent.total_epsilon,
        "mu2_spent": spent.mu_squared,
        "mu2_left": max(0.0, spent.budget_mu_squared - spent.mu_squared),
    }


def check_against_log(ledger: Ledger, audit: AuditLog) -> None:
    """Raise `LedgerError` if the log shows a later state of this ledger, or knows other ledgers and not this one.

    A ledger that was made on purpose has a line of its own (`note_new_ledger`), so one that replaces a lost ledger in
    silence is not known.
    """
    positions = [
        Position(line["ledger"], line["ledger_debits"], line["ledger_head"])
        for line in audit.lines()
        if "ledger_head" in line
    ]
    if positions:
        ledger.check_position(next((known for known in reversed(positions) if known.id == ledger.id), positions[-1]))


def note_new_ledger(ledger: Ledger, audit: AuditLog) -> None:
    """Write into the log that this ledger was made, on purpose."""
    audit.append("ledger", outcome="made", **record_position(ledger))


def shown_as_spent(audit: AuditLog) -> float:
    """The largest mu^2 that the log shows as spent. A line is written before its answer leaves, so none is missing."""
    if not audit.path.exists():
        raise InvalidInput(f"There is no audit log at {audit.path}; correct --log, or leave it out.")
    audit.verify()
    return max((float(line["mu2_spent"]) for line in audit.lines() if "mu2_spent" in line), default=0.0)
