"""Terms of a design: splines as scipy evaluates them, products in one order, JSON there and back."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import BSpline

from dpfda.errors import InvalidInput
from dpfda.inference.terms import Factor, Spline, multiply_entries, multiply_names, read_terms

BOUNDS = (10.0, 70.0)


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_a_spline_is_scipys_without_its_first_function(degree: int) -> None:
    knots = (20.0, 25.0, 40.0)
    padded = np.array([BOUNDS[0]] * (degree + 1) + list(knots) + [BOUNDS[1]] * (degree + 1))
    for value in (10.0, 20.0, 24.9, 33.3, 70.0):
        design = BSpline.design_matrix(np.array([value]), padded, degree).toarray()[0]
        assert Spline(knots, degree).evaluate(value, BOUNDS) == pytest.approx(design[1:], abs=1e-14)


def test_a_value_outside_counts_as_the_nearer_bound() -> None:
    spline = Spline((30.0,), 2)
    assert spline.evaluate(-5.0, BOUNDS) == spline.evaluate(10.0, BOUNDS)
    assert spline.evaluate(500.0, BOUNDS) == spline.evaluate(70.0, BOUNDS)


@pytest.mark.parametrize(
    ("spline", "bounds"),
    [
        (Spline((20.0,), 4), BOUNDS),
        (Spline((20.0,), 3), None),
        (Spline((30.0, 20.0), 3), BOUNDS),
        (Spline((10.0,), 1), BOUNDS),
    ],
)
def test_impossible_splines_are_refused_by_name(spline: Spline, bounds: tuple[float, float] | None) -> None:
    with pytest.raises(InvalidInput, match=r"spline\(bmi\)"):
        spline.check("bmi", bounds)


def test_products_vary_their_first_factor_slowest() -> None:
    assert multiply_names([["a", "b"], ["c", "d"]]) == ["a:c", "a:d", "b:c", "b:d"]
    assert multiply_entries([[2.0, 3.0], [5.0, 7.0]]) == [10.0, 14.0, 15.0, 21.0]


def test_terms_survive_json() -> None:
    terms = ((Factor("male"),), (Factor("male"), Factor("bmi", Spline((25.0,), 3))))
    assert read_terms([[factor.to_dict() for factor in term] for term in terms]) == terms
