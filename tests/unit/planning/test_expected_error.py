"""The forecast of the error: shape of the answer, monotone, from public inputs only, and what fit says about it."""

from __future__ import annotations

import inspect
import itertools
import math
import warnings

import numpy as np
import pytest

from dpfda import InsufficientBudgetWarning, InvalidInput, PrivateMean, PrivateVaryingCoefficients, Silo
from dpfda.curves.simulated import mean_1, simulate_mean
from dpfda.planning.expected_error import (
    INSUFFICIENT_SHARE,
    ExpectedError,
    expected_error,
    expected_error_of,
    is_clearly_enough,
    required_epsilon,
    required_subjects,
)
from dpfda.planning.outcomes import guess_outcome
from dpfda.planning.planned_study import PlannedStudy
from dpfda.protocol.plans import make_plan
from dpfda.protocol.terms import SiloTerms

BOUNDS = (-4.0, 6.0)
TERMS = {"epsilon": 1.0, "delta": 1e-5, "y_bounds": BOUNDS}


def totals(name, values, **fixed):
    base = {"n": 400, "m": 6.0, **TERMS, **fixed}
    return [expected_error(**{**base, name: value}).total for value in values]


@pytest.mark.parametrize("fixed", [{"n_basis": 5}, {}, {"d": 2, "n_basis": 3}, {"basis": "fourier", "n_basis": 7}])
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("n", [30, 100, 300, 1000, 10_000, 1_000_000]),
        ("m", [1, 2, 5, 20, 100]),
        ("epsilon", [0.05, 0.2, 0.5, 1, 2, 4, 8]),
        ("S", [1, 2, 5, 20]),
        ("delta", [1e-9, 1e-6, 1e-3]),
    ],
)
def test_more_of_anything_never_hurts(name, values, fixed):
    found = totals(name, values, **fixed)
    saturated = 1.03  # with five functions and 10,000 subjects or more only the tail of the basis is left
    assert all(later < saturated * earlier for earlier, later in itertools.pairwise(found))
    assert found[-1] < found[0]


@pytest.mark.parametrize("guess", ["spread", "noise_sd"])
def test_more_variation_is_harder(guess):
    found = totals(guess, [0.1, 0.5, 1.0, 2.0])
    assert found == sorted(found)


def test_parts_add_up_and_privacy_vanishes_with_the_budget():
    strict, loose = (expected_error(500, 8, **{**TERMS, "epsilon": epsilon}, n_basis=5) for epsilon in (1.0, 50.0))
    assert strict.total == pytest.approx(strict.bias + strict.sampling + strict.privacy)
    assert min(strict.bias, strict.sampling, strict.privacy) > 0
    assert loose.privacy < 0.02 * strict.privacy
    assert loose.privacy < 0.04 * loose.sampling
    assert "privacy" in str(strict)


def test_sampling_part_is_that_of_least_squares():
    sampling = expected_error(
        10_000, 10, epsilon=50, delta=1e-5, y_bounds=BOUNDS, basis="fourier", n_basis=3, spread=0.0, noise_sd=0.5,
        signal=mean_1,
    ).sampling  # fmt: skip
    assert sampling == pytest.approx(3 * 0.25 / 10 / 10_000, rel=0.02)


def test_error_scales_with_the_units_of_y():
    small = expected_error(500, 8, **TERMS)
    large = expected_error(500, 8, **{**TERMS, "y_bounds": (-400.0, 600.0)})
    assert large.total == pytest.approx(1e4 * small.total)
    assert large.insufficient == small.insufficient


def test_bias_is_what_the_basis_cannot_show():
    def step(x):
        return np.where(x < 0.5, 0.0, 1.0)

    terms = {**TERMS, "epsilon": 8.0, "basis": "cosine", "signal": step}
    few, many = (expected_error(10**6, 20, **terms, n_basis=r).bias for r in (2, 12))
    assert few > 4 * many > 0
    assert few < 0.5  # the variance of the step, and what is thought of its tail


def test_equal_silos_are_the_same_as_their_terms():
    listed = [SiloTerms(f"s{k}", 300, 1.0, 1e-5) for k in range(4)]
    assert expected_error(listed, 6, y_bounds=BOUNDS).total == pytest.approx(expected_error(300, 6, S=4, **TERMS).total)


def test_a_further_silo_never_hurts_even_if_tiny():
    large = SiloTerms("large", 2000, 1.0, 1e-5)
    tiny = SiloTerms("tiny", 20, 0.1, 1e-5)
    alone = expected_error([large], 6, y_bounds=BOUNDS, n_basis=5).total
    assert expected_error([large, tiny], 6, y_bounds=BOUNDS, n_basis=5).total <= alone * 1.0001


def test_thin_designs_are_harder():
    uniform = expected_error(1000, 5, **TERMS, n_basis=7).total
    thin = expected_error(1000, 5, **TERMS, n_basis=7, density=lambda x: 3 * (1 - x) ** 2).total
    assert thin > 2 * uniform


