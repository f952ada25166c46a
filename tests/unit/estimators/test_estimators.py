"""The front door: scikit-learn's conventions, shapes, statements and warnings."""

from __future__ import annotations

import inspect
import math
import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import dpfda
from dpfda import (
    BudgetExceeded,
    Curves,
    InsufficientBudgetWarning,
    InvalidInput,
    Ledger,
    NotPrivateWarning,
    PrivateMean,
    PrivateVaryingCoefficients,
    PublishedConstants,
    Silo,
)

ESTIMATORS = [PrivateMean, PrivateVaryingCoefficients]
FITTED = ("coef_", "privacy_", "n_basis_", "basis_")
GRID = np.linspace(0, 10, 31)


def rows(n=80, seed=0):
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 8, n)
    ids = np.repeat(np.arange(n), counts)
    x = rng.uniform(0, 10, ids.size)
    G = np.column_stack([rng.uniform(-1, 1, n), rng.uniform(0, 2, n)])[ids]
    return ids, x, 1 + np.cos(x) + G[:, 0] * x / 5 + rng.normal(0, 0.3, ids.size), G


def curves(cls, **kwargs):
    ids, x, y, G = rows(**kwargs)
    if cls is PrivateMean:
        return Curves.from_long(ids, x, y)
    return Curves.from_long(ids, x, y, design=G).with_intercept()


def make(cls, **kwargs):
    options = {
        "epsilon": 1.0,
        "delta": 1e-3,
        "domain": (0, 10),
        "y_bounds": (-6, 6),
        "n_basis": 4,
        "method": "published",
        "points_per_curve": 4,
    }
    if cls is PrivateVaryingCoefficients:
        options["design_bounds"] = [(-1, 1), (0, 2)]
    return cls(**(options | kwargs))


