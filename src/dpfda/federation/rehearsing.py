"""`dpfda study rehearse`: the coordinator's side of a rehearsal. Nothing is kept but times and who answered."""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from dpfda.errors import InvalidInput, ProtocolError, TransportError
from dpfda.federation.carried import ANSWERED, ASK, CarriedTransport
from dpfda.federation.keys import read_public_text
from dpfda.federation.plausible import Plausible
from dpfda.federation.proposal import sign_terms
from dpfda.federation.rehearsal import make_rehearsal_terms
from dpfda.federation.rounds import Closing
from dpfda.federation.running import Server
from dpfda.federation.signed import INVITATION
from dpfda.federation.signing import REHEARSAL, REHEARSED, Subject, open_message, sign_message
from dpfda.federation.study import name_study
from dpfda.federation.workspace import StudyFolder
from dpfda.methods.run import run_study
from dpfda.protocol.messages import Query, Release
from dpfda.protocol.plans.registry import make_plan
from dpfda.protocol.terms import StudyTerms

_PATIENCE = 30.0  # seconds in which a site must answer: it starts a process first


@dataclass
class RehearsalWire:
    """Questions of a rehearsal; answers are believed by keys that live as long as it does."""

    key: Ed25519PrivateKey
    terms: StudyTerms
    keys: dict[str, Ed25519PublicKey] = field(default_factory=dict)

    @functools.cached_property
    def _plausible(self) -> Plausible:
        return Plausible(self.terms)

    def name_sites(self, plan: StudyTerms) -> Sequence[str]:
        """In the order of the terms."""
        return [silo.name for silo in plan.silos]

    def write_invitation(self, plan: StudyTerms, run: str) -> bytes:
        """The terms of the rehearsal."""
        return sign_message(REHEARSAL, Subject(plan.digest(), run, INVITATION), sign_terms(plan, self.key), self.key)

    def is_acceptance(self, plan: StudyTerms, run: str, site: str, answer: bytes) -> bool:
        """Take the key of this rehearsal from its first answer, which it signs."""
        try:
            public = read_public_text(answer[-64:].decode("ascii"))
        except (InvalidInput, UnicodeDecodeError):
            raise ProtocolError("The answer to the invitation holds no key.") from None
        open_message(REHEARSED, answer, public, site=site)
        self.keys[site] = public
        return True

    def write_question(self, question: Query) -> bytes:
        """One round's question."""
        subject = Subject(self.terms.digest(), question.run, question.round)
        return sign_message(REHEARSAL, subject, question.encode(), self.key)

    def read_answer(self, question: Query, site: str, answer: bytes) -> Release | None:
        """A release about this round, with numbers that a silo of these terms can have released."""
        if site not in self.keys:
            return None
        found, payload = open_message(REHEARSED, answer, self.keys[site], site=site)
        release = Release.decode(payload)
        asked = (question.run, question.round)
        same = (found.run, found.round) == (release.run, release.round) == asked and release.silo == site
        return release if same and self._plausible.is_plausible(question, release) else None


@dataclass
class RehearsalReport:
    """What a rehearsal showed."""

    study: str
    rounds: int
    done: int
    seconds: list[float]
    answered: dict[str, int]
    missing: dict[str, str]
    message: str = ""

    def fields(self) -> dict[str, Any]:
        """As JSON."""
        median = statistics.median(self.seconds) if self.seconds else None
        return {"study": self.study, "rounds": self.rounds, "done": self.done, "median_seconds": median,
                "answered": self.answered, "missing": self.missing, "message": self.message}  # fmt: skip


def rehearse(folder: StudyFolder) -> RehearsalReport:
    """Run the study's rounds on made-up data at every site that lets itself be asked."""
    consortium, terms = folder.consortium(), make_rehearsal_terms(folder.terms())
    names = [silo.name for silo in terms.silos]
    report = RehearsalReport(name_study(terms), len(make_plan(terms).rounds), 0, [], dict.fromkeys(names, 0), {})
    last = [time.monotonic()]

    def note(kind: str, codes: Mapping[str, str]) -> None:
        report.missing = {site: code for site, code in codes.items() if code != ANSWERED}
        for site, code in codes.items():
            report.answered[site] += int(kind == ASK and code == ANSWERED)

    def advance(done: int, planned: int) -> None:
        now = time.monotonic()
        if done > report.done:
            report.seconds.append(now - last[0])
        report.done, last[0] = done, now

    with Server(consortium) as server:
        wire = RehearsalWire(consortium.signing_key(), terms)
        transport = CarriedTransport(server, wire, Closing(terms.min_silos, _PATIENCE, 2 * _PATIENCE), note)
        try:
            run_study(terms, transport, name_study(terms), advance)
        except TransportError as error:
            report.message = str(error)
    return report
