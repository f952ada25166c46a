"""What runs on a worker: it loads its own part of the curves and answers questions with integer words.

Raw rows stay on the workers. A part that Dask wants elsewhere travels as the recipe to load it, and is read from the source
again there; rows travel once, before there are parts, if a table in any order is read by all workers together (`shares.py`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

from dpfda.curves.curves import Curves
from dpfda.curves.fingerprint import Lanes
from dpfda.errors import SourceError
from dpfda.silo.chunked_sums import ChunkedSums, sums_of_curves
from dpfda.silo.sums import SumRequest

if TYPE_CHECKING:
    from dpfda._typing import Words
    from dpfda.basis.basis import Basis
    from dpfda.curves.tables.loading import Findings
    from dpfda.protocol.scaling import Scaling

Load = Callable[[], "tuple[Curves, Findings | None]"]
_MOST_STUDIES = 2  # whose packed curves a worker keeps for each of its parts


class Part:
    """Curves in a worker's memory or scratch files."""

    def __init__(self, load: Load, loaded: tuple[Curves, Findings | None] | None = None) -> None:
        """`loaded` is what `load` would give, where it is there already."""
        self._load = load
        self.curves, self.findings = loaded or load()
        self._lanes: dict[tuple[bytes, int], Lanes] = {}
        self._sums: OrderedDict[str, ChunkedSums] = OrderedDict()
        self._lock = Lock()

    def __reduce__(self) -> tuple[type[Part], tuple[Load]]:
        return Part, (self._load,)

    def __sizeof__(self) -> int:
        """What Dask weighs before it runs a question elsewhere."""
        curves = self.curves
        arrays = [curves.x, curves.y, curves.offsets, curves.design]
        return sum(array.nbytes for array in (arrays if curves.rows is None else [*arrays, curves.rows]))

    def lanes(self, key: bytes, position: int) -> Lanes:
        """What the part adds to the fingerprint of the whole, computed once for every load."""
        with self._lock:
            if (key, position) not in self._lanes:
                self._lanes[key, position] = self.curves.lanes(key, position)
            return self._lanes[key, position]

    def refuse_other_rows(self, seal: Seal) -> None:
        """A part that was lost is read again: its rows must be those that were read first."""
        if self.lanes(seal.key, seal.position) != seal.lanes:
            raise SourceError("The data on a worker are not those that were loaded first; load them anew.")

    def words(self, study: str, basis: Basis, scaling: Scaling, request: SumRequest, positions: range) -> Words:
        """The exact sum over some of the curves, packed once for a study."""
        with self._lock:
            sums = self._sums.pop(study, None) or sums_of_curves(self.curves, basis, scaling)
            self._sums[study] = sums
            while len(self._sums) > _MOST_STUDIES:
                self._sums.popitem(last=False)
            return sums.words(request, positions)


@dataclass(frozen=True)
class Seal:
    """The lanes of a part when it was first loaded, under a key that lives as long as the head's process."""

    key: bytes
    position: int
    lanes: Lanes


def lanes_of(part: Part, key: bytes, position: int, seal: Seal | None = None) -> Lanes:
    """What a part whose first curve is at `position` adds to a fingerprint."""
    if seal is not None:
        part.refuse_other_rows(seal)
    return part.lanes(key, position)


def facts_of(part: Part) -> tuple[int, int, bool, Findings | None]:
    """The number of curves, the length of their design vectors and whether these change, and the counts for the owner."""
    return part.curves.n, part.curves.p, part.curves.design_changes, part.findings


def words_of(
    part: Part, seal: Seal, study: str, basis: Basis, scaling: Scaling, request: SumRequest, first: int, last: int
) -> Words:
    """The exact sum over the curves first..last-1 of the part, if it holds what it held at first."""
    part.refuse_other_rows(seal)
    return part.words(study, basis, scaling, request, range(first, last))
