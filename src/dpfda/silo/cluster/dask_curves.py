"""`DaskCurves`: the curves of one silo on the workers of a Dask cluster.

The silo's head has the ledger and draws the noise. Workers read the rows, and send back sums as exact integers, which
the head adds: the same bits as in one process, however the curves are spread. The head sees neither rows nor ids. Sums
are not private before noise was added, so scheduler, workers and head belong to one organisation and one trust border.
"""

from __future__ import annotations

import operator
import os
import secrets
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpfda.curves.curves import Curves
from dpfda.curves.tables.loading import doubt, refuse_or_note
from dpfda.curves.tables.source import find_source
from dpfda.errors import DpfdaError, InvalidInput, SourceError
from dpfda.privacy.exact import no_words
from dpfda.silo.cluster.engine import check_reach, open_client
from dpfda.silo.cluster.part import Part, Seal, facts_of, lanes_of, words_of
from dpfda.silo.cluster.shares import Division, Recipe, divide, recipe, split_rows
from dpfda.silo.sums import SumRequest

if TYPE_CHECKING:
    from dpfda._typing import Words
    from dpfda.basis.basis import Basis
    from dpfda.curves.fingerprint import Lanes
    from dpfda.curves.tables.reading import Reading
    from dpfda.protocol.scaling import Scaling

_LOOK_AGAIN = 5.0  # seconds between looks whether there are workers at all
_MOST_LOOKS = 12
_ROOM = 0.4  # of the workers' memory, that rows on their way between them may take


class DaskCurves:
    """Curves in parts, each in a process of a Dask cluster. Give it to a `Silo` in the place of `Curves`.

    A worker that dies is no loss: Dask reads its part again elsewhere and asks again. If that fails too, the round ends in
    one sentence before anything of it was spent. A part that is read again must hold the rows that it held at first.
    """

    def __init__(self, client: Any, loads: Sequence[Callable[[], Curves]]) -> None:
        """`loads` are picklable functions without arguments, each giving one part's curves; no curve is in two parts.

        `client` is a Dask client, or the URL of a scheduler (`engine.open_client`).
        """
        if not loads:
            raise InvalidInput("loads must hold at least one function that loads curves.")
        client = open_client(client)
        workers = client.scheduler_info(n_workers=-1)["workers"]
        self._start(client, _submit_parts(client, [client.submit(_Plain, load, pure=False) for load in loads], workers))

    @classmethod
    def from_source(
        cls,
        client: Any,
        location: str | os.PathLike[str],
        reading: Reading,
        *,
        query: str | None = None,
        parts: int | None = None,
        scratch: str | os.PathLike[str] | None = None,
    ) -> DaskCurves:
        """A long table that every worker can read; each keeps its own range of ids.

        Rows of Parquet in any order are read once and handed from worker to worker, if all columns but the id are numbers
        and the workers' memory holds them; otherwise each part reads the table by itself.

        `parts` is the number of workers if left out; `scratch` a folder on every worker for what does not fit into memory.
        """
        if reading.wide:
            raise InvalidInput("A table is spread over workers in long format only; reshape it or use one process.")
        source, client = find_source(os.fspath(location), query), open_client(client)
        workers = client.scheduler_info(n_workers=-1)["workers"]
        division = client.submit(divide, source, reading, parts or max(1, len(workers)), pure=False)
        count, needed = _asked(client, [client.submit(_weigh, division, pure=False)])[0]
        folder = None if scratch is None else os.fspath(scratch)
        recipes = [client.submit(recipe, source, reading, division, k, folder, pure=False) for k in range(count)]
        self = cls.__new__(cls)
        if needed is not None and needed <= _room(workers):
            slices = [
                client.submit(split_rows, source, reading, division, k, len(workers), pure=False, **_on(workers, k))
                for k in range(len(workers))
            ]
            self._start(client, _shuffle(client, recipes, slices, workers))
        else:
            self._start(client, _submit_parts(client, recipes, workers))
        self.owner_notes = refuse_or_note(self._findings, reading)
        self.owner_doubts = doubt(self._findings, reading)
        return self

    def _start(self, client: Any, parts: list[Any]) -> None:
        self._client, self._parts = client, parts
        facts = _asked(client, [client.submit(facts_of, part, pure=False) for part in self._parts])
        self._findings = [finding for *_, finding in facts if finding is not None]
        if len({p for _, p, _, _ in facts}) > 1:
            raise InvalidInput("All parts must have the same design columns.")
        self.owner_notes: tuple[str, ...] = ()
        self.owner_doubts: tuple[str, ...] = ()
        self.p: int = facts[0][1]
        self.design_changes: bool = any(changes for _, _, changes, _ in facts)
        self._bounds = [0]
        for n, *_ in facts:
            self._bounds.append(self._bounds[-1] + n)
        key = secrets.token_bytes(32)
        lanes = _asked(client, self._submit_lanes(key, [None] * len(facts)))
        self._seals = [Seal(key, position, each) for position, each in zip(self._bounds[:-1], lanes, strict=True)]

    @property
    def n(self) -> int:
        """The number of curves."""
        return self._bounds[-1]

    def fingerprint(self, key: bytes) -> bytes:
        """What `Curves.fingerprint` gives for the same curves in one process."""
        check_reach(self._client)
        first, *others = _asked(self._client, self._submit_lanes(key, self._seals))
        whole: Lanes = sum(others, first)
        return whole.digest(key)

    def _submit_lanes(self, key: bytes, seals: Sequence[Seal | None]) -> list[Any]:
        places = zip(self._parts, self._bounds[:-1], seals, strict=True)
        return [self._client.submit(lanes_of, part, key, first, seal, pure=False) for part, first, seal in places]

    def sums(self, basis: Basis, scaling: Scaling) -> DaskSums:
        """Their sums under the public maps of a plan, made by the workers."""
        return DaskSums(self, uuid.uuid4().hex, basis, scaling)

    def words(self, study: str, basis: Basis, scaling: Scaling, request: SumRequest, positions: range) -> Words:
        """Ask every part for its share of the positions, and add."""
        check_reach(self._client)
        asked = []
        for part, seal, first, last in zip(self._parts, self._seals, self._bounds[:-1], self._bounds[1:], strict=True):
            low, high = max(first, positions.start), min(last, positions.stop)
            if low < high:
                question = (part, seal, study, basis, scaling, request, low - first, high - first)
                asked.append(self._client.submit(words_of, *question, pure=False))
        return sum(_asked(self._client, asked), no_words(request.width))

    def __repr__(self) -> str:
        return f"DaskCurves(n={self.n}, p={self.p}, parts={len(self._parts)})"


