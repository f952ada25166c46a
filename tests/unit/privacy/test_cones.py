"""Companions of a clipped vector: the ball's own sensitivity pays for them, and hardly any of it is left over."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from dpfda.privacy.cones import CompanionBound, HistogramBound, free_weight, from_triangle

CELLS = 3
ENTRY = st.one_of(
    st.floats(-2, 2), st.sampled_from([0.0, 1.0, -1.0, 1e308, -1e308, np.nan, np.inf, 5e-324, 1 - 1e-16, 1e-160])
)


def contribution(vector: np.ndarray, cell: int) -> np.ndarray:
    """What the docstring of `CompanionBound` says, for a vector within the unit ball."""
    counts = np.zeros(CELLS)
    counts[cell] = math.sqrt(max(1 - vector @ vector, 0.0))
    return np.concatenate([vector, np.outer(vector, vector).ravel() / math.sqrt(2), counts])


def polar(numbers: np.ndarray) -> np.ndarray:
    """A point of the unit ball from any numbers: a direction, and a length by its sine."""
    direction = numbers[1:] / max(float(np.linalg.norm(numbers[1:])), 1e-12)
    return direction * abs(math.sin(numbers[0]))


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("cells", [(0, 0), (0, 1)])
def test_no_pair_is_further_apart_than_the_ball_allows(size, cells) -> None:
    """An adversary that follows gradients from many starts: 2 is attained, and never exceeded."""

    def closeness(numbers: np.ndarray) -> float:
        one, other = (contribution(polar(part), cell) for part, cell in zip(np.split(numbers, 2), cells, strict=True))
        return -float(np.linalg.norm(one - other))

    rng = np.random.default_rng(size)
    found = [-minimize(closeness, rng.normal(size=2 * (size + 1))).fun for _ in range(12)]
    assert max(found) <= 2 + 1e-12
    assert max(found) > 2 - 1e-6


def test_the_proof_s_polynomial_is_at_most_four() -> None:
    """2 + 2 s - s^2 + (a^4 + b^4) / 2 for all lengths a, b and |s| <= a b."""
    a, b, part = np.meshgrid(np.linspace(0, 1, 150), np.linspace(0, 1, 150), np.linspace(-1, 1, 9), indexing="ij")
    s = part * a * b
    assert (2 + 2 * s - s**2 + (a**4 + b**4) / 2).max() <= 4 + 1e-12


def test_a_bound_sums_what_its_docstring_says() -> None:
    rng = np.random.default_rng(1)
    bound, rows, cells = CompanionBound(2, 1.5, CELLS), rng.normal(0, 1.5, (50, 2)), rng.integers(0, CELLS, 50)
    inside = rows / np.maximum(np.linalg.norm(rows, axis=1) / 1.5, 1.0)[:, None]
    expected = 1.5 * sum(contribution(row / 1.5, cell) for row, cell in zip(inside, cells, strict=True))
    total = bound.total(bound.words(rows, cells), 50).total
    np.testing.assert_allclose(total[:2], expected[:2], atol=1e-12)
    np.testing.assert_allclose(from_triangle(total[2:5]).ravel(), expected[2:6], atol=1e-12)
    np.testing.assert_allclose(total[5:], expected[6:], atol=1e-5)  # roots of roundings


@given(st.data())
@settings(max_examples=400, deadline=None)
@np.errstate(over="ignore")  # of the test's own rows
def test_replacing_one_row_stays_within_the_sensitivity(data) -> None:
    """Rows of every kind, in rational arithmetic; cells that are none count nothing."""
    size, n = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 4))
    bound = CompanionBound(size, data.draw(st.sampled_from([1e-9, 0.3, 1.0, 1e6])), CELLS)
    row = st.lists(ENTRY, min_size=size, max_size=size)
    rows = np.array(data.draw(st.lists(row, min_size=n, max_size=n))) * bound.radius
    cells = np.array(data.draw(st.lists(st.integers(-1, CELLS), min_size=n, max_size=n)))
    others, places = rows.copy(), cells.copy()
    others[0], places[0] = np.array(data.draw(row)) * bound.radius, data.draw(st.integers(-1, CELLS))
    one, other = (bound.total(bound.words(*pair), n) for pair in ((rows, cells), (others, places)))
    pairs = zip(one.total.tolist(), other.total.tolist(), one.sensitivity.scale.tolist(), strict=True)
    assert sum(((Fraction(a) - Fraction(b)) / Fraction(scale)) ** 2 for a, b, scale in pairs) <= 1


def test_long_vectors_count_less_and_those_beyond_the_ball_not_at_all() -> None:
    weights = free_weight(np.array([0.0, 0.6, 0.8, 1.0, 1 + 1e-15, 7.0, np.inf, np.nan]))
    np.testing.assert_allclose(weights, [1, 0.8, 0.6, 0, 0, 0, 0, 0], atol=1e-12)


def test_the_noise_is_in_proportion_to_the_radius() -> None:
    one, large = (CompanionBound(2, radius, CELLS).sensitivity(10).scale for radius in (1.0, 1e3))
    np.testing.assert_allclose(large, 1e3 * one)
    assert (one >= 2).all()


def test_a_histogram_moves_by_the_square_root_of_two() -> None:
    bound = HistogramBound(CELLS)
    one, other = (bound.total(bound.words([cell]), 1) for cell in (0, 2))
    assert one.sensitivity.whitened_norm(one.total - other.total) == pytest.approx(1, abs=1e-8)
    nothing = bound.total(bound.words([-1]), 1)
    assert nothing.sensitivity.whitened_norm(one.total - nothing.total) < 1


def test_a_triangle_becomes_its_matrix() -> None:
    matrix = np.array([[1.0, 2.0], [2.0, 5.0]])
    np.testing.assert_allclose(from_triangle(np.array([1.0, 2 * math.sqrt(2), 5.0])), matrix)
