"""Membership inference against released curves stays within what (eps, delta) allows, and works where nothing protects."""

from __future__ import annotations

import numpy as np
import pytest

from dpfda.audit.attacks import Membership, _within, member_of, membership_attacks
from dpfda.curves.simulated import simulate_mean
from dpfda.silo.silo import Silo


class Quiet:
    """Hardly any noise, said to be private."""

    private = True

    def make_ready(self, size):
        pass

    def standard_normal(self, whitened):
        return np.array(whitened) + np.random.default_rng().normal(0, 0.01, whitened.size)


def attack(runs: int, epsilon: float = 1.0) -> Membership:
    return member_of(
        "test", simulate_mean(60, 5, rng=1), (0.0, 1.0), (-3.0, 5.0), epsilon=epsilon, delta=1e-5, runs=runs
    )


def test_the_attack_stays_within_the_bound() -> None:
    found = attack(10)
    assert found.within
    assert 0 <= found.allowed <= 1


@pytest.mark.slow
def test_the_attack_on_simulated_and_real_data_stays_within_the_bound() -> None:
    for found in membership_attacks(150):
        assert found.within, found


@pytest.mark.slow
def test_the_attack_succeeds_where_there_is_hardly_any_noise(monkeypatch) -> None:
    """At the claim eps = 0.5: a perfect attack over 80 runs refutes it (level 1e-9)."""
    monkeypatch.setattr(Silo, "_noise", lambda self, round_: Quiet())
    found = attack(80, epsilon=0.5)
    assert found.true_rate > 0.95
    assert found.false_rate < 0.05
    assert not found.within


def test_rates_are_judged_on_both_sides() -> None:
    assert _within(50, 50, 100, 0.1, 1e-5)
    assert not _within(1000, 0, 1000, 1.0, 1e-5)
    assert not _within(1000, 500, 1000, 0.1, 1e-5)
