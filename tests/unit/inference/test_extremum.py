"""Confidence sets for the place of a maximum: how often they hold it."""

from __future__ import annotations

import numpy as np
import pytest
from laws import Known, make_law, redraw

from dpfda.inference.coding import Coding
from dpfda.inference.extremum import Extremum
from dpfda.inference.law import Law

FINE = np.linspace(0, 1, 4001)


@pytest.mark.parametrize(
    ("coefficients", "low", "high"),
    [
        ([0.0, 0.2, -0.5, 0.1], 0.93, 0.99),  # one inner maximum
        ([0.0, 0.9, 0.1], 0.93, 1.0),  # at the right end
        ([0.0, 0.0, -0.2, 0.0, -0.5], 0.93, 0.99),  # two maxima of equal height
    ],
)
def test_sets_hold_the_true_place(coefficients, low, high) -> None:
    shape, rng = make_law("free-ends", 8, seed=4), np.random.default_rng(5)
    mean = np.zeros((1, 8))
    mean[0, : len(coefficients)] = coefficients
    truth = Law(shape.functions, mean, 4 * shape.covariance)
    true_x = FINE[np.argmax(shape.functions.evaluate_unit(FINE) @ mean[0])]
    found = [Known(redraw(truth, rng), Coding()).curve_.argmax(0.95) for _ in range(250)]
    assert low <= np.mean([true_x in each for each in found]) <= high
    assert np.median([sum(b - a for a, b in each.intervals) for each in found]) < 0.8


def test_the_estimate_itself_is_in_the_set_and_minima_mirror_maxima() -> None:
    curve = Known(make_law("free-ends", 9), Coding()).curve_
    top, bottom = curve.argmax(0.9), (-curve).argmin(0.9)
    assert isinstance(top, Extremum)
    assert top.x in top
    assert top.intervals == bottom.intervals
    assert top.value == pytest.approx(curve([top.x])[0])
    assert "90% confidence set" in repr(top)
    assert (top.kind, bottom.kind) == ("maximum", "minimum")


def test_cosines_decide_by_differences_alone() -> None:
    curve = Known(make_law("cosine", 6), Coding()).curve_
    assert curve.argmax().x in curve.argmax()


def test_a_flat_curve_may_have_its_maximum_anywhere() -> None:
    law = Law(make_law("cosine", 1).functions, np.ones((1, 1)), np.eye(1))
    assert Known(law, Coding()).curve_.argmax().intervals == ((0.0, 1.0),)
