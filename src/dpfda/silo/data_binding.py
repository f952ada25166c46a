"""Data are bound to a run: what its first release was computed from is what every later one is computed from.

The prices of a plan assume that a subject lies in one batch. Data that change between rounds (another export, other ids,
other rows) would put a subject into two. So the ledger keeps, for each run, a keyed fingerprint of the curves (see
`curves/fingerprint.py`) from before the first release; other data end the run for this silo. Fingerprint and key stay in
the ledger.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from dpfda.errors import ProtocolError, SourceError

if TYPE_CHECKING:
    from dpfda.privacy.ledger.ledger import Ledger

OTHER_DATA = (
    "The data are not those with which this run began, so it gets no further answer here: a subject could otherwise count "
    "twice. Either end the study here (what was released stays paid for), or put the old data back and continue; for the "
    "new data begin another study. See docs/how-to/data-formats.md, 'When data change'."
)


class Fingerprinted(Protocol):
    """Curves in memory, in files or on a cluster."""

    def fingerprint(self, key: bytes) -> bytes: ...


class DataBinding:
    """The curves of one silo object, which do not change as long as it lives, and the runs known to be bound to them."""

    def __init__(self, curves: Fingerprinted) -> None:
        self._curves = curves
        self._prints: dict[str, bytes] = {}
        self._bound: set[tuple[str, str]] = set()

    def check(self, ledger: Ledger, run: str) -> None:
        """Refuse a run that began with other data; a run that did not begin is not bound."""
        bound = ledger.bound_data(run)
        if bound not in (None, self._fingerprint(ledger)):
            raise SourceError(OTHER_DATA)

    def bind(self, ledger: Ledger, run: str) -> None:
        """Before anything of a round is counted: bind the run to these data, durably, or refuse."""
        if (ledger.id, run) in self._bound:
            return
        try:
            ledger.bind_data(run, self._fingerprint(ledger))
        except ProtocolError:
            raise SourceError(OTHER_DATA) from None
        self._bound.add((ledger.id, run))

    def _fingerprint(self, ledger: Ledger) -> bytes:
        if ledger.id not in self._prints:
            self._prints[ledger.id] = self._curves.fingerprint(ledger.fingerprint_key())
        return self._prints[ledger.id]
