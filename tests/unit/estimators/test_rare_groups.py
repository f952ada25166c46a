"""Groups that are rare or absent: a fit that has spent its budget ends with a result, whoever has the covariate."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpfda import Curves, PrivateVaryingCoefficients, Silo

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

X = np.linspace(0, 1, 11)
UNIT = (0.0, 1.0)
OUTCOMES = ("normal", "binary", "skewed")
TREATED = {"nobody": 0, "one subject": 1, "three subjects": 3, "all but one": -1, "everybody": None}


def draw(n: int, groups: Any, outcome: str, seed: int) -> Curves:
    """Curves of five points whose mean is larger in the groups; `groups` has a column for each."""
    rng = np.random.default_rng(seed)
    x, own = rng.uniform(size=(n, 5)), rng.normal(size=(n, 1))
    noise = 0.5 * own + 0.5 * rng.normal(size=x.shape)
    mean = 0.3 + 0.3 * x + 0.2 * groups.sum(axis=1, keepdims=True)
    kinds = {"normal": mean + noise, "binary": (noise > 0.7 - mean) * 1.0, "skewed": mean * np.exp(noise)}
    design = np.column_stack([np.ones(n), groups])
    return Curves.from_long(np.repeat(np.arange(n), 5), x.ravel(), kinds[outcome].ravel(), np.repeat(design, 5, axis=0))


def fit(data: Any, columns: int, outcome: str, **terms: Any) -> PrivateVaryingCoefficients:
    bounds = {"normal": (-3.0, 4.0), "binary": UNIT, "skewed": (0.0, 20.0)}[outcome]
    design_bounds = ((1.0, 1.0), *[UNIT] * columns)
    estimator = PrivateVaryingCoefficients(
        domain=UNIT, y_bounds=bounds, design_bounds=design_bounds, random_state=5, **terms
    )
    return estimator.fit(data)


def check_result(estimator: PrivateVaryingCoefficients, columns: int) -> None:
    low, high = estimator.band(0.95, x=X)
    assert low.shape == (len(X), columns + 1)
    assert np.isfinite(estimator.coef_).all()
    assert np.isfinite(low).all()
    assert np.isfinite(high).all()
    assert (low < high).all()
    assert estimator.expected_error_ is not None
    assert 0 < estimator.expected_error_.total < np.inf


def choose(n: int, count: int | None) -> Any:
    """A column that is 1 for the first so many, for all but so many, or for everybody."""
    group = np.zeros((n, 1))
    group[:count] = 1.0
    return group


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("treated", TREATED)
def test_a_fit_ends_with_a_result_however_few_are_treated(treated: str, outcome: str) -> None:
    curves = draw(400, choose(400, TREATED[treated]), outcome, seed=3)
    check_result(fit(curves, 1, outcome, epsilon=1.0, delta=1e-5), 1)


@pytest.mark.parametrize("epsilon", [0.1, 4.0])
def test_one_treated_among_two_thousand_ends_with_a_result(epsilon: float) -> None:
    check_result(fit(draw(2000, choose(2000, 1), "normal", 4), 1, "normal", epsilon=epsilon, delta=1e-5), 1)


def test_the_band_of_an_effect_that_nobody_shows_is_wider_than_the_bounds_of_half_of_y() -> None:
    fitted = fit(draw(400, choose(400, 0), "normal", 6), 1, "normal", epsilon=1.0, delta=1e-5)
    low, high = fitted.band(0.95, x=X)
    assert ((high - low)[:, 1] > 3.5).all()


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_a_level_that_nobody_has_ends_with_a_result(outcome: str) -> None:
    level = np.random.default_rng(8).integers(0, 3, size=(400, 1))
    curves = draw(400, (level == np.arange(1, 4)) * 1.0, outcome, seed=8)  # of four levels the last is empty
    check_result(fit(curves, 3, outcome, epsilon=1.0, delta=1e-5), 3)


def test_a_group_that_one_of_three_sites_has_ends_with_a_result() -> None:
    sites = [draw(200, choose(200, 20 if number == 1 else 0), "normal", seed=10 + number) for number in range(3)]
    silos = [Silo(curves, epsilon=1.0, delta=1e-5, name=f"site {k}") for k, curves in enumerate(sites)]
    check_result(fit(silos, 1, "normal"), 1)
