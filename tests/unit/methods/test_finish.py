"""After the last round."""

from __future__ import annotations

import numpy as np
import pytest
from adaptive_pieces import walk

from dpfda.basis.basis import make_basis
from dpfda.methods.adaptive.finish import finish, shorten, widen


def test_a_band_is_wider_than_the_posterior_and_holds_what_the_basis_drops() -> None:
    plan, steps = walk((1000,), epsilon=2.0, n_basis=4)
    state = steps[-1][3]
    result = finish(plan, state)
    np.testing.assert_array_equal(result.posterior.mean, state.posterior.mean)
    assert np.linalg.eigvalsh(result.band_covariance).min() > 0
    beyond = state.posterior.mean[4:]
    tail = result.band_covariance[4:, 4:] - np.outer(beyond, beyond)
    assert np.linalg.eigvalsh(tail).min() > -1e-12


def test_a_wider_prior_is_wider_in_every_direction() -> None:
    prior = np.diag([1.0, 0.2, 0.1, 0.01])
    assert np.linalg.eigvalsh(widen(prior, 0.3, 1.1) - prior).min() > 0


def test_a_curve_that_bends_at_an_end_keeps_its_slope_there_in_fewer_functions() -> None:
    basis, longer = make_basis("free-ends", 16), make_basis("free-ends", 40)
    u, weights = longer.quadrature()
    bent = (longer.evaluate_unit(u) * weights[:, None]).T @ np.exp(-6 * u)
    ends = np.array([0.0, 1.0])
    slope = longer.evaluate_unit(ends, 1) @ bent
    cut = basis.evaluate_unit(ends, 1) @ bent[:16]
    short = shorten(basis, longer, bent[None])[0]
    kept = basis.evaluate_unit(ends, 1) @ short
    assert abs(kept[0] - slope[0]) < 0.5 * abs(cut[0] - slope[0])
    assert np.linalg.norm(short - bent[:16]) < 0.02 * np.linalg.norm(bent)


@pytest.mark.parametrize("name", ["free-ends", "cosine"])
def test_what_lies_in_the_basis_stays_as_it_is(name) -> None:
    basis = make_basis(name, 6)
    inside = np.arange(12.0).reshape(2, 6)
    longer = np.hstack([inside, np.zeros((2, 4))])
    np.testing.assert_array_equal(shorten(basis, basis.resize(10), longer), inside)


def test_functions_that_are_level_at_the_ends_lose_what_is_beyond_them() -> None:
    basis = make_basis("cosine", 6)
    coefficients = np.ones((1, 10))
    np.testing.assert_allclose(shorten(basis, basis.resize(10), coefficients), np.ones((1, 6)), atol=1e-12)
