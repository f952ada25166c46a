"""Every statistic of the default method: replacing one curve, whatever it is, moves the sum by at most its sensitivity."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfda.protocol.plans import adaptive_plan
from dpfda.protocol.scaling import Scaling
from dpfda.protocol.statistics import (
    ClippedGradient,
    CovariateMoments,
    DesignMoments,
    LengthHistogram,
    VisitWeights,
)
from dpfda.protocol.terms import SiloTerms
from dpfda.silo.chunked_sums import sums_of_prepared
from dpfda.silo.prepared import PreparedCurves, weigh_counts
from dpfda.silo.release_statistics import Question, measure

HOSTILE = [np.nan, np.inf, -np.inf, 1e308, -1e308, 0.0, -0.0, 1.0, -1.0, 5e-324]
RADIUS = st.one_of(st.floats(0.1, 3), st.sampled_from([1e-9, 0.01, 1.0, 1e6]))
QUERY = st.one_of(st.floats(-2, 2), st.sampled_from([0.0, 1e6, -1e6, 1e-300]))


def make_plan(columns: int, basis: str = "cosine", visit_cap: int | None = None):
    scaling = Scaling((-1.0, 1.0), ((1.0, 1.0), *(((-1.0, 1.0),) * (columns - 1))), visit_cap=visit_cap)
    terms = [SiloTerms("clinic", 5000, 1.0, 1e-5)]
    return adaptive_plan(terms, scaling, domain=(0.0, 1.0), basis=basis, n_basis=3)


BY_VISITS = make_plan(2, visit_cap=2)
PLANS = [make_plan(1), make_plan(1, "fourier"), make_plan(3), BY_VISITS]
CASES = [(plan, kind) for plan in PLANS for kind in dict.fromkeys(k for r in plan.rounds for k in r.statistics)]


@st.composite
def a_curve(draw, columns: int, hostile: bool):
    """Points, values and design row of one curve: none, one or a few points, inside the bounds or absurd."""
    size = draw(st.sampled_from([0, 1, 1, 2, 4]))
    inside = st.floats(-1, 1)
    entry = st.one_of(inside, st.sampled_from(HOSTILE)) if hostile else inside
    u = draw(st.lists(st.floats(0, 1), min_size=size, max_size=size))
    y = draw(st.lists(entry, min_size=size, max_size=size))
    return u, y, [1.0, *draw(st.lists(entry, min_size=columns - 1, max_size=columns - 1))]


def together(curves, visit_cap: int | None = None) -> PreparedCurves:
    offsets = np.concatenate([[0], np.cumsum([len(u) for u, _, _ in curves])]).astype(np.int64)
    u, y = (np.array([value for curve in curves for value in curve[part]], dtype=np.float64) for part in (0, 1))
    weights = None if visit_cap is None else weigh_counts(np.diff(offsets), visit_cap)
    design = np.array([design for _, _, design in curves], dtype=np.float64)
    return PreparedCurves(u, y, offsets, design, weights=weights)


def sum_of(kind, curves: PreparedCurves, question: Question):
    return measure([kind], sums_of_prepared(curves, question.plan.basis), range(curves.n), question)[0]


@st.composite
def neighbours(draw, plan):
    columns, hostile = plan.n_coefficients, draw(st.booleans())
    curves = draw(st.lists(a_curve(columns, hostile), min_size=1, max_size=4))
    other = list(curves)
    other[draw(st.integers(0, len(curves) - 1))] = draw(a_curve(columns, hostile))
    cap = plan.scaling.visit_cap
    return together(curves, cap), together(other, cap)


@pytest.mark.parametrize(("plan", "kind"), CASES, ids=lambda value: getattr(value, "kind", ""))
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_replacing_one_curve_moves_no_sum_further_than_its_sensitivity(plan, kind, data) -> None:
    curves, other = data.draw(neighbours(plan))
    size = plan.n_coefficients * plan.basis.size
    arrays = {
        name: np.array(data.draw(st.lists(QUERY, min_size=length, max_size=length)))
        for name, length in {"iterate": size, "whitener": size**2}.items()
    }
    columns = plan.n_coefficients
    arrays["radius"] = np.array([data.draw(RADIUS)])
    arrays["covariate_scale"] = np.array(data.draw(st.lists(RADIUS, min_size=columns, max_size=columns)))
    arrays["covariate_centre"] = np.array(data.draw(st.lists(QUERY, min_size=columns, max_size=columns)))
    question = Question(plan, arrays)
    first, second = (sum_of(kind, some, question) for some in (curves, other))
    assert np.isfinite(first.total).all()
    np.testing.assert_array_equal(first.sensitivity.scale, second.sensitivity.scale)
    pairs = zip(first.total.tolist(), second.total.tolist(), first.sensitivity.scale.tolist(), strict=True)
    assert sum(((Fraction(a) - Fraction(b)) / Fraction(scale)) ** 2 for a, b, scale in pairs) <= 1


@pytest.mark.parametrize(
    "kind", [ClippedGradient(), LengthHistogram(), LengthHistogram(1), LengthHistogram(2)], ids=str
)
def test_gradients_attain_their_sensitivity(kind) -> None:
    """Two curves far out on opposite sides, of lengths in unlike octaves: the bound is not merely large enough."""
    plan = PLANS[0]
    arrays = {"iterate": np.zeros(3), "whitener": np.eye(3).ravel(), "radius": np.array([0.01])}
    curves = [together([([0.5], [y], [1.0])]) for y in (-1.0, 0.2)]
    first, second = (sum_of(kind, curve, Question(plan, arrays)) for curve in curves)
    moved = first.sensitivity.whitened_norm(first.total - second.total)
    assert 1 - 1e-8 <= moved <= 1


def test_weights_attain_their_sensitivity() -> None:
    """A curve that weighs everything becomes one without points."""
    full = together([([0.1, 0.9], [0.0, 0.0], [1.0, 0.0])], 2)
    none = together([([], [], [1.0, 0.0])], 2)
    first, second = (sum_of(VisitWeights(), curves, Question(BY_VISITS, {})) for curves in (full, none))
    assert 1 - 1e-8 <= first.sensitivity.whitened_norm(first.total - second.total) <= 1


def test_weights_beyond_one_are_not_believed() -> None:
    """Whatever a curve is said to weigh, it is bounded afterwards: the sensitivity does not rest on the weights."""
    curves = together([([0.5], [1.0], [1.0, 1.0])], 2)
    heavy = replace(curves, weights=np.array([1e9]))
    iterate, whitener, radius = np.zeros(6), np.eye(6).ravel(), np.array([0.5])
    arrays = {"iterate": iterate, "whitener": whitener, "radius": radius}
    arrays |= {"covariate_centre": np.zeros(2), "covariate_scale": np.ones(2)}
    empty = together([([], [], [1.0, 1.0])], 2)
    for kind in (ClippedGradient(), DesignMoments(), CovariateMoments(), VisitWeights()):
        first, second = (sum_of(kind, some, Question(BY_VISITS, arrays)) for some in (heavy, empty))
        assert first.sensitivity.whitened_norm(first.total - second.total) <= 1
