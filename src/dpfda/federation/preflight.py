"""Why a site cannot reach its server: one sentence per cause, found by a TLS handshake of our own, before FLARE tries.

FLARE retries for ever and says little. This check uses only the standard library and the site's own files; it sends nothing
but the handshake. A good connection takes about a second, because TLS 1.3 tells of a refused certificate late.
"""

from __future__ import annotations

import datetime as dt
import socket
import ssl
import time
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature

from dpfda.errors import InvalidInput
from dpfda.federation.keys import common_name, read_certificate, read_rsa_key

_LATE_REFUSAL = 1.0  # seconds to wait for a TLS 1.3 server's opinion of our certificate
_LOOK = 0.02  # seconds between looks for it
_NOT_YET, _EXPIRED = 9, 10  # OpenSSL's codes of a certificate outside its dates


@dataclass(frozen=True)
class Finding:
    """A code for programs and a sentence for people; the code is "ok" when the server was reached."""

    code: str
    sentence: str

    @property
    def good(self) -> bool:
        """Whether the server was reached."""
        return self.code == "ok"


@dataclass(frozen=True)
class Credentials:
    """What a site shows and what it expects."""

    authority: Path
    certificate: Path
    key: Path
    identity: str


@dataclass(frozen=True)
class _Own:
    authority: x509.Certificate
    mine: x509.Certificate
    now: dt.datetime

    @property
    def late(self) -> bool:
        return self.now > self.mine.not_valid_after_utc

    @property
    def early(self) -> bool:
        return self.now < self.mine.not_valid_before_utc


def check_connection(host: str, port: int, credentials: Credentials, timeout: float = 5.0) -> Finding:
    """Try to reach the server; what stands in the way, if anything does."""
    try:
        authority, certificate = (path.read_bytes() for path in (credentials.authority, credentials.certificate))
        own = _Own(read_certificate(authority), read_certificate(certificate), dt.datetime.now(dt.UTC))
        key = read_rsa_key(credentials.key)
    except FileNotFoundError as error:
        return Finding("files", f"The file {error.filename} is missing: enrol this site first.")
    except InvalidInput as error:
        return Finding("files", str(error))
    if key.public_key() != own.mine.public_key():
        return Finding("key", "Your certificate belongs to another key: send the coordinator a new request.")
    try:
        own.mine.verify_directly_issued_by(own.authority)
    except (ValueError, TypeError, InvalidSignature):
        return Finding("own-ca", "Your certificate was not signed by this consortium's CA: ask for both files again.")
    try:
        raw = socket.create_connection((host, port), timeout)
    except OSError as error:
        return _explain_unreached(error, host, port)
    with raw:
        return _shake_hands(raw, host, port, credentials, own)


def _shake_hands(raw: socket.socket, host: str, port: int, credentials: Credentials, own: _Own) -> Finding:
    place = f"{host}:{port}"
    try:
        with _context(credentials, verify=True).wrap_socket(raw) as secure:
            theirs = x509.load_der_x509_certificate(secure.getpeercert(binary_form=True) or b"")
            refusal = _wait_for_refusal(secure, own)
    except ssl.SSLCertVerificationError as error:
        return _explain_server(error, host, port, credentials, own)
    except (OSError, ValueError) as error:
        return _explain_broken(error, place, own)
    if common_name(theirs) != credentials.identity:
        return Finding(
            "name",
            f"The server at {place} calls itself {common_name(theirs)!r} instead of {credentials.identity!r}: wrong "
            "address, or somebody else's server. Do not continue.",
        )
    if refusal is not None:
        return refusal
    days = (own.mine.not_valid_after_utc - own.now).days
    return Finding("ok", f"Reached {credentials.identity} at {place}; your certificate is valid for {days} more days.")


def _wait_for_refusal(secure: ssl.SSLSocket, own: _Own) -> Finding | None:
    """A server refuses a certificate after its own handshake is done; one that accepts it sends a session ticket then."""
    closed, until = False, time.monotonic() + _LATE_REFUSAL
    secure.settimeout(_LOOK)
    while not closed and not _has_ticket(secure) and time.monotonic() < until:
        try:
            closed = secure.recv(1) == b""
        except TimeoutError:
            continue
        except ssl.SSLError as error:
            return _explain_refusal(str(error.reason or ""), own)
        except OSError:
            closed = True
    return _explain_refusal("", own) if closed or own.late or own.early else None


