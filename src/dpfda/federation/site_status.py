"""What a site's owner sees at a glance, true after kill -9 as well: process, contact, ledger, studies, objections."""

from __future__ import annotations

import time
from typing import Any

from dpfda.errors import DpfdaError
from dpfda.federation.audit_log import AuditLog
from dpfda.federation.contact import Contact
from dpfda.federation.decisions import Decisions
from dpfda.federation.folder import SiteFolder, find_objections, is_known_path
from dpfda.federation.lock import read_lock
from dpfda.federation.policy import SitePolicy
from dpfda.federation.seal import check_seal
from dpfda.federation.site_ledger import open_ledger

_PROCESS = {"running": "runs", "ended": "does not run", "killed": "was killed", "never": "never ran"}
_RECENT = 15.0  # seconds


def read_site_status(folder: SiteFolder) -> dict[str, Any]:
    """Plain values; nothing is changed by looking."""
    decisions, lines = Decisions(folder), _read_log(folder)
    state, holder = read_lock(folder.lock)
    process = _PROCESS[state] + (f" (process {holder.pid})" if state == "running" and holder is not None else "")
    studies = []
    for offer in decisions.offers():
        mine = [line for line in lines if line.get("study") == offer.study]
        counts = {
            word: sum(line.get("outcome") == word for line in mine) for word in ("released", "replayed", "refused")
        }
        last = mine[-1]["at"] if mine else "never"
        studies.append({"study": offer.study, "decision": offer.decision, **counts, "last": last})
    return {
        "site": decisions.site, "process": process, "contact": _describe_contact(folder, running=state == "running"),
        "ledger": _describe_ledger(folder), "studies": studies, "problems": _find_problems(folder),
    }  # fmt: skip


def _describe_contact(folder: SiteFolder, *, running: bool) -> str:
    contact = Contact.read(folder.contact)
    if contact is None or contact.last_contact is None:
        return "it has never heard from its server."
    ago = time.time() - contact.last_contact
    if running and contact.state == "connected" and time.time() - contact.at < _RECENT:
        clock = f", clocks differ by {abs(contact.clock_offset or 0.0):.1f} s"
        return f"connected to its server{clock}."
    return f"last contact with its server {ago:.0f} s ago; {folder.log.name} says why there is none now."


def _describe_ledger(folder: SiteFolder) -> str:
    try:
        policy = SitePolicy.load(folder.policy_path)
        spent = open_ledger(policy).spent()
    except DpfdaError as error:
        return f"Ledger: {error}"
    return (
        f"Ledger {policy.ledger_shown}: epsilon {spent.epsilon:.4g} of {spent.total_epsilon:g} spent at delta = "
        f"{spent.delta:g}, {spent.debits} releases."
    )


def _find_problems(folder: SiteFolder) -> list[str]:
    def is_known(path: str, *, is_folder: bool) -> bool:
        return path == "run" or path.startswith("run/") or is_known_path(path, is_folder=is_folder)

    kept = (found for found in find_objections(folder.root, is_known) if not found.startswith("run/"))
    found = list(kept)  # `run/` is written anew at every start; while the site runs it holds sockets and FLARE's logs
    for check in (lambda: check_seal(folder), AuditLog(folder.audit).lines):
        try:
            check()
        except DpfdaError as error:
            found.append(str(error))
    return found


def _read_log(folder: SiteFolder) -> list[dict[str, Any]]:
    try:
        return AuditLog(folder.audit).lines()
    except DpfdaError:
        return []  # it is among the problems
