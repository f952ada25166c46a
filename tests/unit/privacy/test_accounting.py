"""Prices against mpmath and dp_accounting, rounding to the private side, composition, parts, events as JSON."""

from __future__ import annotations

import json
import math

import mpmath
import pytest

from dpfda.errors import InvalidInput
from dpfda.privacy import (
    GaussianEvent,
    PureEvent,
    event_from_dict,
    event_to_dict,
    gaussian_delta,
    gaussian_epsilon,
    lemma1_mu,
    mu_for,
    mu_squared,
    price,
    price_by_pld,
)

EPSILONS = [0.05, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 10.0]
DELTAS = [1e-9, 1e-7, 1e-5, 1e-3, 1e-2]


def exact_delta(mu: float, epsilon: float) -> mpmath.mpf:
    with mpmath.workdps(60):
        mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
        upper = mpmath.ncdf(-epsilon / mu + mu / 2)
        return upper - mpmath.exp(epsilon) * mpmath.ncdf(-epsilon / mu - mu / 2)


@pytest.mark.parametrize("mu", [1e-20, 1e-12, 1e-6, 1e-3, 0.03, 0.3, 1.0, 3.0, 10.0, 40.0, 300.0])
@pytest.mark.parametrize("epsilon", [0.0, 1e-9, 1e-3, 0.05, 0.5, 1.0, 4.0, 10.0, 100.0])
def test_delta_is_never_below_the_exact_value_and_close_to_it(mu, epsilon) -> None:
    computed, exact = gaussian_delta(mu, epsilon), exact_delta(mu, epsilon)
    assert computed >= exact
    z = abs(epsilon / mu - mu / 2)
    if exact > 1e-290:
        assert float(computed / exact - 1) <= 2e-12 + 1e-14 * (z * z + (1 + z) / mu + mu * mu)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
def test_mu_and_epsilon_are_private_and_tight(epsilon, delta) -> None:
    mu = mu_for(epsilon, delta)
    assert exact_delta(mu * (1 + 5e-13), epsilon) <= delta  # with room for the ledger's tolerance
    assert exact_delta(mu * (1 + 1e-9), epsilon) > delta
    back = gaussian_epsilon(mu, delta)
    assert exact_delta(mu, back) <= delta
    assert back == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
def test_mu_agrees_with_dp_accounting(epsilon, delta) -> None:
    from dp_accounting import gaussian_mechanism

    sigma = gaussian_mechanism.get_sigma_gaussian(epsilon, delta)
    assert 1 / mu_for(epsilon, delta) == pytest.approx(sigma, rel=1e-6)


@pytest.mark.parametrize(
    ("epsilon", "delta", "multiplier"),
    [(0.5, 1e-3, 4.61), (1, 1e-3, 2.57), (4, 1e-3, 0.823), (8, 1e-3, 0.480), (1, 1e-5, 3.73), (4, 1e-5, 1.08)],
)
def test_known_noise_multipliers(epsilon, delta, multiplier) -> None:
    assert 1 / mu_for(epsilon, delta) == pytest.approx(multiplier, abs=0.006)


def test_nothing_spent_costs_nothing() -> None:
    assert mu_squared([]) == 0
    assert gaussian_delta(0.0, 0.0) == 0
    assert gaussian_epsilon(0.0, 1e-5) == 0
    assert price([], 1e-5) == 0
    assert price_by_pld([], 1e-5) == 0


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-3), (1, 1e-3), (8, 1e-3), (1, 1e-5), (17.8, 1e-3)])
def test_lemma_1_is_private_and_dearer_than_exact(epsilon, delta) -> None:
    mu = lemma1_mu(epsilon, delta)
    assert mu == pytest.approx(epsilon / (2 * math.sqrt(math.log(2 / delta))), rel=1e-15)
    assert mu < mu_for(epsilon, delta)


def test_lemma_1_is_refused_outside_its_condition_and_where_its_claim_fails() -> None:
    delta = 1e-3
    limit = 4 * math.log(2 / delta)
    with pytest.raises(InvalidInput, match="Lemma 1"):
        lemma1_mu(limit * 1.01, delta)
    mu = 30.0 / (2 * math.sqrt(math.log(2 / delta)))
    assert limit > 30.0
    assert exact_delta(mu, 30.0) > 1.6 * delta  # the printed condition holds, the claim does not
    with pytest.raises(InvalidInput, match="Lemma 1"):
        lemma1_mu(30.0, delta)