def _has_ticket(secure: ssl.SSLSocket) -> bool:
    return secure.session is not None and secure.session.has_ticket


def _context(credentials: Credentials, *, verify: bool) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # knows no CA but the one below
    context.check_hostname = False  # the name that counts is the identity, checked afterwards
    context.verify_mode = ssl.CERT_REQUIRED if verify else ssl.CERT_NONE
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_verify_locations(credentials.authority)
    context.load_cert_chain(credentials.certificate, credentials.key)
    return context


def _explain_unreached(error: OSError, host: str, port: int) -> Finding:
    place = f"{host}:{port}"
    if isinstance(error, socket.gaierror):
        return Finding("dns", f"The name {host} is not known here: check the address, or your DNS.")
    if isinstance(error, ConnectionRefusedError):
        return Finding("closed", f"Nobody listens at {place}: the server is not running, or the port is wrong.")
    name = type(error).__name__
    return Finding("unreachable", f"{place} does not answer ({name}): a firewall on the way, or a wrong address.")


def _explain_broken(error: OSError | ValueError, place: str, own: _Own) -> Finding:
    """The handshake broke off."""
    if not isinstance(error, ssl.SSLError):
        name = type(error).__name__
        return Finding("reset", f"{place} broke off the handshake ({name}): another service, or a proxy in between.")
    if any(word in str(error) for word in ("WRONG_VERSION", "RECORD", "HTTP_REQUEST")):
        return Finding("not-tls", f"{place} answers, but not with TLS: another service, or a proxy in between.")
    return _explain_refusal(str(error.reason or ""), own)


def _explain_refusal(reason: str, own: _Own) -> Finding:
    """The server refused our certificate; the likeliest reason first."""
    begin, end = own.mine.not_valid_before_utc, own.mine.not_valid_after_utc
    if own.late:
        return Finding(
            "expired",
            f"Your certificate ended on {end:%Y-%m-%d}, this computer's clock says {own.now:%Y-%m-%d %H:%M} UTC: renew it, "
            "or correct the clock.",
        )
    if own.early:
        return Finding(
            "clock",
            f"Your certificate begins on {begin:%Y-%m-%d %H:%M} UTC, this computer's clock says {own.now:%Y-%m-%d %H:%M}: "
            "the clock is slow.",
        )
    if "expired" in reason.lower():
        return Finding(
            "clock",
            "The server considers your certificate out of date, but by this computer's clock it is not: one of the clocks "
            "is wrong.",
        )
    return Finding("refused", f"The server refused your certificate ({reason.lower() or 'connection closed'}).")


def _explain_server(
    error: ssl.SSLCertVerificationError, host: str, port: int, credentials: Credentials, own: _Own
) -> Finding:
    """The server's certificate did not convince us."""
    theirs = _fetch_certificate(host, port, credentials)
    if theirs is None:
        return Finding("ca", f"The certificate of the server at {host}:{port} is not valid. Do not continue.")
    if error.verify_code in (_NOT_YET, _EXPIRED):
        begin, end = theirs.not_valid_before_utc, theirs.not_valid_after_utc
        if own.now < begin:
            return Finding(
                "clock",
                f"This computer's clock ({own.now:%Y-%m-%d %H:%M} UTC) lies before the server's certificate begins "
                f"({begin:%Y-%m-%d %H:%M}): the clock is slow by {_span(begin - own.now)} or more.",
            )
        return Finding(
            "server-expired",
            f"The server's certificate ended on {end:%Y-%m-%d}, {_span(own.now - end)} ago by this computer's clock: the "
            "coordinator must renew it, or your clock is fast.",
        )
    return Finding(
        "ca",
        f"The server at {host}:{port} shows a certificate of another CA ({theirs.issuer.rfc4514_string()}, yours is "
        f"{own.authority.subject.rfc4514_string()}): wrong server, an old CA file, or somebody in between. Do not continue.",
    )


def _fetch_certificate(host: str, port: int, credentials: Credentials) -> x509.Certificate | None:
    """The certificate that was not accepted, to tell what is wrong with it; nothing is sent."""
    try:
        with (
            socket.create_connection((host, port), 5.0) as raw,
            _context(credentials, verify=False).wrap_socket(raw) as secure,
        ):
            return x509.load_der_x509_certificate(secure.getpeercert(binary_form=True) or b"")
    except (OSError, ValueError):
        return None


def _span(length: dt.timedelta) -> str:
    return f"{length.days} days" if length.days else f"{length.seconds // 60} minutes"
