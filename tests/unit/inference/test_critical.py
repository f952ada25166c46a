"""Critical values without random draws: never too small for their law, and hardly too large at the usual levels."""

from __future__ import annotations

import numpy as np
import pytest
from laws import make_law

from dpfda.inference import critical

GRID = np.linspace(0, 1, 1501)


def largest_deviations(law, draws=20_000, seed=2):
    features = law.functions.evaluate_unit(GRID)
    root = np.linalg.cholesky(law.covariance + 1e-14 * np.eye(len(law.covariance)))
    sd = np.sqrt(np.einsum("xa,ab,xb->x", features, law.covariance, features))
    rng = np.random.default_rng(seed)
    parts = [np.abs((features @ root / sd[:, None]) @ rng.standard_normal((len(root), draws // 10))) for _ in range(10)]
    return np.concatenate([part.max(axis=0) for part in parts])


@pytest.mark.parametrize(("basis", "size"), [("cosine", 6), ("free-ends", 30), ("fourier", 7), ("bspline", 9)])
def test_bands_hold_what_they_say_and_not_much_more(basis, size) -> None:
    law = make_law(basis, size)
    kappa = np.array([critical.path_length(law.functions.evaluate_unit(critical.nodes()), law.covariance)])
    deviations = largest_deviations(law)
    for level, most in ((0.5, 0.75), (0.8, 0.89), (0.9, 0.945), (0.95, 0.972), (0.99, 0.996)):
        held = (deviations <= critical.solve_critical(level, kappa)).mean()
        assert level - 3 * np.sqrt(level * (1 - level) / len(deviations)) <= held <= most


def test_one_value_that_never_moves_has_the_normal_quantile() -> None:
    features, covariance = np.ones((513, 1)), np.array([[4.0]])
    assert critical.path_length(features, covariance) == 0
    assert critical.solve_critical(0.95, np.zeros(1)) == pytest.approx(1.959963984540054, abs=1e-12)
    assert critical.pointwise_critical(0.95) == pytest.approx(1.959963984540054, abs=1e-12)


def test_critical_values_and_p_values_are_inverse_and_several_curves_cost_more() -> None:
    kappas = np.array([3.0, 7.0])
    c = critical.solve_critical(0.95, kappas)
    assert critical.exceedance(c, kappas) == pytest.approx(0.05, rel=1e-9)
    assert critical.solve_critical(0.95, kappas[:1]) < critical.solve_critical(0.95, kappas[1:]) < c
    assert critical.exceedance(0.0, kappas) == 1.0


def test_a_place_that_is_known_exactly_takes_no_part() -> None:
    features = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    sd, unit = critical.standardise(features, np.eye(2))
    assert sd[1] == 0
    assert not unit[1].any()
    assert critical.path_length(features, np.eye(2)) == pytest.approx(np.pi / 4)


def test_opposite_directions_are_the_same_for_a_two_sided_band() -> None:
    turned = np.array([[1.0, 0.0], [-1.0, 0.01]])
    assert critical.path_length(turned, np.eye(2)) == pytest.approx(0.01, rel=1e-3)


def test_one_sided_values_solve_their_equation() -> None:
    from scipy.special import erfc

    starts, kappas = np.array([1.0, 2.0]), np.array([0.0, 5.0])
    c = critical.solve_one_sided(0.02, starts, kappas)
    bound = starts * erfc(c / np.sqrt(2)) / 2 + kappas * np.exp(-(c**2) / 2) / (2 * np.pi)
    np.testing.assert_allclose(bound, 0.02, rtol=1e-9)
