"""Some curves, packed once for many passes: what compiled kernels work on.

Guarantee for `privacy/`: what one curve adds to a sum is a function of that curve and of public arguments, bit for
bit (not of lane, group, neighbours, chunk or threads), is zero if anything in it overflows or is not finite, and lies
within the stated bound up to `privacy.exact.sum_slack`. Sums are words of integers, which add: totals do not depend on the
order or the chunking of curves.

| curve | contributes |
|---|---|
| without points | zero; its length is 0; counted apart in the histogram of levels |
| NaN, infinity or overflow anywhere in its gradient | zero; its length is infinite |
| entries up to 1e308 that do not overflow | its clipped value |
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpfda._typing import Floats, Integers
from dpfda.curves.curves import find_changes
from dpfda.privacy.clipping import EllipsoidBound, EntrywiseBound
from dpfda.privacy.exact import no_words
from dpfda.silo.kernels.frequencies import Frequencies
from dpfda.silo.kernels.room import POLAR

if TYPE_CHECKING:
    from dpfda.basis.basis import Basis
    from dpfda.silo.kernels.arena import Arena
    from dpfda.silo.kernels.changing_curves import ChangingCurves
    from dpfda.silo.kernels.store import Layout, SealedStore

Piece = tuple[Floats, Floats, Floats]  # u, y, and a design vector or one for each point
_MOMENTS_FROM = 1.5  # points per function of the basis


class PackedCurves:
    """Curves in the units of a plan, packed for one basis.

    A curve of m points is kept as points if m < 1.5 r and as moments otherwise, when moments take no more memory than
    points and rounds are cheaper. The rule looks at m, which is not public. That is no release: it decides by which
    of two formulas (equal up to 1e-10) this curve's own contribution is computed, and the contribution remains a
    function of this curve alone, clipped to the same bound. Time and memory depend on m with or without it. Of a basis that
    is not made of waves all curves are kept as moments.

    A curve whose design changes within it is kept apart (`changing_curves`), again by a rule that looks at this curve alone.

    A curve of weight w is packed with sqrt(w) times its y and its design, so that its gradients are w times what they were.
    Its moments are multiplied by w, and its level is not that of y: `release_statistics.level_histogram` does not ask here.
    """

    def __init__(
        self,
        basis: Basis,
        frequencies: Frequencies,
        layout: Layout,
        arena: Arena,
        changing: ChangingCurves | None = None,
        weights: Sequence[Floats] | None = None,
    ) -> None:
        from dpfda.silo.kernels.store import SealedStore, store_in

        self._basis = basis
        self._arena = arena
        self._empty = layout.empty
        self._store = SealedStore(store_in(arena), layout.columns, layout.record)
        self._frequencies = frequencies
        self._changing = changing
        self._weights = weights  # of the lanes of every store
        self.n = layout.empty + int(self._store.arrays.fill.sum(dtype=np.int64)) + (changing.n if changing else 0)

    @classmethod
    def pack(
        cls,
        u: Floats,
        y: Floats,
        offsets: Integers,
        design: Floats,
        basis: Basis,
        *,
        rows: Floats | None = None,
        weights: Floats | None = None,
        longest_direct: int | None = None,
        folder: str | None = None,
    ) -> PackedCurves:
        """Pack prepared curves: u in [0, 1], curve i's points offsets[i]..offsets[i+1]-1, one row of `design` each.

        With `rows`, each point has a design vector of its own, which is `design`'s where it does not change within a curve.
        With `weights`, within [0, 1], curve i weighs weights[i]. With a folder, the packed curves live in nameless files
        there. `longest_direct` replaces the rules for what is kept as points, for tests and benchmarks.
        """
        from dpfda.silo.kernels import store as stores

        u, y, offsets, design = (
            _frozen(array, kind) for array, kind in ((u, "f8"), (y, "f8"), (offsets, "i8"), (design, "f8"))
        )
        changes = np.zeros(offsets.size - 1, dtype=np.bool_) if rows is None else find_changes(rows, offsets)
        if weights is not None:
            y, design, rows = _weigh(y, offsets, design, rows, weights)
        changing = None
        if rows is not None and changes.any():
            changing = _pack_changing(u, y, offsets, _frozen(rows, "f8"), changes, basis, longest_direct)
            u, y, offsets, design = *_select(~changes, offsets, u, y), _frozen(design[~changes], "f8")
        if longest_direct is None or basis.harmonics < 0:
            longest_direct = longest_kept_as_points(basis)
        frequencies = Frequencies.of(basis)
        layout = stores.lay_out(offsets, longest_direct, design.shape[1], frequencies.record)
        arena = stores.fill_store(u, y, design, layout, frequencies)
        if not frequencies.has_waves:
            features = _frozen(basis.moment_features(u), "f8"), _frozen(basis.evaluate_unit(u), "f8")
            stores.fill_gram_records(*features, y, layout, frequencies, stores.store_in(arena))
        if folder is not None:
            arena.move_to_file(folder)
            if changing is not None:
                changing.move_to_file(folder)
        if weights is None:
            return cls(basis, frequencies, layout, arena, changing)
        own = [layout.spread(weights[~changes])]
        others = [] if changing is None else [changing.spread(weights[changes])]
        return cls(basis, frequencies, layout, arena, changing, own + others)

    @classmethod
    def pack_pieces(
        cls, pieces: Iterable[Piece], basis: Basis, weight: float = 1.0, *, folder: str | None = None
    ) -> PackedCurves:
        """Pack one curve with very many points, which come in pieces (u, y, design): as `pack` does, bit by bit."""
        from dpfda.silo.kernels.long_curves import CurveInPieces
        from dpfda.silo.kernels.store import lay_out

        frequencies, curve, root = Frequencies.of(basis), CurveInPieces(basis), math.sqrt(weight)
        for u, y, design in pieces:
            curve.add(u, y * root, design * root)
        if not curve.is_long:
            u, y, rows = curve.points
            offsets, design = np.array([0, u.size]), curve.design[None]
            packed = cls.pack(u, y, offsets, design, basis, rows=rows if curve.changes else None, folder=folder)
        else:
            one, none = np.array([0, curve.count]), np.zeros(1, dtype=np.int64)
            layout = lay_out(none if curve.changes else one, 0, curve.design.size, frequencies.record)
            packed = cls(basis, frequencies, layout, *curve.finish(layout))
        packed._weights = [np.full(8 * store.groups, weight) for store in packed._stores]
        return packed

    def truncated_words(self, iterate: Floats, bound: EntrywiseBound) -> Integers:
        """The sum of gradients at `iterate` (p rows of r), each entry truncated to the bound; p r entries."""
        from dpfda.silo.kernels import passes

        slopes, scales, mixture = self._scaled(iterate)
        words = passes.truncated_pass(self._store, self._frequencies, slopes, scales, bound, mixture)
        if self._changing is None:
            return words
        return words + self._changing.truncated_words(self._changing.ask(iterate, slopes, scales, mixture), bound)

    def polar(self, iterate: Floats, whitener: Floats) -> Floats:
        """||whitener @ gradient_i||, its first and its second coordinate: a row each, a column for every curve.

        Columns are in no particular order. The length is infinite for a curve that is not finite. Where there is one
        coordinate only, it is also the second.
        """
        ball = EllipsoidBound(np.ones(self._store.columns * self._basis.size), 1.0)
        return self._whitened(iterate, whitener, ball, False)[2]

    def clipped_words(
        self, iterate: Floats, whitener: Floats, ball: EllipsoidBound
    ) -> tuple[Integers, Integers, Floats]:
        """Words of whitener @ gradient_i within the ball and of outer products in units of its radius; and the lengths."""
        total, outer, polar = self._whitened(iterate, whitener, ball, True)
        return total, outer, polar[0]

    def _of_curves(self, lanes: list[Floats]) -> Floats:
        """The columns of lanes that hold curves, and zeros for every curve without points."""
        fills = (np.arange(8) < store.arrays.fill[:, None] for store in self._stores)
        found = [each.reshape(POLAR, -1, 8)[:, inside] for each, inside in zip(lanes, fills, strict=True)]
        return np.concatenate([*found, np.zeros((POLAR, self._empty))], axis=1)

    def moment_words(self, centre: Floats, bound: EllipsoidBound) -> Integers:
        """The sum of each curve's means of the basis's moment features, minus `centre`, times its weight.

        Each vector is then scaled into the ellipsoid.
        """
        from dpfda.silo.kernels.summary_passes import moment_pass

        centre = np.array(centre, dtype=np.float64)
        weights = self._weights or [np.ones(8 * store.groups) for store in self._stores]
        asked = zip(self._stores, weights, strict=True)
        return sum(
            (moment_pass(store, self._frequencies, centre, own, bound) for store, own in asked), no_words(bound.width)
        )

    def level_words(self, bins: int) -> Integers:
        """How many curves have their mean of y in each of `bins` equal bins of [-1, 1]; then, how many have no points."""
        from dpfda.silo.kernels.summary_passes import level_pass

        counts = [level_pass(store, self._frequencies, bins) for store in self._stores]
        words = no_words(bins + 1)
        words[1, :bins], words[1, bins] = sum(counts), self._empty
        return words

    @property
    def nbytes(self) -> int:
        """Memory of the packed curves."""
        return self._arena.nbytes + (self._changing.nbytes if self._changing else 0)

    def drop_pages(self) -> None:
        """Let the system take back the memory of curves that live in a file."""
        self._arena.drop_pages()
        if self._changing is not None:
            self._changing.drop_pages()

    @property
    def _stores(self) -> tuple[SealedStore, ...]:
        return (self._store,) if self._changing is None else (self._store, self._changing.store)

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
        self, iterate: Floats, whitener: Floats, ball: EllipsoidBound, outer_products: bool
    ) -> tuple[Integers, Integers, Floats]:
        from dpfda.silo.kernels import passes

        width = self._store.columns * self._basis.size
        lanes = [np.zeros(POLAR * 8 * store.groups) for store in self._stores]
        slopes, scales, mixture = self._scaled(iterate)
        asked = np.array(whitener, dtype=np.float64).reshape(width, width), ball, outer_products
        total, outer = passes.whitened_pass(self._store, self._frequencies, slopes, scales, *asked, lanes[0], mixture)
        if self._changing is not None:
            question = self._changing.ask(iterate, slopes, scales, mixture)
            others = self._changing.clipped_words(question, *asked, lanes[1])
            total, outer = total + others[0], outer + others[1]
        return total, outer, self._of_curves(lanes)


def longest_kept_as_points(basis: Basis) -> int:
    """The most points that a curve may have and still be kept as points; none for a basis that is not made of waves."""
    if basis.harmonics < 0:
        return 0
    return max(math.ceil(_MOMENTS_FROM * max(basis.size, basis.harmonics + 1)) - 1, 0)


@np.errstate(all="ignore")  # a warning would depend on the data
def _weigh(
    y: Floats, offsets: Integers, design: Floats, rows: Floats | None, weights: Floats
) -> tuple[Floats, Floats, Floats | None]:
    """y and designs of curves times the roots of their weights: products of two of them have the weights."""
    roots, within = np.sqrt(weights), slice(int(offsets[0]), int(offsets[-1]))
    by_point = np.ones(y.size)
    by_point[within] = np.repeat(roots, np.diff(offsets))
    weighed = None if rows is None else rows * by_point[:, None]
    return _frozen(y * by_point, "f8"), _frozen(design * roots[:, None], "f8"), weighed


def _pack_changing(
    u: Floats,
    y: Floats,
    offsets: Integers,
    rows: Floats,
    changes: NDArray[np.bool_],
    basis: Basis,
    longest_direct: int | None,
) -> ChangingCurves:
    """The curves whose design changes, packed."""
    from dpfda.silo.kernels.changing_curves import ChangingCurves

    some_u, some_y, places, some_rows = *_select(changes, offsets, u, y), rows[np.repeat(changes, np.diff(offsets))]
    return ChangingCurves.pack(some_u, some_y, places, _frozen(some_rows, "f8"), basis, longest_direct)


def _select(which: NDArray[np.bool_], offsets: Integers, u: Floats, y: Floats) -> tuple[Floats, Floats, Integers]:
    """u, y and offsets of some of the curves."""
    counts = np.diff(offsets)
    points, kept = np.repeat(which, counts), np.concatenate([[0], np.cumsum(counts[which])])
    within = slice(int(offsets[0]), int(offsets[-1]))
    return _frozen(u[within][points], "f8"), _frozen(y[within][points], "f8"), _frozen(kept, "i8")


def _frozen(array: Any, kind: str) -> Any:
    """A contiguous read-only view, so that kernels are compiled once for read-only and writable input."""
    view = np.ascontiguousarray(array, dtype=kind).view(np.ndarray)
    view.flags.writeable = False
    return view
