"""Rates, optimal r and planning, against formulas transcribed by hand from the paper's tables."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfda.planning.theory import error_at, optimal_r, price_of_privacy, rate, what_helps_most

sizes = st.integers(1, 10**6)
points = st.integers(1, 10**4)
servers = st.integers(1, 500)
covariates = st.integers(1, 50)
budgets = st.floats(1e-4, 10)
smoothness = st.floats(1.01, 6)
designs = st.fixed_dictionaries(
    {"n": sizes, "m": points, "S": servers, "d": covariates, "epsilon": budgets, "alpha": smoothness}
)
few = settings(max_examples=30, deadline=None)
NAMES = ["non-private sparse", "private sparse", "non-private dense", "private dense"]
PRIVATE_MODELS = ["cdp", "fdp", "ldp"]


def close(value):
    return pytest.approx(value, rel=1e-9)


def mean_only(design):
    return {**design, "d": 1}


# Plain transcriptions: Table 1 (CDP with S = 1), appendix table of privacy models (none, LDP).
def table_1(problem, privacy, n, m, S, d, epsilon, alpha):
    a, e = alpha, epsilon
    if (problem, privacy) == ("mean", "cdp"):
        return [(n * m) ** (-2 * a / (2 * a + 1)), (n**2 * m * e**2) ** (-a / (a + 1)), 1 / n, 1 / (n * e) ** 2]
    if (problem, privacy) == ("mean", "fdp"):
        return [
            (S * n * m) ** (-2 * a / (2 * a + 1)),
            (S * n**2 * m * e**2) ** (-a / (a + 1)),
            1 / (S * n),
            1 / (S * n**2 * e**2),
        ]
    if (problem, privacy) == ("mean", "ldp"):
        return [
            (S * n * m) ** (-2 * a / (2 * a + 1)),
            (S * n * m * e**2) ** (-a / (a + 1)),
            1 / (S * n),
            1 / (S * n * e**2),
        ]
    if (problem, privacy) == ("vcm", "cdp"):
        return [
            d * (n * m) ** (-2 * a / (2 * a + 1)),
            d ** ((2 * a + 1) / (a + 1)) * (n**2 * m * e**2) ** (-a / (a + 1)),
            d / n,
            d**2 / (n**2 * e**2),
        ]
    assert (problem, privacy) == ("vcm", "fdp")
    return [
        d * (S * n * m) ** (-2 * a / (2 * a + 1)),
        d ** ((2 * a + 1) / (a + 1)) * (S * n**2 * m * e**2) ** (-a / (a + 1)),
        d / (S * n),
        d**2 / (S * n**2 * e**2),
    ]


@pytest.mark.parametrize(
    ("problem", "privacy"), [("mean", "cdp"), ("mean", "fdp"), ("mean", "ldp"), ("vcm", "cdp"), ("vcm", "fdp")]
)
@few
@given(design=designs)
def test_terms_are_those_of_the_tables(problem, privacy, design):
    if problem == "mean":
        design = mean_only(design)
    if privacy == "cdp":
        design = {**design, "S": 1}
    terms = rate(problem, privacy, **design)
    assert [term.name for term in terms.terms] == NAMES
    assert [term.value for term in terms.terms] == close(table_1(problem, privacy, **design))
    assert terms.total == close(math.fsum(table_1(problem, privacy, **design)))
    assert terms.dominant.value == max(term.value for term in terms.terms)


def test_one_case_by_pencil():
    # n = 100, m = 8, epsilon = 1/10, alpha = 3/2: nm = 800, n^2 m eps^2 = 800, n^2 eps^2 = 100
    terms = rate("mean", "cdp", n=100, m=8, epsilon=0.1, alpha=1.5).as_dict()
    assert terms["non-private sparse"] == close(800**-0.75)
    assert terms["private sparse"] == close(800**-0.6)
    assert terms["non-private dense"] == close(0.01)
    assert terms["private dense"] == close(0.01)


@few
@given(design=designs)
def test_the_non_private_row(design):
    n, m, S, a = (design[key] for key in ("n", "m", "S", "alpha"))
    terms = rate("mean", "none", n=n, m=m, S=S, alpha=a)
    assert terms.as_dict() == {
        "non-private sparse": close((S * n * m) ** (-2 * a / (2 * a + 1))),
        "non-private dense": close(1 / (S * n)),
    }
    assert terms.matched
    with pytest.raises(KeyError, match="private dense"):
        terms.term("private dense")


@few
@given(design=designs)
def test_pooled_central_row_of_the_appendix(design):
    n, m, S, e, a = (design[key] for key in ("n", "m", "S", "epsilon", "alpha"))
    terms = rate("mean", "cdp", n=n, m=m, S=S, epsilon=e, alpha=a)
    assert terms.term("private sparse").value == close((S**2 * n**2 * m * e**2) ** (-a / (a + 1)))
    assert terms.term("private dense").value == close(1 / (S**2 * n**2 * e**2))


@pytest.mark.parametrize("problem", ["mean", "vcm"])
@few
@given(design=designs)
def test_federated_privacy_lies_between_its_two_extremes(problem, design):
    if problem == "mean":
        design = mean_only(design)
    one_server = {**design, "S": 1}
    one_curve = {**design, "n": 1}
    assert rate(problem, "fdp", **one_server).as_dict() == close(rate(problem, "cdp", **one_server).as_dict())
    assert rate(problem, "fdp", **one_curve).as_dict() == close(rate(problem, "ldp", **one_curve).as_dict())
    totals = [rate(problem, privacy, **design).total for privacy in ("none", "cdp", "fdp", "ldp")]
    assert all(cheap <= dear * (1 + 1e-9) for cheap, dear in itertools.pairwise(totals))


@pytest.mark.parametrize("privacy", ["none", *PRIVATE_MODELS])
@few
@given(design=designs)
def test_one_covariate_gives_the_mean(privacy, design):
    design = mean_only(design)
    assert rate("vcm", privacy, **design).as_dict() == rate("mean", privacy, **design).as_dict()
    assert optimal_r("vcm", privacy, **design) == optimal_r("mean", privacy, **design)


# Optimal r -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("problem", ["mean", "vcm"])
@few
@given(design=designs)
def test_optimal_r_is_the_printed_minimum(problem, design):
    if problem == "mean":
        design = mean_only(design)
    n, m, S, d, e, a = (design[key] for key in ("n", "m", "S", "d", "epsilon", "alpha"))
    federated = min(
        (S * n * m) ** (1 / (2 * a + 1)),
        (S * n**2 * m * e**2 / d) ** (1 / (2 * a + 2)),
        (S * n) ** (1 / (2 * a)),
        (S * n**2 * e**2 / d) ** (1 / (2 * a)),
    )
    central = min(
        (n * m) ** (1 / (2 * a + 1)),
        d ** (-1 / (2 * a + 2)) * (n**2 * m * e**2) ** (1 / (2 * a + 2)),
        n ** (1 / (2 * a)),
        d ** (-1 / (2 * a)) * (n**2 * e**2) ** (1 / (2 * a)),
    )
    assert optimal_r(problem, "fdp", **design).value == close(federated)
    assert optimal_r(problem, "cdp", **{**design, "S": 1}).value == close(central)


@pytest.mark.parametrize("problem", ["mean", "vcm"])
@pytest.mark.parametrize("privacy", ["none", *PRIVATE_MODELS])
@few
@given(design=designs)
def test_bias_at_optimal_r_is_the_dominating_term(problem, privacy, design):
    if problem == "mean":
        design = mean_only(design)
    best = optimal_r(problem, privacy, **design)
    dominant = rate(problem, privacy, **design).dominant.value
    assert design["d"] * best.value ** (-2 * design["alpha"]) == close(dominant)
    assert dict(best.candidates)[best.binding] == best.value
    assert best.r == max(1, math.ceil(best.value))


@pytest.mark.parametrize("problem", ["mean", "vcm"])
@pytest.mark.parametrize("privacy", ["none", *PRIVATE_MODELS])
@few
@given(design=designs, r=st.integers(1, 2000))
def test_no_r_beats_the_rate_and_the_optimal_one_attains_it(problem, privacy, design, r):
    if problem == "mean":
        design = mean_only(design)
    dominant = rate(problem, privacy, **design).dominant.value
    assert error_at(problem, privacy, r, **design).total >= 0.999 * min(dominant, design["d"])
    best = optimal_r(problem, privacy, **design).value
    if best >= 1:
        assert error_at(problem, privacy, best, **design).total <= 5.001 * dominant


def test_error_decomposition_is_the_printed_one():
    n, m, e, a, r, d = 200, 7, 0.5, 2.5, 4, 3
    parts = error_at("mean", "cdp", r, n=n, m=m, epsilon=e, alpha=a)
    assert dict(parts.variances) == close(
        {
            "non-private sparse": r / (n * m),
            "private sparse": r**2 / (n**2 * m * e**2),
            "non-private dense": 1 / n,
            "private dense": 1 / (n**2 * e**2),
        }
    )
    assert parts.squared_bias == close(r ** (-2 * a))
    vcm = error_at("vcm", "cdp", r, n=n, m=m, epsilon=e, alpha=a, d=d)
    assert vcm.total == close(
        d / n + d * r / (n * m) + d * r ** (-2 * a) + d**2 / (n * e) ** 2 + (d * r) ** 2 / (n**2 * m * e**2)
    )


def test_the_constant_of_the_experiments_multiplies_before_rounding_up():
    plain = optimal_r("mean", "cdp", n=250, m=10, epsilon=1, alpha=3)
    scaled = optimal_r("mean", "cdp", n=250, m=10, epsilon=1, alpha=3, constant=1.25)
    assert scaled.value == plain.value
    assert scaled.r == math.ceil(1.25 * plain.value)


# Planning ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("problem", ["mean", "vcm"])
@pytest.mark.parametrize("privacy", PRIVATE_MODELS)
@few
@given(design=designs)
def test_elasticities_are_derivatives(problem, privacy, design):
    design = {**design, "n": design["n"] + 1, "m": design["m"] + 1, "S": design["S"] + 1}
    if problem == "mean":
        design = mean_only(design)
    found = what_helps_most(problem, privacy, **design)
    step = 1e-5
    for variable in ("n", "m", "S", "epsilon"):
        up, down = (
            math.log(rate(problem, privacy, **{**design, variable: design[variable] * math.exp(sign * step)}).total)
            for sign in (1, -1)
        )
        assert found.of(variable) == pytest.approx((up - down) / (2 * step), abs=1e-5)
    assert found.best == found.overall[0][0]
    assert list(found.overall) == sorted(found.overall, key=lambda item: item[1])


def test_more_budget_does_not_help_where_privacy_is_free():
    rich = what_helps_most("mean", "cdp", n=10**6, m=2, epsilon=5, alpha=3)
    assert dict(rich.asymptotic)["epsilon"] == 0
    assert rich.of("epsilon") == pytest.approx(0, abs=0.05)
    poor = what_helps_most("mean", "fdp", n=50, m=10**6, S=3, epsilon=0.01, alpha=3)
    assert dict(poor.asymptotic) == close({"n": -2, "epsilon": -2, "S": -1, "m": 0})


def test_without_privacy_epsilon_does_nothing():
    found = what_helps_most("vcm", "none", n=100, m=5, S=2, d=3, alpha=2)
    assert found.of("epsilon") == 0
    assert found.of("n") == close(found.of("S"))


@few
@given(design=designs)
def test_price_of_privacy_compares_the_same_curves(design):
    price = price_of_privacy("vcm", **design)
    assert price.ratios["none"] == 1
    ordered = [price.ratios[privacy] for privacy in ("none", "cdp", "fdp", "ldp")]
    assert np.all(np.diff(ordered) >= -1e-9 * np.array(ordered[1:]))
    assert price.ratio("ldp", "cdp") == close(price.ldp.total / price.cdp.total)


def test_in_the_dense_private_regime_each_step_costs_its_factor():
    n, S = 40, 25
    price = price_of_privacy("mean", n=n, m=10**9, S=S, epsilon=1e-4, alpha=3)
    assert price.ratio("fdp", "cdp") == pytest.approx(S, rel=1e-2)  # S^2 n^2 against S n^2
    assert price.ratio("ldp", "fdp") == pytest.approx(n, rel=1e-2)  # S n^2 against S n


def test_flags():
    assert not rate("mean", "cdp", n=100, m=5, epsilon=1.5, alpha=2).matched
    assert rate("mean", "cdp", n=100, m=5, epsilon=0.5, alpha=2).matched
    assert rate("mean", "cdp", n=10, m=5, epsilon=0.01, alpha=2).vacuous
    assert not rate("mean", "cdp", n=10**5, m=5, epsilon=0.5, alpha=2).vacuous
    assert rate("mean", "cdp", n=1, m=1, epsilon=1e-300, alpha=2).total == math.inf


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"n": 0}, "n"),
        ({"m": math.nan}, "m"),
        ({"S": math.inf}, "S"),
        ({"d": 0.5}, "d"),
        ({"d": 2}, "d"),
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": None}, "epsilon"),
        ({"alpha": 1}, "alpha"),
        ({"problem": "median"}, "problem"),
        ({"privacy": "zcdp"}, "privacy"),
    ],
)
def test_errors_name_the_argument(change, named):
    arguments = {"problem": "mean", "privacy": "fdp", "n": 10, "m": 3, "epsilon": 1.0, "alpha": 2.0, **change}
    with pytest.raises(ValueError, match=f"^{named} "):
        rate(**arguments)
