from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfda.basis.sobolev import Ellipsoid, SobolevCone

entries = st.one_of(st.floats(-10, 10), st.floats(-1e6, 1e6), st.just(0.0))


@st.composite
def sets_with_points(draw: Any) -> tuple[Ellipsoid | SobolevCone, np.ndarray, np.ndarray]:
    size, blocks = draw(st.integers(1, 7)), draw(st.integers(1, 4))
    alpha, constant = draw(st.floats(0.6, 4)), draw(st.floats(1e-3, 1e3))
    shape: Ellipsoid | SobolevCone = Ellipsoid.sobolev(size, alpha, constant)
    if draw(st.booleans()):
        bounds = draw(st.lists(st.floats(0.1, 10), min_size=blocks, max_size=blocks))
        shape = SobolevCone.sobolev(size, alpha, constant, bounds)
    matrices = st.lists(entries, min_size=size * blocks, max_size=size * blocks)
    first, second = (np.reshape(draw(matrices), (blocks, size)) for _ in range(2))
    return shape, first, second


@given(sets_with_points())
@settings(max_examples=200, deadline=None)
def test_a_projection_is_a_member_and_projecting_again_changes_nothing(case: Any) -> None:
    shape, point, _ = case
    nearest = shape.project(point)
    assert np.all(shape.contains(nearest))
    assert np.array_equal(shape.project(nearest), nearest)


@given(sets_with_points())
@settings(max_examples=200, deadline=None)
def test_projections_are_nonexpansive(case: Any) -> None:
    shape, first, second = case
    before = np.linalg.norm(first - second)
    after = np.linalg.norm(shape.project(first) - shape.project(second))
    assert after <= before + 1e-12 * max(np.abs(first).max(), np.abs(second).max(), 1.0)


@given(sets_with_points())
@settings(max_examples=200, deadline=None)
def test_no_member_on_the_way_to_another_point_is_nearer(case: Any) -> None:
    """The variational inequality <v - P(v), z - P(v)> <= 0 for members z characterises the projection."""
    shape, point, other = case
    nearest, member = shape.project(point), shape.project(other)
    scale = max(np.linalg.norm(point), 1.0) * max(np.linalg.norm(member), np.linalg.norm(nearest), 1.0)
    assert np.vdot(point - nearest, member - nearest) <= 1e-9 * scale


@given(sets_with_points())
@settings(max_examples=100, deadline=None)
def test_signs_are_kept_and_entries_shrink(case: Any) -> None:
    shape, point, _ = case
    nearest = shape.project(point)
    assert np.all(nearest * point >= 0)
    assert np.all(np.abs(nearest) <= np.abs(point))
