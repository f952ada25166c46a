"""The coordinator's parts, each against what it should find when the noise is next to nothing."""

from __future__ import annotations

import numpy as np
import pytest

from dpfda.basis.basis import make_basis
from dpfda.basis.moments import moment_features, uniform_moments
from dpfda.inference.bands import half_widths
from dpfda.methods.adaptive.design import fit_density
from dpfda.methods.adaptive.evidence import Coordinates, Evidence, Rest, Stack
from dpfda.methods.adaptive.geometry import assumed_geometry, uncorrelated
from dpfda.methods.adaptive.gradient_covariance import mean_square
from dpfda.methods.adaptive.matrices import inverse
from dpfda.methods.adaptive.pooling import Pooled
from dpfda.methods.adaptive.posterior import Posterior, Prior, sobolev_covariance, solve, with_tail
from dpfda.methods.adaptive.silo_designs import own_densities
from dpfda.methods.adaptive.skewness import clipping_shift, kept_share, rest_direction
from dpfda.protocol.length_filter import LengthFilter

BASES = ["cosine", "fourier", "fourier-extension"]


def exact_moments(basis, u, sd):
    values = moment_features(basis, u).mean(axis=0) - uniform_moments(basis)
    return Pooled(values, np.full(values.size, sd), float(u.size))


@pytest.mark.parametrize("name", BASES)
def test_the_design_density_gives_back_the_gram_matrix(name) -> None:
    basis, u = make_basis(name, 5), np.random.default_rng(0).beta(1, 3, 20_000)
    features = basis.evaluate_unit(u)
    found = fit_density(basis, exact_moments(basis, u, 1e-3))
    assert np.abs(found.gram - features.T @ features / u.size).max() < 0.02
    assert np.linalg.eigvalsh(found.gram).min() > 0


@pytest.mark.parametrize("name", BASES)
def test_pure_noise_still_gives_a_definite_matrix(name) -> None:
    basis = make_basis(name, 7)
    for seed in range(5):
        noise = np.random.default_rng(seed).standard_normal(uniform_moments(basis).size)
        found = fit_density(basis, Pooled(noise, np.ones(noise.size), 100.0))
        assert np.linalg.eigvalsh(found.gram).min() > 0
        assert np.isfinite(found.slopes).all()


def test_an_empty_end_carries_no_information() -> None:
    """Nothing beyond 0.7: a function that lives there is all but invisible to the fitted information matrix."""
    basis = make_basis("cosine", 9)
    found = fit_density(basis, exact_moments(basis, 0.7 * np.random.default_rng(1).random(20_000), 1e-3))
    grid = np.linspace(0, 1, 401)
    bump = np.linalg.lstsq(basis.evaluate_unit(grid), np.maximum(grid - 0.8, 0.0), rcond=None)[0]
    assert bump @ found.gram @ bump < 0.05 * bump @ bump


def test_designs_are_told_apart_only_where_they_clearly_differ() -> None:
    """Two uniform designs and noise: one of 200 may differ by 3 sd of a chi-square; halves always do."""
    basis, rng = make_basis("fourier", 5), np.random.default_rng(3)
    alike = 0
    for _ in range(200):
        noisy = {name: exact_moments(basis, rng.random(2000), 0.05) for name in "ab"}
        noisy = {k: Pooled(v.values + 0.05 * rng.standard_normal(v.sd.size), v.sd, v.n) for k, v in noisy.items()}
        pooled = Pooled((noisy["a"].values + noisy["b"].values) / 2, noisy["a"].sd / np.sqrt(2), 4000.0)
        alike += not own_densities(basis, pooled, noisy)
    assert alike >= 190
    halves = {name: exact_moments(basis, (rng.random(2000) + k) / 2, 0.01) for k, name in enumerate("ab")}
    pooled = Pooled((halves["a"].values + halves["b"].values) / 2, halves["a"].sd / np.sqrt(2), 4000.0)
    found = own_densities(basis, pooled, halves)
    features = basis.evaluate_unit(rng.random(5000) / 2)
    assert np.abs(found["a"].gram - features.T @ features / 5000).max() < 0.15


@pytest.mark.parametrize("nu", [1.0, 3.0, 10.0])
def test_the_mean_square_length_is_found_behind_the_clipping(nu) -> None:
    squares = np.random.default_rng(2).chisquare(nu, 200_000)
    squares /= np.median(squares)
    found = mean_square(float(np.minimum(squares, 1.3**2).mean()), 0.003, 1.3)
    assert found == pytest.approx(squares.mean(), rel=0.15)


def rest_evidence(value, sd, size=3):
    identity = np.eye(size)
    coordinates = Coordinates(identity, identity, identity / size)
    rest = Rest(value, sd, rest_direction(identity, identity), kept_share(1.5, 1.3))
    return Evidence(np.zeros(size), 0.1, np.zeros(size), coordinates, 0.8, 0.2, 0.0, 1.0, 1.3, 2, rest)


