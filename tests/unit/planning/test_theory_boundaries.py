"""Boundaries and regimes: the printed formulas, the crossings, and nothing but the crossings."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dpfda.planning.theory import (
    BOUNDARIES,
    boundaries_of,
    cost_of_privacy,
    cost_of_privacy_table,
    crossing,
    rate,
    regime,
)

few = settings(max_examples=30, deadline=None)
FOUR = [("mean", "cdp"), ("mean", "fdp"), ("vcm", "cdp"), ("vcm", "fdp")]
designs = st.fixed_dictionaries(
    {
        "n": st.floats(1, 1e6),
        "m": st.floats(1, 1e4),
        "S": st.floats(1, 500),
        "d": st.floats(1, 50),
        "epsilon": st.floats(1e-3, 10),
        "alpha": st.floats(1.01, 6),
    }
)


def fitted(problem, privacy, design):
    """The design, with d = 1 for the mean and S = 1 for the central tables, which do not know S."""
    kept = dict(design)
    if problem == "mean":
        kept["d"] = 1
    if privacy == "cdp":
        kept["S"] = 1
    return kept


def generic(problem, privacy, seed):
    """A random design with no ties between more than two terms."""
    draw = np.random.default_rng(seed)
    design = {
        "n": math.exp(draw.uniform(0.5, 14)),
        "m": math.exp(draw.uniform(0, 9)),
        "S": math.exp(draw.uniform(0, 6)),
        "d": math.exp(draw.uniform(0, 4)),
        "epsilon": math.exp(draw.uniform(-8, 2)),
        "alpha": draw.uniform(1.05, 6),
    }
    return fitted(problem, privacy, design)


def test_what_is_listed():
    for problem, privacy in FOUR:
        assert [b.label for b in boundaries_of(problem, privacy)] == ["A", "B", "C", "D", "E"]
    assert len({b.table for b in BOUNDARIES}) == 7
    assert [b.label for b in BOUNDARIES if "cost of privacy" in b.table] == ["D", "A", "B", "envelope"]
    with pytest.raises(ValueError, match="crossing"):
        boundaries_of("mean", "ldp")


@pytest.mark.parametrize("boundary", BOUNDARIES, ids=lambda b: f"{b.problem}-{b.privacy}-{b.label}")
@few
@given(design=designs)
def test_printed_formula_is_the_value(boundary, design):
    design = fitted(boundary.problem, boundary.privacy, design)
    printed = eval(boundary.formula, {"__builtins__": {}}, dict(design))
    assert boundary.value(**design) == pytest.approx(printed, rel=1e-9)


@pytest.mark.parametrize("boundary", BOUNDARIES, ids=lambda b: f"{b.problem}-{b.privacy}-{b.label}")
@few
@given(design=designs)
def test_at_a_boundary_the_two_rates_agree_and_then_exchange(boundary, design):
    design = fitted(boundary.problem, boundary.privacy, design)
    if boundary.label == "envelope":  # the meeting is at the epsilon of (D)
        turn = next(b for b in boundaries_of(boundary.problem, boundary.privacy) if b.label == "D")
        design["epsilon"] = turn.value(**design)
    value = boundary.value(**design)
    assume(boundary.variable == "epsilon" or value >= 1.2)

    def terms(factor):
        found = rate(boundary.problem, boundary.privacy, **{**design, boundary.variable: value * factor})
        return SimpleNamespace(below=found.term(boundary.below).value, above=found.term(boundary.above).value)

    assert terms(1).below == pytest.approx(terms(1).above, rel=1e-9)
    assert terms(0.9).below > terms(0.9).above
    assert terms(1.1).below < terms(1.1).above


def changes(dominant, low, high):
    """All points between low and high at which `dominant` changes.

    On a line the terms are straight in the logarithms, so a term rules on one interval: equal ends, no change.
    """
    first, last = dominant(low), dominant(high)
    if first == last:
        return []
    if high / low < 1 + 1e-10:
        return [((low + high) / 2, first, last)]
    middle = math.sqrt(low * high)
    return changes(dominant, low, middle) + changes(dominant, middle, high)


@pytest.mark.parametrize(("problem", "privacy"), FOUR)
@pytest.mark.parametrize("axis", ["m", "epsilon", "n"])
@few
@given(seed=st.integers(0, 2**32 - 1))
def test_the_dominating_term_changes_at_boundaries_and_nowhere_else(problem, privacy, axis, seed):
    design = generic(problem, privacy, seed)
    by_pair = {frozenset((b.below, b.above)): b for b in boundaries_of(problem, privacy)}
    low, high = {"m": (1, 1e12), "epsilon": (1e-12, 1e6), "n": (1, 1e12)}[axis]
    found = changes(
        lambda x: rate(problem, privacy, **{**design, axis: x}).dominant.name,
        low,
        high,
    )
    for point, before, after in found:
        there = {**design, axis: point}
        boundary = by_pair[frozenset((before, after))]  # the sixth pair is in no table: KeyError if met
        assert boundary.value(**there) == pytest.approx(there[boundary.variable], rel=1e-6)
    # conversely: a listed crossing between the two largest terms is one of the changes
    for boundary in by_pair.values():
        if boundary.variable != axis:
            continue
        value = boundary.value(**design)
        if not low * 1.01 < value < high / 1.01:
            continue
        top = rate(problem, privacy, **{**design, axis: value})
        if top.term(boundary.below).value >= top.dominant.value * (1 - 1e-9):
            assert any(point == pytest.approx(value, rel=1e-6) for point, _, _ in found)


@pytest.mark.parametrize(("problem", "privacy"), [*FOUR, ("mean", "ldp"), ("vcm", "ldp")])
@few
@given(seed=st.integers(0, 2**32 - 1))
def test_the_sixth_pair_never_decides(problem, privacy, seed):
    design = generic(problem, privacy, seed)
    sparse, dense = "non-private sparse", "private dense"
    meeting = crossing(problem, privacy, sparse, dense, "epsilon", alpha=design["alpha"])
    values = {key: design[key] for key in ("n", "m", "S", "d")}
    found = rate(problem, privacy, **{**design, "epsilon": meeting.at(values)})
    others = max(found.term("private sparse").value, found.term("non-private dense").value)
    assert others >= found.term(sparse).value * (1 - 1e-9)


@pytest.mark.parametrize(("problem", "privacy"), [("mean", "cdp"), ("vcm", "fdp")])
@few
@given(seed=st.integers(0, 2**32 - 1), beyond=st.floats(1, 1e3), more=st.floats(1, 1e3))
def test_beyond_the_envelope_low_privacy_is_free(problem, privacy, seed, beyond, more):
    design = generic(problem, privacy, seed)
    envelope = next(b for b in BOUNDARIES if (b.problem, b.privacy, b.label) == (problem, privacy, "envelope"))
    turn = next(b for b in boundaries_of(problem, privacy) if b.label == "D")
    design["m"] = envelope.value(**design) * beyond
    design["epsilon"] = turn.value(**design) * more
    found = rate(problem, privacy, **design)
    assert found.term("non-private dense").value >= found.dominant.value * (1 - 1e-9)


def test_a_boundary_says_what_it_lacks():
    boundary = boundaries_of("mean", "cdp")[0]
    with pytest.raises(ValueError, match="epsilon is needed"):
        boundary.value(n=100, alpha=2)
    assert boundaries_of("mean", "cdp")[1].value(n=4**4, alpha=2) == pytest.approx(4)
    with pytest.raises(ValueError, match=r"^d "):
        boundary.value(n=100, alpha=2, epsilon=1, d=3)


# Regimes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("design", "expected"),
    [
        ({"m": 2, "epsilon": 0.9}, "non-private sparse"),
        ({"m": 2, "epsilon": 0.005}, "private sparse"),
        ({"m": 10**4, "epsilon": 0.9}, "non-private dense"),
        ({"m": 10**6, "epsilon": 0.001}, "private dense"),
    ],
)
def test_the_four_regimes(design, expected):
    found = regime("mean", "cdp", n=10**4, alpha=2, **design)
    assert found.dominant == expected
    assert found.private == expected.startswith("private")
    assert found.sparse == expected.endswith("sparse")


@pytest.mark.parametrize(("problem", "privacy"), [*FOUR, ("mean", "ldp"), ("vcm", "none")])
@few
@given(seed=st.integers(0, 2**32 - 1))
def test_exits_lead_out_and_no_nearer_point_does(problem, privacy, seed):
    design = generic(problem, privacy, seed)
    found = regime(problem, privacy, **design)
    for way in found.exits:
        assert way.value == pytest.approx(design[way.variable] * way.factor)
        values = [design[way.variable] * way.factor**power for power in (0.999, 1.001)]
        if way.variable != "epsilon" and min(values) < 1:
            continue  # the way out ends where there is less than one of it
        inside, outside = (rate(problem, privacy, **{**design, way.variable: value}) for value in values)
        assert inside.dominant.name == found.dominant
        assert outside.dominant.name == way.next_dominant


# Cost of privacy -----------------------------------------------------------------------------------


def test_the_cost_of_privacy_table_as_printed():
    n, epsilon, alpha = 10**4, 0.003, 2.0
    at = {"n": n, "m": 1.0, "S": 1.0, "d": 1.0, "epsilon": epsilon}
    rows = [
        (row.level, row.m_lower and row.m_lower.at(at), row.m_upper and row.m_upper.at(at), set(row.survivors))
        for row in cost_of_privacy_table("mean", "cdp", alpha=alpha)
    ]
    turn, plain, envelope = (n**2 * epsilon**2) ** (1 / alpha), n ** (1 / (2 * alpha)), n ** (1 / alpha)
    assert rows == [
        ("high privacy", None, pytest.approx(turn), {"private sparse"}),
        ("high privacy", pytest.approx(turn), None, {"private dense"}),
        ("low privacy", None, pytest.approx(plain), {"non-private sparse", "private sparse"}),
        ("low privacy", pytest.approx(plain), pytest.approx(envelope), {"non-private dense", "private sparse"}),
        ("low privacy", pytest.approx(envelope), None, {"non-private dense"}),
    ]


@pytest.mark.parametrize(("problem", "privacy"), [*FOUR, ("mean", "ldp"), ("vcm", "ldp")])
@few
@given(design=designs)
def test_the_survivors_carry_the_rate(problem, privacy, design):
    design = fitted(problem, privacy, design)
    cost = cost_of_privacy(problem, privacy, **design)
    found = rate(problem, privacy, **design)
    surviving = max(found.term(name).value for name in cost.row.survivors)
    assert surviving >= found.dominant.value * (1 - 1e-9)
    assert cost.ratio >= 1
    assert (cost.row.level == "high privacy") == (design["epsilon"] <= cost.epsilon_boundary)


def test_no_privacy_has_no_cost():
    with pytest.raises(ValueError, match=r"^privacy "):
        cost_of_privacy("mean", "none", n=10, m=2, epsilon=1, alpha=2)
