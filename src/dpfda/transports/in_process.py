"""Silos in the coordinator's own process: one organisation, simulations, tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol

from dpfda.errors import BudgetExceeded, TransportError
from dpfda.protocol.messages import Query, Release
from dpfda.protocol.terms import StudyTerms


class Releasing(Protocol):
    """As much of a silo as a transport may know: it joins a study and answers queries."""

    @property
    def name(self) -> str: ...

    def join(self, terms: StudyTerms, run: str) -> None: ...

    def release(self, query: Query) -> Release: ...


class InProcessTransport:
    """Hands every query to every silo in turn. Messages pass through their wire encoding, as they would elsewhere."""

    def __init__(self, silos: Sequence[Releasing]) -> None:
        self._silos = {silo.name: silo for silo in silos}
        self._members: list[Releasing] = []

    def open(self, terms: StudyTerms, run: str) -> None:
        """Let every silo check the terms before any of them spends."""
        names = [silo.name for silo in terms.silos]
        missing = [name for name in names if name not in self._silos]
        if missing:
            raise TransportError(f"The terms name silos that are not connected: {', '.join(missing)}.")
        self._members = [self._silos[name] for name in names]
        received = StudyTerms.decode(terms.encode())  # frozen, and each silo makes its plan from the bytes again
        for silo in self._members:
            with _naming(silo):
                silo.join(received, run)

    def gather(self, query: Query) -> Mapping[str, Release]:
        """Ask all silos of the terms, in their order."""
        message = query.encode()
        answers: dict[str, Release] = {}
        for silo in self._members:
            with _naming(silo):
                answers[silo.name] = silo.release(Query.decode(message))
        return {name: Release.decode(answer.encode()) for name, answer in answers.items()}


@contextmanager
def _naming(silo: Releasing) -> Iterator[None]:
    """A refusal for want of budget says whose it is."""
    try:
        yield
    except BudgetExceeded as refusal:
        reason = str(refusal)
        raise BudgetExceeded(f"Silo {silo.name!r} refuses: {reason[:1].lower()}{reason[1:]}") from refusal
