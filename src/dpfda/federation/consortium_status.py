"""What a coordinator sees at a glance: the server, who is connected, and when each certificate ends."""

from __future__ import annotations

import time
from typing import Any

from cryptography import x509

from dpfda.federation.consortium import ConsortiumFolder, Member
from dpfda.federation.keys import certificate_digest, read_certificate
from dpfda.federation.lock import read_lock
from dpfda.federation.metrics import Metric, MetricsServer, seconds_since
from dpfda.federation.running import running_link
from dpfda.federation.server_link import SiteContact
from dpfda.federation.silence import CLOCK_OFF

SOON = 30  # days before its end that a certificate is worth a sentence


def read_consortium_status(folder: ConsortiumFolder) -> dict[str, Any]:
    """Plain values; nothing is started or changed by looking."""
    state, holder = read_lock(folder.settings().lock)
    authority, server = (
        read_certificate(path.read_bytes()) for path in (folder.ca / "ca.crt", folder.server_certificate)
    )
    address, sites = folder.address(), list_sites(folder)
    credentials = {"CA": authority, "server": server}
    return {
        "consortium": address.consortium, "address": f"{address.host}:{address.port}", "server": state,
        "pid": None if state != "running" or holder is None else holder.pid, "sites": sites,
        "certificates": {name: _end(each) for name, each in credentials.items()},
        "sentences": [*_warn_of_credentials(credentials), *(text for site in sites for text in site["sentences"])],
    }  # fmt: skip


def list_sites(folder: ConsortiumFolder) -> list[dict[str, Any]]:
    """Every enrolled site: certificates, which of them it uses, contact."""
    with running_link(folder) as link:
        contacts = None if link is None else link.look()
    return [_describe_site(member, contacts) for member in folder.members().values()]


def serve_metrics(folder: ConsortiumFolder, port: int) -> MetricsServer:
    """Counters of the server and its sites at 127.0.0.1, while it is entered."""

    def collect() -> list[Metric]:
        with running_link(folder) as link:
            contacts = {} if link is None else link.look()
            return [Metric("dpfda_server_up", "1 while the server runs.", float(link is not None)),
                    *collect_metrics(folder, contacts)]  # fmt: skip

    return MetricsServer(port, collect)


def collect_metrics(folder: ConsortiumFolder, contacts: dict[str, SiteContact]) -> list[Metric]:
    """For a monitoring system: public facts only."""
    found = []
    for member in folder.members().values():
        contact, named = contacts.get(member.name), {"site": member.name}
        last = None if contact is None else contact.last_hello
        ends = max(read_certificate(text.encode()).not_valid_after_utc.timestamp() for text in member.certificates)
        here = float(contact is not None and contact.connected)
        found += [
            Metric("dpfda_server_site_connected", "1 while the site is connected.", here, labels=named),
            Metric("dpfda_server_site_last_hello_seconds", "Since its last hello.", seconds_since(last), labels=named),
            Metric("dpfda_server_site_certificate_ends_timestamp_seconds", "When its newest ends.", ends, labels=named),
        ]  # fmt: skip
    server = read_certificate(folder.server_certificate.read_bytes()).not_valid_after_utc.timestamp()
    found.append(Metric("dpfda_server_certificate_ends_timestamp_seconds", "When the server's own ends.", server))
    return found


def _describe_site(member: Member, contacts: dict[str, SiteContact] | None) -> dict[str, Any]:
    contact = None if contacts is None else contacts.get(member.name)
    connected = contact is not None and contact.connected
    state = "no server runs" if contacts is None else "connected" if connected else "not connected"
    offset = contact.clock_offset if contact is not None and connected else None
    return {
        "site": member.name, "organisation": member.organisation, "certificates end": member.ends(), "state": state,
        "uses": _find_used(member, contact) if connected else None,
        "last hello": None if contact is None else contact.last_hello, "clock offset": offset,
        "sentences": [*_warn_of_credentials({f"site {member.name}": _newest(member)}), *_warn_of_clock(member.name, offset)],
    }  # fmt: skip


def _find_used(member: Member, contact: SiteContact | None) -> str | None:
    """The end of the certificate with which the site is connected: after a renewal, whether it has taken the new one."""
    for text in member.certificates:
        certificate = read_certificate(text.encode())
        if contact is not None and certificate_digest(certificate) == contact.certificate:
            return f"{certificate.not_valid_after_utc:%Y-%m-%d}"
    return None


def _newest(member: Member) -> x509.Certificate:
    return read_certificate(member.certificates[-1].encode())


def _end(certificate: x509.Certificate) -> str:
    return f"{certificate.not_valid_after_utc:%Y-%m-%d}"


def _warn_of_credentials(credentials: dict[str, x509.Certificate]) -> list[str]:
    found = []
    for name, certificate in credentials.items():
        days = int((certificate.not_valid_after_utc.timestamp() - time.time()) // 86_400)
        if days < SOON:
            when = f"ends in {days} days" if days >= 0 else "has ended"
            found.append(f"The certificate of the {name} {when} ({_end(certificate)}): renew it.")
    return found


def _warn_of_clock(name: str, offset: float | None) -> list[str]:
    if offset is None or abs(offset) < CLOCK_OFF:
        return []
    way = "ahead of" if offset > 0 else "behind"
    return [f"The clock of site {name} is {abs(offset) / 60:.0f} minutes {way} this one: correct one of them."]
