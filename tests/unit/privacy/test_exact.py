"""Exact sums: words add without error, and a curve counts in one cell."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dpfda.errors import InvalidInput
from dpfda.privacy.cones import HistogramBound
from dpfda.privacy.exact import MOST_ROWS, Grid, no_words, sum_slack


def test_words_of_parts_add_up_to_the_words_of_all_bit_by_bit() -> None:
    rows = np.clip(np.random.default_rng(0).normal(size=(1000, 3)), -1, 1)
    grid = Grid.of(np.ones(3))
    whole = grid.words(rows)
    parts = sum((grid.words(part) for part in np.split(rows[::-1], [1, 17, 500])), no_words(3))
    np.testing.assert_array_equal(grid.total(whole), grid.total(parts))
    exact = [sum(Fraction(value) for value in column) for column in rows.T.tolist()]
    assert max(abs(Fraction(a) - b) for a, b in zip(grid.total(whole).tolist(), exact, strict=True)) <= 1000 * 2.0**-49


@pytest.mark.parametrize("radius", [0.0, 1e-101, 1e101, np.nan])
def test_a_grid_refuses_radii_that_could_overflow(radius) -> None:
    with pytest.raises(InvalidInput, match="radii"):
        Grid.of(np.array([radius]))


def test_the_slack_grows_with_rows_and_refuses_too_many() -> None:
    assert 0 < sum_slack(10, 3) < sum_slack(10**6, 3) < 1e-8
    with pytest.raises(InvalidInput, match="at most"):
        sum_slack(MOST_ROWS + 1, 1)


def test_a_curve_counts_in_one_cell() -> None:
    bound = HistogramBound(3)
    found = bound.total(bound.words(np.array([0, 2, 2, 7])), 4)
    assert found.total.tolist() == [1.0, 0.0, 2.0]
