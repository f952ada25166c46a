"""Unequal servers, and the delta conditions of the lower bounds."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfda.planning.theory import (
    SiteBudget,
    delta_condition,
    error_at,
    heterogeneous_delta_conditions,
    heterogeneous_lower,
    heterogeneous_optimal_r,
    heterogeneous_upper,
    lower_bound_r0,
    optimal_r,
    rate,
    site_precisions,
)

few = settings(max_examples=30, deadline=None)
site = st.builds(SiteBudget, n=st.integers(5, 10**5), epsilon=st.floats(1e-3, 0.99))
groups = st.lists(site, min_size=1, max_size=8)
points = st.integers(1, 2000)
smoothness = st.floats(1.05, 5)
covariates = st.integers(1, 20)
counts = st.integers(1, 60)


def close(value):
    return pytest.approx(value, rel=1e-9)


# Plain transcriptions of Theorems 4.2, 6.2 (with n_s^-1 in u_s) and 5.1, 7.1.
def upper_mean(sites, r, m, a):
    kept = sum(min(r * s.n * m, s.n**2 * m * s.epsilon**2, r**2 * s.n, r**2 * s.n**2 * s.epsilon**2) for s in sites)
    return r**2 / kept + r ** (-2 * a)


def upper_vcm(sites, r, m, a, d):
    kept = sum(
        min(d * r * s.n * m, s.n**2 * m * s.epsilon**2, d * r**2 * s.n, r**2 * s.n**2 * s.epsilon**2) for s in sites
    )
    return d**2 * r**2 / kept + d * r ** (-2 * a)


def lower_vcm(sites, T, m, a, d, largest_r=4000):
    sparse = max(
        r**2 * d**2 / (sum(min(r * d * s.n * m, s.n**2 * m * s.epsilon**2 / T) for s in sites) + d * r ** (2 * a + 2))
        for r in range(1, largest_r)
    )
    return max(sparse, d**2 / sum(min(d * s.n, s.n**2 * s.epsilon**2 / T) for s in sites))


@few
@given(sites=groups, r=counts, m=points, alpha=smoothness, d=covariates)
def test_upper_bound_is_the_printed_one(sites, r, m, alpha, d):
    assert heterogeneous_upper(sites, r, m=m, alpha=alpha).value == close(upper_mean(sites, r, m, alpha))
    assert heterogeneous_upper(sites, r, m=m, alpha=alpha, d=d).value == close(upper_vcm(sites, r, m, alpha, d))


@few
@given(sites=groups, r=counts, m=points, d=covariates)
def test_precisions_have_one_over_n_and_weights_are_theirs(sites, r, m, d):
    expected = [
        1 / max(d / s.n, d * r / (s.n * m), d**2 / (s.n * s.epsilon) ** 2, (d * r) ** 2 / (s.n**2 * m * s.epsilon**2))
        for s in sites
    ]
    assert list(site_precisions(sites, r, m=m, d=d)) == close(expected)
    weights = heterogeneous_upper(sites, r, m=m, alpha=2, d=d).weights
    assert list(weights) == close([u / sum(expected) for u in expected])


@few
@given(sites=groups, extra=site, r=counts, m=points, alpha=smoothness, d=covariates)
def test_one_more_server_never_hurts(sites, extra, r, m, alpha, d):
    before = heterogeneous_upper(sites, r, m=m, alpha=alpha, d=d).value
    after = heterogeneous_upper([*sites, extra], r, m=m, alpha=alpha, d=d).value
    assert after <= before * (1 + 1e-12)


@few
@given(one=site, S=st.integers(1, 9), r=counts, m=points, alpha=smoothness, d=covariates)
def test_equal_servers_give_the_homogeneous_decomposition(one, S, r, m, alpha, d):
    bound = heterogeneous_upper([one] * S, r, m=m, alpha=alpha, d=d)
    parts = error_at("vcm", "fdp", r, n=one.n, m=m, S=S, d=d, epsilon=one.epsilon, alpha=alpha)
    assert bound.variance == close(max(value for _, value in parts.variances))
    assert bound.squared_bias == close(parts.squared_bias)


@few
@given(one=site, S=st.integers(1, 9), m=points, alpha=smoothness, d=covariates)
def test_equal_servers_give_the_homogeneous_optimal_r(one, S, m, alpha, d):
    balanced = heterogeneous_optimal_r([one] * S, m=m, alpha=alpha, d=d)
    printed = optimal_r("vcm", "fdp", n=one.n, m=m, S=S, d=d, epsilon=one.epsilon, alpha=alpha)
    assert balanced == close(printed.value)


@few
@given(sites=groups, m=points, alpha=smoothness, d=covariates)
def test_the_balanced_r_solves_the_remarks_equation(sites, m, alpha, d):
    r = heterogeneous_optimal_r(sites, m=m, alpha=alpha, d=d)
    right = sum(
        min(d * r**2 * s.n, d * r * s.n * m, r**2 * s.n**2 * s.epsilon**2, s.n**2 * m * s.epsilon**2) for s in sites
    )
    assert d * r ** (2 + 2 * alpha) == close(right)


@few
@given(sites=st.lists(site, min_size=1, max_size=3), T=st.integers(1, 5), m=points, d=covariates)
@pytest.mark.parametrize("alpha", [1.3, 3.0])
def test_lower_bound_is_the_printed_supremum(alpha, sites, T, m, d):
    assert heterogeneous_lower(sites, T, m=m, alpha=alpha, d=d).value == close(
        lower_vcm(sites, T, m, alpha, d, largest_r=1500)
    )


@few
@given(sites=groups, r=counts, m=points, alpha=smoothness, d=covariates)
def test_lower_never_exceeds_upper_and_grows_with_rounds(sites, r, m, alpha, d):
    bounds = [heterogeneous_lower(sites, T, m=m, alpha=alpha, d=d) for T in (1, 2, 5)]
    assert bounds[0].value <= heterogeneous_upper(sites, r, m=m, alpha=alpha, d=d).value * (1 + 1e-9)
    assert bounds[0].value <= bounds[1].value <= bounds[2].value
    assert bounds[2].value <= 5 * bounds[0].value * (1 + 1e-9)
    assert all(bound.proved for bound in bounds)


@few
@given(one=site, S=st.integers(1, 9), m=points, alpha=smoothness)
def test_equal_servers_match_the_minimax_rate(one, S, m, alpha):
    minimax = rate("mean", "fdp", n=one.n, m=m, S=S, epsilon=one.epsilon, alpha=alpha).dominant.value
    lower = heterogeneous_lower([one] * S, m=m, alpha=alpha).value
    assert lower <= minimax * (1 + 1e-9)
    # one half from the sum in the denominator; the rest from r being an integer, at least 1
    if minimax < 1:
        assert lower >= minimax / 2 / 2 ** (2 * alpha)


def test_the_grid_of_r_is_thinned_when_it_is_long():
    sites = [SiteBudget(n=10**9, epsilon=0.9)] * 50
    bound = heterogeneous_lower(sites, m=100, alpha=1.05)
    minimax = rate("mean", "fdp", n=10**9, m=100, S=50, epsilon=0.9, alpha=1.05).dominant.value
    assert bound.r0 > 4096
    assert minimax / 4 <= bound.value <= minimax


def test_bad_sites_and_rounds_are_refused():
    with pytest.raises(ValueError, match=r"^sites "):
        heterogeneous_upper([], 3, m=5, alpha=2)
    for T in (0, 11, 1.5):
        with pytest.raises(ValueError, match=r"^T "):
            heterogeneous_lower([SiteBudget(10, 0.5)], T, m=5, alpha=2)
    with pytest.raises(ValueError, match=r"^epsilon "):
        SiteBudget(10, -1)
    assert not heterogeneous_lower([SiteBudget(10, 1.5)], m=5, alpha=2).proved


# Delta ---------------------------------------------------------------------------------------------

designs = st.fixed_dictionaries(
    {
        "n": st.integers(2, 10**5),
        "m": st.integers(1, 300),
        "epsilon": st.floats(1e-2, 0.99),
        "alpha": st.floats(1.05, 5),
    }
)


@few
@given(design=designs)
def test_the_central_mean_condition_follows_from_its_proof(design):
    n, m, e, a = (design[key] for key in ("n", "m", "epsilon", "alpha"))
    r = (n**2 * m * e**2) ** (1 / (2 * a + 2))
    condition = delta_condition("mean", "cdp", **design)
    assert condition.bound == close(r**-0.5 / (n * m**2))
    assert condition.shape == "delta * sqrt(log(1/delta))"


@pytest.mark.parametrize("problem", ["mean", "vcm"])
@few
@given(design=designs, S=st.integers(1, 40), d=covariates)
def test_the_federated_conditions_are_the_heterogeneous_ones_with_equal_servers(problem, design, S, d):
    d = d if problem == "vcm" else 1
    n, m, e, a = (design[key] for key in ("n", "m", "epsilon", "alpha"))
    printed = delta_condition(problem, "fdp", S=S, d=d, **design).bound
    scale = m**-3 if problem == "mean" else 1 / (d * m)
    # the printed minimum over both candidates for r0 is the stricter of the two; r0 is the smaller one
    candidates = ((S * n * m) ** (1 / (2 * a + 1)), (S * n**2 * m * e**2 / d) ** (1 / (2 * a + 2)))
    assert printed == close(scale * e**2 / max(candidates))
    sites = [SiteBudget(n, e)] * S
    assert lower_bound_r0(sites, m=m, alpha=a, d=d) == close(min(candidates))
    each = heterogeneous_delta_conditions(problem, sites, m=m, alpha=a, d=d)
    assert [condition.bound for condition in each] == close([scale * e**2 / min(candidates)] * S)
    assert printed <= each[0].bound * (1 + 1e-9)


@few
@given(design=designs, S=st.integers(1, 40), d=covariates)
def test_special_cases_of_the_conditions(design, S, d):
    one_server = delta_condition("vcm", "fdp", d=d, **design).bound
    assert delta_condition("vcm", "cdp", d=d, **design).bound == close(one_server)
    pooled = {**design, "n": design["n"] * S}
    for problem, width in (("mean", 1), ("vcm", d)):
        central = delta_condition(problem, "cdp", S=S, d=width, **design).bound
        assert central == close(delta_condition(problem, "cdp", d=width, **pooled).bound)
        local = delta_condition(problem, "ldp", S=S, d=width, **design).bound
        alone = {**design, "n": 1, "S": S * design["n"]}
        assert local == close(delta_condition(problem, "fdp", d=width, **alone).bound)


@pytest.mark.parametrize("privacy", ["cdp", "fdp", "ldp"])
@few
@given(design=designs, S=st.integers(1, 40))
def test_the_largest_delta_sits_on_the_condition(privacy, design, S):
    condition = delta_condition("mean", privacy, S=S, **design)
    delta = condition.largest
    log = math.log(1 / delta)
    level = delta * (log if condition.shape == "delta * log(1/delta)" else math.sqrt(log))
    assert level == pytest.approx(condition.bound, rel=1e-6) or level < condition.bound
    assert condition.allows(delta)
    assert condition.allows(delta / 10)
    assert not condition.allows(delta * 1.001)


def test_delta_edges():
    with pytest.raises(ValueError, match=r"^privacy "):
        delta_condition("mean", "none", n=10, m=2, epsilon=0.5, alpha=2)
    with pytest.raises(ValueError, match=r"^d "):
        heterogeneous_delta_conditions("mean", [SiteBudget(10, 0.5)], m=2, alpha=2, d=3)
    assert delta_condition("mean", "cdp", n=1, m=1, epsilon=0.5, alpha=2).largest == pytest.approx(math.exp(-0.5))
