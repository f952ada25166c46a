"""Silos in the coordinator's own process: one organisation, simulations, tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from dpfda.engine.plan import Plan
from dpfda.messages import Query, Release


class Releasing(Protocol):
    """As much of a silo as a transport may know: it joins a study and answers queries."""

    @property
    def name(self) -> str: ...

    def join(self, plan: Plan, run: str) -> None: ...

    def release(self, query: Query) -> Release: ...


class InProcessTransport:
    """Hands every query to every silo in turn. Messages pass through their wire encoding, as they would elsewhere."""

    def __init__(self, silos: Sequence[Releasing]) -> None:
        self._silos = {silo.name: silo for silo in silos}

    def open(self, plan: Plan, run: str) -> None:
        """Let every silo check the plan before any of them spends."""
        for terms in plan.silos:
            self._silos[terms.name].join(plan, run)

    def gather(self, query: Query) -> Mapping[str, Release]:
        """Ask all silos, in order."""
        message = query.encode()
        answers = {name: silo.release(Query.decode(message)) for name, silo in self._silos.items()}
        return {name: Release.decode(answer.encode()) for name, answer in answers.items()}
