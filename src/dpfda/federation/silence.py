"""Why a site is not in contact with its server, in one sentence each: found by looking, at the moment of asking.

The order is that of a person who looks for the cause: does the site run at all, is its client alive, does the client hear
the server; and only then the network, by a TLS handshake of our own. The clock is told apart from all of them: TLS allows a
day of error, but dates of approvals and certificates do not forgive a clock that is wrong.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import psutil

from dpfda.errors import DpfdaError
from dpfda.federation.contact import Contact
from dpfda.federation.flare.settings import ClientSettings
from dpfda.federation.folder import SiteFolder
from dpfda.federation.lock import read_lock
from dpfda.federation.preflight import Credentials, Finding, check_connection

RECENT = 15.0  # seconds: hellos come every five, and wait four for their answer
CLOCK_OFF = 60.0  # seconds between two clocks that are worth a sentence


@dataclass(frozen=True)
class Connection:
    """A site's contact with its server, as it is now."""

    connected: bool
    finding: Finding
    last_contact: float | None = None
    clock_offset: float | None = None

    @property
    def clock(self) -> str | None:
        """A sentence about a clock that is wrong."""
        return describe_clock(self.clock_offset)

    def fields(self) -> dict[str, object]:
        """As JSON."""
        return {
            "connected": self.connected, "code": self.finding.code, "sentence": self.finding.sentence,
            "last_contact": self.last_contact, "clock_offset": self.clock_offset, "clock": self.clock,
        }  # fmt: skip


def look_at_connection(folder: SiteFolder, timeout: float = 3.0) -> Connection:
    """Look at the processes, the last contact and, if there is none, at the network."""
    contact, (state, holder) = Contact.read(folder.contact), read_lock(folder.lock)
    last = None if contact is None else contact.last_contact
    if state == "running" and is_fresh(contact):
        assert contact is not None
        return Connection(True, Finding("ok", "It is in contact with its server."), last, contact.clock_offset)
    if state != "running":
        words = {"killed": "It was killed; start it again", "ended": "It was stopped", "never": "It never ran"}
        known = "" if state != "killed" or holder is None else f" (it was process {holder.pid})"
        return Connection(False, Finding("not-running", f"{words[state]}{known}: dpfda site run {folder.root}."), last)
    return Connection(False, _find_cause(folder, contact, timeout), last)


def is_fresh(contact: Contact | None) -> bool:
    """Whether a client wrote a moment ago that it hears its server."""
    return contact is not None and contact.state == "connected" and time.time() - contact.at < RECENT


def describe_clock(offset: float | None) -> str | None:
    """A sentence if this computer's clock and the server's differ; `offset` is the server's minus this one's."""
    if offset is None or abs(offset) < CLOCK_OFF:
        return None
    way, minutes = ("behind" if offset > 0 else "ahead of"), abs(offset) / 60
    span = f"{minutes:.0f} minutes" if minutes < 120 else f"{minutes / 60:.0f} hours"
    return (
        f"This computer's clock is {span} {way} the server's: correct one of them, since certificates and approvals begin "
        "and end by the clock."
    )


def _find_cause(folder: SiteFolder, contact: Contact | None, timeout: float) -> Finding:
    client = _describe_client(contact)
    if client is not None:
        return client
    try:
        settings = ClientSettings.of(folder)
    except (DpfdaError, OSError) as error:
        return Finding("files", str(error))
    credentials = Credentials(settings.authority, settings.certificate, settings.key, settings.identity)
    found = check_connection(settings.host, settings.port, credentials, timeout)
    if not found.good:
        return found
    if contact is not None and contact.state == "refused":
        return Finding("revoked", "The server does not know this site's certificate: ask the coordinator to renew it.")
    return Finding(
        "logging-in", "The server can be reached, and the log-in is not complete yet: look again in a moment."
    )


def _describe_client(contact: Contact | None) -> Finding | None:
    """What is wrong with the client's own process, if anything is."""
    try:
        frozen = contact is not None and psutil.Process(contact.pid).status() == psutil.STATUS_STOPPED
    except psutil.Error:
        return None  # it ended; the supervisor starts it when the network allows it
    if frozen and contact is not None:
        return Finding(
            "frozen", f"This site's client is stopped: continue it (kill -CONT {contact.pid}), or restart the site."
        )
    return None
