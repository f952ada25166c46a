"""The ledger in the site's own log: a line about an answer says how far the ledger was, so that an older one is noticed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from dpfda.errors import InvalidInput, LedgerError
from dpfda.federation.audit_log import AuditLog
from dpfda.privacy.accounting import gaussian_epsilon
from dpfda.privacy.ledger import totals
from dpfda.privacy.ledger.ledger import Ledger, Position


def record_position(ledger: Ledger) -> dict[str, Any]:
    """What a line of the log keeps: never sent anywhere."""
    with ledger.session() as session:
        state = session.state
    spent = totals.rounded(totals.read(state.spent))
    return {
        "ledger": ledger.id,
        "ledger_debits": state.debits,
        "ledger_head": state.head,
        "epsilon_spent": gaussian_epsilon(spent**0.5, ledger.delta),
        "epsilon_total": ledger.epsilon,
        "mu2_spent": spent,
        "mu2_left": max(0.0, ledger.budget_mu_squared - spent),
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
    own = [known for known in positions if known.id == ledger.id]
    if positions:  # the furthest: of two processes the one that looked first may have written last
        ledger.check_position(max(own, key=lambda known: known.debits) if own else positions[-1])


class Pledge(NamedTuple):
    """What an acceptance binds: the ledger that pays, by its identity, and from when to when."""

    ledger: str
    begins: int | None
    ends: int | None


def check_pledges(audit: AuditLog, pledges: Mapping[str, Pledge]) -> None:
    """Raise `LedgerError` unless each acceptance is the last decision on its terms that the log knows of.

    A log that does not know it is an older one, or a new one; an acceptance that was withdrawn since may have been put back,
    for instance by who got it when it held, or when it had other dates. `pledges` are those of accepted terms, by digest. An
    acceptance is noted before it is signed.
    """
    known: dict[Any, Any] = {}
    for line in audit.lines():
        if line["event"] == "decision":
            pledge = Pledge(line.get("ledger", ""), line.get("begins"), line.get("ends"))
            known[line.get("terms")] = pledge if line.get("outcome") == "accepted" else None
    for terms, pledge in pledges.items():
        if known.get(terms) != pledge:
            raise LedgerError(
                f"The audit log does not show that the terms {terms[:16]} were accepted and not declined since, so it is "
                "not this site's latest, or the acceptance is an older one: put the latest copy of both back; without one, "
                "decline these terms, and settle the ledger with dpfda budget restore."
            )


def check_pledge(ledger: Ledger, terms: str, pledge: Pledge) -> None:
    """Raise `LedgerError` if these terms were accepted at the expense of another ledger than the one at hand."""
    if pledge.ledger != ledger.id:
        raise LedgerError(
            f"The terms {terms[:16]} were accepted with another ledger than the policy's: name that one in the policy, or "
            "let the owner accept or decline them again with dpfda site accept or dpfda site decline."
        )


def note_new_ledger(ledger: Ledger, audit: AuditLog) -> None:
    """Write into the log that this ledger was made, on purpose."""
    audit.append("ledger", outcome="made", **record_position(ledger))


def shown_as_spent(audit: AuditLog) -> float:
    """The largest mu^2 that the log shows as spent. A line is written before its answer leaves, so none is missing."""
    if not audit.path.exists():
        raise InvalidInput(f"There is no audit log at {audit.path}; correct --log, or leave it out.")
    audit.verify()
    return max((float(line["mu2_spent"]) for line in audit.lines() if "mu2_spent" in line), default=0.0)
