"""The planner: its figures are the forecast's, its baseline has no privacy in it, its sentences agree with each other."""

from __future__ import annotations

import itertools
import math
import re

import pytest

from dpfda import InvalidInput, PrivateMean
from dpfda.planning.decisions import TIMES, decide, even_out, leave_out, reach
from dpfda.planning.expected_error import ExpectedError, expected_error
from dpfda.planning.planned_study import PlannedStudy
from dpfda.planning.theory import SiteBudget, compare_problems, upper_conditions
from dpfda.planning.words import LITTLE, MUCH, TERMS, explain
from dpfda.protocol.terms import SiloTerms

BOUNDS, GUESSES = (-4.0, 5.0), (("spread", 0.5), ("noise_sd", 0.5), ("signal", 0.6))
STUDY = PlannedStudy(n=200, m=6, S=5, epsilon=1.0, delta=1e-5, alpha=2.0, d=0, y_bounds=BOUNDS, guesses=GUESSES)
SITES = (SiloTerms("a", 600, 1.0, 1e-5), SiloTerms("b", 300, 0.5, 1e-6), SiloTerms("c", 100, 0.1, 1e-5))


def forecast(n, S, epsilon=1.0, delta=1e-5):
    mean = PrivateMean(epsilon, delta, domain=(0, 1), y_bounds=BOUNDS)
    return mean.forecast(n=n, m=6, S=S, **dict(GUESSES))


