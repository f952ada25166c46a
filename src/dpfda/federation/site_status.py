"""What a site's owner sees at a glance, true after kill -9 as well: process, contact, ledger, studies, objections."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

from dpfda.errors import DpfdaError
from dpfda.federation.audit_log import AuditLog
from dpfda.federation.decisions import Decisions
from dpfda.federation.folder import SiteFolder, find_objections, is_known_path
from dpfda.federation.keys import read_certificate
from dpfda.federation.lock import read_lock
from dpfda.federation.policy import SitePolicy
from dpfda.federation.seal import check_seal
from dpfda.federation.silence import Connection, look_at_connection
from dpfda.federation.site_ledger import open_ledger

_PROCESS = {"running": "runs", "ended": "does not run", "killed": "was killed", "never": "never ran"}
_LEAST_FREE = 2**18  # bytes
SOON = 30  # days before its end that a certificate is worth a sentence


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
    connection = look_at_connection(folder)
    return {
        "site": decisions.site, "process": process, "running": state == "running", "contact": _describe(connection),
        "connection": connection.fields(), "certificate": describe_certificate(folder), "ledger": _describe_ledger(folder),
        "studies": studies, "notes": find_notes(folder), "problems": _find_problems(folder),
    }  # fmt: skip


def describe_certificate(folder: SiteFolder) -> dict[str, Any]:
    """When it ends, and a sentence if that is soon."""
    ends = read_certificate(folder.certificate.read_bytes()).not_valid_after_utc
    days = int((ends.timestamp() - time.time()) // 86_400)
    sentence = None
    if days < SOON:
        when = f"ends in {days} days" if days >= 0 else f"ended on {ends:%Y-%m-%d}"
        sentence = f"The certificate {when}: renew it with dpfda site enrol {folder.root}."
    return {"ends": f"{ends:%Y-%m-%d}", "days": days, "sentence": sentence}


def find_notes(folder: SiteFolder) -> list[str]:
    """What will soon be a problem, or is one without being anybody's fault: a full disk."""
    places = {"the site's folder": folder.root}
    try:
        ledger = SitePolicy.load(folder.policy_path).ledger_place
        if "://" not in ledger:
            places["the ledger"] = Path(ledger).parent
    except DpfdaError:
        pass  # the ledger's own line says so
    return [
        f"The disk of {what} is full ({place}): nothing can be recorded there, so nothing is answered; free some space."
        for what, place in places.items()
        if place.exists() and shutil.disk_usage(place).free < _LEAST_FREE
    ]


def _describe(connection: Connection) -> str:
    if connection.connected:
        clock = f", clocks differ by {abs(connection.clock_offset or 0.0):.1f} s"
        return f"connected to its server{clock}." + (f" {connection.clock}" if connection.clock else "")
    if connection.last_contact is None:
        return f"it has never had contact with its server. {connection.finding.sentence}"
    ago = time.time() - connection.last_contact
    return f"last contact with its server {ago:.0f} s ago. {connection.finding.sentence}"


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
