"""What runs on a worker: it loads its own part of the curves and answers questions with integer words.

Raw rows stay in the process that read them. A part that Dask wants elsewhere travels as the recipe to load it, and is
read from the source again there.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING

from dpfda.curves.curves import Curves
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

    def __init__(self, load: Load) -> None:
        self._load = load
        self.curves, self.findings = load()
        self._sums: OrderedDict[str, ChunkedSums] = OrderedDict()
        self._lock = Lock()

    def __reduce__(self) -> tuple[type[Part], tuple[Load]]:
        return Part, (self._load,)

    def __sizeof__(self) -> int:
        """What Dask weighs before it runs a question elsewhere."""
        return self.curves.x.nbytes + self.curves.y.nbytes + self.curves.offsets.nbytes + self.curves.design.nbytes

    def words(self, study: str, basis: Basis, scaling: Scaling, request: SumRequest, positions: range) -> Words:
        """The exact sum over some of the curves, packed once for a study."""
        with self._lock:
            sums = self._sums.pop(study, None) or sums_of_curves(self.curves, basis, scaling)
            self._sums[study] = sums
            while len(self._sums) > _MOST_STUDIES:
                self._sums.popitem(last=False)
            return sums.words(request, positions)


def facts_of(part: Part) -> tuple[int, int, Findings | None]:
    """The number of curves, the length of their design vectors, and the counts for the owner."""
    return part.curves.n, part.curves.p, part.findings


def words_of(
    part: Part, study: str, basis: Basis, scaling: Scaling, request: SumRequest, first: int, last: int
) -> Words:
    """The exact sum over the curves first..last-1 of the part."""
    return part.words(study, basis, scaling, request, range(first, last))