@dataclass(frozen=True)
class DaskSums:
    """`CurveSums` of curves on a Dask cluster, for one study."""

    curves: DaskCurves
    study: str
    basis: Basis
    scaling: Scaling

    @property
    def n(self) -> int:
        return self.curves.n

    def words(self, request: SumRequest, positions: range) -> Words:
        """The sum over the curves at these positions."""
        return self.curves.words(self.study, self.basis, self.scaling, request, positions)


def _weigh(division: Division) -> tuple[int, int | None]:
    """The number of parts, and the memory that a shuffle takes, or None where it does not pay."""
    return len(division.shares), division.shuffle_bytes


def _room(workers: Mapping[str, Any]) -> float:
    """Bytes that rows may take on all workers together: Dask writes what it holds to disk from 0.6 of their memory on."""
    return _ROOM * sum(worker["memory_limit"] or 0 for worker in workers.values())


def _on(workers: Mapping[str, Any], number: int) -> dict[str, Any]:
    """Where a task should run, so that all workers have as many; elsewhere if that worker is gone."""
    addresses = sorted(workers)
    return {"workers": [addresses[number % len(addresses)]], "allow_other_workers": True} if addresses else {}


def _submit_parts(client: Any, recipes: list[Any], workers: Mapping[str, Any]) -> list[Any]:
    """Every part is read by the worker that keeps it."""
    return [client.submit(Part, each, pure=False, **_on(workers, k)) for k, each in enumerate(recipes)]


def _shuffle(client: Any, recipes: list[Any], slices: list[Any], workers: Mapping[str, Any]) -> list[Any]:
    """Every part is put together from what each slice of the table has of it, in the order of the slices."""
    found = []
    for k, each in enumerate(recipes):
        pieces = [client.submit(operator.getitem, rows, k, pure=False) for rows in slices]
        found.append(client.submit(Recipe.make_part, each, pieces, pure=False, **_on(workers, k)))
    return found


@dataclass(frozen=True)
class _Plain:
    """A loader of curves without findings."""

    load: Callable[[], Curves]

    def __call__(self) -> tuple[Curves, None]:
        return self.load(), None


def _asked(client: Any, futures: list[Any]) -> list[Any]:
    """The answers; what went wrong on a worker is one sentence here."""
    import distributed

    wait: Any = distributed.wait
    looks = 0
    while True:
        try:
            wait(futures, timeout=_LOOK_AGAIN)
            return list(client.gather(futures))
        except distributed.TimeoutError:
            looks = 0 if client.scheduler_info(n_workers=-1)["workers"] else looks + 1
            if looks >= _MOST_LOOKS:
                raise SourceError(
                    "No worker of the Dask cluster is alive; start workers and ask again. Nothing was spent."
                ) from None
        except DpfdaError:
            raise
        except Exception as error:
            raise SourceError(
                f"A worker of the Dask cluster failed ({type(error).__name__}); look at its log. Nothing was spent on "
                "this round."
            ) from None
