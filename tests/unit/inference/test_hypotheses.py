"""Tests over the whole domain: their level under the hypothesis, and the intervals where it is rejected."""

from __future__ import annotations

import numpy as np
from laws import Known, make_known, make_law, redraw

from dpfda.inference.coding import Coding, make_coding
from dpfda.inference.hypotheses import Excluded, write_p
from dpfda.inference.law import Law


def test_true_hypotheses_are_rejected_as_often_as_stated() -> None:
    rng, shape = np.random.default_rng(3), make_law("free-ends", 8)
    flat = Law(shape.functions, np.eye(1, 8) * 0.7, shape.covariance)
    nothing = Law(shape.functions, np.zeros((1, 8)), shape.covariance)
    p_zero, p_constant = [], []
    for _ in range(600):
        p_zero.append(Known(redraw(nothing, rng), Coding()).curve_.is_zero().p_value)
        p_constant.append(Known(redraw(flat, rng), Coding()).curve_.is_constant().p_value)
    for found in (p_zero, p_constant):
        assert 0.02 <= np.mean(np.array(found) < 0.05) <= 0.075


def test_intervals_are_where_the_band_excludes_zero() -> None:
    curve = make_known("free-ends", 9, domain=(20.0, 80.0)).curve_
    test = curve.is_zero(0.9)
    assert test.rejected
    assert not test
    x = np.linspace(20, 80, 4001)
    lower, upper = curve.band(0.9, x)
    inside = np.zeros_like(x, dtype=int)
    for each in test.intervals:
        inside[(x >= each.low) & (x <= each.high)] = each.sign
    excluded = np.where(lower > 0, 1, np.where(upper < 0, -1, 0))
    assert (inside != excluded).mean() < 1e-3
    assert "rejected on" in repr(test)


def test_equal_curves_are_not_told_apart() -> None:
    known = make_known(arm=["A", "B"])
    assert known.curve_at(arm="A").equals(known.curve_at(arm="A")).p_value == 1.0
    test = known.curve_at(arm="B").equals(known.curve_at(arm="A"), 0.9)
    assert test.p_value == known.effect("arm", "B").is_zero(0.9).p_value
    assert test.level == 0.9


def test_a_function_that_is_constant_by_definition_is_constant() -> None:
    law = Law(make_law("cosine", 1).functions, np.ones((1, 1)), np.eye(1))
    test = Known(law, Coding()).curve_.is_constant()
    assert test
    assert test.p_value == 1.0
    assert test.intervals == ()
    assert "not rejected" in repr(test)


def test_signs_say_on_which_side_the_curve_lies() -> None:
    shape = make_law("free-ends", 4, 2)
    rising = np.zeros((2, 4))
    rising[1, 1] = 5.0
    known = Known(Law(shape.functions, rising, 1e-4 * np.eye(8)), make_coding({"dose": (0, 1)}))
    below, above = known.effect("dose").is_zero().intervals
    assert isinstance(below, Excluded)
    assert (below.sign, above.sign) == (-1, 1)
    assert below.low == 0
    assert above.high == 1
    assert below.high < 0.5 < above.low


def test_a_p_value_is_never_shown_as_zero() -> None:
    assert [write_p(value) for value in (0.0, 1e-15, 0.0123, 1.0)] == ["p < 1e-15", "p = 1e-15", "p = 0.0123", "p = 1"]
