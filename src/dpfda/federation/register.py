"""Which certificates are enrolled: {site: [SHA-256 of a certificate]}, one file that the server reads again and again.

A certificate of the authority alone opens nothing: the server also looks it up here, at each log-in, each heart-beat and
each message. So a site is renewed by adding a second entry, revoked by removing all of them, and nobody else notices.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from cryptography import x509

from dpfda.errors import InvalidInput
from dpfda.federation.files import OWNER_ONLY, write_json
from dpfda.federation.keys import certificate_digest, common_name
from dpfda.federation.names import check_site_name

_DIGEST = re.compile(r"[0-9a-f]{64}")
_MOST_BYTES = 4_000_000

Entries = dict[str, tuple[str, ...]]


def parse_register(data: bytes) -> Entries:
    """The entries of a register's file; anything unusual is refused as a whole."""
    try:
        fields = json.loads(data)
        entries = {check_site_name(name): tuple(digests) for name, digests in fields.items()}
        good = all(isinstance(each, str) and _DIGEST.fullmatch(each) for ones in entries.values() for each in ones)
    except (ValueError, TypeError, AttributeError, RecursionError):
        good, entries = False, {}
    if not good:
        raise InvalidInput("The register of certificates is damaged; restore it from a copy.")
    return entries


class Register:
    """The coordinator's side: changes are made under a lock and are durable when the call returns."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def entries(self) -> Entries:
        """All enrolled certificates by site; no file means no site."""
        try:
            return parse_register(self.path.read_bytes())
        except FileNotFoundError:
            return {}

    def enrol(self, certificate: x509.Certificate) -> None:
        """Add a site's certificate beside those that it has: a first one, or a renewal with overlap."""
        name, digest = check_site_name(common_name(certificate)), certificate_digest(certificate)
        with self._change() as entries:
            known = entries.get(name, ())
            entries[name] = known if digest in known else (*known, digest)

    def retire(self, certificate: x509.Certificate) -> None:
        """Remove one certificate, such as the old one after a renewal."""
        name, digest = common_name(certificate), certificate_digest(certificate)
        with self._change() as entries:
            _keep(entries, name, tuple(each for each in entries.get(name, ()) if each != digest))

    def revoke(self, name: str) -> int:
        """Remove all certificates of a site; how many there were."""
        with self._change() as entries:
            return len(entries.pop(check_site_name(name), ()))

    @contextmanager
    def _change(self) -> Iterator[Entries]:
        descriptor = os.open(self.path.with_name(self.path.name + ".lock"), os.O_RDWR | os.O_CREAT, OWNER_ONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            entries = self.entries()
            yield entries
            write_json(self.path, {name: list(digests) for name, digests in sorted(entries.items())})
        finally:
            os.close(descriptor)


class RegisterReader:
    """The server's side: looks at the file for every question, reads it when it has changed, fails closed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: tuple[int, int, int] | None = None
        self._entries: Mapping[str, tuple[str, ...]] = {}

    def is_enrolled(self, name: str, digest: str) -> bool:
        """Whether this certificate is enrolled for this site, now."""
        self._refresh()
        return digest in self._entries.get(name, ())

    def names(self) -> tuple[str, ...]:
        """All enrolled sites, now."""
        self._refresh()
        return tuple(sorted(self._entries))

    def _refresh(self) -> None:
        try:
            facts = self._path.stat()
            stamp = (facts.st_mtime_ns, facts.st_size, facts.st_ino)
            if stamp == self._stamp:
                return
            if facts.st_size > _MOST_BYTES:
                raise InvalidInput("The register of certificates is too large.")
            self._entries = parse_register(self._path.read_bytes())
            self._stamp = stamp
        except (OSError, InvalidInput):  # an unreadable register enrols nobody
            self._entries, self._stamp = {}, None


def _keep(entries: Entries, name: str, digests: tuple[str, ...]) -> None:
    if digests:
        entries[name] = digests
    else:
        entries.pop(name, None)
