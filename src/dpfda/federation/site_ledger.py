"""A site's ledger, as its policy names it: made once, on purpose, and never by opening it."""

from __future__ import annotations

from pathlib import Path

from dpfda.errors import InvalidInput, LedgerError
from dpfda.federation.audit_log import AuditLog
from dpfda.federation.ledger_record import note_new_ledger
from dpfda.federation.policy import SitePolicy
from dpfda.privacy.ledger.ledger import Ledger


def create_ledger(policy: SitePolicy, audit: AuditLog | None = None) -> Ledger:
    """A new ledger with the policy's total budget, which cannot be changed later; the site's log knows it from now on."""
    note = "site of a consortium" if policy.seed is None else "SIMULATION with a seed: not private"
    ledger = Ledger.create(policy.ledger_place, policy.total_epsilon, policy.total_delta, note)
    if audit is not None:
        note_new_ledger(ledger, audit)
    return ledger


def open_ledger(policy: SitePolicy) -> Ledger:
    """The ledger that the policy names; a missing one is a reason to stop, not to begin anew."""
    place = policy.ledger_place
    if "://" not in place and not Path(place).exists():
        raise LedgerError(
            f"There is no ledger at {policy.ledger_shown}. If this data set never had one, make it once, on purpose: "
            "dpfda site policy FOLDER SITE.TOML --new-ledger. If it had one, restore it from its copy: a new ledger would "
            "forget what was spent."
        )
    ledger = Ledger.open(place)
    if (ledger.epsilon, ledger.delta) != (policy.total_epsilon, policy.total_delta):
        raise InvalidInput(
            f"The ledger {policy.ledger_shown} has the total budget ({ledger.epsilon:g}, {ledger.delta:g}), the policy "
            f"states ({policy.total_epsilon:g}, {policy.total_delta:g}); a budget cannot be changed, correct the policy."
        )
    return ledger
