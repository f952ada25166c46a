"""Curves of one process: prepared and packed chunk by chunk, in memory or, for curves that live in a mapped file, in files.

A chunk holds whole curves and is small against memory, so that working memory does not grow with their number. Packs
are made at the first question about a range of curves and kept until another range is asked for: the default method asks
about all curves in every round, the published one about each batch once.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

import numpy as np

from dpfda._typing import Integers, Words
from dpfda.basis.basis import Basis
from dpfda.curves.curves import Curves
from dpfda.curves.mapped import drop_pages, file_of
from dpfda.privacy.exact import no_words
from dpfda.protocol.scaling import Scaling
from dpfda.silo.kernels.packed import PackedCurves, Piece
from dpfda.silo.prepared import PreparedCurves, prepare_batch, prepare_pieces, weigh_long_curve
from dpfda.silo.sums import PackedRequest, PreparedRequest, SumRequest

_Item = TypeVar("_Item")
_Part = TypeVar("_Part")

CHUNK_POINTS, LARGEST_CHUNK_POINTS = 1 << 17, 1 << 19
CHUNK_CURVES = 1 << 16
ROW_NUMBERS = 1 << 21  # in rows that are made of curves at once: one for each curve, as wide as the statistic
_CHUNKS = 32  # of large data: enough for threads to share evenly
_POINTS_FOR_THREADS = 1_000_000  # below, starting threads costs more than it gains


def sums_of_curves(curves: Curves, basis: Basis, scaling: Scaling, *, threads: int | None = None) -> ChunkedSums:
    """The sums of raw curves under the public maps of a plan."""
    file = file_of(curves.x)

    def prepared(positions: range) -> PreparedCurves:
        return prepare_batch(curves, positions, basis, scaling)

    def forget(positions: range) -> None:
        here = slice(positions.start, positions.stop)
        points = slice(int(curves.offsets[here.start]), int(curves.offsets[here.stop]))
        for part in (curves.x[points], curves.y[points], curves.offsets[here], curves.design[here]):
            drop_pages(part)
        if curves.rows is not None:
            drop_pages(curves.rows[points])

    def pieces(position: int) -> Iterator[Piece]:
        for points, piece in prepare_pieces(curves, position, basis, scaling, LARGEST_CHUNK_POINTS):
            yield piece.u, piece.y, piece.design[0] if curves.rows is None else piece.point_design
            if file is not None:
                for part in (curves.x, curves.y) if curves.rows is None else (curves.x, curves.y, curves.rows):
                    drop_pages(part[points])

    def weigh(position: int) -> float:
        weight = weigh_long_curve(curves, position, basis, scaling, LARGEST_CHUNK_POINTS)
        if file is not None:
            drop_pages(curves.x[int(curves.offsets[position]) : int(curves.offsets[position + 1])])
        return weight

    return ChunkedSums(
        prepared,
        curves.offsets,
        basis,
        pieces=pieces,
        weigh=weigh,
        folder=None if file is None else str(Path(file).parent),
        forget=None if file is None else forget,
        threads=threads,
    )


def sums_of_prepared(curves: PreparedCurves, basis: Basis, *, threads: int | None = None) -> ChunkedSums:
    """The sums of curves that are in the units of a plan already."""
    return ChunkedSums(curves.batch, curves.offsets, basis, threads=threads)


class ChunkedSums:
    """`sums.CurveSums` of curves that this process can read.

    `prepared` gives the curves of a range, `pieces` the points of one very long curve bit by bit and `weigh` its weight,
    `offsets` the curves' places before points were dropped; with a folder, packs go to nameless files in it; `forget` is
    told which curves were read.
    """

    def __init__(
        self,
        prepared: Callable[[range], PreparedCurves],
        offsets: Integers,
        basis: Basis,
        *,
        pieces: Callable[[int], Iterable[Piece]] | None = None,
        weigh: Callable[[int], float] | None = None,
        folder: str | None = None,
        forget: Callable[[range], None] | None = None,
        threads: int | None = None,
    ) -> None:
        self.prepared = prepared
        self._offsets = offsets
        self._basis = basis
        self._pieces = pieces
        self._weigh = weigh or (lambda position: 1.0)
        self._folder = folder
        self._forget = forget or (lambda positions: None)
        self._threads = threads
        self._kept: tuple[range, list[PackedCurves]] = (range(0), [])
        self._keeping = threading.Lock()

    @property
    def n(self) -> int:
        return int(self._offsets.size) - 1

    def words(self, request: SumRequest, positions: range) -> Words:
        """The sum over the curves at these positions; silent about overflow, since a warning would depend on the data."""
        total = no_words(request.width)
        for words in (
            self.packed_parts(request, positions)
            if isinstance(request, PackedRequest)
            else self._prepared_parts(request, positions)
        ):
            total += words
        return total

    def packed_parts(self, request: PackedRequest, positions: range) -> Iterable[Words]:
        """The words of every pack of these curves; they add up to the answer."""

        def part(packed: PackedCurves) -> Words:
            words = request.packed_words(packed)
            packed.drop_pages()
            return words

        return self._run(part, self._packs(positions), positions)

    def _prepared_parts(self, request: PreparedRequest, positions: range) -> Iterable[Words]:
        most = max(1, ROW_NUMBERS // request.width)
        for chunk in self._chunks(positions):
            for start in range(chunk.start, chunk.stop, most):
                with np.errstate(all="ignore"):
                    yield request.prepared_words(self.prepared(range(start, min(start + most, chunk.stop))))
            self._forget(chunk)

    def _packs(self, positions: range) -> list[PackedCurves]:
        """The packs of these curves and of no others, whichever threads ask for which; one at a time makes them."""
        with self._keeping:
            kept, packs = self._kept
            if kept != positions:
                packs = []
                self._kept = (range(0), packs)  # free their memory first
                packs = self._run(self._pack, list(self._chunks(positions)), positions)
                self._kept = (positions, packs)
            return packs

    def _pack(self, chunk: range) -> PackedCurves:
        if self._pieces is not None and self._points(chunk) > LARGEST_CHUNK_POINTS:  # a chunk of one curve
            with np.errstate(all="ignore"):
                weight = self._weigh(chunk.start)
                return PackedCurves.pack_pieces(self._pieces(chunk.start), self._basis, weight, folder=self._folder)
        with np.errstate(all="ignore"):
            curves = self.prepared(chunk)
        arrays = curves.u, curves.y, curves.offsets, curves.design
        packed = PackedCurves.pack(*arrays, self._basis, rows=curves.rows, weights=curves.weights, folder=self._folder)
        packed.drop_pages()
        self._forget(chunk)
        return packed

    def _chunks(self, positions: range) -> Iterator[range]:
        """Consecutive ranges of bounded size that cover the positions; a longer curve is a chunk of its own."""
        start = positions.start
        most = min(max(CHUNK_POINTS, self._points(positions) // _CHUNKS), LARGEST_CHUNK_POINTS)
        while start < positions.stop:
            ends = self._offsets[start + 1 : min(start + CHUNK_CURVES, positions.stop) + 1]
            within = int(np.searchsorted(ends, int(self._offsets[start]) + most, side="right"))
            stop = start + max(within, 1)
            yield range(start, stop)
            start = stop

    def _points(self, positions: range) -> int:
        """How many points the curves have, before some are dropped."""
        return int(self._offsets[positions.stop] - self._offsets[positions.start])

    def _run(self, work: Callable[[_Item], _Part], items: list[_Item], positions: range) -> list[_Part]:
        """Call `work` on every item, in threads if that pays; integers make the order irrelevant."""
        threads = self._threads
        if threads is None:
            threads = 1 if self._points(positions) < _POINTS_FOR_THREADS else _processors()
        if threads == 1 or len(items) < 2:
            return [work(item) for item in items]
        return _in_threads(work, items, min(threads, len(items)))


def _in_threads(work: Callable[[_Item], _Part], items: list[_Item], threads: int) -> list[_Part]:
    """The items taken in turn by this thread and threads - 1 new ones."""
    found: dict[int, _Part] = {}
    failures: list[BaseException] = []
    numbers = itertools.count()  # its next() is one step of the interpreter

    def take() -> None:
        try:
            while not failures and (number := next(numbers)) < len(items):
                found[number] = work(items[number])
        except BaseException as error:  # raised again below, by the thread that asked
            failures.append(error)

    helpers = [threading.Thread(target=take) for _ in range(threads - 1)]
    for helper in helpers:
        helper.start()
    take()
    for helper in helpers:
        helper.join()
    if failures:
        raise failures[0]
    return [found[number] for number in range(len(items))]


def _processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
