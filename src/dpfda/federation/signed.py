"""Signed questions and answers at both ends, around whatever the payload is.

A site answers what its coordinator has signed and nothing else, and signs what it answers; a coordinator believes an answer
that its site has signed, about the very question that was asked. Which terms a site has accepted, and which rounds they
allow, is decided by the function inside, which gets the subject that the signature covers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from dpfda.errors import ProtocolError
from dpfda.federation.signing import ANSWER, QUERY, Subject, open_message, sign_message

Answering = Callable[[Subject, bytes], bytes]
INVITATION = -1  # the round of a question that comes before the first round


@dataclass(frozen=True)
class SignedHandler:
    """A silo's handler (bytes in, bytes out): checks the coordinator's signature, calls `answer`, signs what it gives."""

    site: str
    coordinator: Ed25519PublicKey
    key: Ed25519PrivateKey
    answer: Answering

    def __call__(self, message: bytes) -> bytes:
        """Answer one signed query; anything else raises, and so becomes `unavailable`."""
        subject, payload = open_message(QUERY, message, self.coordinator)
        return sign_message(ANSWER, replace(subject, site=self.site), self.answer(subject, payload), self.key)


@dataclass(frozen=True)
class SignedQuestions:
    """The coordinator's end: signs questions, and opens answers with the keys that sites gave at enrolment."""

    key: Ed25519PrivateKey
    sites: Mapping[str, Ed25519PublicKey]

    def write(self, subject: Subject, payload: bytes) -> bytes:
        """A signed question for all sites of the terms."""
        return sign_message(QUERY, replace(subject, site=""), payload, self.key)

    def read(self, subject: Subject, site: str, answer: bytes) -> bytes:
        """The payload of this site's answer to this question; `ProtocolError` for anything else."""
        if site not in self.sites:
            raise ProtocolError(f"No signing key of {site!r} is known.")
        found, payload = open_message(ANSWER, answer, self.sites[site], site=site)
        if found != replace(subject, site=site):
            raise ProtocolError(f"The answer of {site!r} is to another question.")
        return payload
