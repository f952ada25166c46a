"""Bounds: what a row becomes, and the sensitivity that comes with it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dpfda.errors import InvalidInput
from dpfda.privacy import EllipsoidBound, EntrywiseBound, lemma1_mu, sum_chunks
from dpfda.privacy.clipping import combine


def test_entrywise_truncates_each_entry_at_its_radius() -> None:
    clipped = EntrywiseBound([1.0, 0.5]).clip([[2.0, 0.25], [-3.0, -1.0]])
    np.testing.assert_array_equal(clipped, [[1.0, 0.25], [-1.0, -0.5]])


def test_ellipsoid_keeps_inner_rows_bit_for_bit_and_scales_outer_rows_onto_the_surface() -> None:
    weights = np.array([1.0, 0.25])
    rows = np.array([[0.1, 0.2], [30.0, -20.0]])
    clipped = EllipsoidBound(weights, 2.0).clip(rows)
    np.testing.assert_array_equal(clipped[0], rows[0])
    np.testing.assert_allclose(clipped[1, 0] / clipped[1, 1], -1.5)
    np.testing.assert_allclose(np.sum(clipped[1] ** 2 / weights), 4.0)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("bound", [EntrywiseBound([1.0, 1.0]), EllipsoidBound([1.0, 2.0], 1.0)])
def test_a_row_with_a_non_finite_entry_becomes_zero_and_leaves_the_others(bound, bad) -> None:
    clipped = bound.clip([[bad, 0.5], [0.25, 0.5]])
    np.testing.assert_array_equal(clipped, [[0.0, 0.0], [0.25, 0.5]])


def test_huge_entries_do_not_overflow() -> None:
    with np.errstate(all="raise", under="ignore"):
        ellipsoid = EllipsoidBound([1e-3, 5.0], 1.0).clip([[1e308, -1e308]])
        box = EntrywiseBound([1.0, 2.0]).clip([[1e308, -1e308]])
    assert np.isfinite(ellipsoid).all()
    assert ellipsoid[0, 0] > 0 > ellipsoid[0, 1]
    np.testing.assert_array_equal(box, [[1.0, -2.0]])


@pytest.mark.parametrize("bound", [EntrywiseBound([1.0, 1.0]), EllipsoidBound([1.0, 2.0], 1.0)])
def test_no_rows_give_the_zero_sum_with_a_sensitivity(bound) -> None:
    bounded = bound.sum(np.empty((0, 2)))
    np.testing.assert_array_equal(bounded.total, [0.0, 0.0])
    assert (bounded.sensitivity.scale > 0).all()


def test_the_sensitivity_is_twice_the_radius_up_to_floating_point() -> None:
    rows = np.zeros((1000, 2))
    np.testing.assert_allclose(EntrywiseBound([1.0, 0.5]).sum(rows).sensitivity.entries, [2.0, 1.0], rtol=1e-9)
    np.testing.assert_allclose(EllipsoidBound([4.0, 1.0], 3.0).sum(rows).sensitivity.scale, [12.0, 6.0], rtol=1e-9)


def test_a_long_sum_is_exact_up_to_its_grid_and_the_slack_covers_that() -> None:
    rng = np.random.default_rng(0)
    rows = np.where(rng.random((20_000, 1)) < 0.5, 1.0 / 3.0, 0.1)
    exact = sum(map(Fraction, rows[:, 0].tolist()))
    bounded = EntrywiseBound([1.0]).sum(rows)
    slack = Fraction(bounded.sensitivity.entries[0]) - 2
    assert abs(Fraction(bounded.total[0]) - exact) <= 20_000 * Fraction(2) ** -50
    assert 3 * 20_000 * Fraction(2) ** -53 <= slack < Fraction(1, 10**10)


def test_the_order_of_rows_does_not_change_a_bit() -> None:
    rows = np.random.default_rng(2).normal(size=(1000, 3)) * [1.0, 1e-3, 1e3]
    for bound in (EntrywiseBound([1.0, 2e-3, 500.0]), EllipsoidBound([1.0, 1e-6, 1e6], 1.0)):
        np.testing.assert_array_equal(bound.sum(rows).total, bound.sum(rows[::-1]).total)


def test_lemma_1_is_the_whitening_of_an_entrywise_bound() -> None:
    epsilon, delta = 0.7, 1e-3
    sensitivity = EntrywiseBound([1.0, 0.3, 0.05]).sum(np.zeros((10, 3))).sensitivity
    change = sensitivity.entries
    sd = sensitivity.whitening(lemma1_mu(epsilon, delta))
    expected = 4 * np.log(2 / delta) * change * change.sum() / epsilon**2
    np.testing.assert_allclose(sd**2, expected, rtol=1e-14)
    multiplier = 1 / np.linalg.norm(change / sd)
    np.testing.assert_allclose(multiplier, 2 * np.sqrt(np.log(2 / delta)) / epsilon, rtol=1e-14)


def test_the_ellipsoid_whitening_is_the_worst_change_over_mu() -> None:
    sensitivity = EllipsoidBound([4.0, 1.0], 3.0).sensitivity(1)
    np.testing.assert_allclose(sensitivity.whitening(0.5), [24.0, 12.0], rtol=1e-12)


def test_chunks_give_the_sum_and_the_sensitivity_of_all_rows() -> None:
    rows = np.random.default_rng(1).normal(size=(100, 3))
    bound = EllipsoidBound([1.0, 0.5, 0.2], 1.0)
    whole, chunks = bound.sum(rows), sum_chunks(bound, np.split(rows, 4))
    np.testing.assert_array_equal(whole.total, chunks.total)
    np.testing.assert_array_equal(whole.sensitivity.scale, chunks.sensitivity.scale)


@pytest.mark.parametrize("radii", [[], [0.0], [-1.0], [np.nan], [np.inf], [1e-200], [[1.0]], ["a"]])
def test_unusable_radii_are_refused(radii) -> None:
    with pytest.raises(InvalidInput, match="radii"):
        EntrywiseBound(radii)


def test_unusable_radius_weights_and_shapes_are_refused() -> None:
    with pytest.raises(InvalidInput, match="radius"):
        EllipsoidBound([1.0], float("nan"))
    with pytest.raises(InvalidInput, match="weights"):
        EllipsoidBound([1.0, 0.0], 1.0)
    with pytest.raises(InvalidInput, match="shape"):
        EntrywiseBound([1.0]).clip([1.0, 2.0])
    with pytest.raises(InvalidInput, match="rows"):
        EntrywiseBound([1.0]).sensitivity(2**41)


def test_a_bound_cannot_be_changed_after_it_was_made() -> None:
    radii = np.array([1.0])
    bound = EntrywiseBound(radii)
    radii[0] = 100.0
    assert bound.radii[0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        bound.radii[0] = 100.0


def test_combined_sums_have_each_part_s_own_noise_and_cost_the_root_of_the_sum_of_squares() -> None:
    parts = [EntrywiseBound([1.0, 0.3]).sum([[0.5, 0.1]]), EllipsoidBound([1.0, 0.5], 2.0).sum([[1.0, 0.2]])]
    mus = [0.3, 0.4]
    both = combine(parts, mus)
    np.testing.assert_array_equal(both.total, np.concatenate([part.total for part in parts]))
    expected = np.concatenate([part.sensitivity.whitening(mu) for part, mu in zip(parts, mus, strict=True)])
    np.testing.assert_allclose(both.sensitivity.whitening(0.5), expected, rtol=1e-14)
    worst = np.concatenate([parts[0].sensitivity.entries, [parts[1].sensitivity.scale[0], 0.0]])
    np.testing.assert_allclose(both.sensitivity.whitened_norm(worst), 1.0, rtol=1e-14)
