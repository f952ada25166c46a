"""B, and how wrong it may be, against sums over points."""

from __future__ import annotations

import numpy as np
from adaptive_pieces import exact_moments

from dpfda.basis.basis import make_basis
from dpfda.methods.adaptive.covariates import CovariateLaw, Units, assume_no_covariates
from dpfda.methods.adaptive.design import fit_design
from dpfda.methods.adaptive.information import build_information

BASIS, LONGER = make_basis("free-ends", 4), make_basis("free-ends", 7)
UNIFORM = fit_design(make_basis("cosine", 1), None)


def test_b_is_the_mean_of_products_of_functions() -> None:
    u = np.random.default_rng(0).beta(1.5, 1.5, 40_000)
    design = fit_design(BASIS, exact_moments(BASIS, u, 1e-3))
    found = build_information(BASIS, LONGER, design, assume_no_covariates(), 0.8)
    expected = 0.8 * BASIS.evaluate_unit(u).T @ LONGER.evaluate_unit(u) / u.size
    np.testing.assert_allclose(found.matrix, expected, atol=0.12)
    np.testing.assert_allclose(found.gram(), found.matrix[:, :4])


def test_covariates_that_change_along_x_weigh_the_points() -> None:
    """E[g g' | x] = products[0] + products[1] T_1: by hand on the nodes."""
    products = np.zeros((4, 2, 2))
    products[0], products[1, 0, 1], products[1, 1, 0] = np.eye(2), 0.3, 0.3
    law = CovariateLaw(products, np.zeros((4, 2, 2)), Units(np.zeros(2), np.ones(2), True), np.zeros(2))
    found = build_information(BASIS, LONGER, UNIFORM, law, 1.0).matrix.reshape(2, 4, 2, 7)
    u, mass = UNIFORM.nodes.u, UNIFORM.mass
    phi, functions = BASIS.evaluate_unit(u), LONGER.evaluate_unit(u)
    np.testing.assert_allclose(found[0, :, 0], (phi * mass[:, None]).T @ functions, atol=1e-12)
    np.testing.assert_allclose(found[0, :, 1], 0.3 * (phi * (mass * (1 - 2 * u))[:, None]).T @ functions, atol=1e-12)


def test_doubt_is_a_covariance_that_grows_with_the_displacement() -> None:
    found = build_information(BASIS, LONGER, UNIFORM, assume_no_covariates(), 1.0)
    displacement = np.random.default_rng(1).normal(size=7)
    one, two = (found.doubt(np.outer(d, d)) for d in (displacement, 2 * displacement))
    np.testing.assert_allclose(two, 4 * one, rtol=1e-9)
    np.testing.assert_allclose(one, one.T, atol=1e-12)
    assert np.linalg.eigvalsh(one).min() > -1e-12
    by_hand = sum(np.outer(error @ displacement, error @ displacement) for error in found.errors)
    np.testing.assert_allclose(one, by_hand, atol=1e-12)
    assert not found.doubt(np.zeros((7, 7))).any()
