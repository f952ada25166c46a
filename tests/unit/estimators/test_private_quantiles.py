"""Private quantiles: near the truth when the budget is large, debited like a fit, and one share per curve."""

from __future__ import annotations

import numpy as np
import pytest

from dpfda.curves.curves import Curves
from dpfda.errors import BudgetExceeded, InvalidInput
from dpfda.estimators.private_quantiles import private_quantiles
from dpfda.privacy import Ledger
from dpfda.privacy.accounting import mu_for
from dpfda.silo.silo import Silo


def curves(n: int = 4000, seed: int = 0) -> Curves:
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(n), 3)
    return Curves.from_long(ids, rng.random(ids.size), rng.normal(50, 10, ids.size))


def test_they_are_near_the_truth() -> None:
    silo = Silo(curves(), epsilon=1.0, delta=1e-6, random_state=0)
    found = private_quantiles(silo, [0.01, 0.5, 0.99], domain=(0, 1), search=(0, 200))
    assert not found.privacy_.private
    np.testing.assert_allclose(found.values, [26.7, 50.0, 73.3], atol=4)
    assert list(found.values) == sorted(found.values)


def test_the_whole_search_costs_what_was_promised() -> None:
    ledger = Ledger.in_memory(3.0, 1e-5)
    silo = Silo(curves(50), epsilon=0.5, delta=1e-6, ledger=ledger)
    found = private_quantiles(silo, [0.05, 0.95], domain=(0, 1), search=(0, 200))
    assert found.privacy_.private
    assert ledger.spent().mu_squared == pytest.approx(mu_for(0.5, 1e-6) ** 2, rel=1e-9)
    assert ledger.spent().debits == 20


def test_a_long_curve_weighs_no_more_than_a_short_one() -> None:
    """One subject with very many large values among 99 with one small value each does not move the median."""
    ids = np.concatenate([np.arange(99), np.full(5000, 99)])
    y = np.concatenate([np.full(99, 10.0), np.full(5000, 90.0)])
    silo = Silo(Curves.from_long(ids, np.full(ids.size, 0.5), y), epsilon=50.0, delta=1e-5)
    (median,) = private_quantiles(silo, [0.5], domain=(0, 1), search=(0, 100)).values
    assert median == pytest.approx(10.0, abs=0.2)


def test_it_is_refused_beyond_the_budget() -> None:
    silo = Silo(curves(50), epsilon=1.0, delta=1e-5, ledger=Ledger.in_memory(0.5, 1e-5))
    with pytest.raises(BudgetExceeded):
        private_quantiles(silo, [0.5], domain=(0, 1), search=(0, 200))
    assert silo.ledger.spent().debits == 0


@pytest.mark.parametrize("levels", [[], [0.5, 0.5], [0.0], [1.5]])
def test_levels_are_checked(levels) -> None:
    with pytest.raises(InvalidInput, match="levels"):
        private_quantiles(Silo(curves(5), epsilon=1.0, delta=1e-5), levels, domain=(0, 1), search=(0, 1))
