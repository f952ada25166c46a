"""A curve that comes in pieces has the record of one that comes at once, bit for bit, whatever the basis."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_sums import Packed

from dpfda.basis import BSpline, Cosine, FreeEnds
from dpfda.silo.kernels.frequencies import Frequencies
from dpfda.silo.kernels.long_curves import RunningGramRecord, RunningRecord, start_record
from dpfda.silo.kernels.packed import PackedCurves


@pytest.mark.parametrize("basis", [Cosine(5), FreeEnds(5), BSpline(5)], ids=lambda basis: basis.name)
@pytest.mark.parametrize("points", [1, 7, 700, 3000])
def test_pieces_do_not_change_a_bit(basis, points) -> None:
    rng = np.random.default_rng(points)
    u, y, iterate, radii = rng.random(points), rng.uniform(-1, 1, points), rng.normal(size=(1, 5)), np.full(5, 9.0)
    whole = PackedCurves.pack(u, y, np.array([0, points]), np.ones((1, 1)), basis)
    cuts = np.sort(rng.integers(0, points + 1, 3))
    pieces = zip(np.split(u, cuts), np.split(y, cuts), [np.ones(1)] * 4, strict=True)
    parts = PackedCurves.pack_pieces(pieces, basis)
    assert (Packed(whole).truncated(iterate, radii) == Packed(parts).truncated(iterate, radii)).all()


def test_the_record_suits_the_basis() -> None:
    assert isinstance(start_record(FreeEnds(4), Frequencies.of(FreeEnds(4))), RunningRecord)
    assert isinstance(start_record(BSpline(4), Frequencies.of(BSpline(4))), RunningGramRecord)
