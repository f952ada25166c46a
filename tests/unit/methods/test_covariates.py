"""Covariates in units of their own: there and back, from histograms and from products."""

from __future__ import annotations

import numpy as np
import pytest

from dpfda.basis.basis import make_basis
from dpfda.methods.adaptive.covariate_units import Units
from dpfda.methods.adaptive.covariates import assume_no_covariates, evaluate_degrees, fit_products, fit_units
from dpfda.methods.adaptive.design import fit_design
from dpfda.methods.adaptive.pooling import Pooled
from dpfda.protocol.statistics import COVARIATE_CELLS, DEGREES
from dpfda.silo.prepared import PreparedCurves
from dpfda.silo.release_statistics import find_covariate_cells, weighted_products

UNIFORM = fit_design(make_basis("cosine", 1), None)


def curves_with(columns, rng, points=4):
    """Prepared curves with these covariates after a constant, and uniform points."""
    design = np.column_stack([np.ones(len(columns)), columns])
    offsets = np.arange(len(design) + 1) * points
    return PreparedCurves(rng.random(offsets[-1]), np.zeros(offsets[-1]), offsets, design)


def histograms_of(curves):
    cells = find_covariate_cells(curves, True)
    shares = [np.bincount(column, minlength=COVARIATE_CELLS) / curves.n for column in cells.T]
    return Pooled(np.concatenate(shares), np.full(len(shares) * COVARIATE_CELLS, 1e-4), float(curves.n))


@pytest.mark.parametrize("intercept", [True, False])
def test_coefficients_go_there_and_back(intercept) -> None:
    rng = np.random.default_rng(0)
    units = Units(np.array([0.0, 0.3, -0.5]) * intercept, np.array([1.0, 0.4, 0.2]), intercept)
    theta = rng.normal(size=(3, 5))
    np.testing.assert_allclose(units.restore(units.matrix @ theta), theta, atol=1e-12)
    g = rng.normal(size=3)
    if intercept:
        g[0] = 1.0
    standard = (g - units.centre) / units.scale
    np.testing.assert_allclose(standard @ units.matrix @ theta, g @ theta, atol=1e-12)  # the same curve


def test_gradients_follow_the_coefficients() -> None:
    """d/d theta* of a function of theta is the chain rule."""
    units, rng = Units(np.array([0.0, 0.3]), np.array([1.0, 0.4]), True), np.random.default_rng(1)
    gradient, step = rng.normal(size=6), rng.normal(size=(2, 3))
    moved = units.restore(step).ravel() @ gradient
    assert moved == pytest.approx(step.ravel() @ (units.standardise_gradients(3) @ gradient))


def test_centre_and_scale_are_those_of_the_covariates() -> None:
    rng = np.random.default_rng(2)
    columns = np.column_stack([np.clip(rng.normal(0.2, 0.3, 20_000), -1, 1), rng.uniform(-1, 1, 20_000)])
    law = fit_units(histograms_of(curves_with(columns, rng)), 1.0, 3, intercept=True)
    np.testing.assert_allclose(law.units.centre[1:], columns.mean(axis=0), atol=0.03)
    np.testing.assert_allclose(law.units.scale[1:], columns.std(axis=0), rtol=0.1)
    assert (law.units.centre[0], law.units.scale[0]) == (0, 1)
    assert not law.longest.any()


@pytest.mark.parametrize("share", [0.5, 0.1])
def test_a_group_is_seen_as_two_valued(share) -> None:
    rng = np.random.default_rng(3)
    column = np.where(rng.random(20_000) < share, 1.0, -1.0)[:, None]
    law = fit_units(histograms_of(curves_with(column, rng)), 1.0, 2, intercept=True)
    assert law.units.centre[1] == pytest.approx(2 * share - 1, abs=0.02)
    assert law.units.scale[1] == pytest.approx(2 * np.sqrt(share * (1 - share)), abs=0.03)
    assert law.longest[1] == pytest.approx(np.abs((column - column.mean()) / column.std()).max(), rel=0.05)


def test_products_find_correlations_and_how_they_change_along_x() -> None:
    rng = np.random.default_rng(4)
    z = rng.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], 30_000)
    curves = curves_with(np.clip(z / 4, -1, 1), rng)
    law = fit_units(histograms_of(curves), 1.0, 3, intercept=True)
    rows = weighted_products(curves, True, law.units.centre, law.query_scale)
    moments = Pooled(rows.mean(axis=0), np.full(rows.shape[1], 1e-3), float(curves.n))
    found = fit_products(law, moments, 1.0, UNIFORM)
    assert found.average[1, 2] == pytest.approx(0.6, abs=0.06)
    np.testing.assert_allclose(found.average, found.average.T)
    assert np.linalg.eigvalsh(found.average).min() > 0
    assert max(np.abs(found.means[1:]).max(), np.abs(found.within[1:]).max()) < 0.08
    assert np.abs(found.mean_roots).max() < np.abs(law.mean_roots).max() / 10
    assert found.loose[1:, 1:].max() < 0.02


