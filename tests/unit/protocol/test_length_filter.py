"""Lengths from counts."""

from __future__ import annotations

import numpy as np
import pytest

from dpfda.protocol.length_filter import LengthFilter, chi_below, squared_chi_median


def test_the_median_length_is_found_among_curves_that_have_points() -> None:
    """60% of the curves have length zero: the median of all is zero, and radii fell round by round."""
    lengths = LengthFilter.around(0.0, 0.5, 0.4)
    found = np.sqrt(np.random.default_rng(7).chisquare(3, 40_000))
    for _ in range(6):
        share = 0.6 + 0.4 * float((found <= np.exp(lengths.log_median)).mean())
        lengths = lengths.observe(lengths.log_median, share, 0.002, 100_000).move(1.0, blur=0.1)
    assert np.exp(lengths.log_median) == pytest.approx(np.median(found), rel=0.05)


@pytest.mark.parametrize("nu", [1.0, 2.3, 8.0])
def test_chi_is_below_its_median_half_of_the_time(nu) -> None:
    squares = np.random.default_rng(3).chisquare(nu, 100_000)
    assert np.median(squares) == pytest.approx(float(squared_chi_median(nu)), rel=0.03)
    assert (squares <= 1.7).mean() == pytest.approx(float(chi_below(nu, 1.7)), abs=0.01)
