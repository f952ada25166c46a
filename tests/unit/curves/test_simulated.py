from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

from dpfda.curves.simulated import (
    DESIGN_DENSITIES,
    NOISE_KINDS,
    draw_matern_process,
    make_vcm_coefficients,
    matern_covariance,
    mean_1,
    mean_2,
    simulate_mean,
    simulate_vcm,
    squared_l2_error,
)
from dpfda.errors import InvalidInput


def test_the_papers_mean_functions() -> None:
    assert mean_1(0.25) == pytest.approx(4 / 5 + 2 / 3)
    assert mean_2([0.0, 0.5, 1.0]) == pytest.approx([1 / 7 - 10 / 56, 1 / 7 + 5 / 28, 6 / 7 + 10 / 56])
    norm = squared_l2_error(mean_1, np.zeros_like)
    assert norm == pytest.approx((4 / 5) ** 2 + (3 / 5) ** 2 / 2 + (2 / 3) ** 2 / 2, rel=1e-13)


def test_matern_covariance_is_the_papers() -> None:
    from scipy.special import gamma, kv

    h = np.array([0.05, 0.3, 1.0])
    z = math.sqrt(8) * h / 0.8
    assert matern_covariance(h) == pytest.approx(0.25 * 2.0**-3 / gamma(4) * z**4 * kv(4, z), rel=1e-14)
    assert matern_covariance([0.0, 1e-12]) == pytest.approx([0.25, 0.25], rel=1e-12)


def test_the_process_has_the_matern_covariance_to_1e_9() -> None:
    """Feeding unit vectors instead of normal draws recovers the factor, hence the exact covariance."""

    class UnitVectors:
        def standard_normal(self, shape: tuple[int, int]) -> np.ndarray:
            return np.eye(*shape)

    grid = np.linspace(0, 1, 101)
    counts = np.full(16, grid.size)
    flat = draw_matern_process(np.tile(grid, 16), counts, UnitVectors())  # type: ignore[arg-type]
    factor = flat.reshape(16, grid.size)
    exact = matern_covariance(np.subtract.outer(grid, grid))
    assert np.abs(factor.T @ factor - exact).max() < 1e-9


def test_ragged_paths_belong_to_their_curves() -> None:
    """Equal points of one curve have equal values; points of two curves are independent."""
    counts = np.array([2, 0, 3, 1])
    x = np.full(6, 0.4)
    path = draw_matern_process(x, counts, np.random.default_rng(0))
    assert np.ptp(path[:2]) == 0
    assert np.ptp(path[2:5]) == 0
    assert len(set(path.tolist())) == 3


def test_a_seed_fixes_the_data_and_a_generator_moves_on() -> None:
    assert simulate_mean(20, 5, rng=3) == simulate_mean(20, 5, rng=np.random.default_rng(3))
    generator = np.random.default_rng(3)
    assert simulate_mean(20, 5, rng=generator) != simulate_mean(20, 5, rng=generator)
    assert simulate_vcm(20, 5, 2, rng=3) == simulate_vcm(20, 5, 2, rng=3)


def test_residuals_have_the_papers_variance() -> None:
    # 4000 curves x 25 points; level far below 1e-6: the tolerances are 8 standard errors and more
    curves = simulate_mean(4000, 25, rng=1)
    residual = curves.y - mean_1(curves.x)
    assert abs(residual.mean()) < 0.06
    assert residual.var() == pytest.approx(0.25 + 0.25, rel=0.06)
    noise_only = simulate_mean(4000, 25, rng=1, process_sd=0)
    assert (noise_only.y - mean_1(noise_only.x)).var() == pytest.approx(0.25, rel=0.04)


@pytest.mark.parametrize("kind", list(NOISE_KINDS))
def test_noise_kinds_have_mean_zero(kind: str) -> None:
    draws = NOISE_KINDS[kind](np.random.default_rng(0), 400_000)
    assert abs(draws.mean()) < 0.02
    if kind != "t3":  # the sample variance of t3 has no variance of its own
        assert draws.std() == pytest.approx(1, abs=0.02)
    assert np.quantile(np.abs(draws), 0.5) < 1


DENSITIES = {
    "uniform": np.ones_like,
    "wave": lambda x: 1 + 0.75 * np.cos(2 * math.pi * x),
    "falling": lambda x: 3 * (1 - x) ** 2,
    "gap": lambda x: np.where((x > 0.4) & (x < 0.6), 0.0, 1.25),
}


@pytest.mark.parametrize("name", list(DESIGN_DENSITIES))
def test_design_points_follow_their_density(name: str) -> None:
    # 10 bins of 1e6 points: a share has standard error below 5e-4, the tolerance is six of them
    x = DESIGN_DENSITIES[name](np.random.default_rng(0), 1_000_000)
    shares = np.histogram(x, bins=10, range=(0, 1))[0] / x.size
    fine = (np.arange(10_000) + 0.5) / 10_000
    expected = DENSITIES[name](fine).reshape(10, -1).mean(axis=1) / 10
    assert np.abs(shares - expected).max() < 3e-3


