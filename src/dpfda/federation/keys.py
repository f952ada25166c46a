"""Keys and certificates: each private key is made where it is used, and never leaves.

A site makes an RSA key (FLARE's log-in signs with RSA-PSS) and an Ed25519 key for its signatures, and sends a request that
holds public keys only. The coordinator's authority takes the public key of a request and nothing else: name, organisation
and usage of the certificate are the coordinator's own words. No certificate carries a role, so none is an administrator's.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import ipaddress
import os
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

from dpfda.errors import InvalidInput
from dpfda.federation.files import OWNER_ONLY, sync_folder
from dpfda.federation.names import check_host, check_organisation, check_site_name

KEY_BITS = 3072
SMALLEST_KEY, LARGEST_KEY = 2048, 8192  # of a request: below is weak, above is a way to keep the authority busy
MAX_REQUEST = 20_000  # bytes
BACKDATED = dt.timedelta(days=1)  # a site whose clock is slow can use its certificate at once
SITE_DAYS, SERVER_DAYS, AUTHORITY_DAYS = 365, 365, 3650
_SHORTEST_PASSPHRASE = 12


# ---------------------------------------------------------------- keys


def make_rsa_key() -> rsa.RSAPrivateKey:
    """The key of a site, a server or the authority."""
    return rsa.generate_private_key(public_exponent=65537, key_size=KEY_BITS)


def make_signing_key() -> Ed25519PrivateKey:
    """The key that terms, acceptances, queries and answers are signed with."""
    return Ed25519PrivateKey.generate()


def write_key(path: Path, key: rsa.RSAPrivateKey | Ed25519PrivateKey, passphrase: bytes | None = None) -> None:
    """Write a new private key, readable by its owner only; an existing file is never replaced."""
    if passphrase is not None and len(passphrase) < _SHORTEST_PASSPHRASE:
        raise InvalidInput(f"The passphrase must have at least {_SHORTEST_PASSPHRASE} bytes.")
    protection: serialization.KeySerializationEncryption = serialization.NoEncryption()
    if passphrase is not None:
        protection = serialization.BestAvailableEncryption(passphrase)
    data = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, protection)
    write_new(path, data)


def write_new(path: Path, data: bytes) -> None:
    """Write a file that must not exist yet, durably, for its owner only."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, OWNER_ONLY)
    except FileExistsError:
        raise InvalidInput(f"{path} exists already; it is never replaced, so move it away first.") from None
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    sync_folder(path.parent)


def read_rsa_key(path: Path, passphrase: bytes | None = None) -> rsa.RSAPrivateKey:
    """The private RSA key of a file."""
    key = _read_key(path, passphrase)
    if not isinstance(key, rsa.RSAPrivateKey):
        raise InvalidInput(f"{path} does not hold an RSA key.")
    return key


def read_signing_key(path: Path, passphrase: bytes | None = None) -> Ed25519PrivateKey:
    """The private Ed25519 key of a file."""
    key = _read_key(path, passphrase)
    if not isinstance(key, Ed25519PrivateKey):
        raise InvalidInput(f"{path} does not hold an Ed25519 key.")
    return key


def public_text(key: Ed25519PrivateKey | Ed25519PublicKey) -> str:
    """A public signing key as 64 hexadecimal digits."""
    public = key.public_key() if isinstance(key, Ed25519PrivateKey) else key
    return public.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw).hex()


def read_public_text(text: object) -> Ed25519PublicKey:
    """The public signing key of 64 hexadecimal digits."""
    try:
        if not isinstance(text, str) or len(text) != 64 or text != text.lower():
            raise ValueError
        return Ed25519PublicKey.from_public_bytes(bytes.fromhex(text))
    except (ValueError, UnsupportedAlgorithm):
        raise InvalidInput("A public signing key must be 64 hexadecimal digits in lower case.") from None


def fingerprint_key(key: Ed25519PublicKey) -> str:
    """What two people read to each other to compare a signing key."""
    return spell(hashlib.sha256(bytes.fromhex(public_text(key))).hexdigest())


def fingerprint_certificate(certificate: x509.Certificate) -> str:
    """What two people read to each other to compare a certificate."""
    return spell(certificate_digest(certificate))


def certificate_digest(certificate: x509.Certificate) -> str:
    """The SHA-256 of a certificate, as it stands in the register."""
    return certificate.fingerprint(hashes.SHA256()).hex()


def spell(digest: str) -> str:
    """A digest in groups of four, for reading aloud."""
    return " ".join(digest[start : start + 4] for start in range(0, len(digest), 4))


def _read_key(path: Path, passphrase: bytes | None) -> object:
    try:
        return serialization.load_pem_private_key(path.read_bytes(), passphrase)
    except FileNotFoundError:
        raise InvalidInput(f"There is no key at {path}.") from None
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise InvalidInput(f"The key {path} cannot be read: damaged, or the passphrase is wrong or missing.") from None


# ---------------------------------------------------------------- requests


