"""What is thought of a function beforehand: a mixture of proper covariances."""

from __future__ import annotations

import numpy as np
import pytest

from dpfda.basis.basis import make_basis
from dpfda.methods.adaptive.prior import make_mixture, normalise

BASES = ["free-ends", "cosine", "fourier", "bspline"]


@pytest.mark.parametrize("size", [4, 8, 24])
def test_shapes_are_symmetric_positive_of_trace_about_one_and_without_level_or_slope(size) -> None:
    shapes = make_mixture(make_basis("free-ends", size), 2.0).shapes
    np.testing.assert_allclose(shapes, shapes.swapaxes(1, 2), atol=1e-15)
    traces = np.trace(shapes, axis1=1, axis2=2)
    assert (traces > 1 - 1e-9).all()
    assert (traces < 1.3).all()
    assert np.linalg.eigvalsh(shapes).min() > -1e-12
    assert (shapes[:, :2] == 0).all()


@pytest.mark.parametrize("name", BASES)
def test_components_are_covariances_and_their_average_is_one(name) -> None:
    size = 7
    scaled = make_mixture(make_basis(name, size), 2.0).scaled(0.2, 0.4, 0.5)
    odds = scaled.odds()
    assert odds.sum() == pytest.approx(1)
    every = scaled.covariances(np.arange(odds.size))
    assert np.linalg.eigvalsh(every).min() > -1e-12
    np.testing.assert_allclose(np.tensordot(odds, every, 1), scaled.average(odds), atol=1e-12)
    rows = np.random.default_rng(0).normal(size=(4, size))
    np.testing.assert_allclose(scaled.project(rows), rows @ every @ rows.T, atol=1e-10)


def test_sizes_go_with_the_unit_and_the_level_has_its_own() -> None:
    mixture = make_mixture(make_basis("free-ends", 6), 2.0)
    one, double = (mixture.scaled(unit, 0.4).average(mixture.scaled(unit, 0.4).odds()) for unit in (0.1, 0.2))
    assert one[0, 0] == pytest.approx(double[0, 0]) == pytest.approx(0.16)
    np.testing.assert_allclose(double[1:, 1:], 4 * one[1:, 1:])


def test_smoother_shapes_fall_faster() -> None:
    order_2, order_3 = make_mixture(make_basis("free-ends", 16), 2.0).shapes[[0, 2]].diagonal(axis1=1, axis2=2)
    assert order_3[10:].sum() < order_2[10:].sum() < 0.1


def test_no_end_is_preferred() -> None:
    """Functions are even or odd about the middle, so that a mirror changes signs; shapes of ends and places change sides."""
    mixture = make_mixture(make_basis("free-ends", 24), 2.0)
    odds = mixture.scaled(1.0, 1.0).odds()
    shapes = mixture.shapes
    signs = (-1.0) ** np.arange(24)
    mirrored = shapes * np.outer(signs, signs)
    for everywhere in (0, 1, 2):
        np.testing.assert_allclose(mirrored[everywhere], shapes[everywhere], atol=1e-12)
    np.testing.assert_allclose(mirrored[3], shapes[4], atol=1e-12)
    weights = np.bincount(mixture.shape, odds)
    assert weights[3] == pytest.approx(weights[4])


def test_a_smooth_curve_may_be_bent_at_its_ends() -> None:
    """The second derivative at an end is not smaller than in the middle, though every single function is straight there."""
    basis = make_basis("free-ends", 40)
    second = basis.evaluate_unit(np.array([0.05, 0.5, 0.95]), 2)
    for shape in make_mixture(basis, 2.0).shapes[1:3]:
        left, middle, right = np.sqrt(np.einsum("ua,ab,ub->u", second, shape, second))
        assert left > 0.7 * middle
        assert right == pytest.approx(left)


def test_a_band_widens_all_sizes_but_those_near_a_place() -> None:
    mixture = make_mixture(make_basis("free-ends", 12), 2.0).scaled(0.3, 0.5)
    wider = mixture.widen(0.01)
    near_a_place = mixture.mixture.shape > 4
    np.testing.assert_allclose(wider.bend[near_a_place], mixture.bend[near_a_place] + 0.01)
    assert (wider.bend[~near_a_place] > 1.2 * mixture.bend[~near_a_place]).all()
    assert (wider.slope >= mixture.slope + 0.01 - 1e-12).all()


def test_weights_in_proportion_to_exponentials_do_not_overflow() -> None:
    np.testing.assert_allclose(normalise(np.array([1000.0, 1000.0 + np.log(3)])), [0.25, 0.75])