def test_no_function_takes_data():
    for function in (expected_error, expected_error_of, required_epsilon, required_subjects, PrivateMean.forecast):
        assert not {"X", "x", "y", "curves", "data"} & set(inspect.signature(function).parameters)


def test_methods_agree_with_the_function():
    estimator = PrivateMean(1.0, 1e-5, domain=(20, 80), y_bounds=BOUNDS, n_basis=5)
    assert estimator.forecast(n=400, m=6, spread=0.5) == expected_error(400, 6, **TERMS, n_basis=5, spread=0.5)
    assert not hasattr(estimator, "plan_")
    pairs = PrivateVaryingCoefficients(1.0, 1e-5, domain=(0, 1), y_bounds=BOUNDS, design_bounds=[(-1, 1)] * 2)
    single = PrivateVaryingCoefficients(1.0, 1e-5, domain=(0, 1), y_bounds=BOUNDS, design_bounds=(-1, 1))
    assert pairs.forecast(n=400, m=6) == single.forecast(n=400, m=6, d=2) == expected_error(400, 6, d=2, **TERMS)


def test_covariates_of_another_unit_give_coefficients_of_another_unit():
    one = expected_error(2000, 6, d=1, **TERMS, n_basis=3, design_bounds=(-1.0, 1.0))
    ten = expected_error(2000, 6, d=1, **TERMS, n_basis=3, design_bounds=(-0.1, 0.1))
    assert 30 < ten.total / one.total < 100


def test_required_epsilon_and_subjects_invert_the_forecast():
    goal = expected_error(700, 6, **TERMS, n_basis=5).total
    terms = {"y_bounds": BOUNDS, "n_basis": 5}
    assert required_epsilon(goal, 700, 6, delta=1e-5, **terms) == pytest.approx(1.0, rel=0.01)
    assert required_subjects(goal, 6, epsilon=1.0, delta=1e-5, **terms) == pytest.approx(700, abs=2)
    assert required_epsilon(1e-9, 700, 6, delta=1e-5, **terms) == math.inf
    assert required_subjects(1e-12, 6, epsilon=1.0, delta=1e-5, **terms) == math.inf
    assert required_epsilon(1e9, 700, 6, delta=1e-5, **terms) <= 1e-3


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"n": 0, "m": 5}, "n"),
        ({"n": 100, "m": 0.5}, "m"),
        ({"n": 100, "m": 5, "S": 0}, "S"),
        ({"n": [], "m": 5}, "n"),
        ({"n": 100, "m": 5, "spread": -1.0}, "spread"),
        ({"n": 100, "m": 5, "signal": [mean_1, mean_1]}, "signal"),
        ({"n": 100, "m": 5, "design_moments": [[0.0]]}, "design_moments"),
    ],
)
def test_bad_input_is_named(arguments, word):
    with pytest.raises(InvalidInput, match=rf"^{word} "):
        PrivateMean(1.0, 1e-5, domain=(0, 1), y_bounds=BOUNDS).forecast(**arguments)


def test_plan_needs_a_budget_a_method_and_the_number_of_covariates():
    with pytest.raises(InvalidInput, match="epsilon and delta"):
        PrivateMean(domain=(0, 1), y_bounds=BOUNDS).forecast(n=100, m=5)
    with pytest.raises(InvalidInput, match="adaptive"):
        PrivateMean(1.0, 1e-5, domain=(0, 1), y_bounds=BOUNDS, method="published").forecast(n=100, m=5)
    with pytest.raises(InvalidInput, match="d must be given"):
        PrivateVaryingCoefficients(1.0, 1e-5, domain=(0, 1), y_bounds=BOUNDS, design_bounds=(-1, 1)).forecast(
            n=100, m=5
        )


def test_hopeless_budget_is_said_in_plain_words():
    curves = simulate_mean(30, 5, rng=1)
    with pytest.warns(InsufficientBudgetWarning, match="expected squared error"):
        PrivateMean(0.1, 1e-5, domain=(0, 1), y_bounds=BOUNDS, random_state=1).fit(curves)
    with pytest.warns(InsufficientBudgetWarning):
        PrivateMean(domain=(0, 1), y_bounds=BOUNDS, random_state=1).fit(Silo(curves, epsilon=0.1, delta=1e-5))


def test_the_warning_does_not_depend_on_the_data():
    def warned(curves):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            PrivateMean(0.1, 1e-5, domain=(0, 1), y_bounds=BOUNDS, random_state=1).fit(curves)
        return [str(item.message) for item in found if item.category is InsufficientBudgetWarning]

    wild = simulate_mean(30, 60, rng=2, noise_sd=5.0, mean=lambda x: 100 * x)
    assert warned(simulate_mean(30, 1, rng=1)) == warned(wild) != []


def test_usual_budgets_are_not_called_hopeless():
    with warnings.catch_warnings():
        warnings.simplefilter("error", InsufficientBudgetWarning)
        PrivateMean(1.0, 1e-5, domain=(0, 1), y_bounds=BOUNDS, random_state=1).fit(simulate_mean(500, 5, rng=1))


