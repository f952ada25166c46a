"""Transforms of y: right, and the same bits for a value wherever it stands."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from dpfda import Curves, InvalidInput
from dpfda.basis.basis import make_basis
from dpfda.protocol.plans import make_plan
from dpfda.protocol.scaling import Scaling, symmetric_scaling, unit_scaling
from dpfda.protocol.terms import SiloTerms, StudyTerms
from dpfda.protocol.transforms import (
    TRANSFORMS,
    apply_transform,
    check_transform,
    transform_bounds,
    undo_slope,
    undo_transform,
)
from dpfda.silo.prepared import prepare, prepare_pieces

MINE = SiloTerms("clinic", 20, 1.0, 1e-5)


def draw_values(count: int, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.concatenate(
        [np.exp(rng.uniform(-80, 80, count)), rng.uniform(0.4, 2.5, count), 1 + rng.normal(0, 1e-6, count)]
    )


def test_the_logarithm_is_right_to_two_units_in_the_last_place() -> None:
    values = np.concatenate([draw_values(2000), [1.0, 5e-324, 2.2e-308, 1.7e308, math.sqrt(0.5), math.sqrt(2)]])
    found = apply_transform("log", values)
    for value, log in zip(values.tolist(), found.tolist(), strict=True):
        true = mpmath.log(mpmath.mpf(value))
        assert abs(mpmath.mpf(log) - true) <= 2 * math.ulp(float(true)), value
    assert apply_transform("log", 1.0) == 0.0
    np.testing.assert_allclose(apply_transform("log1p", values[:2000]), np.log1p(values[:2000]), rtol=1e-15, atol=3e-16)


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_bits_depend_on_the_value_alone(transform) -> None:
    values = draw_values(4000)
    whole = apply_transform(transform, values)
    assert np.array_equal(apply_transform(transform, values[::-1])[::-1], whole)
    for start in range(17):
        for length in (1, 2, 3, 5, 8, 31, 9001):
            here = slice(start, start + length)
            assert np.array_equal(apply_transform(transform, values[here]), whole[here])
    assert all(
        float(apply_transform(transform, value)) == log for value, log in zip(values[:50], whole[:50], strict=True)
    )


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_what_is_undone_is_what_was(transform) -> None:
    y = np.linspace(0.01, 300, 500)
    values = apply_transform(transform, y)
    assert (np.diff(values) > 0).all()
    np.testing.assert_allclose(undo_transform(transform, values), y, rtol=1e-12)
    step = 1e-6
    slopes = (undo_transform(transform, values + step) - undo_transform(transform, values - step)) / (2 * step)
    np.testing.assert_allclose(undo_slope(transform, values), slopes, rtol=1e-6)
    assert transform_bounds(transform, (-math.inf, math.inf)) == (-math.inf, math.inf)


@pytest.mark.parametrize(
    ("transform", "bounds", "words"),
    [("log", (0.0, 5.0), "'log1p'"), ("log", (-1.0, 5.0), "positive"), ("sqrt", (-1e-9, 5.0), "not be negative"),
     ("log1p", (-0.5, 5.0), "not be negative"), ("exp", (1.0, 5.0), "one of"),
     ("log1p", (0.0, 1e-20), "one number after transform='log1p'"), ("log1p", (1e-20, 2e-20), "use another unit of y")],
)  # fmt: skip
def test_bounds_must_allow_it(transform, bounds, words) -> None:
    for refuse in (
        lambda: check_transform(transform, bounds),
        lambda: Scaling(bounds, ((1.0, 1.0),), transform=transform),
        lambda: symmetric_scaling(bounds, ((1.0, 1.0),), transform),
        lambda: unit_scaling(bounds, ((1.0, 1.0),), scale_y=True, transform=transform),
    ):
        with pytest.raises(InvalidInput, match=words):
            refuse()
    with pytest.raises(InvalidInput):
        StudyTerms("adaptive", (0.0, 1.0), bounds, (MINE,), transform=transform)


@pytest.mark.parametrize(
    ("transform", "bounds"),
    [("log1p", (0.0, 3e-16)), ("log1p", (0.0, 1e30)), ("log", (5e-324, 1e-300)), ("log", (1e-30, 2e-30)),
     ("sqrt", (0.0, 1e-30))],
)  # fmt: skip
def test_bounds_that_it_tells_apart_have_a_scale(transform, bounds) -> None:
    assert symmetric_scaling(bounds, ((1.0, 1.0),), transform).y_scale > 0


def test_quantiles_have_none() -> None:
    terms = StudyTerms("quantiles", (0.0, 1.0), (0.5, 2.0), (MINE,), levels=(0.5,), transform="log")
    with pytest.raises(InvalidInput, match="no transform"):
        make_plan(terms)


@pytest.mark.parametrize("transform", TRANSFORMS[1:])
def test_y_is_clamped_and_then_transformed(transform) -> None:
    y = np.array([-3.0, 0.0, 0.25, 1.0, 4.0, 1e9, -np.inf, np.inf])
    bounds = (0.25, 4.0)
    curves = Curves.of_checked_arrays(np.linspace(0, 1, 8), y, np.array([0, 3, 8]), np.ones((2, 1)))
    scaling = symmetric_scaling(bounds, ((1.0, 1.0),), transform)
    basis = make_basis("cosine", 3)
    prepared = prepare(curves, basis, scaling)
    low, high = scaling.transformed_bounds
    expected = (apply_transform(transform, np.clip(y, *bounds)) - (low + high) / 2) / ((high - low) / 2)
    np.testing.assert_allclose(prepared.y, expected, atol=1e-15)
    assert prepared.y[0] == -1.0 == prepared.y[6]
    assert prepared.y[5] == 1.0 == prepared.y[7]
    pieces = [piece.y for _, piece in prepare_pieces(curves, 1, basis, scaling, 2)]
    assert np.array_equal(np.concatenate(pieces), prepared.y[3:])


def test_a_transform_changes_the_plan_and_its_bounds() -> None:
    plans = {
        name: make_plan(StudyTerms("adaptive", (0.0, 1.0), (0.5, 90.0), (MINE,), transform=name)) for name in TRANSFORMS
    }
    assert len({plan.digest() for plan in plans.values()}) == len(TRANSFORMS)
    for plan in plans.values():
        np.testing.assert_allclose(plan.scaled_bounds, (-1, 1), atol=1e-15)
        assert plan.scaling.y_bounds == (0.5, 90.0)
