"""What shows that a ledger is the right one, and what becomes of one that was lost."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dpfda.errors import InvalidInput

if TYPE_CHECKING:
    from dpfda.cli.terminal import Terminal
    from dpfda.privacy.ledger.ledger import Ledger


def check_result(ledger: Ledger, path: Path) -> None:
    """Raise if an earlier result shows a release that the ledger does not hold."""
    from dpfda.report.document import read_any_document

    try:
        repeat: dict[str, Any] = read_any_document(path)["repeat"]
        run, heads = str(repeat["run"]), list(repeat["heads"].values())
    except (KeyError, TypeError, AttributeError):
        raise InvalidInput(
            f"{path} is not a result of this version of dpfda; name the JSON or HTML file of a fit."
        ) from None
    if not heads:
        raise InvalidInput(f"{path} names no ledger: it comes from a fit without one, so there is nothing to compare.")
    for head in heads:
        ledger.check_not_older(run, head)


def restore_ledger(
    terminal: Terminal,
    ledger: str,
    copy: str | None,
    log: Path | None,
    total: tuple[float | None, float | None],
    note: str,
    yes: bool,
) -> None:
    """Check everything, say what will be charged, ask, and only then write."""
    from dpfda.federation.audit_log import AuditLog
    from dpfda.federation.ledger_record import record_position, shown_as_spent
    from dpfda.privacy.accounting import gaussian_epsilon
    from dpfda.privacy.ledger.takeover import restore

    epsilon, delta = _check_places(ledger, copy, total)
    audit = None if log is None else AuditLog(log)
    spent = None if audit is None else shown_as_spent(audit)
    said = "all that is left of the budget"
    if spent is not None:
        said = f"epsilon = {gaussian_epsilon(spent**0.5, delta):.4g} of {epsilon:g} in all, as the log shows"
    if not yes and not sys.stdin.isatty():
        raise InvalidInput(f"The new ledger {ledger} would be charged {said}, for good; add --yes if that is right.")
    if not yes and not typer.confirm(f"The new ledger {ledger} will be charged {said}, for good. Continue?"):
        terminal.say("Nothing was changed.")
        raise typer.Exit(1)
    restored = restore(ledger, copy=copy, spent=spent, total=None if copy else (epsilon, delta), note=note)
    if audit is not None:
        audit.append("restore", outcome="restored", **record_position(restored))
    left = gaussian_epsilon(restored.remaining() ** 0.5, restored.delta)
    terminal.say(f"Restored: {ledger} has epsilon = {left:.4g} left. Studies that were under way cannot be resumed.")


def _check_places(ledger: str, copy: str | None, total: tuple[float | None, float | None]) -> tuple[float, float]:
    """Refuse before anybody is asked; the total of the lost ledger."""
    from dpfda import _validate
    from dpfda.cli.ledger_choice import LedgerChoice

    place = LedgerChoice(ledger)
    place.refuse_folder()
    place.refuse_missing_folder()
    if not place.is_url and place.exists:
        raise InvalidInput(
            f"There is a ledger at {ledger}, so it is not lost; see it with: dpfda budget show --ledger {ledger}"
        )
    if copy is not None:
        found = LedgerChoice(copy)
        if not found.exists:
            raise InvalidInput(
                f"There is no copy {copy}; correct --copy, or leave it out and give --epsilon and --delta."
            )
        opened = found.open()
        return opened.epsilon, opened.delta
    if total[0] is None or total[1] is None:
        raise InvalidInput("Without --copy, state the total that was set: --epsilon and --delta.")
    return _validate.positive("--epsilon", total[0]), _validate.fraction("--delta", total[1])
