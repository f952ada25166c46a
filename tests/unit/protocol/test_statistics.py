"""Each statistic: its width is that of its bound, and a silo computes all of them."""

from __future__ import annotations

import numpy as np
import pytest

from dpfda.audit.cases import example
from dpfda.basis.basis import make_basis
from dpfda.errors import InvalidInput, ProtocolError
from dpfda.protocol.statistics import (
    KINDS,
    LENGTH_CELLS,
    ClippedGradient,
    CovariateHistograms,
    CovariateMoments,
    Dimensions,
    LengthHistogram,
)
from dpfda.silo.release_statistics import MEASURES

MEAN = Dimensions(1, make_basis("cosine", 4))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("basis", ["cosine", "fourier"])
def test_a_statistic_releases_as_many_numbers_as_its_bound_bounds(kind, basis) -> None:
    statistic, dimensions = example(KINDS[kind]), Dimensions(2, make_basis(basis, 3))
    radius = (1.0,) if isinstance(statistic, ClippedGradient) else ()
    assert statistic.bound(dimensions, *radius).width == statistic.width(dimensions)


def test_a_silo_computes_every_statistic() -> None:
    assert set(MEASURES) == set(KINDS.values())


def test_a_gradient_is_asked_for_in_coordinates_and_within_a_radius() -> None:
    asked = {"iterate": 4, "whitener": 16}
    assert LengthHistogram().query_sizes(MEAN) == asked
    assert ClippedGradient().query_sizes(MEAN) == {**asked, "radius": 1}
    assert ClippedGradient().width(MEAN) == 4 + 10 + LENGTH_CELLS


@pytest.mark.parametrize(("signs", "cells"), [(0, LENGTH_CELLS), (1, 2 * LENGTH_CELLS), (2, 4 * LENGTH_CELLS)])
def test_a_histogram_of_lengths_has_a_cell_for_each_octave_and_sign(signs, cells) -> None:
    statistic = LengthHistogram(signs)
    assert statistic.width(MEAN) == statistic.bound(MEAN).bins == cells


@pytest.mark.parametrize("signs", [-1, 3, 1.0, True, "1", None])
def test_signs_are_those_of_two_coordinates_at_most(signs) -> None:
    with pytest.raises(InvalidInput, match="signs"):
        LengthHistogram(signs)


@pytest.mark.parametrize("radius", [1e-9, 1.0, 1e6])
def test_a_radius_within_its_range_is_let_pass(radius) -> None:
    ClippedGradient().check_arrays({"radius": np.array([radius])})


@pytest.mark.parametrize("radius", [0.0, -1.0, 0.999e-9, 1.001e6, np.nan, np.inf])
def test_a_radius_out_of_range_is_refused(radius) -> None:
    with pytest.raises(ProtocolError, match="radius must lie between"):
        ClippedGradient().check_arrays({"radius": np.array([radius])})


@pytest.mark.parametrize(
    ("columns", "intercept", "products"), [(2, True, 2), (4, True, 9), (1, False, 1), (2, False, 3)]
)
def test_products_of_covariates_leave_out_the_constant(columns, intercept, products) -> None:
    statistic = CovariateMoments(intercept)
    assert statistic.width(Dimensions(columns, MEAN.basis)) == 4 * products


def test_an_intercept_alone_has_no_products() -> None:
    with pytest.raises(InvalidInput, match="needs a covariate"):
        CovariateMoments().check(MEAN)
    with pytest.raises(InvalidInput, match="needs a covariate"):
        CovariateHistograms().check(MEAN)


@pytest.mark.parametrize("columns", [2, 3, 5])
def test_the_ellipsoid_of_products_holds_covariates_of_ordinary_size(columns) -> None:
    """Within one unit of the centre nothing is shortened, wherever the points are."""
    rng = np.random.default_rng(columns)
    bound, (first, second) = CovariateMoments().bound(Dimensions(columns, MEAN.basis)), np.triu_indices(columns)
    for _ in range(50):
        design, t = np.concatenate([[1.0], rng.choice([-1.0, 1.0], columns - 1)]), rng.uniform(-1, 1)
        row = np.outer((design[first] * design[second])[1:], np.cos(np.arange(4) * np.arccos(t))).ravel()
        np.testing.assert_array_equal(bound.clip(row[None])[0], row)


@pytest.mark.parametrize("scale", [0.0, -1.0, 1e-10, np.nan])
def test_units_of_no_size_are_refused(scale) -> None:
    with pytest.raises(ProtocolError, match="covariate_scale must be at least"):
        CovariateMoments().check_arrays({"covariate_scale": np.array([1.0, scale])})
