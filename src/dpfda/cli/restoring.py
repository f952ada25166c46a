"""What shows that a ledger is the right one, and what becomes of one that was lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dpfda.errors import InvalidInput

if TYPE_CHECKING:
    from dpfda.cli.terminal import Terminal
    from dpfda.privacy.ledger.ledger import Ledger


def check_result(ledger: Ledger, path: Path) -> None:
    """Raise if an earlier result shows a release that the ledger does not hold."""
    try:
        repeat: dict[str, Any] = json.loads(path.read_bytes())["repeat"]
        run, heads = str(repeat["run"]), list(repeat["heads"].values())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise InvalidInput(f"{path} is no result of this version of dpfda.") from None
    for head in heads:
        ledger.check_not_older(run, head)


def restore_ledger(
    terminal: Terminal,
    ledger: str,
    copy: str | None,
    log: Path | None,
    total: tuple[float, float] | None,
    note: str,
    yes: bool,
) -> None:
    """Say what will be charged, ask, and only then write."""
    from dpfda.federation.audit_log import AuditLog
    from dpfda.federation.ledger_record import record_position, shown_as_spent
    from dpfda.privacy.ledger.takeover import restore

    audit = None if log is None else AuditLog(log)
    spent = None if audit is None else shown_as_spent(audit)
    said = "all that is left of the budget" if spent is None else f"mu^2 = {spent:.6g} in all, as the log shows"
    if not yes and not typer.confirm(f"The new ledger {ledger} will be charged {said}, for good. Go on?"):
        terminal.say("Nothing was changed.")
        raise typer.Exit(1)
    restored = restore(ledger, copy=copy, spent=spent, total=total, note=note)
    if audit is not None:
        audit.append("restore", outcome="restored", **record_position(restored))
    left = restored.remaining()
    terminal.say(f"Restored: {ledger} has mu^2 = {left:.6g} left. Studies that were under way cannot go on.")
