"""Terms of a design: de Boor's recurrence against scipy, and what cannot be a spline."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import BSpline

from dpfda import InvalidInput
from dpfda.inference.terms import Factor, Spline, multiply_entries, multiply_names, read_terms

BOUNDS = (20.0, 80.0)


@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("knots", [(), (50.0,), (30.0, 31.0, 79.5)])
def test_splines_are_those_of_scipy_but_the_first(degree: int, knots: tuple[float, ...]) -> None:
    spline = Spline(knots, degree)
    whole = np.concatenate([[BOUNDS[0]] * (degree + 1), knots, [BOUNDS[1]] * (degree + 1)])
    for value in (20.0, 25.0, 30.0, 30.5, 31.0, 50.0, 79.5, 79.9, 80.0):
        expected = BSpline.design_matrix([value], whole, degree).toarray()[0, 1:]
        np.testing.assert_allclose(spline.evaluate(value, BOUNDS), expected, atol=1e-15)
    assert spline.evaluate(99.0, BOUNDS) == spline.evaluate(80.0, BOUNDS)
    assert len(spline.evaluate(20.0, BOUNDS)) == spline.size


def test_what_cannot_be_a_spline_is_refused() -> None:
    for spline, bounds in ((Spline((50.0,), 4), BOUNDS), (Spline((50.0,), 1), None)):
        with pytest.raises(InvalidInput, match="needs a number with bounds and a degree of 1 to 3"):
            spline.check("age", bounds)
    for knots in ((10.0,), (50.0, 40.0), (80.0,)):
        with pytest.raises(InvalidInput, match="knots in ascending order within the bounds of 'age'"):
            Spline(knots, 3).check("age", BOUNDS)


def test_products_run_through_their_last_factor_fastest() -> None:
    assert multiply_names([["a: B", "a: C"], ["x"], ["s 1", "s 2"]]) == [
        "a: B:x:s 1",
        "a: B:x:s 2",
        "a: C:x:s 1",
        "a: C:x:s 2",
    ]
    assert multiply_entries([[1.0, 2.0], [10.0], [3.0, 4.0]]) == [30.0, 40.0, 60.0, 80.0]


def test_terms_survive_json() -> None:
    terms = ((Factor("male"), Factor("age", Spline((30.0, 50.0), 2))), (Factor("arm"),))
    assert read_terms([[factor.to_dict() for factor in term] for term in terms]) == terms
