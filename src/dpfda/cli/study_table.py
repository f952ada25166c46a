"""A study under way, as a coordinator sees it in a terminal: rounds, sites, contact, what was missed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from dpfda.cli.terminal import Terminal

if TYPE_CHECKING:
    from dpfda.federation.server_link import SiteContact
    from dpfda.federation.status import Status
    from dpfda.federation.workspace import StudyFolder
    from dpfda.protocol.terms import StudyTerms


def look_at_sites(folder: StudyFolder) -> dict[str, SiteContact] | None:
    """Who is connected to the server at this moment; None if no server runs or answers."""
    from dpfda.errors import TransportError
    from dpfda.federation.running import running_link

    try:
        with running_link(folder.consortium()) as link:
            return None if link is None else link.look()
    except TransportError:
        return None


def describe_contact(contact: SiteContact | None) -> str:
    """In a few words."""
    if contact is None or contact.last_hello is None:
        return "never seen" if contact is None or contact.enrolled else "not enrolled"
    ago = max(0.0, time.time() - contact.last_hello)
    return f"connected, heard {ago:.0f} s ago" if contact.connected else f"gone, heard {ago:.0f} s ago"


def make_table(terms: StudyTerms, now: Status | None, done: int, contacts: dict[str, SiteContact] | None = None) -> Any:
    """One line for each site."""
    from rich.table import Table

    from dpfda.federation.study import name_study
    from dpfda.protocol.plans.registry import make_plan

    plan = make_plan(terms)
    rounds, phase, pace = len(plan.rounds), "not begun" if now is None else now.phase, ""
    if now is not None and now.round_seconds:
        pace = f", {sorted(now.round_seconds)[len(now.round_seconds) // 2]:.2f} s a round"
    title = f"{name_study(terms)}: {phase}, round {done} of {rounds} ({rounds - done} left){pace}"
    table = Table(title=title, box=None)
    names = ("site", "weight", "state", "rounds answered", *(() if contacts is None else ("contact",)))
    for name in names:
        table.add_column(name, justify="left" if name in ("site", "state", "contact") else "right")
    total = sum(silo.weight for silo in plan.silos)
    for silo in plan.silos:
        site = {} if now is None else now.sites.get(silo.name, {})
        weight = "by noise" if plan.method == "adaptive" else f"{silo.weight / total:.3f}"
        contact = [] if contacts is None else [describe_contact(contacts.get(silo.name))]
        table.add_row(silo.name, weight, str(site.get("state", "not asked")), str(site.get("answered", 0)), *contact)
    if now is not None and now.message:
        table.caption = now.message
    return table


def find_missed(folder: StudyFolder, terms: StudyTerms) -> dict[str, int]:
    """How many rounds each site missed, of those that missed any."""
    from dpfda.protocol.plans.registry import make_plan
    from dpfda.transports.checkpoint import Transcript

    answers, rounds = Transcript(folder.transcript).answers(), len(make_plan(terms).rounds)
    missed = {silo.name: rounds - answers.get(silo.name, 0) for silo in terms.silos}
    return {name: count for name, count in missed.items() if count}


def tell_missed(missed: dict[str, int], rounds: int, terminal: Terminal) -> None:
    """One sentence for each site that missed rounds."""
    for name, count in missed.items():
        terminal.say(f"{name} missed {count} of {rounds} rounds; the result is that of the sites that answered.")
