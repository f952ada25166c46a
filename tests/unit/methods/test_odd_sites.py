"""Sites that are unlike all others: who is flagged, and what it counts for."""

from __future__ import annotations

import numpy as np
import pytest

from dpfda.methods.adaptive.level import Level
from dpfda.methods.adaptive.odd_sites import (
    LongShares,
    Oddness,
    Traits,
    _compare,
    find_distances,
    judge_sites,
    read_levels,
)


def make_traits(values, sd=0.1, scale=1.0) -> Traits:
    values = np.asarray(values, dtype=np.float64)[:, None]
    return Traits(values, np.full((len(values), 1, 1), sd**2), np.array([scale]))


def names(count) -> tuple[str, ...]:
    return tuple(f"site {number}" for number in range(count))


def test_one_far_site_is_flagged_and_hardly_counts() -> None:
    found = judge_sites(names(5), [make_traits([0.0, 0.1, -0.1, 0.05, 8.0])], robust=True)
    assert found.flagged == ("site 4",)
    assert found.trust.keys() == {"site 4"}
    assert found.trust["site 4"] < 0.01


def test_its_weight_falls_without_a_jump_the_further_it_is() -> None:
    """At even odds a site counts in full, beyond that by the eighth power of the odds."""
    kept = []
    for place in np.arange(0.0, 4.0, 0.005):
        found = judge_sites(names(5), [make_traits([0.0, 0.1, -0.1, 0.05, place])], robust=True)
        kept.append(found.trust.get("site 4", 1.0))
    assert kept[0] == 1.0
    assert kept[-1] < 1e-3
    assert np.max(np.abs(np.diff(kept))) < 0.25
    assert (np.diff(kept) <= 1e-12).all()


def test_a_rule_that_is_off_or_too_few_sites_name_it_only() -> None:
    far = [make_traits([0.0, 0.1, -0.1, 0.05, 8.0])]
    assert judge_sites(names(5), far, robust=False) == Oddness(judge_sites(names(5), far, robust=True).probability)
    three = judge_sites(names(3), [make_traits([0.0, 0.02, 30.0], sd=0.02)] * 3, robust=True)
    assert three.flagged == ("site 2",)
    assert not three.trust


def test_sites_that_all_differ_are_not_odd() -> None:
    """Normal deviations of any size: in one of 30 studies, at most, a site counts for less than half."""
    rng, wrong = np.random.default_rng(4), 0
    for study in range(120):
        count, size = (5, 20)[study % 2], (0.0, 0.4, 1.0)[study % 3]
        found = judge_sites(
            names(count), [make_traits(size * rng.normal(size=count) + 0.1 * rng.normal(size=count))], robust=True
        )
        wrong += any(weight < 0.5 for weight in found.trust.values())
    assert wrong <= 4


def test_two_odd_sites_do_not_hide_each_other_and_at_most_a_third_is_taken_out() -> None:
    values = np.r_[np.linspace(-0.1, 0.1, 18), 9.0, 9.1]
    assert judge_sites(names(20), [make_traits(values)] * 2, robust=True).flagged == ("site 18", "site 19")
    halves = judge_sites(names(6), [make_traits([0.0, 0.0, 0.0, 50.0, 100.0, 150.0], sd=0.01)], robust=True)
    assert len(halves.flagged) <= 1


def test_the_ratio_of_evidence_is_that_of_a_direct_computation() -> None:
    """One trait, others known exactly and one size of differences: two normal densities."""
    values, sd = np.array([0.0, 0.3, -0.2, 2.0]), 0.1
    found = _compare(make_traits(values, sd))
    from dpfda.methods.adaptive import constants

    sizes = np.array(constants.ODD_BETWEEN)
    total = sd**2 + sizes**2
    logs = []
    for variance in total:  # of the first three sites, their mean free
        deviations = values[:3] - values[:3].mean()
        logs.append(
            -np.log(variance)
            - 0.5 * (deviations**2).sum() / variance
            - np.log1p((variance - sd**2) / constants.SITE_SCALE**2)
        )
    weights = np.exp(np.array(logs) - np.max(logs))
    weights /= weights.sum()
    apart = 2.0 - values[:3].mean()

    def density(extra):
        variance = total * (1 + 1 / 3) + extra
        return weights @ (np.exp(-0.5 * apart**2 / variance) / np.sqrt(variance))

    anywhere = np.mean([density(size**2) for size in constants.ODD_SIZES])
    assert found[3] == pytest.approx(np.log(anywhere / density(0.0)), rel=1e-6)


def test_levels_are_freed_of_the_priors_they_were_fitted_with() -> None:
    """A sharp level stays as it is; of one that is all prior next to nothing is known."""
    sharp, vague = Level(0.3, 0.01, 0.1, 0.05), Level(0.05, 0.7, 0.2, 0.99)
    level, spread = read_levels([sharp, vague])
    assert level.values[0, 0] == pytest.approx(0.3, rel=1e-3)
    assert level.covariances[0, 0, 0] == pytest.approx(1e-4, rel=1e-3)
    assert spread.values[0, 0] == pytest.approx(np.log(0.1), rel=0.01)
    assert spread.covariances[1, 0, 0] > 10


def test_shares_of_long_gradients_add_up_over_rounds_whoever_answered() -> None:
    long = LongShares().add(("a", "b", "c"), np.array([0.2, 0.2, 0.8]), np.full(3, 0.04))
    long = long.add(("a", "c"), np.array([0.5, 1.1]), np.full(2, 0.04))
    traits = long.read(("a", "b", "c", "d"), np.zeros(4))
    assert traits.values[2, 0] == pytest.approx((0.4 + 0.3) / 2)
    assert traits.values[1, 0] == pytest.approx(-0.2)
    assert traits.covariances[0, 0, 0] < traits.covariances[1, 0, 0] < traits.covariances[3, 0, 0]


def test_long_gradients_of_a_site_whose_function_is_far_are_no_evidence_of_their_own() -> None:
    names, near = tuple("abcdef"), np.zeros(6)
    long = LongShares().add(names, np.array([0.0, 0.01, -0.01, 0.02, 0.0, 0.35]), np.full(6, 1e-4))
    alone, far = (
        judge_sites(names, [long.read(names, away)], robust=True) for away in (near, np.append(near[1:], 3.0))
    )
    assert alone.probability["f"] > 2 * far.probability["f"]
    function = Traits(np.array([[0.1], [-0.1], [0.0], [0.2], [0.0], [1.5]]), np.full((6, 1, 1), 0.01), np.ones(1))
    np.testing.assert_allclose(find_distances([function, function]), [0, 0, 0, 0.06, 0, 4.48], atol=1e-15)
