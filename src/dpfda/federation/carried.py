"""The coordinator's transport over sites, with what is carried left open.

`CarriedTransport` has the two methods that the engine's loop calls, `open` and `gather`. What a plan, a query and a release
look like as bytes, and how they are signed, is the business of a `Wire`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, Protocol, TypeVar

from dpfda.errors import ProtocolError, TransportError
from dpfda.federation.rounds import REJECTED, Closing, Counts
from dpfda.federation.server_link import Answers

Plan = TypeVar("Plan")
Question = TypeVar("Question")
Given = TypeVar("Given")
Read = TypeVar("Read")
PlanIn_contra = TypeVar("PlanIn_contra", contravariant=True)
QuestionIn_contra = TypeVar("QuestionIn_contra", contravariant=True)
GivenOut_co = TypeVar("GivenOut_co", covariant=True)

OnAnswers = Callable[[str, Mapping[str, str]], None]
INVITE, ASK = "invite", "ask"
ANSWERED = "ok"


class Asking(Protocol):
    """As much of a `ServerLink` as a transport needs."""

    def ask(self, sites: Sequence[str], message: bytes, closing: Closing, counts: Counts) -> Answers: ...


class Wire(Protocol[PlanIn_contra, QuestionIn_contra, GivenOut_co]):
    """What the bytes mean: encodes and signs for the coordinator, checks and decodes what a site answered."""

    def name_sites(self, plan: PlanIn_contra) -> Sequence[str]: ...

    def write_invitation(self, plan: PlanIn_contra, run: str) -> bytes: ...

    def is_acceptance(self, plan: PlanIn_contra, run: str, site: str, answer: bytes) -> bool: ...

    def write_question(self, question: QuestionIn_contra) -> bytes: ...

    def read_answer(self, question: QuestionIn_contra, site: str, answer: bytes) -> GivenOut_co | None: ...


class CarriedTransport(Generic[Plan, Question, Given]):
    """Invites the sites of a plan, asks them round after round, and collects answers by quorum or deadline.

    An answer that the wire does not believe counts as none: the quorum is one of answers that it has read. With fewer usable
    answers than the quorum a call raises `TransportError`; nothing is lost, because silos answer a repeated question from
    their records. What a `doubt`ed site answers to questions is not believed.
    """

    def __init__(
        self, link: Asking, wire: Wire[Plan, Question, Given], closing: Closing, on_answers: OnAnswers | None = None
    ) -> None:
        self._link, self._wire, self._closing, self._on_answers = link, wire, closing, on_answers
        self._sites: tuple[str, ...] = ()
        self._doubted: set[str] = set()

    def open(self, plan: Plan, run: str) -> None:
        """Invite every site; below the quorum nothing is asked."""
        self._sites = tuple(self._wire.name_sites(plan))
        joined, missing = self._ask(
            self._wire.write_invitation(plan, run),
            self._closing,
            lambda site, answer: self._wire.is_acceptance(plan, run, site, answer) or None,
        )
        self._conclude(INVITE, joined, missing)

    def gather(self, question: Question) -> Mapping[str, Given]:
        """Ask all sites; the usable answers, in the plan's order."""
        usable, missing = self._ask(
            self._wire.write_question(question),
            self._closing,
            lambda site, answer: None if site in self._doubted else self._wire.read_answer(question, site, answer),
        )
        self._conclude(ASK, usable, missing)
        return usable

    def doubt(self, silos: Sequence[str]) -> None:
        """Answers of these sites count for nothing from now on: whoever asks cannot use them."""
        self._doubted.update(silos)

    def _ask(
        self, message: bytes, closing: Closing, read: Callable[[str, bytes], Read | None]
    ) -> tuple[dict[str, Read], dict[str, str]]:
        """What the wire makes of each answer as it comes, and why there is none of the other sites."""
        found: dict[str, Read] = {}

        def counts(site: str, answer: bytes) -> bool:
            with contextlib.suppress(ProtocolError):
                content = read(site, answer)
                if content is not None:
                    found[site] = content
                    return True
            return False

        answers = self._link.ask(self._sites, message, closing, counts)
        usable = {site: found[site] for site in self._sites if site in answers.given}
        return usable, {site: answers.missing.get(site, REJECTED) for site in self._sites if site not in usable}

    def _conclude(self, kind: str, usable: Mapping[str, object], missing: Mapping[str, str]) -> None:
        if self._on_answers is not None:
            self._on_answers(kind, {site: missing.get(site, ANSWERED) for site in self._sites})
        if len(usable) < self._closing.quorum:
            told = ", ".join(f"{site} ({why})" for site, why in missing.items())
            raise TransportError(
                f"{len(usable)} of {len(self._sites)} sites answered, the minimum is {self._closing.quorum}; missing: "
                f"{told}. Nothing is lost: when they are back, run dpfda study resume."
            )