@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 0.2, 0.999, 1.0, 3.0, 30.0])
def test_a_pure_event_is_covered_by_its_mu(epsilon) -> None:
    mu = PureEvent(epsilon).mu
    with mpmath.workdps(60):
        exact = -2 * mpmath.sqrt(2) * mpmath.erfinv(2 / (1 + mpmath.exp(mpmath.mpf(epsilon))) - 1)
    assert exact <= mu <= exact * (1 + 1e-11)
    # Trade-off functions on a grid: that of eps-DP lies above that of N(0,1) against N(mu,1).
    for alpha in [1e-6, 0.01, 0.1, 0.3, 0.5, 0.9]:
        pure = max(0.0, 1 - math.exp(epsilon) * alpha, math.exp(-epsilon) * (1 - alpha))
        normal = mpmath.ncdf(-mpmath.sqrt(2) * mpmath.erfinv(2 * alpha - 1) - mu)
        assert pure >= normal * (1 - 1e-9)


@pytest.mark.parametrize("event", [GaussianEvent(0.13), PureEvent(0.2), GaussianEvent(0.13, part=1)])
@pytest.mark.parametrize("k", [1, 2, 7, 50])
def test_k_fold_composition_equals_k_single_compositions(event, k) -> None:
    assert mu_squared([event] * k) == pytest.approx(k * mu_squared([event]), rel=1e-14)
    twins = [event_from_dict({**event_to_dict(event), "label": str(i)}) for i in range(k)]
    assert price(twins, 1e-5) == price([event] * k, 1e-5)
    assert price_by_pld(twins, 1e-5) == pytest.approx(price_by_pld([event] * k, 1e-5), rel=1e-12)


def test_k_fold_pld_composition_equals_composing_one_by_one() -> None:
    """The count is not ignored: 10 events that differ by nothing the library can group cost as 10 equal ones."""
    grouped = price_by_pld([PureEvent(0.2)] * 10, 1e-5)
    apart = price_by_pld([PureEvent(0.2 + i * 1e-9) for i in range(10)], 1e-5)
    assert grouped == pytest.approx(apart, abs=0.02)
    assert grouped > 5 * price_by_pld([PureEvent(0.2)], 1e-5)


@pytest.mark.parametrize("mus", [[0.5], [0.3] * 5, [0.1, 0.2, 0.4]])
def test_the_closed_form_agrees_with_numerical_composition(mus) -> None:
    events = [GaussianEvent(mu) for mu in mus]
    exact, numerical = price(events, 1e-5), price_by_pld(events, 1e-5)
    assert exact <= numerical * (1 + 1e-9)
    assert numerical == pytest.approx(exact, abs=1e-3)


def test_a_mixture_costs_no_more_than_either_bound() -> None:
    events = [GaussianEvent(0.3)] * 5 + [PureEvent(0.2)] * 20
    mixed = price(events, 1e-5)
    assert mixed <= price_by_pld(events, 1e-5)
    assert mixed <= gaussian_epsilon(math.sqrt(mu_squared(events)), 1e-5)
    assert mixed >= price(events[:5], 1e-5)


def test_disjoint_parts_cost_as_much_as_the_dearest_one() -> None:
    parts = [GaussianEvent(0.5, part=0), GaussianEvent(0.3, part=1), GaussianEvent(0.3, part=1)]
    everyone = GaussianEvent(0.2)
    assert mu_squared(parts) == pytest.approx(0.25)
    assert mu_squared([*parts, everyone]) == pytest.approx(0.29)
    assert mu_squared([*parts, everyone, GaussianEvent(0.4, part=1)]) == pytest.approx(0.38)
    assert price_by_pld([*parts, everyone], 1e-5) == pytest.approx(price([*parts, everyone], 1e-5), abs=1e-3)


@pytest.mark.parametrize("event", [GaussianEvent(0.1 + 0.2, part=3, label="g"), PureEvent(1 / 3), GaussianEvent(2)])
def test_events_survive_json(event) -> None:
    assert event_from_dict(json.loads(json.dumps(event_to_dict(event)))) == event


@pytest.mark.parametrize(
    "fields", [{}, {"kind": "laplace"}, {"kind": "gaussian"}, {"kind": "gaussian", "mu": 1, "x": 2}, {"kind": []}]
)
def test_unknown_events_are_refused(fields) -> None:
    with pytest.raises(InvalidInput):
        event_from_dict(fields)


def test_non_finite_or_negative_numbers_are_refused() -> None:
    for bad in (float("nan"), float("inf"), -1.0, 0.0, "1", True):
        for call in (
            GaussianEvent,
            PureEvent,
            lambda value: mu_for(value, 1e-5),
            lambda value: mu_for(1.0, value),
            lambda value: lemma1_mu(value, 1e-5),
            lambda value: gaussian_epsilon(1.0, value),
        ):
            with pytest.raises(InvalidInput):
                call(bad)
    with pytest.raises(InvalidInput):
        gaussian_delta(float("nan"), 1.0)
    with pytest.raises(InvalidInput):
        GaussianEvent(1.0, part=-1)
