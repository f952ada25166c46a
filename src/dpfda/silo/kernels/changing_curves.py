"""Those curves of a chunk whose design changes within them: packed once, then sums over them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from dpfda._typing import Floats, Integers
from dpfda.privacy.clipping import EllipsoidBound, EntrywiseBound
from dpfda.silo.kernels.arena import Arena
from dpfda.silo.kernels.changing import Design, SealedDesign, fill_design, store_weights
from dpfda.silo.kernels.frequencies import Frequencies
from dpfda.silo.kernels.long_curves import store_record
from dpfda.silo.kernels.nodes import Nodes, channel_count
from dpfda.silo.kernels.store import Layout, SealedStore, fill_gram_records, fill_store, lay_out, store_in

if TYPE_CHECKING:
    from dpfda.basis.basis import Basis
    from dpfda.silo.kernels.changing_passes import Question

_WAVE_COST = 30  # of the first cosine and sine of a point, in multiply-adds
_MOST_MEMORY = 2.0  # of a record, over that of the points that it stands for


class ChangingCurves:
    """Curves with a design vector for each point, none of them empty. What one of them adds depends on it alone."""

    def __init__(self, basis: Basis, layout: Layout, arena: Arena, beside: Arena) -> None:
        self._frequencies, self._nodes = Frequencies.of(basis), Nodes.of(basis)
        self._arenas, self._layout = (arena, beside), layout
        self._seal()

    def _seal(self) -> None:
        points, designs = self._arenas
        self.store = SealedStore(store_in(points), self._layout.columns, self._layout.record)
        self._design = SealedDesign(Design(*designs.parts), self.store, self._nodes.count)
        self.n = int(self.store.arrays.fill.sum(dtype=np.int64))

    @classmethod
    def pack(
        cls, u: Floats, y: Floats, offsets: Integers, rows: Floats, basis: Basis, longest_direct: int | None = None
    ) -> ChangingCurves:
        """Pack prepared curves with one row of the design for each point."""
        frequencies = Frequencies.of(basis)
        if longest_direct is None or not frequencies.has_waves:
            longest_direct = longest_changing_as_points(basis, rows.shape[1])
        layout = lay_out(offsets, longest_direct, rows.shape[1], frequencies.record)
        arena = fill_store(u, y, np.zeros((offsets.size - 1, rows.shape[1])), layout, frequencies)
        if not frequencies.has_waves:
            features = np.ascontiguousarray(basis.moment_features(u)), np.ascontiguousarray(basis.evaluate_unit(u))
            fill_gram_records(*features, y, layout, frequencies, store_in(arena))
        return cls(basis, layout, arena, fill_design(u, y, rows, layout, frequencies, basis))

    @classmethod
    def of_record(cls, basis: Basis, record: Floats, weights: Floats, points: int, columns: int) -> ChangingCurves:
        """One curve with very many points, whose record and weights were made piece by piece."""
        layout = lay_out(np.array([0, points]), 0, columns, Frequencies.of(basis).record)
        return cls(basis, layout, store_record(record, np.zeros(columns), layout), store_weights(weights))

    def truncated_words(self, question: Question, bound: EntrywiseBound) -> Integers:
        """The sum of gradients, each entry truncated to the bound."""
        from dpfda.silo.kernels.changing_passes import truncated_changing_pass

        return truncated_changing_pass(self.store, self._design, self._frequencies, self._nodes, question, bound)

    def clipped_words(
        self, question: Question, whitener: Floats, ball: EllipsoidBound, outer_products: bool, polar: Floats
    ) -> tuple[Integers, Integers]:
        """Words of whitened gradients in the ball, of outer products if asked for; `polar` as in `passes.whitened_pass`."""
        from dpfda.silo.kernels.changing_passes import whitened_changing_pass

        passed = self.store, self._design, self._frequencies, self._nodes
        return whitened_changing_pass(*passed, question, whitener, ball, outer_products, polar)

    def ask(self, iterate: Floats, slopes: Floats, scales: Floats, mixture: Floats) -> Question:
        """The public numbers of a pass, from the iterate in the basis's own functions and as kernels take it."""
        from dpfda.silo.kernels.changing_passes import Question

        functions = self._nodes.functions
        at_nodes = np.ascontiguousarray(np.asarray(iterate).reshape(self.store.columns, -1) @ functions.T)
        return Question(slopes, scales, mixture, at_nodes, functions)

    def spread(self, values: Floats) -> Floats:
        """One number of each curve at its lane."""
        return self._layout.spread(values)

    @property
    def nbytes(self) -> int:
        """Memory of the packed curves."""
        return sum(arena.nbytes for arena in self._arenas)

    def move_to_file(self, folder: str) -> None:
        """Go on as maps of nameless files in this folder."""
        for arena in self._arenas:
            arena.move_to_file(folder)
        self._seal()

    def drop_pages(self) -> None:
        """Let the system take back the memory of curves that live in a file."""
        for arena in self._arenas:
            arena.drop_pages()


def longest_changing_as_points(basis: Basis, columns: int) -> int:
    """The most points that a curve may have and still be kept as points; none for a basis that is not made of waves.

    Public numbers decide: from where on a record takes less time, if it does not take more than twice the memory.
    """
    frequencies, nodes = Frequencies.of(basis), Nodes.of(basis).count
    if not frequencies.has_waves:
        return 0
    time = nodes * columns * (columns + basis.size) / (frequencies.functions * (2 * columns + 1) + _WAVE_COST)
    memory = (nodes * channel_count(columns) + frequencies.record) / (columns + 2) / _MOST_MEMORY
    return max(math.ceil(max(time, memory)) - 1, 0)
