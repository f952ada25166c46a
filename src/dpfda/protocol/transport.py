"""What carries queries to silos and their releases back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from dpfda.protocol.messages import Query, Release
from dpfda.protocol.terms import StudyTerms


class Transport(Protocol):
    """The coordinator's only view of the silos.

    `open` proposes the terms to every silo; a silo that refuses raises. `gather` asks all silos the same question and
    returns the answers of those that gave one, by silo name, in the order of the terms.
    """

    def open(self, terms: StudyTerms, run: str) -> None: ...

    def gather(self, query: Query) -> Mapping[str, Release]: ...
