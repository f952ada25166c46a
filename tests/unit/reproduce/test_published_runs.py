"""The Monte Carlo engine computes what the production code computes."""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import pytest

from dpfda import NotPrivateWarning, PrivateMean, PrivateVaryingCoefficients, Silo
from dpfda.curves.simulated import mean_1, mean_2, simulate_mean, simulate_vcm, squared_l2_error
from dpfda.errors import InvalidInput
from dpfda.privacy.noise import SeededNoise
from dpfda.protocol.published_constants import PublishedConstants
from dpfda.reproduce.adaptive_runs import AdaptiveRuns, prepare_sums
from dpfda.reproduce.cells import Cell, Method, make_plan, run_cell, squared_errors
from dpfda.reproduce.published_runs import Moments, PublishedRuns, curve_moments
from dpfda.silo.prepared import prepare

BUDGETS = (0.5, 1.0, 8.0)


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        yield


def production_noise(runs, seeds, names):
    """The standard normal numbers that silos draw with these seeds, one repetition for each seed, all plans alike."""
    draws = [
        [[SeededNoise(seed).stream(name, t).standard_normal(np.zeros(runs.size)) for name in names]
         for t in range(runs.rounds)] for seed in seeds
    ]  # fmt: skip
    return np.repeat(np.array(draws)[..., None], runs.count, axis=-1)


def stacked(plan, data):
    """`data[repetition][silo]` as moments of each silo."""
    one = [[curve_moments(prepare(curves, plan.basis, plan.scaling), plan.basis) for curves in silos] for silos in data]
    return [Moments.stack(list(silo)) for silo in zip(*one, strict=True)]


def agrees(plans, fitted, data, seeds):
    """`fitted[repetition][plan]` from production against the runs side by side, to 1e-10."""
    runs = PublishedRuns.of(plans)
    names = [terms.name for terms in plans[0].silos]
    found = runs.run(stacked(plans[0], data), production_noise(runs, seeds, names))
    wanted = np.array([[np.ravel(one) for one in row] for row in fitted])
    assert np.abs(found - wanted).max() <= 1e-10 * max(1.0, np.abs(wanted).max())


@pytest.mark.parametrize("size", [3, 7])
def test_many_plans_at_once_equal_production_fits_of_a_mean(size):
    seeds, n, m = [3, 4], 120, 5
    data = [[simulate_mean(n, m, rng=seed)] for seed in seeds]
    make = [
        PrivateMean(eps, 1e-3, domain=(0, 1), y_bounds=(-50, 50), basis="fourier", n_basis=size, method="published",
                    points_per_curve=m, y_scale="none") for eps in BUDGETS
    ]  # fmt: skip
    fitted = [
        [one.set_params(random_state=s).fit(curves[0]).coef_ for one in make]
        for s, curves in zip(seeds, data, strict=True)
    ]
    agrees([one.plan_ for one in make], fitted, data, seeds)


def test_many_plans_at_once_equal_production_where_curves_differ_in_length_and_projection_binds():
    m = np.random.default_rng(0).integers(1, 9, 150)
    curves = simulate_mean(150, m, rng=1)
    constants = PublishedConstants(C_alpha=100.0)
    make = PrivateMean(0.3, 1e-3, domain=(0, 1), y_bounds=(-50, 50), basis="fourier", n_basis=5, method="published",
                       points_per_curve=4, y_scale="none", constants=constants, random_state=2)  # fmt: skip
    coefficients = make.fit(curves).coef_
    on_boundary = float((np.arange(1, 6) ** 6.0 @ coefficients**2) / (100 / np.pi**3) ** 2)
    assert on_boundary == pytest.approx(1.0, abs=1e-9)
    agrees([make.plan_], [[coefficients]], [[curves]], [2])


