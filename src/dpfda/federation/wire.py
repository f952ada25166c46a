"""What the coordinator's bytes mean: signed terms and questions out, signed acceptances and releases back."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field

from dpfda.errors import ProtocolError
from dpfda.federation.plausible import Plausible
from dpfda.federation.proposal import sign_terms
from dpfda.federation.signed import INVITATION, SignedQuestions
from dpfda.federation.signing import Subject, open_acceptance
from dpfda.protocol.messages import Query, Release
from dpfda.protocol.terms import StudyTerms


@dataclass
class StudyWire:
    """Writes and reads the messages of one study; `acceptances` holds what the sites signed, by site."""

    questions: SignedQuestions
    terms: StudyTerms
    acceptances: dict[str, bytes] = field(default_factory=dict)

    @functools.cached_property
    def _plausible(self) -> Plausible:
        return Plausible(self.terms)

    @functools.cached_property
    def _digest(self) -> str:
        return self.terms.digest()

    def name_sites(self, plan: StudyTerms) -> Sequence[str]:
        """In the order of the terms."""
        return [silo.name for silo in plan.silos]

    def write_invitation(self, plan: StudyTerms, run: str) -> bytes:
        """The terms themselves, so that a site that has not seen them can show them to its owner."""
        return self.questions.write(Subject(plan.digest(), run, INVITATION), sign_terms(plan, self.questions.key))

    def is_acceptance(self, plan: StudyTerms, run: str, site: str, answer: bytes) -> bool:
        """Whether the site has shown its owner's acceptance of these very terms."""
        data = self.questions.read(Subject(plan.digest(), run, INVITATION), site, answer)
        open_acceptance(data, plan.digest(), site, self.questions.sites[site])
        self.acceptances[site] = data
        return True

    def write_question(self, question: Query) -> bytes:
        """One round's question."""
        return self.questions.write(self._subject(question), question.encode())

    def read_answer(self, question: Query, site: str, answer: bytes) -> Release:
        """The site's release, if it is about this round and of this site."""
        release = Release.decode(self.questions.read(self._subject(question), site, answer))
        if (release.run, release.round, release.silo) != (question.run, question.round, site):
            raise ProtocolError(f"The release of {site!r} is about another round.")
        if not self._plausible.is_plausible(question, release):
            raise ProtocolError(f"The release of {site!r} holds numbers that no silo of this study releases.")
        return release

    def _subject(self, question: Query) -> Subject:
        return Subject(self._digest, question.run, question.round)
