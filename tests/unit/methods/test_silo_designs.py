"""Silos with designs of their own."""

from __future__ import annotations

import numpy as np
from adaptive_pieces import exact_moments

from dpfda.basis.basis import make_basis
from dpfda.methods.adaptive.pooling import Pooled, weigh_silos
from dpfda.methods.adaptive.silo_designs import fit_own_designs

BASIS = make_basis("free-ends", 16)
SD = 0.08 * np.sqrt(np.arange(1, BASIS.moment_count + 1))  # as released: high moments have more noise


def release(x, rng, sd=SD):
    """A silo's moments with noise."""
    exact = exact_moments(BASIS, x, 0.0)
    return Pooled(exact.values + sd * rng.standard_normal(sd.size), sd, exact.n)


def pool(silos):
    weights = weigh_silos(np.array([(each.sd**2).mean() for each in silos]), np.array([each.n for each in silos]))
    sd = np.sqrt(weights**2 @ np.array([each.sd**2 for each in silos]))
    values = weights @ np.array([each.values for each in silos])
    return Pooled(values, sd, float(1 / (weights**2 / [each.n for each in silos]).sum()))


def fit(silos):
    """Every silo's mean of x, or none."""
    designs = fit_own_designs(BASIS, pool(silos), {str(number): each for number, each in enumerate(silos)})
    return np.array([design.likely @ design.nodes.u for design in designs.values()])


def test_designs_are_kept_apart_only_where_they_differ() -> None:
    """Of 60 pairs with one design at most three are kept apart; halves always are."""
    rng = np.random.default_rng(3)
    apart = sum(fit([release(rng.random(300), rng) for _ in range(2)]).size > 0 for _ in range(60))
    assert apart <= 3
    halves = fit([release((rng.random(2000) + k) / 2, rng, SD / 8) for k in range(2)])
    np.testing.assert_allclose(halves, [0.25, 0.75], atol=0.05)


def test_a_few_low_moments_that_differ_are_seen_among_fifty_of_noise() -> None:
    """Ten sites, every second with most points early: they are told apart, and more than half of the difference stays."""
    rng, found = np.random.default_rng(4), []
    for _ in range(12):
        means = fit([release(rng.random(200) ** (1 + number % 2), rng) for number in range(10)])
        found.append(np.mean(means[::2]) - np.mean(means[1::2]) if means.size else 0.0)
    assert np.sum(np.array(found) > 0.05) >= 11
    assert 0.09 < np.mean(found) < 0.19  # 1/2 - 1/3


def test_one_design_among_many_others_is_its_own() -> None:
    """Of ten sites the last has all points in the last third: it is not shrunk to the others, nor they to it."""
    rng = np.random.default_rng(5)
    silos = [release(rng.random(400), rng, SD / 2) for _ in range(9)]
    means = fit([*silos, release((2 + rng.random(400)) / 3, rng, SD / 2)])
    assert abs(means[-1] - 5 / 6) < 0.08
    assert np.abs(means[:-1] - 0.5).max() < 0.08


def test_a_site_is_judged_by_others_that_are_trusted() -> None:
    """Four sites have most points early; two that are not trusted have them late and tell nothing of the others."""
    rng = np.random.default_rng(6)
    silos = [release(rng.random(400) ** (2 if number < 4 else 0.3), rng, SD / 4) for number in range(6)]
    by_silo = {str(number): each for number, each in enumerate(silos)}
    trust = dict.fromkeys("45", 0.01)
    trusted = fit_own_designs(BASIS, pool(silos[:4]), by_silo, trust=trust)
    for name in "0123":
        assert abs(trusted[name].likely @ trusted[name].nodes.u - 1 / 3) < 0.05
