"""The audit passes on this library, and finds every mistake that is put into it on purpose."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from dpfda.audit.broken import BROKEN
from dpfda.audit.cases import default_arrays, make_silo, ordinary_curves, single_cases, study_cases
from dpfda.audit.command import FULL, QUICK, Verdict, audit
from dpfda.audit.findings import Violation
from dpfda.audit.hypothesis_tests import FALSE_ALARM, LEVEL, TESTS, Separation, dependent, separation, wrong_size
from dpfda.audit.report import markdown, summary
from dpfda.audit.search import TOLERANCE, Pair, random_subject, whitened_change
from dpfda.cli.main import run
from dpfda.privacy.accounting import mu_for
from dpfda.protocol.plans.registry import make_plan
from dpfda.protocol.statistics import KINDS

NAMED_IN_THE_ISSUE = 20


@pytest.fixture(scope="module")
def verdict():
    return audit(QUICK, seed=20260101)


def test_no_claim_is_refuted(verdict) -> None:
    assert verdict.violations == []


def test_every_statistic_and_whole_studies_are_audited(verdict) -> None:
    names = [result.name for result in verdict.results]
    assert set(KINDS) <= set(names)
    assert sum("transcript" in name for name in names) == len(study_cases()) >= 5
    assert {"published mean", "published VCM"} <= set(names)


def test_the_search_attains_nearly_the_whole_sensitivity(verdict) -> None:
    """Else the audit would be blind. Moments of designs and of covariates cannot be opposite, so theirs is smaller."""
    attained = {result.name: result.attained for result in verdict.results}
    for name in KINDS:
        assert attained[name] > (0.65 if name.endswith("-moments") else 0.99), name


@pytest.mark.parametrize("name", KINDS)
def test_a_curve_may_become_one_without_points(name) -> None:
    """The search tries it for every measure; in the histogram it uses all of the sensitivity, as any other move does."""
    case = next(case for case in single_cases() if case.name == name)
    rng = np.random.default_rng(5)
    subjects = [random_subject(case.columns, rng) for _ in range(100)]
    empty, full = (next(each for each in subjects if (each.x.size > 0) is wanted) for wanted in (False, True))
    base = ordinary_curves(case.n, case.columns, rng)
    plan = make_plan(case.terms(make_silo(base)))
    pair = Pair(case, base, empty, replace(full, y=np.ones(full.x.size)), default_arrays(plan, 0))
    change = whitened_change(pair, plan)
    assert change <= 1 + TOLERANCE
    if name == "level-histogram":
        assert change == pytest.approx(1, abs=1e-6)


def test_lower_bounds_stay_below_the_claims(verdict) -> None:
    for result in verdict.results:
        assert result.epsilon_found >= 0
        assert not result.test.violates(result.mu)


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_library_is_caught(verdict, name) -> None:
    assert verdict.caught[name] is not None


def test_all_mistakes_that_the_issue_names_are_there() -> None:
    assert len(BROKEN) >= NAMED_IN_THE_ISSUE


def test_the_page_says_it_all(verdict) -> None:
    page = markdown(verdict)
    assert summary(verdict) in page
    assert f"caught: **{len(BROKEN)} of {len(BROKEN)}**" in page
    assert f"{FALSE_ALARM:g}" in page


# ---------------------------------------------------------------- the tests behind the verdict


def test_the_levels_add_up(verdict) -> None:
    """A release: sizes on two sides (all, by entry), freshness, last bits, claim. A study: three per round, claim."""
    studies = sum("transcript" in result.name for result in verdict.results)
    releases = len(verdict.results) - studies
    assert releases * (2 * 2 + 3) + studies * (3 * 20 + 1) + 3 * 2 <= TESTS
    assert pytest.approx(FALSE_ALARM) == LEVEL * TESTS


@pytest.mark.parametrize(("epsilon", "runs", "power"), [(4.0, FULL.strong_runs, 0.99)])
def test_power_against_noise_that_is_30_percent_too_small(epsilon, runs, power) -> None:
    """Computed, not simulated: the claim is refuted with this probability."""
    mu = mu_for(epsilon, 1e-5)
    rate = stats.norm.cdf(mu / 0.7 / 2)
    rng = np.random.default_rng(0)
    hits, alarms = rng.binomial(runs, rate, 400), rng.binomial(runs, 1 - rate, 400)
    refuted = [Separation(int(h), int(a), runs).violates(mu) for h, a in zip(hits, alarms, strict=True)]
    assert np.mean(refuted) >= power


def test_a_right_claim_is_not_refuted_at_a_much_looser_level() -> None:
    """At level 1e-3 a mechanism that uses its whole mu is refuted in less than 1 of 200 audits (expected: 0.2)."""
    mu, runs, rng = 0.9, 2000, np.random.default_rng(1)
    tests = [
        separation(rng.normal(size=runs) * mu - mu**2 / 2, rng.normal(size=runs) * mu + mu**2 / 2) for _ in range(200)
    ]
    assert sum(test.mu_at_least(1e-3) > mu for test in tests) <= 2
    assert np.median([test.mu_at_least(0.05) for test in tests]) > 0.8 * mu


def test_separation_without_any_hit_or_with_all() -> None:
    assert Separation(0, 0, 10).mu_at_least(0.05) == 0
    perfect = Separation(1000, 0, 1000).mu_at_least(0.05)
    assert math.isfinite(perfect)
    assert perfect > 4


def test_size_and_dependence_tests_fail_when_they_should() -> None:
    noise = np.random.default_rng(2).normal(size=(300, 3))
    assert wrong_size(noise) == []
    assert wrong_size(0.7 * noise)
    lame = noise.copy()
    lame[:, 1] = 0
    assert any("entry 1" in seen for seen in wrong_size(lame))
    assert dependent(noise[:, 0], noise[:, 0])
    assert not dependent(noise[:, 0], noise[:, 1])


# ---------------------------------------------------------------- the command


@pytest.mark.parametrize(("refusals", "code"), [([], 0), ([Violation("refusals", "somewhere", "they differ")], 1)])
def test_the_command_writes_its_page_and_fails_when_a_claim_is_refuted(
    refusals, code, tmp_path, monkeypatch, capsys
) -> None:
    verdict = Verdict("quick", refusals=refusals, caught={"some mistake": Violation("check", "place", "seen")})
    monkeypatch.setattr("dpfda.audit.command.audit", lambda effort, say: verdict)
    page = tmp_path / "audit.md"
    assert run(["audit", "--quick", "--output", str(page)]) == code
    assert markdown(verdict).splitlines()[4] == page.read_text().splitlines()[4]
    assert ("PASSED" if code == 0 else "FAILED") in capsys.readouterr().out
