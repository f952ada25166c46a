from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfda.curves.curves import Curves

values = st.one_of(st.floats(-1e6, 1e6), st.sampled_from([math.nan, math.inf, -math.inf]))
ids = st.one_of(
    st.lists(st.integers(-3, 3), min_size=1, max_size=12),
    st.lists(st.integers(), min_size=1, max_size=12),
    st.lists(st.text(max_size=2), min_size=1, max_size=12),
    st.lists(st.tuples(st.integers(0, 2), st.text(max_size=1)), min_size=1, max_size=12),
    st.lists(st.one_of(st.integers(0, 2), st.text(max_size=1)), min_size=1, max_size=12),
)


@st.composite
def long_tables(draw: Any) -> tuple[list[Any], list[float], list[float], list[list[float]]]:
    who = draw(ids)
    x = draw(st.lists(values, min_size=len(who), max_size=len(who)))
    y = draw(st.lists(values, min_size=len(who), max_size=len(who)))
    of_curve = {one: draw(st.lists(values, min_size=2, max_size=2)) for one in set(who)}
    return who, x, y, [of_curve[one] for one in who]


@given(long_tables())
@settings(max_examples=150, deadline=None)
def test_curves_hold_exactly_the_finite_points_of_usable_curves(table: Any) -> None:
    who, x, y, design = table
    curves = Curves.from_long(who, x, y, design)
    assert curves.n == len(set(who))
    assert curves.counts.sum() == curves.n_points

    kept: dict[Any, list[tuple[float, float]]] = {one: [] for one in who}
    for one, a, b, row in zip(who, x, y, design, strict=True):
        if all(map(math.isfinite, (a, b, *row))):
            kept[one].append((a, b))
    rows = {one: row if all(map(math.isfinite, row)) else [0.0, 0.0] for one, row in zip(who, design, strict=True)}
    try:
        order = sorted(kept)
    except TypeError:
        order = list(kept)
    for index, one in enumerate(order):
        curve = curves[index]
        assert list(zip(curve.x.tolist(), curve.y.tolist(), strict=True)) == kept[one]
        assert curve.design[0].tolist() == rows[one]


@given(long_tables(), st.randoms())
@settings(max_examples=60, deadline=None)
def test_the_order_of_rows_between_curves_does_not_matter(table: Any, random: Any) -> None:
    who, x, y, design = table
    if len({type(one) for one in who}) > 1:
        return  # ids without an order stand in order of appearance
    shuffled = list(range(len(who)))
    random.shuffle(shuffled)
    position = {row: place for place, row in enumerate(shuffled)}
    # keep the order within each curve, which is part of the result
    by_curve: dict[Any, list[int]] = {}
    for row, one in enumerate(who):
        by_curve.setdefault(one, []).append(row)
    places = {one: sorted(position[row] for row in rows) for one, rows in by_curve.items()}
    order = [0] * len(who)
    for one, rows in by_curve.items():
        for place, row in zip(places[one], rows, strict=True):
            order[place] = row
    again = Curves.from_long(*([column[row] for row in order] for column in (who, x, y, design)))
    assert again == Curves.from_long(who, x, y, design)


@given(long_tables(), st.data())
@settings(max_examples=60, deadline=None)
def test_selecting_twice_is_selecting_once(table: Any, data: Any) -> None:
    curves = Curves.from_long(*table)
    first = data.draw(st.lists(st.integers(0, curves.n - 1), min_size=1, max_size=5))
    second = data.draw(st.lists(st.integers(0, len(first) - 1), min_size=1, max_size=5))
    assert curves[first][second] == curves[np.asarray(first)[second]]
