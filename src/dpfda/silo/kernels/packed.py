"""Some curves, packed once for many passes: what compiled kernels work on.

Guarantee for `privacy/`: what one curve adds to a sum is a function of that curve and of public arguments, bit for
bit (not of lane, group, neighbours, chunk or threads), is zero if anything in it overflows or is not finite, and lies
within the stated bound up to `privacy.exact.sum_slack`. Sums are words of integers, which add: totals do not depend on the
order or the chunking of curves.

| curve | contributes |
|---|---|
| without points | zero; its length is 0, so it is short; counted apart in the histogram |
| NaN, infinity or overflow anywhere in its gradient | zero; it is not short |
| entries up to 1e308 that do not overflow | its clipped value |
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from dpfda._typing import Floats, Integers
from dpfda.privacy.clipping import EllipsoidBound, EntrywiseBound
from dpfda.privacy.exact import Grid, no_words
from dpfda.silo.kernels.arena import Arena

if TYPE_CHECKING:
    from dpfda.basis.basis import Basis
    from dpfda.silo.kernels.store import Room, Store


_MOMENTS_FROM = 1.5  # points per function of the basis


class PackedCurves:
    """Curves in the units of a plan, packed for one basis.

    A curve of m points is kept as points if m < 1.5 r and as moments otherwise, when moments take no more memory than
    points and rounds are cheaper. The rule looks at m, which is not public. That is no release: it decides by which
    of two formulas (equal up to 1e-10) this curve's own contribution is computed, and the contribution remains a
    function of this curve alone, clipped to the same bound. Time and memory depend on m with or without it. Of a basis that
    is not made of waves all curves are kept as moments.
    """

    def __init__(self, basis: Basis, store: Store, design_size: int, empty: int, arena: Arena) -> None:
        self._basis = basis
        self._store = store
        self._p = design_size
        self._empty = empty
        self._arena = arena
        self._groups = int(store.fill.size)
        self._shape = wave_shape(basis)
        self._mixture = np.array(basis.mixture())
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
        folder: str | None = None,
    ) -> PackedCurves:
        """Pack prepared curves: u in [0, 1], curve i's points offsets[i]..offsets[i+1]-1, one row of `design` each.

        With a folder, the packed curves live in a nameless file there. `longest_direct` replaces the rule above, for
        tests and benchmarks.
        """
        from dpfda.silo.kernels import store as stores
        from dpfda.silo.kernels.moments import SEGMENT

        waves = basis.harmonics >= 0
        if longest_direct is None:
            longest_direct = max(math.ceil(_MOMENTS_FROM * max(basis.size, basis.harmonics + 1)) - 1, 0)
        longest_direct = longest_direct if waves else 0
        u, y, offsets, design = (
            _frozen(array, kind) for array, kind in ((u, "f8"), (y, "f8"), (offsets, "i8"), (design, "f8"))
        )
        counts = np.bincount(np.minimum(np.diff(offsets), longest_direct + 1), minlength=longest_direct + 2)
        groups = (counts + 7) // 8
        groups[0] = 0
        n_groups, n_short = int(groups.sum()), int(groups[:-1].sum())
        slots = 8 * (np.cumsum(groups) - groups)
        order = np.full(8 * n_groups, -1, dtype=np.int64)
        stores.place_curves(offsets, longest_direct, slots, order)

        points = np.repeat(np.arange(longest_direct + 1), groups[:-1])
        record = _record_size(basis)
        start = np.concatenate([8 * (np.cumsum(points) - points), 8 * record * np.arange(n_groups - n_short)])
        short_points, table = 8 * int(points.sum()), 8 * record * (n_groups - n_short)
        sizes = (short_points, short_points, table, n_groups, n_short, 8 * n_groups * design.shape[1], n_groups)
        arena = Arena(sizes)
        packed = stores.store_in(arena)
        packed.start[:], packed.points[:] = start, points
        packed.fill[:] = (order.reshape(-1, 8) >= 0).sum(axis=1)
        stores.copy_groups(u, y, offsets, design, order, packed, 0, n_groups)
        if not waves:
            rows = _frozen(basis.moment_features(u), "f8"), _frozen(basis.evaluate_unit(u), "f8")
            stores.make_gram_records(*rows, y, offsets, order, packed, 0, n_groups, np.zeros(record))
        elif n_short < n_groups:
            segment = tuple(stores.aligned_zeros(SEGMENT) for _ in range(3))
            room = segment, stores.aligned_zeros(8 * record), stores.aligned_zeros(8 * record)
            stores.make_records(u, y, offsets, order, packed, *wave_shape(basis), n_short, n_groups, *room)
        if folder is not None:
            arena.move_to_file(folder)
        return cls(basis, stores.store_in(arena), design.shape[1], int(counts[0]), arena)

    def truncated_words(self, iterate: Floats, bound: EntrywiseBound) -> Integers:
        """The sum of gradients at `iterate` (p rows of r), each entry truncated to the bound; p r entries."""
        from dpfda.silo.kernels import passes

        words, grid = no_words(bound.width), bound.grid
        arguments = (*self._functions(iterate), np.array(bound.radii), grid.magic, grid.bits)
        passes.truncated_pass(self._store, 0, self._groups, self._room(bound.width), *arguments, words[0], words[1])
        return words

    def whitened_words(
        self,
        iterate: Floats,
        whitener: Floats,
        ball: EllipsoidBound,
        *,
        threshold: float = -1.0,
        outer_products: bool = False,
        direction: Floats | None = None,
        remainder: EntrywiseBound | None = None,
    ) -> tuple[Integers, int, Integers, Integers]:
        """Sums over w_i = whitener @ gradient_i, all in one pass over the curves.

        1. w_i scaled into the ball (of weights 1 and radius C);
        2. the number of curves with ||w_i|| <= threshold;
        3. with `outer_products`, the upper triangle of v_i v_i^T, v_i = w_i / max(C, ||w_i||), on the grid of the unit ball;
        4. with a `direction`, what 1. took from w_i along it, truncated to the bound `remainder`.
        """
        return self._whitened(iterate, whitener, ball, threshold, outer_products, direction, remainder, np.empty(0))

    def norms(self, iterate: Floats, whitener: Floats) -> Floats:
        """||whitener @ gradient_i|| of every curve, in no particular order: for tests, never for release."""
        lengths = np.empty(8 * self._groups)
        ball = EllipsoidBound(np.ones(self._p * self._basis.size), 1.0)
        self._whitened(iterate, whitener, ball, -1.0, False, None, None, lengths)
        inside = np.arange(8) < self._store.fill[:, None]
        return np.concatenate([lengths.reshape(-1, 8)[inside], np.zeros(self._empty)])

    def moment_words(self, centre: Floats, bound: EllipsoidBound) -> Integers:
        """The sum of each curve's means of the basis's moment features, minus `centre`.

        Each vector is first scaled into the ellipsoid.
        """
        from dpfda.silo.kernels import passes

        words, grid = no_words(bound.width), bound.grid
        arguments = (*self._shape, np.array(centre), 1.0 / bound.roots, bound.radius, grid.magic, grid.bits)
        passes.moment_pass(self._store, 0, self._groups, self._room(2 * bound.width), *arguments, words[0], words[1])
        return words

    def level_words(self, bins: int) -> Integers:
        """How many curves have their mean of y in each of `bins` equal bins of [-1, 1]; then, how many have no points."""
        from dpfda.silo.kernels import passes

        words = no_words(bins + 1)
        passes.level_pass(self._store, 0, self._groups, self._basis.moment_count, words[1, :bins])
        words[1, bins] = self._empty
        return words

    @property
    def nbytes(self) -> int:
        """Memory of the packed curves."""
        return self._arena.nbytes

    def drop_pages(self) -> None:
        """Let the system take back the memory of curves that live in a file."""
        self._arena.drop_pages()

    def _functions(self, iterate: Floats) -> tuple[Any, ...]:
        """What the kernels must know of the basis: its waves, its moments, the mixture, the iterate and the factors sqrt2.

        The iterate has these factors in it, and one column for each cosine and sine.
        """
        rate, harmonics, sines = self._shape
        size, given = self._basis.size, np.asarray(iterate, dtype=np.float64).reshape(self._p, self._basis.size)
        scales = np.ones(size)
        if self._mixture.size:
            slopes = given @ self._mixture
        elif harmonics < 0:
            slopes = np.array(given)
        else:
            scales[1:] = math.sqrt(2)
            slopes = np.zeros((self._p, 1 + (2 * harmonics if sines else harmonics)))
            slopes[:, :size] = given * scales
        return rate, harmonics, sines, self._basis.moment_count, self._mixture, slopes, scales

    def _room(self, size: int, outer_size: int = 0) -> Room:
        from dpfda.silo.kernels.store import room_for

        return room_for(size, max(self._shape[1], self._basis.size), outer_size)

    def _whitened(
        self,
        iterate: Floats,
        whitener: Floats,
        ball: EllipsoidBound,
        threshold: float,
        outer_products: bool,
        direction: Floats | None,
        remainder: EntrywiseBound | None,
        norms: Floats,
    ) -> tuple[Integers, int, Integers, Integers]:
        from dpfda.silo.kernels import passes

        width = self._p * self._basis.size
        matrix = np.array(whitener, dtype=np.float64).reshape(width, width)
        along = np.zeros(0) if direction is None else np.array(direction, dtype=np.float64)
        limit, reach = (_unit_grid(1), 1.0) if remainder is None else (remainder.grid, float(remainder.radii[0]))
        triangle = _unit_grid(width * (width + 1) // 2 if outer_products else 0)
        total, outer, left = no_words(width), no_words(triangle.bits.size), no_words(1 if along.size else 0)
        short = passes.whitened_pass(
            self._store,
            0,
            self._groups,
            self._room(width, triangle.bits.size),
            *self._functions(iterate),
            matrix,
            (ball.radius, ball.grid.magic, ball.grid.bits, total[0], total[1]),
            float(threshold),
            (triangle.magic, triangle.bits, outer[0], outer[1]),
            (along, reach, limit.magic, limit.bits[: along.size], left[0], left[1]),
            norms,
        )
        return total, short + (self._empty if threshold >= 0 else 0), outer, left


def wave_shape(basis: Basis) -> tuple[float, int, bool]:
    """How u becomes an angle (`trig.wave`), the highest multiple of it (-1 without waves), and whether there are sines."""
    return basis.rate, basis.harmonics, bool(basis.sines)


@lru_cache(maxsize=4)
def _unit_grid(size: int) -> Grid:
    return Grid.of(np.ones(size))


def _record_size(basis: Basis) -> int:
    """Numbers that a curve's moments take: see `moments`."""
    if basis.harmonics < 0:
        return basis.moment_count + basis.size + basis.size * (basis.size + 1) // 2
    return (6 if basis.sines else 3) * basis.harmonics + 1


def _frozen(array: Any, kind: str) -> Any:
    """A contiguous read-only view, so that kernels are compiled once for read-only and writable input."""
    view = np.ascontiguousarray(array, dtype=kind).view(np.ndarray)
    view.flags.writeable = False
    return view
