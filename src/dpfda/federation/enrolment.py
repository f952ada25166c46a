"""Enrolment: how a site comes into a consortium, and how its certificate is renewed.

1. The site makes its two keys and a request with both PUBLIC keys, signed with the new signing key.
2. The coordinator names the site, signs a certificate for the public RSA key, enters it into the register, and answers with
   credentials: the certificate, the CA's certificate, and the server's address with the coordinator's signing key.
3. Two people compare the fingerprints of CA and signing key by telephone; then the site takes the credentials.

Nothing secret travels. A site takes exactly these credentials from its coordinator (and later signed terms); it writes every
other file itself. Credentials of a renewal must come from the same CA and the same signing key.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from dpfda.errors import InvalidInput, ProtocolError
from dpfda.federation.audit_log import AuditLog
from dpfda.federation.files import write_atomically
from dpfda.federation.folder import Address, SiteFolder
from dpfda.federation.keys import (
    SITE_VALIDITY,
    Authority,
    Validity,
    common_name,
    encode_certificate,
    fingerprint_certificate,
    fingerprint_key,
    make_request,
    make_rsa_key,
    make_signing_key,
    public_text,
    read_certificate,
    read_public_text,
    read_request,
    read_rsa_key,
    read_signing_key,
    write_key,
)  # fmt: skip
from dpfda.federation.names import check_site_name
from dpfda.federation.register import Register
from dpfda.federation.seal import check_seal, write_seal
from dpfda.federation.signing import CREDENTIALS, REQUEST, open_document, parse_canonically, sign_document


@dataclass(frozen=True)
class EnrolmentRequest:
    """What a site asks for, in its own words: only the two public keys are used."""

    site: str
    csr: bytes
    signing_key: Ed25519PublicKey

    @staticmethod
    def read(data: bytes) -> EnrolmentRequest:
        """A request whose sender holds both private keys."""
        try:
            claimed = parse_canonically(data)["body"]["signing_key"]
            public = read_public_text(claimed)
            body = open_document(REQUEST, data, public)
            request = EnrolmentRequest(check_site_name(body["site"]), str(body["csr"]).encode(), public)
        except (ProtocolError, KeyError, TypeError):
            raise InvalidInput("The request cannot be read; ask the site for a new one.") from None
        read_request(request.csr)
        return request


@dataclass(frozen=True)
class Credentials:
    """What a site gets back, and what two people compare before it is used."""

    certificate: x509.Certificate
    authority: x509.Certificate
    address: Address

    def fingerprints(self) -> dict[str, str]:
        """To be read aloud: the same words must stand on both screens."""
        key = read_public_text(self.address.coordinator_key)
        return {"CA": fingerprint_certificate(self.authority), "coordinator": fingerprint_key(key)}

    @staticmethod
    def read(data: bytes) -> Credentials:
        """Credentials whose parts belong together; whether they are the right ones is what the fingerprints tell."""
        try:
            fields = parse_canonically(data)["body"]
            address = Address(**fields["address"])
            body = open_document(CREDENTIALS, data, read_public_text(address.coordinator_key))
            certificates = [read_certificate(str(body[name]).encode()) for name in ("certificate", "authority")]
        except (ProtocolError, KeyError, TypeError):
            raise InvalidInput("The credentials cannot be read; ask the coordinator for new ones.") from None
        return Credentials(certificates[0], certificates[1], address)


# ---------------------------------------------------------------- at the site


def request_enrolment(root: Path, site: str) -> bytes:
    """Make a new site's folder and keys; the request to be sent to the coordinator."""
    check_site_name(site)
    folder = SiteFolder.create(root)
    write_key(folder.site_key, make_rsa_key())
    write_key(folder.sign_key, make_signing_key())
    return write_request(folder, site)


def write_request(folder: SiteFolder, site: str) -> bytes:
    """A request for the keys that the site has: the first one, or one to renew its certificate."""
    key = read_signing_key(folder.sign_key)
    csr = make_request(read_rsa_key(folder.site_key), site).decode()
    return sign_document(REQUEST, {"site": site, "csr": csr, "signing_key": public_text(key)}, key)


def take_credentials(folder: SiteFolder, data: bytes, confirm: Callable[[dict[str, str]], bool]) -> Credentials:
    """Take credentials after a person confirmed their fingerprints; nothing changes on disk before that.

    A renewal from the same CA and coordinator needs no confirmation; from another one it is refused. The seal is written
    first and the certificate last: cut short at any moment, the same call can be made again.
    """
    credentials = Credentials.read(data)
    if credentials.certificate.public_key() != read_rsa_key(folder.site_key).public_key():
        raise InvalidInput("The certificate is for another key; send the coordinator the request of this site.")
    try:
        credentials.certificate.verify_directly_issued_by(credentials.authority)
    except (ValueError, TypeError, InvalidSignature):
        raise InvalidInput("The certificate was not signed by the CA that came with it.") from None
    check_site_name(common_name(credentials.certificate))
    coming = {
        "ca.crt": encode_certificate(credentials.authority),
        "address.json": credentials.address.encode(),
        "site.crt": encode_certificate(credentials.certificate),
    }
    renewal = _is_renewal(folder, credentials, coming)
    if not renewal and not confirm(credentials.fingerprints()):
        raise InvalidInput("The fingerprints were not confirmed; nothing was changed.")
    if not renewal:
        AuditLog(folder.audit).begin()  # before the credentials: a folder that has them has a log
    write_seal(folder, coming)
    for name, content in coming.items():
        write_atomically(folder.root / name, content)
    return credentials


def _is_renewal(folder: SiteFolder, credentials: Credentials, coming: Mapping[str, bytes]) -> bool:
    if not os.path.lexists(folder.certificate):
        return False
    check_seal(folder, coming=coming)  # a new seal must not cover somebody else's change
    known, address = read_certificate(folder.authority.read_bytes()), Address.read(folder.address_path)
    name = common_name(read_certificate(folder.certificate.read_bytes()))
    same = credentials.authority == known and credentials.address.coordinator_key == address.coordinator_key
    if not same or common_name(credentials.certificate) != name:
        raise InvalidInput(
            "These credentials are of another consortium, coordinator or site than this folder's; use a new folder for them."
        )
    return True


# ---------------------------------------------------------------- at the coordinator


def sign_enrolment(
    request: EnrolmentRequest,
    authority: Authority,
    register: Register,
    address: Address,
    key: Ed25519PrivateKey,
    *,
    site: str,
    organisation: str,
    validity: Validity = SITE_VALIDITY,
) -> bytes:
    """Sign a certificate, enter it into the register (beside an older one), and write the site's credentials."""
    if address.coordinator_key != public_text(key):
        raise InvalidInput("The address names another signing key than the coordinator's.")
    certificate = authority.sign_site(request.csr, site, organisation, validity)
    body: dict[str, Any] = {
        "certificate": encode_certificate(certificate).decode(),
        "authority": encode_certificate(authority.certificate).decode(),
        "address": asdict(address),
    }
    register.enrol(certificate)
    return sign_document(CREDENTIALS, body, key)
