"""The coordinator's folder of a consortium: its authority, its keys, who is enrolled, and the one server of all studies."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from dpfda.errors import InvalidInput
from dpfda.federation.enrolment import EnrolmentRequest, sign_enrolment
from dpfda.federation.files import write_atomically, write_json
from dpfda.federation.flare.settings import ServerSettings
from dpfda.federation.folder import Address
from dpfda.federation.keys import (
    SITE_DAYS,
    Authority,
    Validity,
    certificate_digest,
    encode_certificate,
    fingerprint_certificate,
    fingerprint_key,
    make_rsa_key,
    make_signing_key,
    public_text,
    read_certificate,
    read_public_text,
    read_rsa_key,
    read_signing_key,
    write_key,
)
from dpfda.federation.lock import Lock
from dpfda.federation.names import check_host, check_port, check_site_name
from dpfda.federation.register import Register
from dpfda.federation.signed import SignedQuestions


@dataclass(frozen=True)
class Member:
    """A site of the consortium: its signing key, and its certificates (two while one is being replaced)."""

    name: str
    organisation: str
    signing_key: str
    certificates: tuple[str, ...]

    def ends(self) -> list[str]:
        """The last day of each certificate, the newest last."""
        found = [read_certificate(text.encode()).not_valid_after_utc for text in self.certificates]
        return [f"{end:%Y-%m-%d}" for end in found]


class ConsortiumFolder:
    """Everything of one consortium on the coordinator's machine. It holds private keys: only its owner can enter."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.ca, self.sign_key = self.root / "ca", self.root / "coordinator.key"
        self.server_key, self.server_certificate = self.root / "server.key", self.root / "server.crt"
        self.facts, self.members_path = self.root / "consortium.json", self.root / "members.json"
        self.register = Register(self.root / "register.json")
        self.log = self.root / "server.log"

    @staticmethod
    def create(
        root: Path, name: str, host: str, port: int, passphrase: bytes, listen: str | None = None
    ) -> ConsortiumFolder:
        """Make the authority, the coordinator's signing key and the server's key and certificate."""
        check_site_name(name)
        facts = {
            "name": name,
            "host": check_host(host),
            "port": check_port(port),
            "listen": check_host(listen or "0.0.0.0"),
        }
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        if any(root.iterdir()):
            raise InvalidInput(f"{root} is not empty; choose a new folder for this consortium.")
        root.chmod(0o700)
        folder = ConsortiumFolder(root)
        folder.ca.mkdir(mode=0o700)
        authority = Authority.create(folder.ca, f"{name}-ca", passphrase)
        write_key(folder.sign_key, make_signing_key())
        write_key(folder.server_key, make_rsa_key())
        folder._certify_server(authority, host)
        write_json(folder.members_path, {})
        write_json(folder.facts, facts)
        return folder

    def address(self) -> Address:
        """What sites are told."""
        facts = self._facts()
        key = public_text(self.signing_key())
        return Address(str(facts["host"]), int(facts["port"]), str(facts["host"]), str(facts["name"]), key)

    def settings(self) -> ServerSettings:
        """The one server of this consortium."""
        facts = self._facts()
        return ServerSettings(
            str(facts["name"]), str(facts["listen"]), int(facts["port"]), self.ca / "ca.crt", self.server_certificate,
            self.server_key, self.root / "run", self.root / "server.sock", self.register.path,
        )  # fmt: skip

    def signing_key(self) -> Ed25519PrivateKey:
        """The coordinator's."""
        return read_signing_key(self.sign_key)

    def fingerprints(self) -> dict[str, str]:
        """What a site's owner compares by telephone before taking credentials."""
        authority = read_certificate((self.ca / "ca.crt").read_bytes())
        return {
            "CA": fingerprint_certificate(authority),
            "coordinator": fingerprint_key(self.signing_key().public_key()),
        }

    def members(self) -> dict[str, Member]:
        """Every enrolled site."""
        self._facts()
        fields: Mapping[str, Any] = json.loads(self.members_path.read_bytes())
        return {
            name: Member(name, each["organisation"], each["signing_key"], tuple(each["certificates"]))
            for name, each in fields.items()
        }

    def questions(self) -> SignedQuestions:
        """Signs for the coordinator; believes answers of enrolled sites."""
        keys: dict[str, Ed25519PublicKey] = {
            name: read_public_text(member.signing_key) for name, member in self.members().items()
        }
        return SignedQuestions(self.signing_key(), keys)

    def sign(
        self,
        request: bytes,
        site: str,
        organisation: str,
        passphrase: bytes,
        days: int = SITE_DAYS,
        *,
        rename: bool = False,
    ) -> tuple[bytes, str]:
        """Enrol a new site: its credentials, and the fingerprint of its signing key.

        With `rename` the site may have another name here than it gave itself.
        """
        with self._changing():
            if check_site_name(site) in self.members():
                raise InvalidInput(
                    f"The site {site!r} is enrolled already; use dpfda consortium renew, or revoke it first."
                )
            asked = EnrolmentRequest.read(request)
            if asked.site != site and not rename:
                raise InvalidInput(
                    f"The request is of the site {asked.site!r}, but --site says {site!r}; correct it, or add --rename to "
                    "enrol the site under your name for it."
                )
            return self._sign(asked, site, organisation, passphrase, days)

    def renew(self, request: bytes, passphrase: bytes, days: int = SITE_DAYS) -> tuple[bytes, str]:
        """A further certificate for an enrolled site; the old one stays valid until it ends or is retired."""
        with self._changing():
            asked = EnrolmentRequest.read(request)
            known = self.members().get(asked.site)
            if known is None or known.signing_key != public_text(asked.signing_key):
                raise InvalidInput(
                    "The request is not of an enrolled site with the signing key that it was enrolled with; "
                    "use dpfda consortium sign for a new site."
                )
            return self._sign(asked, known.name, known.organisation, passphrase, days)

    def renew_server(self, passphrase: bytes) -> None:
        """A new certificate for the server, from the next start on."""
        with self._changing():
            self._certify_server(Authority.open(self.ca, passphrase), str(self._facts()["host"]))

    def retire(self, site: str) -> int:
        """Shut out all certificates of a site but its newest, once it uses that; how many there were."""
        with self._changing():
            members = self.members()
            if site not in members:
                raise InvalidInput(f"No site {site!r} is enrolled.")
            member = members[site]
            older = member.certificates[:-1]
            for text in older:
                self.register.retire(read_certificate(text.encode()))
            members[site] = Member(site, member.organisation, member.signing_key, member.certificates[-1:])
            self._write_members(members)
            return len(older)

    def revoke(self, site: str) -> int:
        """Shut a site out at once; how many certificates it had."""
        with self._changing():
            count = self.register.revoke(site)
            members = self.members()
            if members.pop(site, None) is None and not count:
                raise InvalidInput(f"No site {site!r} is enrolled.")
            self._write_members(members)
            return count

    def _sign(
        self, request: EnrolmentRequest, site: str, organisation: str, passphrase: bytes, days: int
    ) -> tuple[bytes, str]:
        authority, members = Authority.open(self.ca, passphrase), self.members()
        credentials = sign_enrolment(
            request, authority, self.register, self.address(), self.signing_key(), site=site, organisation=organisation,
            validity=Validity(days),
        )  # fmt: skip
        certificate = json.loads(credentials)["body"]["certificate"]
        enrolled = self.register.entries().get(site, ())
        older = [each for each in (members[site].certificates if site in members else ()) if _digest(each) in enrolled]
        members[site] = Member(site, organisation, public_text(request.signing_key), (*older, certificate))
        self._write_members(members)
        return credentials, fingerprint_key(request.signing_key)

    def _certify_server(self, authority: Authority, host: str) -> None:
        public = read_rsa_key(self.server_key).public_key()
        certificate = authority.sign_server(public, host, [host])
        write_atomically(self.server_certificate, encode_certificate(certificate))

    def _write_members(self, members: Mapping[str, Member]) -> None:
        fields = {
            member.name: {
                "organisation": member.organisation, "signing_key": member.signing_key,
                "certificates": list(member.certificates),
            }
            for member in members.values()
        }  # fmt: skip
        write_json(self.members_path, fields)

    def _changing(self) -> Lock:
        self._facts()
        return Lock(self.root / "lock")

    def _facts(self) -> dict[str, Any]:
        try:
            facts: dict[str, Any] = json.loads(self.facts.read_bytes())
            return facts
        except FileNotFoundError:
            raise InvalidInput(f"There is no consortium at {self.root}; make one with dpfda consortium init.") from None


def _digest(certificate: str) -> str:
    return certificate_digest(read_certificate(certificate.encode()))
