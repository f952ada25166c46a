"""Names that may stand in a certificate, a file name and a log line without harm."""

from __future__ import annotations

import re

from dpfda.errors import InvalidInput

_SITE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")
_ORGANISATION = re.compile(r"[A-Za-z0-9_]{1,63}")
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")
RESERVED = frozenset({"server"})  # FLARE's own name for the coordinator's end


def check_site_name(name: object) -> str:
    """Letters, digits, - and _; not the name of the server."""
    if not isinstance(name, str) or not _SITE.fullmatch(name) or name.lower() in RESERVED:
        raise InvalidInput(
            "A site's name must be letters, digits, - and _ (at most 63, not 'server'), for instance clinic-1."
        )
    return name


def check_organisation(name: object) -> str:
    """Letters, digits and _: FLARE puts it into authorization rules."""
    if not isinstance(name, str) or not _ORGANISATION.fullmatch(name):
        raise InvalidInput("An organisation must be letters, digits and _ (at most 63), for instance clinic_north.")
    return name


def check_host(host: object) -> str:
    """A host name or an IPv4 address; FLARE's TCP driver knows no other."""
    if not isinstance(host, str) or not _HOST.fullmatch(host):
        raise InvalidInput("The server's host must be a name or an IPv4 address, for instance study.example.org.")
    return host


def check_port(port: object) -> int:
    """1 to 65535."""
    if isinstance(port, bool) or not isinstance(port, int) or not 1 <= port <= 65535:
        raise InvalidInput("The server's port must be a number from 1 to 65535.")
    return port
