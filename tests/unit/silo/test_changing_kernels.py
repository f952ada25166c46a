"""The parts of the kernels for designs that change: nodes, weights, and what the passes are given."""

from __future__ import annotations

import numpy as np
import pytest

from dpfda.basis import BSpline, Cosine, Fourier, FourierExtension, FreeEnds
from dpfda.privacy.clipping import EntrywiseBound
from dpfda.silo.kernels.changing import Design, RunningWeights, SealedDesign, fill_design
from dpfda.silo.kernels.changing_passes import Question, truncated_changing_pass
from dpfda.silo.kernels.frequencies import Frequencies
from dpfda.silo.kernels.nodes import Nodes, channel_count
from dpfda.silo.kernels.passes import NO_MIXTURE
from dpfda.silo.kernels.store import SealedStore, fill_store, lay_out, store_in

BASES = [Fourier(1), Fourier(4), Fourier(9), Cosine(7), FourierExtension(5), FreeEnds(7), BSpline(2), BSpline(8)]


@pytest.mark.parametrize("basis", BASES, ids=lambda basis: f"{basis.name}-{basis.size}")
def test_weights_at_nodes_give_every_mean_of_products(basis) -> None:
    rng = np.random.default_rng(1)
    u, y, rows, nodes = rng.random(40), rng.normal(size=40), rng.normal(size=(40, 2)), Nodes.of(basis)
    running = RunningWeights(basis, Frequencies.of(basis), 2)
    running.add(u[:13], y[:13], rows[:13])
    running.add(u[13:], y[13:], rows[13:])
    weights = running.finish().reshape(nodes.count, channel_count(2))
    channels = [rows[:, 0] ** 2, rows[:, 0] * rows[:, 1], rows[:, 1] ** 2, rows[:, 0] * y, rows[:, 1] * y]
    functions = basis.evaluate_unit(u)
    for weight, values in zip(weights.T, channels, strict=True):
        expected = functions.T @ (functions * values[:, None]) / 40
        found = nodes.functions.T @ (nodes.functions * weight[:, None])
        np.testing.assert_allclose(found, expected, atol=1e-13)


def test_a_sealed_design_is_read_only_and_a_pass_over_it_is_the_mean_over_points() -> None:
    basis, rng = Cosine(3), np.random.default_rng(2)
    frequencies, nodes, offsets = Frequencies.of(basis), Nodes.of(basis), np.array([0, 3, 20])
    u, y, rows = rng.random(20), rng.normal(size=20), rng.normal(size=(20, 2))
    layout = lay_out(offsets, 4, 2, frequencies.record)
    packed = SealedStore(store_in(fill_store(u, y, np.zeros((2, 2)), layout, frequencies)), 2, layout.record)
    design = SealedDesign(Design(*fill_design(u, y, rows, layout, frequencies, basis).parts), packed, nodes.count)
    for array in design.arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 0
    question = Question(np.zeros((2, 3)), np.sqrt([1.0, 2, 2]), NO_MIXTURE, np.zeros((2, nodes.count)), nodes.functions)
    bound = EntrywiseBound(np.full(6, 9.0))
    words = truncated_changing_pass(packed, design, frequencies, nodes, question, bound)
    scores = -(rows * y[:, None])[:, :, None] * basis.evaluate_unit(u)[:, None, :]
    expected = scores[:3].mean(axis=0) + scores[3:].mean(axis=0)
    np.testing.assert_allclose(bound.total(words, 2).total, expected.ravel(), atol=1e-13)