def test_estimator_and_planner_agree_about_a_binary_outcome():
    public = {"domain": (0, 1), "y_bounds": (0, 1)}
    share = PrivateMean(1.0, 1e-5, **public, outcome="binary")
    for given, prevalence in (({}, 0.5), ({"prevalence": 0.5}, 0.5), ({"prevalence": 0.2}, 0.2)):
        guesses = tuple(guess_outcome("binary", prevalence=prevalence).items())
        planned = PlannedStudy(1000, 5, 1, 1.0, 1e-5, 2.0, 0, (0.0, 1.0), guesses).expected()
        found = share.forecast(n=1000, m=5, **given)
        assert found.total == pytest.approx(planned.total, rel=1e-9)
        assert found.privacy == pytest.approx(planned.privacy, rel=1e-9)
        assert ("a share of 0.5 is assumed" in str(found)) is (not given)
    assert share.forecast(n=1000, m=5).total > 5 * PrivateMean(1.0, 1e-5, **public).forecast(n=1000, m=5).total
    percent = PrivateMean(1.0, 1e-5, domain=(0, 1), y_bounds=(0, 100), outcome="binary")
    assert percent.forecast(n=1000, m=5).total == pytest.approx(1e4 * share.forecast(n=1000, m=5).total)


def test_expected_error_is_frozen():
    with pytest.raises(AttributeError):
        ExpectedError(1.0, 1.0, 1.0).bias = 2.0


def test_the_error_after_a_fit_comes_from_releases():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        terms = {"domain": (0, 1), "y_bounds": BOUNDS, "random_state": 1}
        strict, loose = (
            PrivateMean(epsilon, 1e-5, **terms).fit(simulate_mean(500, 5, rng=1)).expected_error_
            for epsilon in (0.5, 50.0)
        )
        assert (
            PrivateMean(1.0, 1e-3, method="published", **terms).fit(simulate_mean(90, 5, rng=1)).expected_error_ is None
        )
        hopeless = PrivateMean(0.1, 1e-5, **terms).fit(simulate_mean(30, 5, rng=1)).expected_error_
    assert strict.total == pytest.approx(strict.bias + strict.sampling + strict.privacy)
    assert strict.privacy > 20 * loose.privacy > 0
    assert min(strict.bias, strict.sampling) >= 0
    assert hopeless.insufficient
    assert not strict.insufficient


def test_bounds_of_the_intercept_may_be_given_or_left_out():
    public = {"epsilon": 1.0, "delta": 1e-5, "domain": (0, 1), "y_bounds": BOUNDS}
    given, left_out = (
        PrivateVaryingCoefficients(**public, design_bounds=bounds).forecast(n=1000, m=5)
        for bounds in ([(1, 1), (-1, 1), (0, 1)], [(-1, 1), (0, 1)])
    )
    assert given == left_out


def plan_of(n, epsilon, silos=1, columns=1, **options):
    estimator = PrivateVaryingCoefficients if columns > 1 else PrivateMean
    made = estimator(epsilon, 1e-5, domain=(0, 1), **{"y_bounds": BOUNDS, **options})
    named = [SiloTerms(f"silo-{number}", n, epsilon, 1e-5) for number in range(silos)]
    return make_plan(made.make_terms(named, columns=columns))


@pytest.mark.parametrize("n", [100, 1000, 10_000])
@pytest.mark.parametrize(
    "options",
    [{}, {"n_basis": 4}, {"basis": "fourier"}, {"basis": "bspline", "n_basis": 30}, {"visit_times": (0, 0.5, 1)}],
)
def test_what_is_clearly_enough_is_far_from_insufficient(n, options):
    plans = (plan_of(n, epsilon, **options) for epsilon in np.geomspace(0.01, 10, 100))
    smallest = next(plan for plan in plans if is_clearly_enough(plan, 5.0))
    found = expected_error_of(smallest, 5.0)
    assert found.total < 0.5 * INSUFFICIENT_SHARE * found.signal


@pytest.mark.parametrize(
    ("options", "points"),
    [
        ({"n": 90, "epsilon": 8.0}, 5.0),
        ({"n": 1000, "epsilon": 0.1}, 5.0),
        ({"n": 1000, "epsilon": 1.0}, 4.0),
        ({"n": 1000, "epsilon": 1.0, "silos": 2}, 5.0),
        ({"n": 1000, "epsilon": 1.0, "columns": 2, "design_bounds": (-1, 1)}, 5.0),
        ({"n": 1000, "epsilon": 1.0, "outcome": "binary", "y_bounds": (0, 1)}, 5.0),
        ({"n": 1000, "epsilon": 1.0, "weight": "visit", "visit_cap": 8}, 5.0),
    ],
)
def test_of_all_other_plans_nothing_is_said_without_a_forecast(options, points):
    assert is_clearly_enough(plan_of(1000, 1.0), 5.0)
    assert not is_clearly_enough(plan_of(**options), points)
