"""Silos with designs of their own."""

from __future__ import annotations

import numpy as np
from adaptive_pieces import exact_moments

from dpfda.basis.basis import make_basis
from dpfda.methods.adaptive.pooling import Pooled
from dpfda.methods.adaptive.silo_designs import shrink_moments


def test_designs_are_kept_apart_only_where_they_clearly_differ() -> None:
    """Two uniform designs and noise: one of 200 may differ by 3 sd of a chi-square; halves always do."""
    basis, rng = make_basis("fourier", 5), np.random.default_rng(3)
    alike = 0
    for _ in range(200):
        noisy = {name: exact_moments(basis, rng.random(2000), 0.05) for name in "ab"}
        noisy = {k: Pooled(v.values + 0.05 * rng.standard_normal(v.sd.size), v.sd, v.n) for k, v in noisy.items()}
        pooled = Pooled((noisy["a"].values + noisy["b"].values) / 2, noisy["a"].sd / np.sqrt(2), 4000.0)
        alike += not shrink_moments(pooled, noisy)
    assert alike >= 190
    halves = {name: exact_moments(basis, (rng.random(2000) + k) / 2, 0.01) for k, name in enumerate("ab")}
    pooled = Pooled((halves["a"].values + halves["b"].values) / 2, halves["a"].sd / np.sqrt(2), 4000.0)
    found = shrink_moments(pooled, halves)
    for name, own in halves.items():
        np.testing.assert_allclose(found[name].values, own.values, atol=0.05)
        assert (found[name].sd >= 0.5 * own.sd).all()


def test_a_few_low_moments_that_differ_are_seen_among_fifty_of_noise() -> None:
    """Ten sites, every second with most points early: one octave shows it, a statistic of all moments would hide it."""
    basis, rng = make_basis("free-ends", 16), np.random.default_rng(4)
    found = hidden = 0
    sd = 0.08 * np.sqrt(np.arange(1, basis.moment_count + 1))  # as released: high moments have more noise
    for _ in range(20):
        sites = {}
        for number in range(10):
            exact = exact_moments(basis, rng.random(200) ** (1 + number % 2), 0.0)
            sites[str(number)] = Pooled(exact.values + sd * rng.standard_normal(sd.size), sd, exact.n)
        values = np.array([own.values for own in sites.values()])
        own = shrink_moments(Pooled(values.mean(axis=0), sd / np.sqrt(10), 2000.0), sites)
        found += bool(own) and np.mean([(-1) ** k * own[str(k)].values[0] for k in range(10)]) < -0.05
        freedom = 9 * sd.size
        chi_square = ((values - values.mean(axis=0)) ** 2 / (sd**2 + 0.3 / 200)).sum()
        hidden += chi_square < freedom + 3 * np.sqrt(2 * freedom)
    assert found >= 18
    assert hidden >= 12
