"""For random neighbouring data sets the measured change never exceeds the returned sensitivity, in any norm."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfda.privacy import EllipsoidBound, EntrywiseBound

SPECIAL = [0.0, -0.0, np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, 1e-160, 1.0, -1.0]
ENTRY = st.one_of(st.sampled_from(SPECIAL), st.floats(-1e3, 1e3), st.floats(allow_nan=True, allow_infinity=True))
SIZE = st.one_of(st.floats(1e-3, 1e3), st.sampled_from([1e-100, 1e-30, 1e30, 1e100]))


@st.composite
def bounds(draw, width: int):
    sizes = draw(st.lists(SIZE, min_size=width, max_size=width))
    return EntrywiseBound(sizes) if draw(st.booleans()) else EllipsoidBound(sizes, draw(SIZE))


@st.composite
def neighbours(draw):
    """A bound and two data sets that differ in one row: n from 1 to 6, entries of every kind."""
    width = draw(st.integers(1, 4))
    row = st.lists(ENTRY, min_size=width, max_size=width)
    rows = draw(st.lists(row, min_size=1, max_size=6))
    other = [list(values) for values in rows]
    other[draw(st.integers(0, len(rows) - 1))] = draw(st.one_of(row, st.just([0.0] * width)))
    return draw(bounds(width)), np.array(rows), np.array(other)


def exact_whitened_square(change: np.ndarray, scale: np.ndarray) -> Fraction:
    """sum_l (d_l / scale_l)^2 in rational arithmetic, so that the test itself does not round."""
    return sum(
        ((Fraction(d) / Fraction(s)) ** 2 for d, s in zip(change.tolist(), scale.tolist(), strict=True)), Fraction(0)
    )


def exact_change(first: np.ndarray, second: np.ndarray) -> list[Fraction]:
    return [Fraction(a) - Fraction(b) for a, b in zip(first.tolist(), second.tolist(), strict=True)]


@given(neighbours())
@settings(max_examples=600, deadline=None)
def test_replacing_one_row_stays_within_the_sensitivity(case) -> None:
    bound, rows, other = case
    first, second = bound.sum(rows), bound.sum(other)
    np.testing.assert_array_equal(first.sensitivity.scale, second.sensitivity.scale)
    sensitivity = first.sensitivity
    change = exact_change(first.total, second.total)
    for moved, allowed in zip(change, sensitivity.entries.tolist(), strict=True):
        assert abs(moved) <= Fraction(allowed)
    scale = [Fraction(value) for value in sensitivity.scale.tolist()]
    assert sum(((d / s) ** 2 for d, s in zip(change, scale, strict=True)), Fraction(0)) <= 1


@given(neighbours())
@settings(max_examples=300, deadline=None)
def test_the_whitened_change_after_rounding_is_at_most_mu(case) -> None:
    bound, rows, other = case
    first, second = bound.sum(rows), bound.sum(other)
    for mu in (1e-3, 1.0, 7.0):
        sd = first.sensitivity.whitening(mu)
        change = exact_change(first.total / sd, second.total / sd)
        assert sum((d**2 for d in change), Fraction(0)) <= Fraction(mu) ** 2


@given(neighbours())
@settings(max_examples=300, deadline=None)
def test_clipping_twice_is_clipping_once_and_rows_do_not_interact(case) -> None:
    bound, rows, _ = case
    clipped = bound.clip(rows)
    assert np.isfinite(clipped).all()
    np.testing.assert_array_equal(bound.clip(clipped), clipped)
    for index in range(len(rows)):
        np.testing.assert_array_equal(bound.clip(rows[index : index + 1])[0], clipped[index])


@pytest.mark.parametrize("n", [1, 2, 1000])
def test_opposite_corners_attain_the_sensitivity(n) -> None:
    """The returned bound is not merely large enough: the worst pair comes within 1e-9 of it."""
    radii, weights = np.array([1.0, 0.3, 0.05]), np.array([1.0, 0.3, 0.05])
    box, ellipsoid = EntrywiseBound(radii), EllipsoidBound(weights, 2.0)
    corner, pole = radii * 1e6, np.array([0.0, 1e6, 0.0])
    for bound, row in ((box, corner), (ellipsoid, pole)):
        rows = np.zeros((n, 3))
        rows[0] = row
        first, second = bound.sum(rows), bound.sum(-rows)
        attained = first.sensitivity.whitened_norm(first.total - second.total)
        assert 1 - 1e-9 <= attained <= 1
    assert exact_whitened_square(2 * radii, box.sensitivity(n).scale) <= 1


def test_no_rows_have_no_neighbours_but_a_sensitivity() -> None:
    for bound in (EntrywiseBound([1.0]), EllipsoidBound([1.0], 1.0)):
        assert bound.sum(np.empty((0, 1))).sensitivity.scale[0] > 0