def make_request(key: rsa.RSAPrivateKey, site: str) -> bytes:
    """A certificate signing request (PEM) of a site's own key."""
    builder = x509.CertificateSigningRequestBuilder().subject_name(_name(check_site_name(site)))
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def read_request(data: bytes) -> rsa.RSAPublicKey:
    """The public key of a request, and nothing else of it; refused if its sender does not hold the private key."""
    if len(data) > MAX_REQUEST:
        raise InvalidInput("The request is too large; ask the site for a new one.")
    try:
        request = x509.load_pem_x509_csr(data)
        public = request.public_key()
        valid = request.is_signature_valid
    except (ValueError, UnsupportedAlgorithm, InvalidSignature, TypeError):
        raise InvalidInput("The request cannot be read; ask the site for a new one.") from None
    if not valid or not isinstance(public, rsa.RSAPublicKey):
        raise InvalidInput("The request is not signed by the RSA key that it holds; ask the site for a new one.")
    if not SMALLEST_KEY <= public.key_size <= LARGEST_KEY:
        raise InvalidInput(f"The request's key has {public.key_size} bits; it must have {KEY_BITS}.")
    return public


def read_certificate(data: bytes) -> x509.Certificate:
    """One certificate (PEM)."""
    try:
        return x509.load_pem_x509_certificate(data)
    except (ValueError, UnsupportedAlgorithm):
        raise InvalidInput("The certificate cannot be read.") from None


def encode_certificate(certificate: x509.Certificate) -> bytes:
    """The certificate as PEM."""
    return certificate.public_bytes(serialization.Encoding.PEM)


def common_name(certificate: x509.Certificate) -> str:
    """Whose certificate it is."""
    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(names[0].value) if len(names) == 1 else ""


# ---------------------------------------------------------------- authority


@dataclass(frozen=True)
class Validity:
    """From when to when; backdated by a day unless told otherwise."""

    days: int
    begin: dt.datetime | None = None

    def dates(self) -> tuple[dt.datetime, dt.datetime]:
        """First and last moment."""
        now = dt.datetime.now(dt.UTC)
        begin = now - BACKDATED if self.begin is None else self.begin
        return begin, (now if self.begin is None else begin) + dt.timedelta(days=self.days)


SITE_VALIDITY, SERVER_VALIDITY = Validity(SITE_DAYS), Validity(SERVER_DAYS)


class Authority:
    """The consortium's certificate authority: `ca.crt`, and `ca.key` under a passphrase, in one folder."""

    def __init__(self, certificate: x509.Certificate, key: rsa.RSAPrivateKey) -> None:
        self.certificate, self._key = certificate, key

    @staticmethod
    def create(folder: Path, name: str, passphrase: bytes, days: int = AUTHORITY_DAYS) -> Authority:
        """A new authority; an existing one is never replaced."""
        key = make_rsa_key()
        subject = _name(check_site_name(name))
        builder = _builder(subject, subject, key.public_key(), Validity(days), key.public_key())
        certificate = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        certificate = certificate.add_extension(_usage(authority=True), critical=True)
        signed = certificate.sign(key, hashes.SHA256())
        write_key(folder / "ca.key", key, passphrase)
        write_new(folder / "ca.crt", encode_certificate(signed))
        return Authority(signed, key)

    @staticmethod
    def open(folder: Path, passphrase: bytes) -> Authority:
        """An authority made earlier."""
        return Authority(
            read_certificate((folder / "ca.crt").read_bytes()), read_rsa_key(folder / "ca.key", passphrase)
        )

    def sign_site(
        self, request: bytes, site: str, organisation: str, validity: Validity = SITE_VALIDITY
    ) -> x509.Certificate:
        """A site's certificate: of the request only the public key is taken."""
        subject = _name(check_site_name(site), check_organisation(organisation))
        alternative: list[x509.GeneralName] = [x509.DNSName(site)]
        return self._sign(read_request(request), subject, ExtendedKeyUsageOID.CLIENT_AUTH, alternative, validity)

    def sign_server(
        self, public: rsa.RSAPublicKey, identity: str, hosts: list[str], validity: Validity = SERVER_VALIDITY
    ) -> x509.Certificate:
        """The server's certificate; `identity` is the name that sites expect, whatever the address is."""
        alternative = [_alternative(check_host(host)) for host in dict.fromkeys([identity, *hosts])]
        subject = _name(check_host(identity))
        return self._sign(public, subject, ExtendedKeyUsageOID.SERVER_AUTH, alternative, validity)

    def _sign(
        self,
        public: rsa.RSAPublicKey,
        subject: x509.Name,
        use: ObjectIdentifier,
        alternative: list[x509.GeneralName],
        validity: Validity,
    ) -> x509.Certificate:
        builder = _builder(subject, self.certificate.subject, public, validity, self._key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(_usage(authority=False), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage([use]), critical=False)
        builder = builder.add_extension(x509.SubjectAlternativeName(alternative), critical=False)
        return builder.sign(self._key, hashes.SHA256())


def _builder(
    subject: x509.Name, issuer: x509.Name, public: rsa.RSAPublicKey, validity: Validity, issuing: rsa.RSAPublicKey
) -> x509.CertificateBuilder:
    begin, end = validity.dates()
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(public)
    builder = builder.serial_number(x509.random_serial_number()).not_valid_before(begin).not_valid_after(end)
    builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    return builder.add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuing), critical=False)


def _name(common: str, organisation: str | None = None) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, common)]
    if organisation is not None:
        parts.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, organisation))
    return x509.Name(parts)


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, key_cert_sign=authority, crl_sign=authority, encipher_only=False, decipher_only=False,
    )  # fmt: skip
