"""Curves in memory against public facts: what their owner hears, by the rule of the command line."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from dpfda import Curves, InvalidInput, OwnerWarning
from dpfda.curves.tables.checking import _count_clamped, check_for_owner


def make_curves(y) -> Curves:
    ids, x = np.repeat(np.arange(20), 2), np.tile([0.2, 0.8], 20)
    return Curves.from_long(ids, x, np.asarray(y, dtype=float))


def hear(y, domain=(0.0, 1.0), bounds=(0.0, 1.0)) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_for_owner(make_curves(y), domain, bounds, refuses_outside=False)
    assert all(each.category is OwnerWarning for each in caught)
    return [str(each.message) for each in caught]


def test_nearly_everybody_clamped_is_told_and_a_few_are_not() -> None:
    y = np.full(40, 0.5)
    assert hear(y) == []
    y[:34:2] = 70.0  # one of two values of 17 subjects
    assert hear(y) == []
    y[:36:2] = 70.0  # of 18, nine in ten
    assert ["nearly everybody would be clamped; check the unit of y." in said for said in hear(y)] == [True]
    y = np.full(40, 0.5)
    y[:22] = 70.0  # most values, of 11 subjects
    assert ["most values are clamped; check the unit of y." in said for said in hear(y)] == [True]


def test_points_outside_the_domain_are_told_and_not_judged_by_their_y() -> None:
    y = np.full(40, 0.5)
    y[1::2] = 70.0  # at x = 0.8
    said = hear(y, domain=(0.0, 0.5))
    assert len(said) == 1
    assert "20 of 40 points lie outside the domain" in said[0]


def test_nothing_to_fit_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"y_bounds .* misses every value"):
        hear(np.full(40, 70.0))
    with pytest.raises(InvalidInput, match="misses every point"):
        hear(np.full(40, 0.5), domain=(5.0, 6.0))


def test_subjects_are_counted_once_however_many_points_they_have() -> None:
    rng = np.random.default_rng(4)
    counts = rng.integers(0, 4, 50)
    x, y = rng.random(counts.sum()), rng.random(counts.sum())
    curves = Curves(x, y, np.concatenate([[0], np.cumsum(counts)]), np.ones((50, 1)))
    for limit in (0.0, 0.3, 1.0):
        here, clamped = x <= limit, (x <= limit) & (y > 0.7)
        found = _count_clamped(curves, here, clamped)
        owners = np.repeat(np.arange(50), counts)
        assert (found.empty, found.clamped) == (50 - len(set(owners[here])), len(set(owners[clamped])))
