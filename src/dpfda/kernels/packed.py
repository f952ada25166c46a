"""Curves packed once for many passes: the interface between measures and compiled kernels.

Guarantee for `privacy/`: what one curve adds to a sum is a function of that curve and of public arguments, bit for
bit (not of lane, group, neighbours, batch or threads), is zero if anything in it overflows or is not finite, and lies
within the stated bound up to `exact.sum_slack`, which also covers the rounding of the total. Totals do not depend on
the order or the chunking of curves.

| curve | contributes |
|---|---|
| without points | zero; its length is 0, so it is short; no bin of the histogram |
| NaN, infinity or overflow anywhere in its gradient | zero; it is not short |
| entries up to 1e308 that do not overflow | its clipped value |
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpfda.kernels.exact import Grid, checked_radius

if TYPE_CHECKING:
    from dpfda.basis import Basis
    from dpfda.kernels.store import Room, Store

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
_Part = TypeVar("_Part")

_PARTS = 16  # pieces of a pass, for several threads to take in turn
_POINTS_FOR_THREADS = 1_000_000  # below, starting threads costs more than it gains
_MOMENTS_FROM = 1.5  # points per function of the basis


class PackedCurves:
    """Curves in the units of a plan, packed for one basis.

    A curve of m points is kept as points if m < 1.5 r and as moments otherwise, when moments take no more memory than
    points and rounds are cheaper. The rule looks at m, which is not public. That is no release: it decides by which
    of two formulas (equal up to 1e-10) this curve's own contribution is computed, and the contribution remains a
    function of this curve alone, clipped to the same bound. Time and memory depend on m with or without it.
    """

    def __init__(self, basis: Basis, store: Store, design_size: int, empty: int, points: int, parts: list[int]) -> None:
        self._basis = basis
        self._store = store
        self._p = design_size
        self._empty = empty
        self._points = points
        self._parts = parts
        # turns per unit of u, the highest frequency, and whether the basis has sines
        self._shape = (basis.angle / (2 * math.pi), int(basis.frequencies[-1]), bool(basis.sines))
        self.n = empty + int(store.fill.sum(dtype=np.int64))

    @classmethod
    def pack(
        cls,
        u: Floats,
        y: Floats,
        offsets: Integers,
        design: Floats,
        basis: Basis,
        *,
        longest_direct: int | None = None,
        threads: int | None = None,
    ) -> PackedCurves:
        """Pack prepared curves: u in [0, 1], curve i's points offsets[i]..offsets[i+1]-1, one row of `design` each.

        `longest_direct` replaces the rule above, for tests and benchmarks.
        """
        from dpfda.kernels import store as stores
        from dpfda.kernels.moments import SEGMENT

        if longest_direct is None:
            longest_direct = max(math.ceil(_MOMENTS_FROM * basis.size) - 1, 0)
        u, y, offsets, design = (
            _frozen(array, kind) for array, kind in ((u, "f8"), (y, "f8"), (offsets, "i8"), (design, "f8"))
        )
        lengths = np.minimum(np.diff(offsets), longest_direct + 1)
        counts = np.bincount(lengths, minlength=longest_direct + 2)
        del lengths
        groups = (counts + 7) // 8
        groups[0] = 0
        n_groups, n_short = int(groups.sum()), int(groups[:-1].sum())
        slots = 8 * (np.cumsum(groups) - groups)
        order = np.full(8 * n_groups, -1, dtype=np.int64)
        stores.place_curves(offsets, longest_direct, slots, order)

        points = np.repeat(np.arange(longest_direct + 1), groups[:-1])
        record = _record_size(basis)
        start = np.concatenate([8 * (np.cumsum(points) - points), 8 * record * np.arange(n_groups - n_short)])
        packed = stores.Store(
            u=stores.aligned_zeros(8 * int(points.sum())),
            y=stores.aligned_zeros(8 * int(points.sum())),
            table=stores.aligned_zeros(8 * record * (n_groups - n_short)),
            start=start,
            points=points,
            design=stores.aligned_zeros(8 * n_groups * design.shape[1]),
            fill=(order.reshape(-1, 8) >= 0).sum(axis=1, dtype=np.int64).astype(np.uint8),
        )
        cost = np.cumsum(np.concatenate([[0], 4 * points, np.full(n_groups - n_short, 3 * basis.size)]))
        parts = np.searchsorted(cost, np.linspace(0, cost[-1], _PARTS + 1)).tolist()
        parts[0], parts[-1] = 0, n_groups
        self = cls(basis, packed, design.shape[1], int(counts[0]), int(offsets[-1] - offsets[0]), parts)

        def fill(first: int, last: int) -> None:
            stores.copy_groups(u, y, offsets, design, order, packed, first, last)
            long = max(first, n_short)
            if long < last:
                segment = tuple(stores.aligned_zeros(SEGMENT) for _ in range(3))
                sums, totals = stores.aligned_zeros(8 * record), stores.aligned_zeros(8 * record)
                stores.make_records(u, y, offsets, order, packed, *self._shape, long, last, segment, sums, totals)

        self._run(fill, threads)
        return self

    def clipped_gradient_sum(self, iterate: Floats, radii: Floats, *, threads: int | None = None) -> Floats:
        """The sum of gradients at `iterate` (p rows of r), each entry truncated to [-radii, radii]; p r numbers."""
        from dpfda.kernels import passes

        radii = np.ascontiguousarray(radii, dtype=np.float64)
        grid = Grid.of(radii)
        arguments = (*self._shape, *self._scaled(iterate), radii, grid.magic, grid.bits)

        def part(first: int, last: int) -> Integers:
            words = grid.words()
            passes.truncated_pass(self._store, first, last, self._room(radii.size), *arguments, words[0], words[1])
            return words

        return grid.total(self._run(part, threads))

    def whitened_pass(
        self,
        iterate: Floats,
        whitener: Floats,
        radius: float,
        *,
        threshold: float | None = None,
        spread_radius: float | None = None,
        threads: int | None = None,
    ) -> tuple[Floats, int, Floats | None]:
        """Sums over w_i = whitener @ gradient_i, all in one pass over the curves.

        Returns the sum of w_i scaled into the ball of `radius`; the number of curves with ||w_i|| <= threshold,
        or 0 without one; and, with a `spread_radius` S, the matrix sum of v_i v_i^T, v_i = w_i / max(S, ||w_i||).
        """
        limit = -1.0 if threshold is None else float(threshold)
        total, short, spread, _ = self._whitened(iterate, whitener, radius, limit, spread_radius, False, threads)
        return total, short, spread

    def norms(self, iterate: Floats, whitener: Floats) -> Floats:
        """||whitener @ gradient_i|| of every curve, in no particular order: for tests, never for release."""
        lengths = self._whitened(iterate, whitener, 1.0, -1.0, None, True, 1)[3].reshape(-1, 8)
        lengths = lengths[np.arange(8) < self._store.fill[:, None]]
        return np.concatenate([lengths, np.zeros(self._empty)])

    def moment_sum(
        self, centre: Floats, radius: float, weights: Floats | None = None, *, threads: int | None = None
    ) -> Floats:
        """The sum of each curve's means of cos(k theta), k = 1..K, and sin(k theta) if the basis has sines, minus `centre`.

        Each vector d is first scaled into sum_l d_l^2 / weights_l <= radius^2.
        """
        from dpfda.kernels import passes

        centre = np.ascontiguousarray(centre, dtype=np.float64)
        if centre.size == 0:
            return centre.copy()
        roots = np.ones(centre.size) if weights is None else np.sqrt(np.asarray(weights, dtype=np.float64))
        grid = Grid.of(np.full(centre.size, float(radius)))
        arguments = (*self._shape, centre, 1.0 / roots, float(radius), grid.magic, grid.bits)

        def part(first: int, last: int) -> Integers:
            words = grid.words()
            passes.moment_pass(self._store, first, last, self._room(2 * centre.size), *arguments, words[0], words[1])
            return words

        return grid.total(self._run(part, threads)) * roots

    def level_histogram(self, bins: int, *, threads: int | None = None) -> Floats:
        """How many curves have their own mean of y in each of `bins` equal bins of [-1, 1]."""
        from dpfda.kernels import passes

        _, harmonics, sines = self._shape
        values_before = (4 if sines else 2) * harmonics

        def part(first: int, last: int) -> Integers:
            counts = np.zeros(bins, dtype=np.int64)
            passes.level_pass(self._store, first, last, values_before, counts)
            return counts

        counts: Integers = np.sum([np.zeros(bins, dtype=np.int64), *self._run(part, threads)], axis=0)
        return counts.astype(np.float64)

    @property
    def nbytes(self) -> int:
        """Memory of the packed curves."""
        return sum(array.nbytes for array in self._store)

    def _scaled(self, iterate: Floats) -> tuple[Floats, Floats]:
        """The iterate with the basis's factors sqrt2 in it, one column for each cosine and sine; and the factors."""
        _, harmonics, sines = self._shape
        size = self._basis.size
        scales = np.full(size, math.sqrt(2))
        scales[0] = 1.0
        padded = np.zeros((self._p, 1 + (2 * harmonics if sines else harmonics)))
        padded[:, :size] = np.asarray(iterate, dtype=np.float64).reshape(self._p, size) * scales
        return padded, scales

    def _room(self, size: int, spread_size: int = 0) -> Room:
        from dpfda.kernels.store import make_room

        return make_room(size, self._shape[1], spread_size)

    def _whitened(
        self,
        iterate: Floats,
        whitener: Floats,
        radius: float,
        threshold: float,
        spread_radius: float | None,
        keep_norms: bool,
        threads: int | None,
    ) -> tuple[Floats, int, Floats | None, Floats]:
        from dpfda.kernels import passes

        width = self._p * self._basis.size
        whitener = np.ascontiguousarray(whitener, dtype=np.float64).reshape(width, width)
        grid = Grid.of(np.full(width, float(radius)))
        spread_grid = Grid.of(np.ones(0 if spread_radius is None else width * (width + 1) // 2))
        norms = np.empty(8 * len(self._store.fill) if keep_norms else 0)
        before = (*self._shape, *self._scaled(iterate), whitener, float(radius), grid.magic, grid.bits)
        spread = (1.0 if spread_radius is None else checked_radius(spread_radius), spread_grid.magic, spread_grid.bits)

        def part(first: int, last: int) -> tuple[int, Integers, Integers]:
            words, outer = grid.words(), spread_grid.words()
            own = norms[8 * first : 8 * last]
            arguments = (*before, threshold, *spread, words[0], words[1], outer[0], outer[1], own)
            room = self._room(width, spread_grid.bits.size)
            return passes.whitened_pass(self._store, first, last, room, *arguments), words, outer

        parts = self._run(part, threads)
        short = sum(count for count, _, _ in parts) + (self._empty if threshold >= 0 else 0)
        total = grid.total([words for _, words, _ in parts])
        matrix = (
            None if spread_radius is None else _symmetric(spread_grid.total([outer for _, _, outer in parts]), width)
        )
        return total, short, matrix, norms

    def _run(self, work: Callable[[int, int], _Part], threads: int | None) -> list[_Part]:
        """Call `work(first, last)` for ranges of groups that cover all of them; integers make the split irrelevant."""
        if threads is None:
            threads = 1 if self._points < _POINTS_FOR_THREADS else _processors()
        ranges = [(first, last) for first, last in pairwise(self._parts) if first < last]
        if threads == 1 or len(ranges) < 2:
            return [work(ranges[0][0], ranges[-1][1])] if ranges else []
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(work, *zip(*ranges, strict=True)))


def _processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _record_size(basis: Basis) -> int:
    """Numbers that a curve's moments take: see `moments`."""
    harmonics = int(basis.frequencies[-1])
    return (6 if basis.sines else 3) * harmonics + 1


def _frozen(array: Any, kind: str) -> Any:
    """A contiguous read-only view, so that kernels are compiled once for read-only and writable input."""
    view = np.ascontiguousarray(array, dtype=kind).view()
    view.flags.writeable = False
    return view


def _symmetric(triangle: Floats, size: int) -> Floats:
    """The symmetric matrix with this upper triangle, row by row."""
    matrix = np.zeros((size, size))
    rows, columns = np.triu_indices(size)
    matrix[rows, columns] = triangle
    matrix[columns, rows] = triangle
    return matrix