@pytest.mark.parametrize("true", [0.06, -0.1])
def test_a_clear_shift_is_found_in_full(true) -> None:
    kept = kept_share(1.5, 1.3)
    shift, variance = clipping_shift([rest_evidence(true * kept, 0.004)], np.eye(3), np.zeros(3))
    assert shift == pytest.approx(true, rel=0.1)
    assert (shift - true) ** 2 < 4 * variance


def test_a_shift_within_the_noise_is_mostly_left_out() -> None:
    shift, _ = clipping_shift([rest_evidence(0.02, 0.03)], np.eye(3), np.zeros(3))
    assert 0 < shift < 0.3 * 0.02 / kept_share(1.5, 1.3)
    assert clipping_shift([], np.eye(3), np.zeros(3)) == (0.0, 0.0)


def test_the_prior_goes_on_with_the_slope_where_data_end() -> None:
    """A line seen on [0, 0.7] only: at 0.85 the fit is nearer to the line than to its last value."""
    basis, grid = make_basis("cosine", 12), np.linspace(0, 0.7, 300)
    features = basis.evaluate_unit(grid)
    gram, target = features.T @ features / 300, features.T @ (grid - 0.5) / 300
    prior = Prior(sobolev_covariance(basis, 2.0), 1, 0.0, 0.3)
    found = solve(target, gram * 1e-6 + 1e-10 * np.eye(12), gram, prior)
    at = basis.evaluate_unit(np.array([0.85]))[0]
    assert abs(at @ found.mean - 0.35) < 0.075
    sd = [float(np.sqrt(phi @ found.covariance @ phi)) for phi in basis.evaluate_unit(np.array([0.4, 1.0]))]
    assert sd[1] > 10 * sd[0]


def test_a_band_accounts_for_what_the_basis_cannot_follow() -> None:
    basis = make_basis("cosine", 6)
    sloped = np.concatenate([[0.0], 0.1 / np.arange(1, 6) ** 2])  # not level at the left end
    posterior = Posterior(np.tile(sloped, 2), 1e-8 * np.eye(12), 0.1)
    longer = with_tail(posterior, basis, 2.0)
    block = longer[: len(longer) // 2, : len(longer) // 2]
    np.testing.assert_array_equal(block[:6, :6], posterior.covariance[:6, :6])
    points = np.array([0.0, 0.5])
    wide, narrow = (half_widths(basis, c, points, 0.95, simultaneous=False) for c in (block, block[:6, :6]))
    assert (wide > 3 * narrow).all()
    assert wide[0] > 2 * wide[1]
    fourier = make_basis("fourier", 3)
    assert with_tail(Posterior(np.zeros(3), np.eye(3), 1.0), fourier, 2.0).shape == (3, 3)


def test_the_median_length_is_found_among_curves_that_have_points() -> None:
    """60% of the curves have length zero: the median of all is zero, and radii fell round by round."""
    lengths = LengthFilter.around(0.0, 0.5, 0.4)
    found = np.sqrt(np.random.default_rng(7).chisquare(3, 40_000))
    for _ in range(6):
        share = 0.6 + 0.4 * float((found <= np.exp(lengths.log_median)).mean())
        lengths = lengths.observe(lengths.log_median, share, 0.002, 100_000).move(1.0, blur=0.1)
    assert np.exp(lengths.log_median) == pytest.approx(np.median(found), rel=0.05)


@pytest.mark.parametrize("seed", range(8, 13))
def test_rounds_tell_where_the_information_matrix_is_wrong(seed) -> None:
    """Covariates that vary less and less along x, rounds that creep: the estimate is nearer, and said to be less sure."""
    basis, rng = make_basis("cosine", 4), np.random.default_rng(seed)
    geometry = assumed_geometry(basis, fit_density(basis, None), uncorrelated(np.array([1.0, 0.5]), 1.0, 0.0))
    information, misfit, identity = geometry.information, geometry.misfit, np.eye(8)
    true, end, slow = information + 1.5 * misfit[-3] - misfit[-4], rng.standard_normal(8), rng.standard_normal(8)
    coordinates = Coordinates(identity, identity, identity / 8)
    away = [slow * 0.8**k for k in range(7)]
    rounds = [
        Evidence(true @ d, 1e-3, end + d, coordinates, 1.0, 0.0, 0.0, 100.0, 100.0, k + 1)
        for k, d in enumerate(away[:-1])
    ]
    (off, sd), (nearer, wider) = (
        (
            np.linalg.norm(np.linalg.solve(precision, weighted) - information @ end),
            np.sqrt(np.trace(inverse(precision))),
        )
        for precision, weighted in (
            Stack([rounds], information, which).joint(end + away[-1], 1e-6 * identity[None]).total().marginal()
            for which in (misfit[:0], misfit)
        )
    )
    assert nearer < off
    assert wider > 1.1 * sd


def test_without_covariates_the_product_cannot_be_wrong() -> None:
    basis = make_basis("cosine", 4)
    assert len(assumed_geometry(basis, fit_density(basis, None), uncorrelated(np.ones(1), 1.0, 0.0)).misfit) == 0
