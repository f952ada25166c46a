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
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from dpfda._typing import Floats, Integers
from dpfda.privacy.clipping import EllipsoidBound, EntrywiseBound
from dpfda.privacy.exact import no_words
from dpfda.silo.kernels.frequencies import Frequencies

if TYPE_CHECKING:
    from dpfda.basis.basis import Basis
    from dpfda.silo.kernels.arena import Arena
    from dpfda.silo.kernels.store import Layout

Piece = tuple[Floats, Floats, Floats]
_MOMENTS_FROM = 1.5  # points per function of the basis


class PackedCurves:
    """Curves in the units of a plan, packed for one basis.

    A curve of m points is kept as points if m < 1.5 r and as moments otherwise, when moments take no more memory than
    points and rounds are cheaper. The rule looks at m, which is not public. That is no release: it decides by which
    of two formulas (equal up to 1e-10) this curve's own contribution is computed, and the contribution remains a
    function of this curve alone, clipped to the same bound. Time and memory depend on m with or without it. Of a basis that
    is not made of waves all curves are kept as moments.
    """

    def __init__(self, basis: Basis, frequencies: Frequencies, layout: Layout, arena: Arena) -> None:
        from dpfda.silo.kernels.store import SealedStore, store_in

        self._basis = basis
        self._arena = arena
        self._empty = layout.empty
        self._store = SealedStore(store_in(arena), layout.columns, layout.record)
        self._frequencies = frequencies
        self.n = layout.empty + int(self._store.arrays.fill.sum(dtype=np.int64))

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

        if longest_direct is None or basis.harmonics < 0:
            longest_direct = longest_kept_as_points(basis)
        u, y, offsets, design = (
            _frozen(array, kind) for array, kind in ((u, "f8"), (y, "f8"), (offsets, "i8"), (design, "f8"))
        )
        frequencies = Frequencies.of(basis)
        layout = stores.lay_out(offsets, longest_direct, design.shape[1], frequencies.record)
        arena = stores.fill_store(u, y, design, layout, frequencies)
        if not frequencies.has_waves:
            rows = _frozen(basis.moment_features(u), "f8"), _frozen(basis.evaluate_unit(u), "f8")
            stores.fill_gram_records(*rows, y, layout, frequencies, stores.store_in(arena))
        if folder is not None:
            arena.move_to_file(folder)
        return cls(basis, frequencies, layout, arena)

    @classmethod
    def pack_pieces(cls, pieces: Iterable[Piece], basis: Basis, *, folder: str | None = None) -> PackedCurves:
        """Pack one curve with very many points, which come in pieces (u, y, design): as `pack` does, bit by bit."""
        from dpfda.silo.kernels import long_curves
        from dpfda.silo.kernels.store import lay_out

        frequencies, longest = Frequencies.of(basis), longest_kept_as_points(basis)
        record, few, design = long_curves.start_record(basis, frequencies), [(np.zeros(0), np.zeros(0))], np.zeros(0)
        for u, y, vector in pieces:
            if not design.size or u.size:  # a piece without points has a design of zeros
                design = vector
            record.add(u, y)
            if record.points <= longest:
                few.append((u, y))
        offsets = np.array([0, record.points])
        if record.points <= longest:
            u, y = (np.concatenate(parts) for parts in zip(*few, strict=True))
            return cls.pack(u, y, offsets, design[None], basis, folder=folder)
        layout = lay_out(offsets, longest, design.size, frequencies.record)
        return cls(basis, frequencies, layout, long_curves.store_record(record.finish(), design, layout))

    def truncated_words(self, iterate: Floats, bound: EntrywiseBound) -> Integers:
        """The sum of gradients at `iterate` (p rows of r), each entry truncated to the bound; p r entries."""
        from dpfda.silo.kernels import passes

        slopes, scales, mixture = self._scaled(iterate)
        return passes.truncated_pass(self._store, self._frequencies, slopes, scales, bound, mixture)

    def lengths(self, iterate: Floats, whitener: Floats) -> Floats:
        """||whitener @ gradient_i|| of every curve, in no particular order; infinite for one that is not finite."""
        ball = EllipsoidBound(np.ones(self._store.columns * self._basis.size), 1.0)
        lengths = np.zeros(8 * self._store.groups)
        self._whitened(iterate, whitener, ball, -1.0, False, None, None, lengths)
        return self._of_curves(lengths)

    def clipped_words(
        self, iterate: Floats, whitener: Floats, ball: EllipsoidBound
    ) -> tuple[Integers, Integers, Floats]:
        """Words of whitener @ gradient_i within the ball and of outer products in units of its radius; and the lengths."""
        lengths = np.zeros(8 * self._store.groups)
        total, _, outer, _ = self._whitened(iterate, whitener, ball, -1.0, True, None, None, lengths)
        return total, outer, self._of_curves(lengths)

    def _of_curves(self, lanes: Floats) -> Floats:
        """The entries of lanes that hold curves, and a zero for every curve without points."""
        inside = np.arange(8) < self._store.arrays.fill[:, None]
        return np.concatenate([lanes.reshape(-1, 8)[inside], np.zeros(self._empty)])

    def moment_words(self, centre: Floats, bound: EllipsoidBound) -> Integers:
        """The sum of each curve's means of the basis's moment features, minus `centre`.

        Each vector is first scaled into the ellipsoid.
        """
        from dpfda.silo.kernels.summary_passes import moment_pass

        return moment_pass(self._store, self._frequencies, np.array(centre, dtype=np.float64), bound)

    def level_words(self, bins: int) -> Integers:
        """How many curves have their mean of y in each of `bins` equal bins of [-1, 1]; then, how many have no points."""
        from dpfda.silo.kernels.summary_passes import level_pass

        counts = level_pass(self._store, self._frequencies, bins)
        words = no_words(bins + 1)
        words[1, :bins], words[1, bins] = counts, self._empty
        return words

    @property
    def nbytes(self) -> int:
        """Memory of the packed curves."""
        return self._arena.nbytes

    def drop_pages(self) -> None:
        """Let the system take back the memory of curves that live in a file."""
        self._arena.drop_pages()

    def _scaled(self, iterate: Floats) -> tuple[Floats, Floats, Floats]:
        """The iterate, one column for each cosine and sine, with the basis's factors in it; the factors; and the mixture.

        Factors are sqrt2 for trigonometric functions; others are mixed of waves without factors, or not made of waves.
        """
        size, columns, mixture = self._basis.size, self._store.columns, np.array(self._basis.mixture())
        given, scales = np.asarray(iterate, dtype=np.float64).reshape(columns, size), np.ones(size)
        if mixture.size:
            return given @ mixture, scales, mixture
        if self._frequencies.has_waves:
            scales[1:] = math.sqrt(2)
        padded = np.zeros((columns, self._frequencies.functions))
        padded[:, :size] = given * scales
        return padded, scales, mixture

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

        width = self._store.columns * self._basis.size
        slopes, scales, mixture = self._scaled(iterate)
        total, short, outer, left = passes.whitened_pass(
            self._store,
            self._frequencies,
            slopes,
            scales,
            np.array(whitener, dtype=np.float64).reshape(width, width),
            ball,
            float(threshold),
            outer_products,
            None if direction is None else np.array(direction, dtype=np.float64),
            remainder,
            norms,
            mixture,
        )
        return total, short + (self._empty if threshold >= 0 else 0), outer, left


def longest_kept_as_points(basis: Basis) -> int:
    """The most points that a curve may have and still be kept as points; none for a basis that is not made of waves."""
    if basis.harmonics < 0:
        return 0
    return max(math.ceil(_MOMENTS_FROM * max(basis.size, basis.harmonics + 1)) - 1, 0)


def _frozen(array: Any, kind: str) -> Any:
    """A contiguous read-only view, so that kernels are compiled once for read-only and writable input."""
    view = np.ascontiguousarray(array, dtype=kind).view(np.ndarray)
    view.flags.writeable = False
    return view
