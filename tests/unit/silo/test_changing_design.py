"""Curves whose design changes within them, through the kernels: equal to one vector per curve where it does not change."""

from __future__ import annotations

from dataclasses import replace

import kernel_oracle as oracle
import numpy as np
import pytest
from kernel_sums import Packed, Sums, pack

from dpfda.basis import BSpline, Cosine, Fourier, FreeEnds
from dpfda.curves.curves import Curves
from dpfda.estimators.least_squares import least_squares
from dpfda.privacy.cones import HistogramsBound
from dpfda.protocol.scaling import Scaling
from dpfda.protocol.statistics import COVARIATE_CELLS, DEGREES, CovariateMoments, Dimensions
from dpfda.silo import chunked_sums
from dpfda.silo.chunked_sums import sums_of_curves, sums_of_prepared
from dpfda.silo.kernels.changing_curves import longest_changing_as_points
from dpfda.silo.kernels.packed import PackedCurves
from dpfda.silo.prepared import PreparedCurves, curve_gradients, prepare
from dpfda.silo.release_statistics import find_covariate_cells, weighted_products
from dpfda.silo.sums import PlaceCounts, RowSum

BASES = [Fourier(5), Cosine(6), FreeEnds(5), BSpline(6)]
SCALING = Scaling((-1.0, 1.0), ((1.0, 1.0), (-1.0, 1.0), (-1.0, 1.0)))


@pytest.fixture(params=BASES, ids=lambda basis: basis.name)
def basis(request):
    return request.param


def all_sums(sums: Sums, basis, p) -> list[np.ndarray]:
    rng, size = np.random.default_rng(3), p * basis.size
    iterate, whitener = rng.normal(size=(p, basis.size)), rng.normal(size=(size, size))
    clipped, octaves = sums.clipped(iterate, whitener, 0.7), sums.octaves(iterate, whitener)
    moments = sums.moments(np.full(basis.moment_count, 0.1), 0.8)
    return [sums.truncated(iterate, np.full(size, 0.2)), *clipped, octaves, moments, sums.levels(8)]


def same(one, other) -> bool:
    return all(np.array_equal(*pair) for pair in zip(one, other, strict=True))


def test_a_design_that_does_not_change_gives_the_bits_of_one_vector_per_curve(basis) -> None:
    curves = oracle.some_curves(np.random.default_rng(1), 60, 3, 0, 40)
    written_out = replace(curves, rows=curves.point_design)
    assert same(all_sums(pack(curves, basis), basis, 3), all_sums(pack(written_out, basis), basis, 3))


def test_the_kernels_for_changing_designs_agree_with_the_others_where_nothing_changes(basis) -> None:
    """The least change: bits of the last row differ, its numbers hardly."""
    rng = np.random.default_rng(2)
    curves = oracle.some_curves(rng, 40, 2, 1, 30)
    counts = np.diff(curves.offsets)
    rows = np.repeat(curves.design, counts, axis=0)
    rows[curves.offsets[1:] - 1, 1] *= 1 + 2.0**-50
    several = PreparedCurves(curves.u, curves.y, curves.offsets, np.where(counts > 1, 0.0, curves.design.T).T, rows)
    iterate = rng.normal(size=(2, basis.size))
    for longest in (None, 0, 10**6):
        one = pack(curves, basis, longest_direct=longest).truncated(iterate, np.full(iterate.size, 9.0))
        other = pack(several, basis, longest_direct=longest).truncated(iterate, np.full(iterate.size, 9.0))
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12 * 40)


def test_the_sum_is_that_of_each_curve_alone_in_any_order(basis) -> None:
    curves = oracle.changing_curves(np.random.default_rng(4), 50, 3, 0, 60)
    parts = [all_sums(pack(curves.batch(range(i, i + 1)), basis), basis, 3) for i in range(curves.n)]
    words = all_sums(pack(curves, basis), basis, 3)
    for entry, together in enumerate(words):
        np.testing.assert_allclose(np.sum([part[entry] for part in parts], axis=0), together, rtol=1e-13, atol=1e-13)


def test_chunks_threads_and_files_do_not_change_a_bit(basis, monkeypatch, tmp_path) -> None:
    curves = oracle.changing_curves(np.random.default_rng(5), 300, 3, 0, 60)
    whole = all_sums(Sums(sums_of_prepared(curves, basis)), basis, 3)
    monkeypatch.setattr(chunked_sums, "CHUNK_POINTS", 500)
    monkeypatch.setattr(chunked_sums, "LARGEST_CHUNK_POINTS", 700)
    assert same(all_sums(Sums(sums_of_prepared(curves, basis, threads=2)), basis, 3), whole)
    arrays = curves.u, curves.y, curves.offsets, curves.design
    in_file = PackedCurves.pack(*arrays, basis, rows=curves.rows, folder=str(tmp_path))
    in_file.drop_pages()
    assert same(all_sums(Packed(in_file), basis, 3), whole)


