"""Scaling, parameters, reference fit and what an estimator keeps, each by itself."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from dpfda import InvalidInput, PrivateMean
from dpfda.basis.basis import basis_names, make_basis
from dpfda.curves.simulated import mean_1, simulate_mean, squared_l2_error
from dpfda.estimators.base import METHODS, CurveEstimator
from dpfda.estimators.estimated_error import estimate_error
from dpfda.estimators.fitted import FittedFunctions
from dpfda.estimators.least_squares import least_squares
from dpfda.estimators.parameters import Parameters, check_is_fitted
from dpfda.methods.adaptive.error_parts import ErrorParts
from dpfda.protocol.scaling import INTERCEPT, symmetric_scaling, unit_scaling


def test_symmetric_scaling_maps_bounds_to_minus_one_and_one() -> None:
    scaling = symmetric_scaling((0.0, 150.0), (INTERCEPT, (10.0, 70.0)))
    assert (scaling.y_shift, scaling.y_scale) == (75.0, 75.0)
    assert (scaling.design_shift, scaling.design_scale) == ((0.0, 40.0), (1.0, 30.0))


def test_without_an_intercept_nothing_is_shifted() -> None:
    scaling = symmetric_scaling((-10.0, 150.0), ((-3.0, 2.0),))
    assert (scaling.y_shift, scaling.y_scale, scaling.design_scale) == (0.0, 150.0, (3.0,))


def test_unit_scaling_is_that_of_the_paper_or_none() -> None:
    assert unit_scaling((2.0, 6.0), (INTERCEPT,), scale_y=True).y_scale == 4.0
    assert unit_scaling((2.0, 6.0), (INTERCEPT,), scale_y=False).y_scale == 1.0


def test_parameters_follow_scikit_learn_and_show_what_was_changed() -> None:
    mean = PrivateMean(epsilon=1, domain=(0, 1))
    assert isinstance(mean, Parameters)
    assert repr(mean) == "PrivateMean(epsilon=1, domain=(0, 1))"
    assert mean.set_params(epsilon=2).get_params()["epsilon"] == 2
    with pytest.raises(InvalidInput, match="epsilom is not a parameter"):
        mean.set_params(epsilom=1)


def test_what_is_not_fitted_says_so() -> None:
    assert issubclass(CurveEstimator, FittedFunctions)
    with pytest.raises(NotFittedError, match="call fit first"):
        PrivateMean(domain=(0, 1), y_bounds=(-4, 4)).predict([0.5])
    with pytest.raises(NotFittedError):
        check_is_fitted(object(), "coef_")


def test_without_scikit_learn_it_says_so_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.exceptions", None)
    with pytest.raises(ValueError, match="call fit first") as raised:
        PrivateMean(domain=(0, 1), y_bounds=(-4, 4)).predict([0.5])
    assert isinstance(raised.value, AttributeError), "scikit-learn's error is both"
    assert not isinstance(raised.value, NotFittedError)


def test_the_words_for_method_and_basis_are_those_that_are_checked() -> None:
    for name, allowed in (("method", METHODS), ("basis", basis_names())):
        with pytest.raises(InvalidInput, match=allowed[0]):
            PrivateMean(1, 1e-5, domain=(0, 1), y_bounds=(-4, 4), **{name: "?"}).forecast(n=10, m=5)


def test_least_squares_equals_the_weighted_normal_equations() -> None:
    curves, basis = simulate_mean(60, 5, rng=1), make_basis("cosine", 4)
    features, weights = basis.evaluate(curves.x), 1 / curves.counts[curves.owners]
    normal = (features * weights[:, None]).T @ features
    expected = np.linalg.solve(normal, (features * weights[:, None]).T @ curves.y)
    found = least_squares(curves, basis, unit_scaling((-9.0, 9.0), (INTERCEPT,), scale_y=False))
    np.testing.assert_allclose(found[0], expected, rtol=1e-9)
    assert squared_l2_error(lambda x: basis.evaluate(x) @ found[0], mean_1) < 0.2


def test_the_achieved_error_is_in_the_users_units_and_adds_up() -> None:
    basis, size = make_basis("cosine", 3), 3
    scaling = symmetric_scaling((-10.0, 10.0), (INTERCEPT,))
    parts = ErrorParts(
        total=0.03 * np.eye(size), sampling=0.01 * np.eye(size), privacy=0.01 * np.eye(size), sd_of_means=0.0
    )
    found = estimate_error(basis, scaling, np.array([[0.5, 0.2, 0.0]]), parts)
    assert found.total == pytest.approx(100 * 0.03 * size)
    assert found.sampling == found.privacy == pytest.approx(100 * 0.01 * size)
    assert found.signal == pytest.approx(found.total + 100 * 0.2**2)