def test_a_covariate_that_follows_x_is_found_with_its_variance_around_it() -> None:
    """g = 1.2 (2x - 1)^2 + noise: E[g | x] has degree 2, E[g^2 | x] degree 4, beyond the released degrees."""
    rng = np.random.default_rng(6)
    u = rng.random((40_000, 1))
    g = 1.2 * (2 * u - 1) ** 2 - 0.5 + rng.uniform(-0.3, 0.3, u.shape)
    rows = np.stack([np.ones_like(g), g], axis=-1)
    curves = PreparedCurves(u.ravel(), np.zeros(u.size), np.arange(len(u) + 1), rows[:, 0])
    law = fit_units(histograms_of(curves), 1.0, 2, intercept=True)
    rows = weighted_products(curves, True, law.units.centre, law.query_scale)
    found = fit_products(law, Pooled(rows.mean(axis=0), np.full(rows.shape[1], 2e-3), 40_000.0), 1.0, UNIFORM)
    places = np.array([0.1, 0.5, 0.8])
    expected = (1.2 * (2 * places - 1) ** 2 - 0.5 - law.units.centre[1]) / law.units.scale[1]
    np.testing.assert_allclose(found.means_at(places)[:, 1], expected, atol=0.1)
    around = 0.03 / law.units.scale[1] ** 2
    np.testing.assert_allclose(found.moments_at(places)[:, 1, 1], expected**2 + around, atol=0.25)


def test_means_of_two_levels_of_a_factor_say_how_they_go_together() -> None:
    """Squares and products of two-valued covariates that exclude each other are known far better than released."""
    rng = np.random.default_rng(7)
    level = rng.choice(3, size=20_000, p=[0.5, 0.3, 0.2])
    curves = curves_with(2.0 * (level[:, None] == [1, 2]) - 1, rng)
    law = fit_units(histograms_of(curves), 1.0, 3, intercept=True)
    rows = weighted_products(curves, True, law.units.centre, law.query_scale)
    noisy = rows.mean(axis=0) + 0.2 * rng.normal(size=rows.shape[1]) * (np.arange(rows.shape[1]) >= 2 * DEGREES)
    sd = np.where(np.arange(rows.shape[1]) < 2 * DEGREES, 0.005, 0.2)
    found = fit_products(law, Pooled(noisy, sd, 20_000.0), 1.0, UNIFORM)
    expected = -np.sqrt(0.3 * 0.2 / (0.7 * 0.8))
    assert found.average[1, 2] == pytest.approx(expected, abs=0.12)
    np.testing.assert_allclose(np.diag(found.average), 1, atol=0.06)


def test_the_second_moments_stay_definite_where_there_are_points() -> None:
    law = fit_units(Pooled(np.full(COVARIATE_CELLS, 1 / COVARIATE_CELLS), np.full(COVARIATE_CELLS, 0.01), 500.0), 1.0, 2,
                    intercept=True)  # fmt: skip
    rng = np.random.default_rng(5)
    for _ in range(10):
        moments = Pooled(3 * rng.standard_normal(2 * DEGREES), np.full(2 * DEGREES, 0.1), 500.0)
        found = fit_products(law, moments, 1.0, UNIFORM)
        assert np.linalg.eigvalsh(found.average).min() > 0
        assert np.linalg.eigvalsh(found.moments_at(UNIFORM.nodes.u)).min() > 0


def test_degrees_are_chebyshev_polynomials() -> None:
    u = np.linspace(0, 1, 17)
    np.testing.assert_allclose(
        evaluate_degrees(u), np.cos(np.outer(np.arccos(1 - 2 * u), np.arange(DEGREES))), atol=1e-12
    )


def test_a_mean_has_the_constant_alone() -> None:
    law = assume_no_covariates()
    assert (law.columns, law.average.tolist(), law.loose.any(), law.mean_roots.any()) == (1, [[1.0]], False, False)
    assert fit_units(None, 1.0, 1, intercept=True).columns == 1


def test_a_histogram_of_noise_gives_no_extreme_scale() -> None:
    """Uniform covariates under noise of 0.1 a cell: scales are of the right order."""
    rng = np.random.default_rng(8)
    exact = np.concatenate([[0.0], np.full(COVARIATE_CELLS - 2, 1 / (COVARIATE_CELLS - 2)), [0.0]])
    for _ in range(50):
        noisy = Pooled(exact + 0.1 * rng.normal(size=COVARIATE_CELLS), np.full(COVARIATE_CELLS, 0.1), 500.0)
        law = fit_units(noisy, 1.0, 2, intercept=True)
        if not law.longest[1]:
            assert 0.25 < law.units.scale[1] < 1.0
            assert abs(law.units.centre[1]) < 0.6