def test_m_may_differ_between_curves_and_be_zero() -> None:
    assert simulate_mean(4, [3, 0, 1, 2], rng=0).counts.tolist() == [3, 0, 1, 2]
    assert simulate_mean(1, 1, rng=0).n_points == 1


def test_a_sampler_may_be_given() -> None:
    curves = simulate_mean(3, 2, rng=0, design_density=lambda rng, size: np.full(size, 0.5))
    assert set(curves.x.tolist()) == {0.5}


def test_vcm_without_noise_is_the_model_exactly() -> None:
    curves = simulate_vcm(50, [k % 4 for k in range(50)], 3, rng=0, noise_sd=0)
    functions = make_vcm_coefficients(3)
    expected = sum(curves.design[curves.owners, k] * functions[k](curves.x) for k in range(4))
    assert np.allclose(curves.y, expected, atol=1e-14)
    assert np.all(curves.design[:, 0] == 1)
    assert np.all(np.abs(curves.design) <= 1)
    assert simulate_vcm(5, 2, 0, rng=0).design.tolist() == [[1.0]] * 5


def test_vcm_covariates_are_uniform_with_the_given_correlation() -> None:
    design = simulate_vcm(40_000, 1, 3, rng=0, correlation=0.6).design[:, 1:]
    assert design.var(axis=0) == pytest.approx([1 / 3] * 3, rel=0.03)
    # the rank correlation of normal variables with correlation 0.6
    expected = 6 / math.pi * math.asin(0.3)
    assert np.corrcoef(design.T)[np.triu_indices(3, 1)] == pytest.approx([expected] * 3, abs=0.03)


def test_coefficient_functions_can_be_pickled_and_lie_in_three_fourier_functions() -> None:
    from dpfda.basis import Fourier

    x = np.linspace(0, 1, 50)
    phi = Fourier(3).evaluate(x)
    for function in make_vcm_coefficients(4):
        values = pickle.loads(pickle.dumps(function))(x)
        fitted = phi @ np.linalg.lstsq(phi, values, rcond=None)[0]
        assert np.allclose(fitted, values, atol=1e-12)


def test_squared_error_of_polynomials_is_exact() -> None:
    error = squared_l2_error(lambda x: x**2, lambda x: x, domain=(1, 3))
    assert error == pytest.approx((3**5 - 1) / 5 - (3**4 - 1) / 2 + (3**3 - 1) / 3, rel=1e-13)
    both = squared_l2_error([mean_1, mean_2], [mean_2, mean_1])
    assert both == pytest.approx(2 * squared_l2_error(mean_1, mean_2))
    stacked = squared_l2_error(lambda x: np.column_stack([x, x]), lambda x: np.zeros((x.size, 2)))
    assert stacked == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: simulate_mean(0, 5, rng=0), "n must be"),
        (lambda: simulate_mean(3, 0, rng=0), "m must be"),
        (lambda: simulate_mean(3, [1, 2], rng=0), "m must be a whole number or an array of 3"),
        (lambda: simulate_mean(2, [1, -1], rng=0), "m must be"),
        (lambda: simulate_mean(2, [1.5, 1.0], rng=0), "m must be"),
        (lambda: simulate_mean(2, 2, rng=None), "rng must be"),
        (lambda: simulate_mean(2, 2, rng=0, noise="cauchy"), "noise must be one of"),
        (lambda: simulate_mean(2, 2, rng=0, noise_sd=-1), "noise_sd must not be negative"),
        (lambda: simulate_mean(2, 2, rng=0, process_sd=math.nan), "process_sd must be a finite"),
        (lambda: simulate_mean(2, 2, rng=0, design_density="normal"), "design_density must be one of"),
        (lambda: simulate_mean(2, 2, rng=0, design_density=lambda r, k: np.full(k, 2.0)), "draw points in"),
        (lambda: simulate_mean(2, 2, rng=0, design_density=lambda r, k: np.ones(1)), "design_density must have"),
        (lambda: simulate_vcm(2, 2, 1, rng=0, correlation=1.0), "correlation must lie"),
        (lambda: simulate_vcm(2, 2, 1, rng=0, coefficients=[mean_1]), "coefficients must hold"),
        (lambda: squared_l2_error(mean_1, [mean_1]), "two functions or two lists"),
        (lambda: squared_l2_error(lambda x: 0.0, lambda x: 1.0), "one value for each point"),
    ],
)
def test_a_mistake_is_named(call: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        call()  # type: ignore[operator]
