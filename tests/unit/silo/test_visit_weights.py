"""Curves that weigh by their visits: what a silo sums is the plain formula, bit for bit the same however it is computed."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from dpfda.basis import make_basis
from dpfda.basis.moments import moment_bounds, uniform_moments
from dpfda.curves.curves import Curves
from dpfda.errors import InvalidInput
from dpfda.privacy.clipping import EllipsoidBound, EntrywiseBound
from dpfda.privacy.cones import CompanionBound, HistogramBound, HistogramsBound
from dpfda.protocol.scaling import Scaling
from dpfda.protocol.statistics import LENGTH_CELLS
from dpfda.silo import chunked_sums as chunked
from dpfda.silo.chunked_sums import sums_of_curves
from dpfda.silo.prepared import curve_gradients, mean_per_curve, prepare, weigh_counts
from dpfda.silo.release_statistics import centred_weights, find_level_cells
from dpfda.silo.sums import (
    ClippedGradientSum,
    DesignMomentSum,
    LengthCounts,
    LevelCounts,
    PlaceCounts,
    RowSum,
    TruncatedGradientSum,
)

CAP, SIZE, N = 10, 7, 120
PUBLIC = ((-5.0, 5.0), ((1.0, 1.0), (-1.0, 1.0)), 0.0, 5.0)
BY_VISITS, BY_SUBJECTS = Scaling(*PUBLIC, visit_cap=CAP), Scaling(*PUBLIC)
BASES = ("cosine", "fourier", "free-ends", "bspline")


def make_curves(*, changing: bool = False, most: int = 60) -> Curves:
    """From none to many points, some of them outside the domain."""
    rng = np.random.default_rng(3)
    counts = rng.integers(0, most, N)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    x, y = rng.uniform(-0.1, 1.1, offsets[-1]), 2 * rng.normal(size=offsets[-1])
    design = np.column_stack([np.ones(N), rng.uniform(-1, 1, N)])
    if not changing:
        return Curves(x, y, offsets, design)
    rows = np.repeat(design, counts, axis=0)
    rows[: offsets[N // 2], 1] = rng.uniform(-1, 1, offsets[N // 2])
    return Curves(x, y, offsets, design, rows=rows)


def list_requests(basis):
    rng = np.random.default_rng(0)
    iterate, whitener = rng.normal(size=(2, SIZE)), rng.normal(size=(2 * SIZE, 2 * SIZE)) / SIZE
    return [
        TruncatedGradientSum(iterate, EntrywiseBound(np.full(2 * SIZE, 0.1))),
        LengthCounts(iterate, whitener, HistogramBound(LENGTH_CELLS)),
        ClippedGradientSum(iterate, whitener, CompanionBound(2 * SIZE, 0.7, LENGTH_CELLS)),
        DesignMomentSum(uniform_moments(basis), EllipsoidBound(*moment_bounds(basis))),
        RowSum(centred_weights, EntrywiseBound(np.full(2, 0.5))),
        PlaceCounts(partial(find_level_cells, bins=16), HistogramsBound(1, 17)),
    ]


def list_words(curves, basis, scaling, **options):
    sums = sums_of_curves(curves, basis, scaling, **options)
    return [sums.words(request, range(curves.n)) for request in list_requests(basis)]


def carry(words):
    """The one form of a number that several pairs of words stand for."""
    return words[0] + (words[1] >> 32), words[1] & 0xFFFFFFFF


def same(first, second):
    return all(np.array_equal(carry(one), carry(other)) for one, other in zip(first, second, strict=True))


def test_a_weight_is_the_number_of_visits_up_to_the_cap() -> None:
    assert weigh_counts(np.array([0, 1, 5, 10, 11, 10**9]), 10).tolist() == [0.0, 0.1, 0.5, 1.0, 1.0, 1.0]


def test_points_outside_the_domain_are_no_visits() -> None:
    curves = Curves(np.array([0.2, 5.0, 0.4, 0.5]), np.zeros(4), np.array([0, 2, 4, 4]), np.ones((3, 1)))
    scaling = Scaling((-1.0, 1.0), ((1.0, 1.0),), visit_cap=4)
    assert prepare(curves, make_basis("cosine", 3, (0.0, 1.0)), scaling).weights.tolist() == [0.25, 0.5, 0.0]


@pytest.mark.parametrize("changing", [False, True])
@pytest.mark.parametrize("name", BASES)
def test_sums_are_those_of_the_plain_formula(name, changing) -> None:
    curves, basis = make_curves(changing=changing), make_basis(name, SIZE, (0.0, 1.0))
    prepared, sums = prepare(curves, basis, BY_VISITS), sums_of_curves(curves, basis, BY_VISITS)
    truncated, _, clipped, moments, _, _ = list_requests(basis)
    gradients = curve_gradients(prepared, basis, truncated.iterate)
    np.testing.assert_allclose(
        gradients,
        curve_gradients(prepare(curves, basis, BY_SUBJECTS), basis, truncated.iterate) * prepared.weights[:, None],
    )
    found = truncated.bound.total(sums.words(truncated, range(N)), N).total
    np.testing.assert_allclose(found, truncated.bound.clip(gradients).sum(axis=0), atol=1e-11)
    vector = clipped.bound.total(sums.words(clipped, range(N)), N).total[: 2 * SIZE]
    np.testing.assert_allclose(vector, clipped.bound.ball.clip(gradients @ clipped.whitener.T).sum(axis=0), atol=1e-11)
    rows = mean_per_curve(basis.moment_features(prepared.u), prepared.offsets) - moments.centre
    rows = moments.bound.clip(rows * prepared.weights[:, None])
    np.testing.assert_allclose(
        moments.bound.total(sums.words(moments, range(N)), N).total, rows.sum(axis=0), atol=1e-11
    )


@pytest.mark.parametrize("changing", [False, True])
@pytest.mark.parametrize("name", BASES)
def test_parts_threads_and_pieces_give_the_same_bits(name, changing, monkeypatch) -> None:
    curves, basis = make_curves(changing=changing), make_basis(name, SIZE, (0.0, 1.0))
    whole = list_words(curves, basis, BY_VISITS, threads=1)
    each = [list_words(curves[place : place + 1], basis, BY_VISITS) for place in range(N)]
    assert same(whole, [sum(words[k] for words in each) for k in range(len(whole))])
    monkeypatch.setattr(chunked, "LARGEST_CHUNK_POINTS", 16)  # curves of more points come in pieces
    monkeypatch.setattr(chunked, "CHUNK_POINTS", 8)
    assert same(whole, list_words(curves, basis, BY_VISITS, threads=2))


@pytest.mark.parametrize("changing", [False, True])
def test_with_a_cap_of_one_the_bits_are_those_of_subjects_that_weigh_the_same(changing) -> None:
    curves, basis = make_curves(changing=changing), make_basis("free-ends", SIZE, (0.0, 1.0))
    assert same(list_words(curves, basis, Scaling(*PUBLIC, visit_cap=1)), list_words(curves, basis, BY_SUBJECTS))


def test_levels_are_counted_as_by_the_kernel_and_do_not_depend_on_weights() -> None:
    curves, basis = make_curves(most=8), make_basis("cosine", SIZE, (0.0, 1.0))
    counts = HistogramsBound(1, 17)
    request = PlaceCounts(partial(find_level_cells, bins=16), counts)
    by_kernel = sums_of_curves(curves, basis, BY_SUBJECTS).words(LevelCounts(HistogramBound(17)), range(N))
    found = sums_of_curves(curves, basis, BY_VISITS).words(request, range(N))
    assert counts.total(found, N).total.tolist() == HistogramBound(17).total(by_kernel, N).total.tolist()


@pytest.mark.parametrize("cap", [0, 1001, 2.5, True, "3", -1, float("nan")])
def test_a_cap_out_of_range_makes_no_scaling(cap) -> None:
    with pytest.raises(InvalidInput, match="visit_cap"):
        Scaling(*PUBLIC, visit_cap=cap)
