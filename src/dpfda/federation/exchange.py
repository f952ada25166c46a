"""The few fixed messages that cross the border besides `Query` and `Release`: the invitation, and answers by code.

A refusal that reaches the coordinator is one of three codes. They state the kind of error, which follows from the question,
the policy and the ledger; never its text, a path or anything computed from data.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from dpfda.errors import BudgetExceeded, InvalidInput, ProtocolError, TransportError
from dpfda.protocol.messages import MAX_ENTRIES

VERSION = 2
MAX_INVITATION = 4096
MAX_MESSAGE = 8 * MAX_ENTRIES + 65536

OK, REFUSED, BUDGET, UNAVAILABLE = "ok", "refused", "budget", "unavailable"
CODES = (OK, REFUSED, BUDGET, UNAVAILABLE)


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


def choose_code(error: Exception) -> str:
    """The only thing that the coordinator learns of an error at a site."""
    if isinstance(error, BudgetExceeded):
        return BUDGET
    if isinstance(error, ProtocolError | InvalidInput):
        return REFUSED
    return UNAVAILABLE


def make_error(code: str, site: str) -> BudgetExceeded | ProtocolError | TransportError:
    """The coordinator's error for a site's code."""
    if code == BUDGET:
        return BudgetExceeded(f"The budget of site {site!r} does not allow this.")
    if code == REFUSED:
        return ProtocolError(f"Site {site!r} refused; its own log has the reason.")
    return TransportError(f"Site {site!r} could not answer; its own log has the reason.")
