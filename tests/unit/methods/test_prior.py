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


def test_weights_in_proportion_to_exponentials_do_not_overflow() -> None:
    np.testing.assert_allclose(normalise(np.array([1000.0, 1000.0 + np.log(3)])), [0.25, 0.75])