@pytest.mark.parametrize("points", [1, 3, 700, 3000])
@pytest.mark.parametrize("changes", ["nowhere", "in the first piece", "at the end"])
def test_a_curve_in_pieces_gives_the_same_bits(basis, points, changes, monkeypatch) -> None:
    rng = np.random.default_rng(points)
    rows = np.tile([1.0, 0.5, -0.25], (points, 1))
    if changes != "nowhere":
        rows[0 if changes == "in the first piece" else -1, 1] = -1.0
    curves = Curves(rng.random(points), rng.uniform(-1, 1, points), [0, points], rows[:1], rows=rows)
    whole = all_sums(Sums(sums_of_curves(curves, basis, SCALING)), basis, 3)
    monkeypatch.setattr(chunked_sums, "LARGEST_CHUNK_POINTS", 130)
    written_out = Curves.of_checked_arrays(curves.x, curves.y, curves.offsets, curves.design, rows=rows)
    assert same(all_sums(Sums(sums_of_curves(written_out, basis, SCALING)), basis, 3), whole)


def test_prepared_rows_are_those_of_the_points_that_stay() -> None:
    curves = Curves.from_long(
        [1, 1, 1, 2, 2], [0.1, 0.2, 7.0, 0.3, 0.4], [0, 0, 0, 9, 0], [[1, 0.5], [1, 0.5], [1, -0.5], [1, 3], [1, 5]]
    )
    assert curves.changes.tolist() == [True, True]
    prepared = prepare(curves, Cosine(3), Scaling((-1.0, 1.0), ((1.0, 1.0), (-1.0, 1.0))))
    assert prepared.rows is None  # the first changes outside the domain only, the second beyond its bounds only
    assert prepared.design.tolist() == [[1, 0.5], [1, 1]]


def test_products_are_means_over_the_points_of_a_curve() -> None:
    curves = oracle.changing_curves(np.random.default_rng(6), 30, 3, 1, 9)
    centre, scale = np.array([0.0, 0.1, -0.2]), np.array([1.0, 0.8, 1.1])
    first, second = np.triu_indices(3)
    expected = []
    for u, _, rows in oracle.pieces(curves):
        units, degrees = (rows - centre) / scale, np.cos(np.outer(np.arccos(1 - 2 * u), np.arange(DEGREES)))
        products = (units[:, first] * units[:, second])[:, 1:]
        expected.append((products[:, :, None] * degrees[:, None, :]).mean(axis=0).ravel())
    rows = weighted_products(curves, True, centre, scale)
    np.testing.assert_allclose(rows, expected, atol=1e-13)
    bound, sums = CovariateMoments().bound(Dimensions(3, Cosine(3))), sums_of_prepared(curves, Cosine(3))
    request = RowSum(lambda some: weighted_products(some, True, centre, scale), bound)
    total = bound.total(sums.words(request, range(30)), 30).total
    np.testing.assert_allclose(total, bound.clip(np.array(expected)).sum(axis=0), atol=1e-12)


def test_a_curve_is_counted_once_by_the_mean_of_its_covariate() -> None:
    curves = oracle.changing_curves(np.random.default_rng(8), 40, 3, 0, 9)
    means = [rows.mean(axis=0)[1:] if len(rows) else None for _, _, rows in oracle.pieces(curves)]
    expected = np.array([[-1, -1] if mean is None else 1 + np.floor((mean + 1) * 8) for mean in means])
    cells = find_covariate_cells(curves, True)
    inside = (np.array([[0.0, 0.0] if mean is None else mean for mean in means]) ** 2 < 1).all(axis=1)
    np.testing.assert_array_equal(cells[inside], expected[inside])
    bound, sums = HistogramsBound(2, COVARIATE_CELLS), sums_of_prepared(curves, Cosine(3))
    counts = bound.total(sums.words(PlaceCounts(lambda some: find_covariate_cells(some, True), bound), range(40)), 40)
    filled = int((np.diff(curves.offsets) > 0).sum())
    assert counts.total.reshape(2, -1).sum(axis=1).tolist() == [filled, filled]


def test_what_is_kept_as_points_depends_on_public_numbers_only() -> None:
    assert longest_changing_as_points(BSpline(5), 3) == 0
    assert 1 <= longest_changing_as_points(Cosine(6), 2) < longest_changing_as_points(Cosine(12), 4)


def test_least_squares_finds_the_coefficients_of_a_changing_covariate() -> None:
    rng, basis = np.random.default_rng(7), Cosine(3)
    curves = oracle.changing_curves(rng, 80, 2, 1, 9)
    truth = np.array([[0.2, 0.1, 0.0], [0.5, -0.3, 0.2]])
    y = ((curves.point_design @ truth) * basis.evaluate_unit(curves.u)).sum(axis=1)
    raw = Curves(curves.u, y, curves.offsets, curves.design, rows=curves.point_design)
    found = least_squares(raw, basis, Scaling((-9.0, 9.0), ((1.0, 1.0), (-1.0, 1.0))))
    np.testing.assert_allclose(found, truth, atol=1e-12)
    prepared = prepare(raw, basis, Scaling((-9.0, 9.0), ((1.0, 1.0), (-1.0, 1.0))))
    assert np.abs(curve_gradients(prepared, basis, truth)).max() < 1e-13