def test_every_row_of_the_table_is_a_forecast():
    for row in decide(STUDY):
        for times, error in zip(TIMES, row.errors, strict=True):
            if row.model == "central":
                assert error.total == pytest.approx(forecast(1000, 1, times).total)
            elif row.model == "federated":
                assert error.total == pytest.approx(forecast(1000 // row.sites, row.sites, times).total)


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_local_privacy_is_the_forecast_of_one_subject_at_each_site(epsilon):
    for subjects in (30, 120, 300):
        study = PlannedStudy(subjects, 6, 1, epsilon, 1e-5, 2.0, 0, BOUNDS, GUESSES)
        assert study.local().total == pytest.approx(forecast(1, subjects, epsilon).total, rel=0.2)


def test_the_baseline_has_no_trace_of_privacy():
    free = STUDY.without_privacy()
    assert free.privacy < 0.03 * free.total  # what the doubt about clipping leaves
    for epsilon in (0.1, 1.0):
        study = PlannedStudy(1000, 6, 1, epsilon, 1e-5, 2.0, 0, BOUNDS, GUESSES)
        assert study.without_privacy().total == pytest.approx(free.total)
        assert study.without_privacy().total < study.expected().bias + study.expected().sampling


def test_forecasts_that_rise_by_chance_share_their_mean():
    totals = [4.0, 1.0, 3.0, 2.0, 0.5]
    found = even_out([ExpectedError(bias=0.1, sampling=0.2, privacy=total - 0.3) for total in totals])
    assert [error.total for error in found] == pytest.approx([4.0, 2.0, 2.0, 2.0, 0.5])
    assert all((error.bias, error.sampling) == (0.1, 0.2) for error in found)


def test_models_are_ordered_and_larger_budgets_help():
    rows = decide(STUDY)
    assert [row.model for row in rows] == ["none", "central", *["federated"] * (len(rows) - 3), "local"]
    for worse, better in itertools.pairwise(reversed(rows)):
        assert all(a >= b for a, b in zip(worse.distances, better.distances, strict=True))
    for row in rows:
        assert all(after <= before + 1e-15 for before, after in itertools.pairwise(row.distances))


def test_unequal_sites_keep_their_promises():
    study = PlannedStudy(333, 6, 3, 0.8, 1e-5, 2.0, 0, BOUNDS, GUESSES, SITES)
    assert study.expected().total == pytest.approx(forecast(list(SITES), 3).total)
    pooled = expected_error(1000, 6, epsilon=0.1, delta=1e-6, y_bounds=BOUNDS, **dict(GUESSES))
    assert study.central().total == pytest.approx(pooled.total)
    without = leave_out(study)
    assert without["a"] > without["b"] > without["c"]
    assert without["c"] < 1.05
    with pytest.raises(InvalidInput, match="budgets of further sites are unknown"):
        study.federated(7)


def test_a_target_is_reached_and_not_by_much_more():
    target = reach(STUDY, math.sqrt(STUDY.expected().total) / 1.2)
    assert STUDY.expected(epsilon=target.epsilon).total <= target.distance**2
    assert STUDY.expected(epsilon=target.epsilon / 1.01).total > target.distance**2
    assert STUDY.expected(n=target.n).total <= target.distance**2


@pytest.mark.parametrize("regime", [None, *TERMS])
@pytest.mark.parametrize("privacy", [0.01, 0.49, 0.59, 0.99])
def test_sentences_agree_whatever_theory_says(regime, privacy):
    parts = {"privacy": privacy, "sampling": 0.8 * (1 - privacy), "bias": 0.2 * (1 - privacy)}
    said = " ".join(explain(parts, [("twice the budget", 1 - privacy / 2), ("twice the visits", 0.99)], regime))
    assert f"{privacy:.0%} privacy noise" in said
    assert "bottleneck" not in said
    factor = 1 - privacy / 2
    group = "much" if factor < MUCH else "some" if factor < LITTLE else "next to nothing"
    assert re.search(rf"{group} from [^;]*twice the budget", said)
    if regime is not None:
        agrees = regime.startswith("private") == (privacy >= 0.5)
        assert ("At your size it is the same" in said) == agrees
        assert ("At your size it is not" in said) != agrees


def test_earlier_results_beside_the_functional_mean():
    """The paper's table of comparison, typed in by hand."""
    n, m, S, epsilon, a = 400.0, 7.0, 5.0, 0.3, 2.0
    functional, univariate, regression = compare_problems("fdp", n=n, m=m, alpha=a, S=S, epsilon=epsilon)
    private = S * n**2 * epsilon**2
    assert univariate.value == pytest.approx(1 / (S * n) + 1 / private)
    plain = (S * n * m) ** (-2 * a / (2 * a + 1))
    assert regression.value == pytest.approx(plain + (private * m**2) ** (-a / (a + 1)))
    assert functional.value == pytest.approx(plain + (private * m) ** (-a / (a + 1)) + univariate.value)
    assert compare_problems("cdp", n=n, m=m, alpha=a, epsilon=epsilon)[1].value == pytest.approx(
        1 / n + 1 / (n * epsilon) ** 2
    )
    with pytest.raises(InvalidInput, match="privacy must be"):
        compare_problems("ldp", n=n, m=m, alpha=a, epsilon=epsilon)


def test_conditions_of_the_upper_bounds_by_hand():
    (one,) = upper_conditions("mean", [SiteBudget(500, 1.0)], m=6, r=3, eta=0.05)
    T = 4 * math.log(500)
    assert one.left == pytest.approx((3 + math.log(T / 0.05)) * math.log(500))
    assert one.right == 3000
    first, second = upper_conditions("mean", [SiteBudget(500, 1.0)] * 4, m=6, r=3)
    T = 4 * math.log(2000)
    assert first.right == pytest.approx(1 / (4 * T * 0.25**2 / 3000))
    assert second.right == pytest.approx(1 / (T * 0.25 / 3000))
    assert first.left == pytest.approx(3 * math.log(T * 3 / 0.05) ** 2)
    three = upper_conditions("vcm", [SiteBudget(500, 1.0)] * 4, m=6, r=3, d=2)
    assert len(three) == 3
    assert not upper_conditions("mean", [SiteBudget(10, 1.0)], m=1, r=3)[0].holds
    with pytest.raises(InvalidInput, match="eta"):
        upper_conditions("mean", [SiteBudget(500, 1.0)], m=6, r=3, eta=0.2)