def fitted(cls, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        return make(cls, **({"random_state": 1} | kwargs)).fit(curves(cls))


# ---------------------------------------------------------------- scikit-learn


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_parameters_are_stored_as_given(cls):
    given = {name: object() for name in inspect.signature(cls).parameters}
    estimator = cls(**given)
    assert all(getattr(estimator, name) is value for name, value in given.items())
    assert estimator.get_params(deep=False) == given


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_bad_parameters_are_found_in_fit_not_before(cls):
    estimator = make(cls, epsilon=-1.0, basis="wavelet")
    estimator.set_params(basis="cosine")
    with pytest.raises(InvalidInput, match="epsilon"):
        estimator.fit(curves(cls))


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_clone_and_set_params(cls):
    original = fitted(cls, constants=PublishedConstants(C_R=0.5))
    copy = clone(original)
    assert copy.get_params() == original.get_params()
    assert not any(name in vars(copy) for name in FITTED)
    assert copy.set_params(epsilon=3.0, basis="fourier") is copy
    assert (copy.epsilon, copy.basis, original.epsilon) == (3.0, "fourier", 1.0)
    with pytest.raises(ValueError, match="no_such"):
        copy.set_params(no_such=1)


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_fit_changes_no_parameter_and_returns_self(cls):
    estimator = make(cls)
    before = estimator.get_params()
    assert estimator.fit(curves(cls)) is estimator
    assert estimator.get_params() == before


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_nothing_is_fitted_before_fit(cls):
    estimator = make(cls)
    assert not [name for name in vars(estimator) if name.endswith("_")]
    calls = [lambda: estimator.predict([1.0], *([[1.0, 0.0, 0.0]] if cls is not PrivateMean else []))]
    calls += [estimator.to_skfda, lambda: estimator.basis_]
    if cls is PrivateVaryingCoefficients:
        calls.append(lambda: estimator.predict_coefficients([1.0]))
    for call in calls:
        with pytest.raises(NotFittedError):
            call()


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_pickle(cls):
    original = fitted(cls)
    copy = pickle.loads(pickle.dumps(original))
    assert copy.get_params() == original.get_params()
    assert_array_equal(copy.coef_, original.coef_)
    assert copy.privacy_ == original.privacy_
    assert copy.basis_ == original.basis_


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_a_pickle_holds_no_curves(cls):
    """A fitted estimator is what gets shared: none of the y values may travel with it."""
    stored = pickle.dumps(fitted(cls))
    assert len(stored) < 8500
    assert not any(np.float64(y).tobytes() in stored for y in rows()[2][:50])


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_repr(cls):
    assert repr(make(cls, basis="fourier")).startswith(f"{cls.__name__}(")
    assert "epsilon=1.0" in repr(make(cls))
    assert repr(cls()) == f"{cls.__name__}()"


def test_constructors_share_parameters():
    mean = inspect.signature(PrivateMean).parameters
    vcm = inspect.signature(PrivateVaryingCoefficients).parameters
    assert set(vcm) - set(mean) == {"covariates", "design", "design_bounds", "intercept"}
    assert not set(mean) - set(vcm)
    assert all(mean[name].default == vcm[name].default for name in mean)


def test_public_names():
    assert all(hasattr(dpfda, name) for name in dpfda.__all__)
    assert {"Curves", "Ledger", "PrivateMean", "PrivateVaryingCoefficients", "Silo"} <= set(dpfda.__all__)
    for method in ("adaptive", "published", "nonprivate"):
        assert PrivateMean(method=method).method == method


# ---------------------------------------------------------------- shapes and values


@pytest.mark.parametrize("basis", ["cosine", "fourier", "fourier-extension"])
@pytest.mark.parametrize("r", [1, 4, 5])
def test_shapes_of_the_mean(basis, r):
    estimator = fitted(PrivateMean, basis=basis, n_basis=r)
    assert estimator.coef_.shape == (r,)
    assert estimator.n_basis_ == r
    assert estimator.predict(GRID).shape == GRID.shape
    assert estimator.predict(3.0).shape == (1,)
    assert estimator.predict([3, 4]).dtype == np.float64
    assert_allclose(estimator.predict(GRID), estimator.basis_.evaluate(GRID) @ estimator.coef_, rtol=1e-13)


@pytest.mark.parametrize("basis", ["cosine", "fourier", "fourier-extension"])
def test_shapes_of_the_coefficients(basis):
    estimator = fitted(PrivateVaryingCoefficients, basis=basis)
    assert estimator.coef_.shape == (3, 4)
    functions = estimator.predict_coefficients(GRID)
    assert functions.shape == (31, 3)
    assert_allclose(functions, estimator.basis_.evaluate(GRID) @ estimator.coef_.T, rtol=1e-13)


def test_predict_with_design():
    estimator = fitted(PrivateVaryingCoefficients)
    functions = estimator.predict_coefficients(GRID)
    one = [1.0, 0.5, 2.0]
    assert_allclose(estimator.predict(GRID, one), functions @ one, rtol=1e-13)
    many = np.random.default_rng(0).normal(size=(31, 3))
    assert_allclose(estimator.predict(GRID, many), (functions * many).sum(axis=1), rtol=1e-12)
    for wrong in ([1.0, 0.5], np.ones((30, 3)), np.ones((31, 4)), "abc"):
        with pytest.raises(InvalidInput, match="design"):
            estimator.predict(GRID, wrong)


def test_predict_is_the_reference_profile_and_band_the_coefficient_functions():
    options = {"design_bounds": None, "covariates": {"a": (-1, 1), "b": {"bounds": (0, 2), "reference": 0.5}}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator = make(PrivateVaryingCoefficients, method="adaptive", **options).fit(
            curves(PrivateVaryingCoefficients)
        )
    functions = estimator.predict_coefficients(GRID)
    assert_allclose(estimator.predict(GRID), np.clip(functions @ [1, 0, 0.5], -6, 6), atol=1e-12)
    low, high = estimator.band(0.9, x=GRID)
    assert low.shape == high.shape == (31, 3)
    assert estimator.names_ == ("intercept", "a", "b")
    assert_allclose((low + high) / 2, functions, atol=1e-9)
    low, high = estimator.curve_.band(0.9, x=GRID)
    assert low.shape == high.shape == (31,)
    assert ((low <= estimator.predict(GRID)) & (estimator.predict(GRID) <= high)).all()
    with pytest.raises(InvalidInput, match=r"3 columns \(intercept, a, b\)"):
        estimator.predict(GRID, [1.0, 0.5])


@pytest.mark.parametrize("x", [[-0.1], [10.1], [math.nan], ["a"], [[1.0, 2.0]]])
def test_predict_outside_the_domain_is_refused(x):
    with pytest.raises(InvalidInput, match="x"):
        fitted(PrivateMean).predict(x)


def test_n_basis_by_the_papers_formula_when_left_out():
    """n = 80, m = 4, eps = 1: min(2.08, 2.28, 4.3, 3.6) * 1.25 = 2.6, so 3."""
    assert fitted(PrivateMean, n_basis=None).n_basis_ == 3


@pytest.mark.parametrize("cls", ESTIMATORS)
@pytest.mark.parametrize("basis", ["fourier", "fourier-extension", "cosine", "free-ends", "bspline"])
@pytest.mark.parametrize("r", [4, 5])
def test_to_skfda_evaluates_like_predict(cls, basis, r):
    pytest.importorskip("skfda")
    estimator = fitted(cls, basis=basis, n_basis=r, domain=(-1.0, 10.0))
    functions = estimator.to_skfda()
    assert len(functions) == np.atleast_2d(estimator.coef_).shape[0]
    x = np.linspace(-1, 10, 501)
    expected = estimator.predict(x) if cls is PrivateMean else estimator.predict_coefficients(x)
    assert_allclose(functions(x)[..., 0].T.squeeze(), expected, rtol=1e-10, atol=1e-10)
    slopes = estimator.basis_.derivative(x) @ np.atleast_2d(estimator.coef_).T
    assert_allclose(functions.derivative()(x)[..., 0].T, slopes, atol=1e-8)
    assert_allclose(estimator.basis_.from_fdata(functions), np.atleast_2d(estimator.coef_), atol=1e-9)


# ---------------------------------------------------------------- non-private reference


@pytest.mark.parametrize("basis", ["cosine", "fourier", "fourier-extension"])
def test_nonprivate_mean_is_weighted_least_squares(basis):
    ids, x, y, _ = rows()
    with pytest.warns(NotPrivateWarning):
        estimator = make(PrivateMean, method="nonprivate", basis=basis).fit(Curves.from_long(ids, x, y))
    root = np.sqrt(1 / np.bincount(ids))[ids]
    Phi = estimator.basis_.evaluate(x)
    expected = np.linalg.lstsq(Phi * root[:, None], y * root, rcond=None)[0]
    assert_allclose(estimator.coef_, expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("intercept", [True, False])
def test_nonprivate_coefficients_are_weighted_least_squares(intercept):
    ids, x, y, G = rows()
    data = Curves.from_long(ids, x, y, design=G)
    if intercept:
        data, G = data.with_intercept(), np.column_stack([np.ones(ids.size), G])
    with pytest.warns(NotPrivateWarning):
        estimator = make(PrivateVaryingCoefficients, method="nonprivate", intercept=intercept).fit(data)
    root = np.sqrt(1 / np.bincount(ids))[ids]
    Phi = estimator.basis_.evaluate(x)
    matrix = (G[:, :, None] * Phi[:, None, :]).reshape(ids.size, -1)
    expected = np.linalg.lstsq(matrix * root[:, None], y * root, rcond=None)[0]
    assert_allclose(estimator.coef_.ravel(), expected, rtol=1e-8, atol=1e-10)


def test_nonprivate_says_so():
    with pytest.warns(NotPrivateWarning, match="nonprivate"):
        estimator = make(PrivateMean, method="nonprivate", epsilon=None, delta=None).fit(curves(PrivateMean))
    statement = estimator.privacy_
    assert not statement.private
    assert statement.silos == ()
    assert statement.epsilon == math.inf
    assert str(statement).startswith("NOT PRIVATE")


def test_nonprivate_never_reads_a_silo():
    silo = Silo(curves(PrivateMean), epsilon=1.0, delta=1e-3)
    for data in (silo, [silo], [curves(PrivateMean)]):
        with pytest.raises(InvalidInput, match="X"):
            make(PrivateMean, method="nonprivate").fit(data)


# ---------------------------------------------------------------- randomness and statements


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_a_seed_repeats_and_warns(cls):
    with pytest.warns(NotPrivateWarning, match="random_state"):
        first = make(cls, random_state=5).fit(curves(cls))
    with pytest.warns(NotPrivateWarning):
        second = make(cls, random_state=5).fit(curves(cls))
    with pytest.warns(NotPrivateWarning):
        other = make(cls, random_state=6).fit(curves(cls))
    assert_array_equal(first.coef_, second.coef_)
    assert (first.coef_ != other.coef_).all()
    assert not first.privacy_.private
    assert str(first.privacy_).startswith("NOT PRIVATE")


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_without_a_seed_fits_differ_and_are_private(cls):
    with warnings.catch_warnings():
        warnings.simplefilter("error", NotPrivateWarning)
        first, second = (make(cls).fit(curves(cls)) for _ in range(2))
    assert (first.coef_ != second.coef_).all()
    assert first.privacy_.private
    assert second.privacy_.private


def test_global_numpy_seed_has_no_part_in_it():
    fits = []
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002
        fits.append(make(PrivateMean).fit(curves(PrivateMean)).coef_)
    assert (fits[0] != fits[1]).all()


def test_statement_of_one_organisation():
    statement = make(PrivateMean).fit(curves(PrivateMean)).privacy_
    assert statement.private
    assert statement.unit == "curve"
    assert statement.neighbours == "replace-one"
    assert (statement.epsilon, statement.delta) == (1.0, 1e-3)
    (silo,) = statement.silos
    assert (silo.name, silo.n, silo.epsilon, silo.delta) == ("silo-1", 80, 1.0, 1e-3)
    assert silo.mu == pytest.approx(1 / (2 * math.sqrt(math.log(2000))), rel=1e-12)
    assert 0 < silo.epsilon_spent <= 1.0
    assert statement.public_inputs["domain"] == (0.0, 10.0)
    assert statement.public_inputs["y_bounds"] == (-6.0, 6.0)
    assert statement.public_inputs["number of curves"] == 80
    assert "design_bounds" not in statement.public_inputs
    text = str(statement)
    for part in ("one curve", "replace-one", "Algorithm 1", "80 curves", "(1, 0.001)", "domain"):
        assert part in text


def test_statement_across_silos():
    data = curves(PrivateVaryingCoefficients)
    silos = [
        Silo(data, epsilon=0.5, delta=1e-6, name="north", points_per_curve=4),
        Silo(data, epsilon=2.0, delta=1e-4, name="south", points_per_curve=6),
    ]
    statement = make(PrivateVaryingCoefficients, epsilon=None, delta=None).fit(silos).privacy_
    assert [(s.name, s.epsilon, s.delta) for s in statement.silos] == [("north", 0.5, 1e-6), ("south", 2.0, 1e-4)]
    assert (statement.epsilon, statement.delta) == (2.0, 1e-4)
    assert all(s.epsilon_spent <= s.epsilon for s in statement.silos)
    assert statement.public_inputs["design_bounds"] == {
        "intercept": (1.0, 1.0),
        "column-1": (-1.0, 1.0),
        "column-2": (0.0, 2.0),
    }
    assert "Algorithm 3" in statement.mechanism
    assert statement.mechanism in str(statement)


def test_statement_agrees_with_the_ledger():
    silo = Silo(curves(PrivateMean), epsilon=1.0, delta=1e-3, points_per_curve=4)
    statement = make(PrivateMean).fit(silo).privacy_
    spent = silo.ledger.spent()
    assert spent.mu_squared == pytest.approx(statement.silos[0].mu ** 2, rel=1e-12)
    assert spent.epsilon == pytest.approx(statement.silos[0].epsilon_spent, rel=1e-9)


def test_progress_is_called_for_every_round():
    told = []
    make(PrivateMean).fit(curves(PrivateMean), progress=lambda done, planned: told.append((done, planned)))
    T = math.ceil(4 * math.log(80))
    assert told == [(t, T) for t in range(1, T + 1)]


def test_y_argument_is_accepted_and_ignored():
    with pytest.warns(NotPrivateWarning):
        with_y = make(PrivateMean, random_state=1).fit(curves(PrivateMean), None)
    assert_array_equal(with_y.coef_, fitted(PrivateMean).coef_)


def test_missing_points_per_curve_is_assumed_aloud():
    with pytest.warns(UserWarning, match="points_per_curve=10"):
        make(PrivateMean, points_per_curve=None).fit(curves(PrivateMean))


def test_values_beyond_y_bounds_are_clamped():
    ids, x, y, _ = rows()
    clamped = np.clip(y, 0.0, 1.0)
    options = {"y_bounds": (0.0, 1.0), "random_state": 1}
    with pytest.warns(NotPrivateWarning):
        wild = make(PrivateMean, **options).fit(Curves.from_long(ids, x, y))
    with pytest.warns(NotPrivateWarning):
        tame = make(PrivateMean, **options).fit(Curves.from_long(ids, x, clamped))
    assert_array_equal(wild.coef_, tame.coef_)


def test_design_bounds_forms_are_equivalent():
    """One pair for all, one per free column, and one per column with the intercept's."""
    ids, x, y, G = rows()
    data = Curves.from_long(ids, x, y, design=G).with_intercept()
    forms = [(-1, 2), [(-1, 2), (-1, 2)], [(1, 1), (-1, 2), (-1, 2)], np.array([[-1, 2], [-1, 2]])]
    fits = []
    for bounds in forms:
        with pytest.warns(NotPrivateWarning):
            fits.append(make(PrivateVaryingCoefficients, design_bounds=bounds, random_state=1).fit(data).coef_)
    for other in fits[1:]:
        assert_array_equal(other, fits[0])


def test_refitting_a_silo_ends_at_its_budget():
    silo = Silo(curves(PrivateMean), epsilon=1.0, delta=1e-3, points_per_curve=4)
    estimator = make(PrivateMean)
    with pytest.raises(BudgetExceeded):  # noqa: PT012
        for _ in range(20):
            estimator.fit(silo)
    assert silo.ledger.spent().epsilon <= 1.0


def mean_of_silos(silos, **kwargs):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit = PrivateMean(domain=(0, 10), y_bounds=(-6, 6), **kwargs).fit(silos)
    return fit, [str(warning.message) for warning in caught if "allows for one study" in str(warning.message)]


def test_an_estimator_lowers_what_a_silo_allows():
    silo = Silo(curves(PrivateMean), epsilon=3, delta=1e-4)
    fit, said = mean_of_silos(silo, epsilon=0.1, delta=1e-5)
    assert (fit.privacy_.epsilon, fit.privacy_.delta) == (0.1, 1e-5)
    assert silo.ledger.spent().epsilon < 0.1
    assert (silo.epsilon, silo.delta) == (3, 1e-4), "the silo itself is as it was"
    assert said == []
    again, _ = mean_of_silos(silo, epsilon=2.5)
    assert (again.privacy_.epsilon, again.privacy_.delta) == (2.5, 1e-4)
    assert 2 < silo.ledger.spent().epsilon <= 3


def test_a_silo_never_spends_more_than_it_allows_whatever_the_estimator_asks():
    silos = [
        Silo(curves(PrivateMean), epsilon=1, delta=1e-4, name="north"),
        Silo(curves(PrivateMean, seed=1), epsilon=0.2, delta=1e-6, name="south"),
    ]
    fit, said = mean_of_silos(silos, epsilon=0.5, delta=1e-3)
    assert [(silo.epsilon, silo.delta) for silo in fit.privacy_.silos] == [(0.5, 1e-4), (0.2, 1e-6)]
    assert len(said) == 1
    assert said[0].startswith("delta=0.001 is more than the 0.0001 that silo 'north' allows for one study")


def test_silos_spend_their_own_where_the_estimator_states_nothing():
    silos = [Silo(curves(PrivateMean), epsilon=1, delta=1e-4), Silo(curves(PrivateMean), epsilon=0.2, delta=1e-6)]
    fit, said = mean_of_silos(silos)
    assert [(silo.epsilon, silo.delta) for silo in fit.privacy_.silos] == [(1, 1e-4), (0.2, 1e-6)]
    assert said == []


@pytest.mark.parametrize("delta", [0.11, 0.5, 0.99])
def test_a_delta_that_promises_nothing_is_refused(delta):
    silo = Silo(curves(PrivateMean), epsilon=1, delta=delta)
    for data, own in ((silo, {}), (curves(PrivateMean), {"epsilon": 1, "delta": delta})):
        with pytest.raises(InvalidInput, match=r"delta must be far below one over the number of subjects"):
            PrivateMean(domain=(0, 10), y_bounds=(-6, 6), **own).fit(data)
    assert silo.ledger.spent().debits == 0


def test_a_delta_of_a_tenth_warns():
    with pytest.warns(dpfda.LargeDeltaWarning, match="large for 80 subjects"):
        PrivateMean(1, 0.1, domain=(0, 10), y_bounds=(-6, 6)).fit(curves(PrivateMean))


def test_a_delta_above_that_of_the_ledger_is_named():
    ledger = Ledger.in_memory(1, 1e-5)
    silo = Silo(curves(PrivateMean), epsilon=1, delta=0.01, ledger=ledger)
    with pytest.raises(BudgetExceeded, match=r"delta=0.01 of silo 'silo-1' is above the delta = 1e-05 of its ledger"):
        PrivateMean(domain=(0, 10), y_bounds=(-6, 6)).fit(silo)
    assert ledger.spent().debits == 0
    PrivateMean(delta=1e-5, domain=(0, 10), y_bounds=(-6, 6)).fit(silo)
    with pytest.raises(BudgetExceeded, match=r"Silo 'silo-1' refuses: this would bring what is spent"):
        PrivateMean(delta=1e-5, domain=(0, 10), y_bounds=(-6, 6)).fit(silo)


def test_warning_classes_are_user_warnings():
    assert issubclass(NotPrivateWarning, UserWarning)
    assert issubclass(InsufficientBudgetWarning, UserWarning)
