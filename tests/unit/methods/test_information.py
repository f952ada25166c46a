"""B, and how wrong it may be, against sums over points."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from adaptive_pieces import exact_moments

from dpfda.basis.basis import make_basis
from dpfda.methods.adaptive.covariate_units import Units
from dpfda.methods.adaptive.covariates import assume_no_covariates, assume_uncorrelated
from dpfda.methods.adaptive.design import fit_design
from dpfda.methods.adaptive.information import build_information
from dpfda.methods.adaptive.weights import MeanWeight

BASIS, LONGER = make_basis("free-ends", 4), make_basis("free-ends", 7)
UNIFORM = fit_design(make_basis("cosine", 1), None)


def changing_law():
    """E[g | x] = 0.3 T_1, variance 1 around it."""
    law = assume_uncorrelated(Units(np.zeros(2), np.ones(2), True), np.zeros(2))
    means = law.means.copy()
    means[1, 1] = 0.3
    return replace(law, means=means)


def test_b_is_the_mean_of_products_of_functions() -> None:
    u = np.random.default_rng(0).beta(1.5, 1.5, 40_000)
    design = fit_design(BASIS, exact_moments(BASIS, u, 1e-3))
    found = build_information(BASIS, LONGER, design, assume_no_covariates(), MeanWeight.of_share(0.8))
    expected = 0.8 * BASIS.evaluate_unit(u).T @ LONGER.evaluate_unit(u) / u.size
    np.testing.assert_allclose(found.matrix, expected, atol=0.12)
    np.testing.assert_allclose(found.gram(), found.matrix[:, :4])


def test_covariates_that_change_along_x_weigh_the_points() -> None:
    """E[g | x] = 0.3 T_1, variance 1 around it: by hand on the nodes."""
    law = changing_law()
    found = build_information(BASIS, LONGER, UNIFORM, law, MeanWeight.of_share(1.0)).matrix.reshape(2, 4, 2, 7)
    u, mass = UNIFORM.nodes.u, UNIFORM.mass
    phi, functions = BASIS.evaluate_unit(u), LONGER.evaluate_unit(u)
    np.testing.assert_allclose(found[0, :, 0], (phi * mass[:, None]).T @ functions, atol=1e-12)
    np.testing.assert_allclose(found[0, :, 1], 0.3 * (phi * (mass * (1 - 2 * u))[:, None]).T @ functions, atol=1e-12)
    square = 1 + (0.3 * (1 - 2 * u)) ** 2
    np.testing.assert_allclose(found[1, :, 1], (phi * (mass * square)[:, None]).T @ functions, atol=1e-12)


def test_errors_of_means_and_products_are_doubted() -> None:
    """A way of the mean changes E[g] and E[g^2]; averages of products are doubted in principal directions."""
    law = changing_law()
    roots, second = np.zeros((2, 4, 4)), np.zeros((14, 14))
    roots[1, 0, 0], second[7, 7] = 0.2, 1.0  # the level of E[g]; only the level of the effect is displaced
    told = replace(law, mean_roots=roots, within_roots=np.zeros((2, 2, 4, 4)), loose=np.zeros((2, 2)))
    plain = replace(told, mean_roots=np.zeros((2, 4, 4)))
    open_law = replace(plain, loose=np.diag([0.0, 0.5]))
    u, mass = UNIFORM.nodes.u, UNIFORM.mass
    phi, level = BASIS.evaluate_unit(u), LONGER.evaluate_unit(u)[:, 0]
    doubts = [
        build_information(BASIS, LONGER, UNIFORM, each, MeanWeight.of_share(1.0)).doubt(second)
        for each in (plain, told, open_law)
    ]
    by_hand = np.concatenate([phi.T @ (mass * level * 0.2), phi.T @ (mass * level * 0.2 * 2 * 0.3 * (1 - 2 * u))])
    np.testing.assert_allclose(doubts[1] - doubts[0], np.outer(by_hand, by_hand), atol=1e-12)
    gained = doubts[2] - doubts[0]
    assert gained[4, 4] == pytest.approx(0.25 * (phi[:, 0] @ (mass * level)) ** 2, rel=0.05)
    assert np.linalg.eigvalsh(gained).min() > -1e-12


def test_doubt_is_a_covariance_that_grows_with_the_displacement() -> None:
    found = build_information(BASIS, LONGER, UNIFORM, assume_no_covariates(), MeanWeight.of_share(1.0))
    displacement = np.random.default_rng(1).normal(size=7)
    one, two = (found.doubt(np.outer(d, d)) for d in (displacement, 2 * displacement))
    np.testing.assert_allclose(two, 4 * one, rtol=1e-9)
    np.testing.assert_allclose(one, one.T, atol=1e-12)
    assert np.linalg.eigvalsh(one).min() > -1e-12
    by_hand = sum(np.outer(error @ displacement, error @ displacement) for error in found.errors)
    np.testing.assert_allclose(one, by_hand, atol=1e-12)
    assert not found.doubt(np.zeros((7, 7))).any()
