"""The few fixed messages that cross the border besides `Query` and `Release`: the invitation, and answers by code.

There is one refusal, the code "unavailable": neither the kind of error nor its text, a path or anything computed from data
leaves a site. Causes are the question, the policy, the ledger, the disk and, as the one stated exception, data that are
no longer those with which a run began; never what stands in rows (`Reading.rows`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from dpfda.errors import ProtocolError
from dpfda.protocol.messages import MAX_ENTRIES

VERSION = 2
MAX_INVITATION = 4096
MAX_MESSAGE = 8 * MAX_ENTRIES + 65536

OK, UNAVAILABLE = "ok", "unavailable"
CODES = (OK, UNAVAILABLE)


@dataclass(frozen=True)
class Invitation:
    """The coordinator asks a site to take part: the study's id and the digest of its terms, both known to the site."""

    study: str
    terms: str

    def encode(self) -> bytes:
        """Plain JSON."""
        return json.dumps({"dpfda": VERSION, "study": self.study, "terms": self.terms}, sort_keys=True).encode()

    @staticmethod
    def decode(data: bytes) -> Invitation:
        """Parse defensively."""
        if len(data) > MAX_INVITATION:
            raise ProtocolError("The invitation has an impossible length.")
        try:
            fields = json.loads(data.decode())
            version, study, terms = (fields[name] for name in ("dpfda", "study", "terms"))
        except (ValueError, KeyError, TypeError, RecursionError):
            raise ProtocolError("The invitation cannot be read.") from None
        if version != VERSION or not all(isinstance(text, str) and 0 < len(text) <= 200 for text in (study, terms)):
            raise ProtocolError(f"The invitation is not one of version {VERSION}.")
        return Invitation(study, terms)


@dataclass(frozen=True)
class Answer:
    """What a site hands back: a code, and the encoded release if the code is "ok"."""

    code: str
    payload: bytes = b""