def test_many_plans_at_once_equal_production_for_unequal_silos_with_covariates():
    silos = [simulate_vcm(n, 4, 2, rng=n) for n in (90, 140)]
    make = PrivateVaryingCoefficients(domain=(0, 1), y_bounds=(-50, 50), design_bounds=(-1, 1), basis="fourier", n_basis=3,
                                      method="published", y_scale="none", random_state=5)  # fmt: skip
    budgets = ((1.0, 4.0), (4.0, 0.5))
    plans, fitted = [], []
    for pair in budgets:
        given = [Silo(one, epsilon=e, delta=1e-3, points_per_curve=4) for one, e in zip(silos, pair, strict=True)]
        fitted.append(make.fit(given).coef_)
        plans.append(make.plan_)
    agrees(plans, [fitted], [silos], [5])


def test_many_plans_at_once_refuse_plans_of_different_shape():
    method = Method("published", BUDGETS, 1, n_basis=3)
    plans = [make_plan(Cell(n, 5), method, 1.0) for n in (120, 150)]
    with pytest.raises(InvalidInput, match="one shape"):
        PublishedRuns.of(plans)


def test_adaptive_runs_have_the_bits_of_a_fit():
    curves = simulate_mean(150, 6, rng=1)
    for epsilon in (0.5, 8.0):
        fitted = PrivateMean(epsilon, 1e-3, domain=(0, 1), y_bounds=(-4, 5), random_state=11).fit(curves)
        plan = fitted.plan_
        found = AdaptiveRuns(plan).run(prepare_sums(plan, [curves]), 11)
        assert np.array_equal(plan.scaling.to_user_units(found)[0], fitted.coef_)


def test_adaptive_runs_have_the_bits_of_a_federated_fit_with_covariates():
    silos = {f"silo-{k}": simulate_vcm(n, 5, 1, rng=k) for k, n in ((1, 200), (2, 300))}
    given = [Silo(one, epsilon=e, delta=1e-3) for one, e in zip(silos.values(), (1.0, 2.0), strict=True)]
    make = PrivateVaryingCoefficients(domain=(0, 1), y_bounds=(-4, 5), design_bounds=(-1, 1), random_state=3).fit(given)
    plan = make.plan_
    found = AdaptiveRuns(plan).run(prepare_sums(plan, list(silos.values())), 3)
    assert np.array_equal(plan.scaling.to_user_units(found), make.coef_)


def test_data_are_shared_by_methods_and_budgets():
    cell = Cell(100, 4, methods=(Method("published", (1.0,), 2, n_basis=3),))
    other = dataclasses.replace(cell, methods=(Method("adaptive", (0.5, 1.0), 2, n_basis=3),))
    for k in range(2):
        assert np.array_equal(cell.curves(k)[0].y, other.curves(k)[0].y)
    assert not np.array_equal(cell.curves(0)[0].y, cell.curves(1)[0].y)


def test_a_cell_does_not_depend_on_how_it_is_cut_into_portions(monkeypatch):
    cell = Cell(
        100, 4, methods=(Method("published", BUDGETS, 5, n_basis=3), Method("nonprivate", (1.0,), 3, n_basis=3))
    )
    whole = run_cell(cell)
    monkeypatch.setattr("dpfda.reproduce.cells._DOUBLES_AT_ONCE", 4000)
    parts = run_cell(cell)
    for method in ("published", "nonprivate"):
        assert np.allclose(whole[method], parts[method], rtol=1e-12)


@pytest.mark.parametrize("truth", [mean_1, mean_2])
def test_errors_are_those_of_the_library(truth):
    plan = make_plan(Cell(300, 5), Method("adaptive", (1.0,), 1, basis="cosine", n_basis=9), 1.0)
    coefficients = np.random.default_rng(1).standard_normal((1, 9))
    wanted = squared_l2_error(lambda x: plan.basis.evaluate(x) @ coefficients[0], truth)
    assert squared_errors(coefficients, plan.basis, [truth]) == pytest.approx(wanted, rel=1e-10)
