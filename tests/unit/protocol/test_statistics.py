"""Each statistic: its width is that of its bound, and a silo computes all of them."""

from __future__ import annotations

import pytest

from dpfda.audit.cases import example
from dpfda.basis.basis import make_basis
from dpfda.protocol.statistics import KINDS, ClippedRemainder, Dimensions, ShortShare, WhitenedGradient
from dpfda.silo.release_statistics import MEASURES


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("basis", ["cosine", "fourier"])
def test_a_statistic_releases_as_many_numbers_as_its_bound_bounds(kind, basis) -> None:
    statistic, dimensions = example(KINDS[kind]), Dimensions(2, make_basis(basis, 3))
    if isinstance(statistic, WhitenedGradient):
        bound = statistic.bound(dimensions, 1.0)
    else:
        bound = statistic.bound(1.0) if isinstance(statistic, ClippedRemainder) else statistic.bound(dimensions)
    assert bound.width == statistic.width(dimensions)


def test_a_silo_computes_every_statistic() -> None:
    assert set(MEASURES) == set(KINDS.values())


def test_displacements_are_as_many_as_the_counts_before() -> None:
    sizes = ShortShare().query_sizes(Dimensions(1, make_basis("cosine", 4), earlier_counts=3))
    assert sizes == {"iterate": 4, "whitener": 16, "length_prior": 3, "displacements": 3}
    remainder = ClippedRemainder().query_sizes(Dimensions(1, make_basis("cosine", 4), earlier_counts=3))
    assert remainder == {**sizes, "remainder_direction": 4}
