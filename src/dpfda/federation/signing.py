"""Signatures with Ed25519 over canonical JSON: who said what, whatever carried it.

The origin in a message's header is only a claim, so terms, acceptances, queries and answers are believed by signature alone.
Each kind has its own domain tag, so that a signature of one kind never passes as another. There is no algorithm field:
nothing to choose, nothing to downgrade.

Documents (terms, acceptances) are JSON files. Messages (queries, answers) are bytes: a header that names the terms, the run,
the round and the site, the signature, and the payload with the arrays, which the signature covers, too.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from dpfda.errors import ProtocolError

TERMS, ACCEPTANCE, QUERY, ANSWER = "terms", "acceptance", "query", "answer"
REQUEST, CREDENTIALS = "request", "credentials"  # of enrolment
DECLINE, SEAL = "decline", "seal"  # a site's own records
APPROVAL, COUNTER = "approval", "counter"  # of a person; of a site that would accept other numbers
REHEARSAL, REHEARSED = "rehearsal", "rehearsed"  # questions and answers that no silo with data ever opens or signs
KINDS = (
    TERMS, ACCEPTANCE, QUERY, ANSWER, REQUEST, CREDENTIALS, DECLINE, SEAL, APPROVAL, COUNTER, REHEARSAL, REHEARSED,
)  # fmt: skip
VERSION = 1
MAX_DOCUMENT = 1_000_000
MAX_HEADER = 2_000
MAX_DEPTH = 20
OVERHEAD = 4 + MAX_HEADER + 64  # at most so many bytes more than the payload
_SIGNATURE = 64
_LENGTH = struct.Struct("!I")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_LARGEST_INTEGER = 2**53  # what every JSON reader agrees on
_LONGEST_NAME = 200


def encode_canonically(value: Any) -> bytes:
    """The one encoding of a JSON value: sorted keys, no spaces, ASCII, finite numbers."""
    _check_plain(value)
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()


def parse_canonically(data: bytes, most: int = MAX_DOCUMENT) -> Any:
    """A JSON value; refused when too long, too deep, with a key twice, or not in canonical form."""
    if len(data) > most:
        raise ProtocolError("The document is too long.")
    try:
        value = json.loads(data.decode("ascii"), object_pairs_hook=_refuse_doubles, parse_constant=_refuse_constant)
        canonical = encode_canonically(value)
    except (ValueError, TypeError, RecursionError, OverflowError):
        raise ProtocolError("The document cannot be read.") from None
    if canonical != data:
        raise ProtocolError("The document is not in canonical form.")
    return value


# ---------------------------------------------------------------- documents


def sign_document(kind: str, body: Mapping[str, Any], key: Ed25519PrivateKey) -> bytes:
    """A signed document as canonical JSON."""
    signature = key.sign(_tag(kind) + encode_canonically(body))
    return encode_canonically({"kind": kind, "body": body, "signature": base64.b64encode(signature).decode()})


def open_document(kind: str, data: bytes, public: Ed25519PublicKey) -> dict[str, Any]:
    """The body of a document of this kind that the owner of this key has signed."""
    fields = parse_canonically(data)
    if not isinstance(fields, dict) or set(fields) != {"kind", "body", "signature"} or fields["kind"] != kind:
        raise ProtocolError(f"This is not a document of the kind {kind}.")
    body, signature = fields["body"], fields["signature"]
    if not isinstance(body, dict) or not isinstance(signature, str):
        raise ProtocolError(f"This is not a document of the kind {kind}.")
    try:
        raw = base64.b64decode(signature, validate=True)
        if base64.b64encode(raw).decode() != signature:  # base64 has spare bits; there is one way to write a document
            raise ValueError
        public.verify(raw, _tag(kind) + encode_canonically(body))
    except (InvalidSignature, ValueError):
        raise ProtocolError(f"The signature of this document of the kind {kind} is wrong.") from None
    return body


def sign_acceptance(
    terms: str,
    site: str,
    ledger: str,
    at: int,
    key: Ed25519PrivateKey,
    dates: tuple[int | None, int | None] = (None, None),
) -> bytes:
    """A site accepts the terms with this digest, from when to when; called after a person said yes."""
    body = {"terms": _checked_digest(terms), "site": site, "ledger": ledger, "at": at}
    return sign_document(ACCEPTANCE, body | {"begins": dates[0], "ends": dates[1]}, key)


def open_acceptance(data: bytes, terms: str, site: str, public: Ed25519PublicKey) -> dict[str, Any]:
    """An acceptance of these terms by this site."""
    body = open_document(ACCEPTANCE, data, public)
    if set(body) != {"terms", "site", "ledger", "at", "begins", "ends"}:
        raise ProtocolError("The acceptance lacks fields or has unknown ones.")
    if (body["terms"], body["site"]) != (terms, site):
        raise ProtocolError("The acceptance is for other terms or of another site.")
    return body


# ---------------------------------------------------------------- messages


@dataclass(frozen=True)
class Subject:
    """What a message is about. A query is for every site of the terms, so its `site` is empty."""

    terms: str
    run: str
    round: int
    site: str = ""

    def fields(self) -> dict[str, Any]:
        """As JSON."""
        return {"terms": self.terms, "run": self.run, "round": self.round, "site": self.site}


def sign_message(kind: str, subject: Subject, payload: bytes, key: Ed25519PrivateKey) -> bytes:
    """A signed query or answer."""
    _check_subject(subject)
    header = encode_canonically({"kind": kind, "v": VERSION, **subject.fields()})
    return _LENGTH.pack(len(header)) + header + key.sign(_signed_bytes(kind, header, payload)) + payload


def peek_kind(data: bytes) -> str:
    """What kind a message claims to be: to send it the right way, never to be believed."""
    fields = parse_canonically(_split(data)[0], MAX_HEADER)
    return str(fields.get("kind")) if isinstance(fields, dict) else ""


def peek_subject(kind: str, data: bytes) -> Subject:
    """What a message claims to be about: to find the key that it must be signed with, never to be believed."""
    header, _, _ = _split(data)
    return _read_header(kind, header)


def open_message(kind: str, data: bytes, public: Ed25519PublicKey, *, site: str = "") -> tuple[Subject, bytes]:
    """Subject and payload of a message of this kind, signed with this key and, if it is an answer, by this site."""
    header, signature, payload = _split(data)
    subject = _read_header(kind, header)
    try:
        public.verify(signature, _signed_bytes(kind, header, payload))
    except InvalidSignature:
        raise ProtocolError(f"The signature of this {kind} is wrong.") from None
    if subject.site != site:
        raise ProtocolError(f"This {kind} is of another site.")
    return subject, payload


def _split(data: bytes) -> tuple[bytes, bytes, bytes]:
    if len(data) < _LENGTH.size:
        raise ProtocolError("The message is too short.")
    (length,) = _LENGTH.unpack_from(data)
    start = _LENGTH.size + length
    if length > MAX_HEADER or len(data) < start + _SIGNATURE:
        raise ProtocolError("The message has an impossible length.")
    return data[_LENGTH.size : start], data[start : start + _SIGNATURE], data[start + _SIGNATURE :]


def _read_header(kind: str, header: bytes) -> Subject:
    fields = parse_canonically(header, MAX_HEADER)
    if not isinstance(fields, dict) or set(fields) != {"kind", "v", "terms", "run", "round", "site"}:
        raise ProtocolError("The message's header lacks fields or has unknown ones.")
    if fields["kind"] != kind or fields["v"] != VERSION:
        raise ProtocolError(f"This is not a {kind} of version {VERSION}.")
    subject = Subject(fields["terms"], fields["run"], fields["round"], fields["site"])
    _check_subject(subject)
    return subject


def _check_subject(subject: Subject) -> None:
    texts = isinstance(subject.run, str) and isinstance(subject.site, str)
    if not texts or not 0 < len(subject.run) <= _LONGEST_NAME or len(subject.site) > _LONGEST_NAME:
        raise ProtocolError("The message's run or site is malformed.")
    if isinstance(subject.round, bool) or not isinstance(subject.round, int) or not -1 <= subject.round < 2**31:
        raise ProtocolError("The message's round is malformed.")
    _checked_digest(subject.terms)


def _checked_digest(text: object) -> str:
    if not isinstance(text, str) or not _DIGEST.fullmatch(text):
        raise ProtocolError("A digest of terms must be 64 hexadecimal digits.")
    return text


def _signed_bytes(kind: str, header: bytes, payload: bytes) -> bytes:
    return _tag(kind) + header + b"\n" + hashlib.sha256(payload).digest()


def _tag(kind: str) -> bytes:
    if kind not in KINDS:
        raise ProtocolError(f"There are no signatures of kind {kind!r}.")
    return f"dpfda/{kind}/{VERSION}\n".encode()


# ---------------------------------------------------------------- plain JSON


def _check_plain(value: Any, depth: int = 0) -> None:
    """Only values that every JSON reader reads alike."""
    if depth > MAX_DEPTH:
        raise ProtocolError("The document is nested too deeply.")
    if isinstance(value, Mapping):
        if not all(isinstance(name, str) for name in value):
            raise ProtocolError("The names in a document must be text.")
        for each in value.values():
            _check_plain(each, depth + 1)
    elif isinstance(value, list | tuple):
        for each in value:
            _check_plain(each, depth + 1)
    elif isinstance(value, int) and not isinstance(value, bool):
        if not -_LARGEST_INTEGER <= value <= _LARGEST_INTEGER:
            raise ProtocolError("A whole number in the document is too large.")
    elif not (value is None or isinstance(value, str | bool | float)):
        raise ProtocolError(f"A document cannot hold a {type(value).__name__}.")


def _refuse_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a name twice")
    return fields


def _refuse_constant(text: str) -> Any:
    raise ValueError(text)
