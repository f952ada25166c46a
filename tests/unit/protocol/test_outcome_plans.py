"""Terms and plans of several outcomes: one budget, divided exactly; and nothing new for one outcome."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from dpfda.errors import InvalidInput, ProtocolError
from dpfda.privacy.accounting import gaussian_epsilon, mu_for, mu_squared
from dpfda.protocol.plan import Plan, PlannedOutcome, Round
from dpfda.protocol.plans import make_plan
from dpfda.protocol.plans.adaptive import OF_VISITS, SPENT
from dpfda.protocol.statement import SUBJECT, statement
from dpfda.protocol.statistics import ClippedGradient, CovariateMoments, DesignMoments
from dpfda.protocol.terms import MOST_OUTCOMES, CovariateTerms, OutcomeTerms, SiloTerms, StudyTerms

SILOS = SiloTerms("north", 2000, 1.0, 1e-5), SiloTerms("south", 300, 0.5, 1e-6)
SECOND, THIRD = OutcomeTerms("dbp", (30, 150)), OutcomeTerms("ill", (0, 1), "binary")
GROUP = CovariateTerms("male", (0, 1))


def make_terms(further=(SECOND,), **fields):
    return StudyTerms("adaptive", (20, 80), (60, 250), **{"silos": SILOS} | fields, y="sbp", further=further)


def test_terms_of_one_outcome_are_written_as_they_always_were() -> None:
    """No field of several outcomes is in them, and terms that write a default are refused."""
    terms = make_terms(further=())
    fields = json.loads(terms.encode())
    assert not {"further", "own_visits"} & fields.keys()
    for name, default in (("further", []), ("own_visits", False)):
        with pytest.raises(ProtocolError, match="canonical"):
            StudyTerms.decode(json.dumps(fields | {name: default}, sort_keys=True, separators=(",", ":")).encode())
    plan = make_plan(terms).to_dict()
    assert "outcomes" not in plan
    assert all("outcome" not in planned for planned in plan["rounds"])


@pytest.mark.parametrize("own_visits", [False, True])
def test_terms_of_several_outcomes_are_read_back(own_visits) -> None:
    terms = make_terms((SECOND, THIRD), own_visits=own_visits)
    assert StudyTerms.decode(terms.encode()) == terms
    assert [each.y for each in terms.outcomes] == ["sbp", "dbp", "ill"]
    alone = terms.of_outcome(2)
    assert (alone.y, alone.y_bounds, alone.outcome, alone.further) == ("ill", (0, 1), "binary", ())


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"further": (replace(SECOND, y="sbp"),)}, "names of outcomes must differ"),
        ({"further": (), "own_visits": True}, "own_visits must be False"),
        ({"further": tuple(OutcomeTerms(f"y{k}", (0, 1)) for k in range(MOST_OUTCOMES))}, "further must hold"),
        ({"method": "published"}, "is for one outcome"),
        ({"method": "quantiles", "levels": (0.5,), "silos": SILOS[:1]}, "is for one outcome"),
    ],
)
def test_impossible_terms_are_refused(change, sentence) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        make_plan(replace(make_terms(), **change))


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"outcome": "count", "y_bounds": (-1, 5)}, "must not be negative"),
        ({"transform": "log", "y_bounds": (0, 5)}, "log"),
        ({"y_bounds": (5, 0)}, "y_bounds"),
    ],
)
def test_impossible_outcomes_are_refused(fields, sentence) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        OutcomeTerms(**{"y": "dbp", "y_bounds": (30, 150)} | fields)


@pytest.mark.parametrize("covariates", [(), (GROUP,)])
@pytest.mark.parametrize("own_visits", [False, True])
@pytest.mark.parametrize("count", [2, 3, 8])
def test_the_outcomes_together_cost_what_one_study_may(count, own_visits, covariates) -> None:
    """For every silo: the parts of the outcomes are the whole, and the whole is SPENT of the promise, to rounding."""
    further = tuple(OutcomeTerms(f"y{k}", (0, 1)) for k in range(1, count))
    plan = make_plan(make_terms(further, own_visits=own_visits, covariates=covariates))
    for silo in SILOS:
        promised = mu_for(silo.epsilon, silo.delta) ** 2
        parts = [mu_squared(plan.of_outcome(place).events(silo.name)) for place in range(count)]
        assert mu_squared(plan.events(silo.name)) == pytest.approx(SPENT * promised, rel=1e-12)
        assert sum(parts) == pytest.approx(SPENT * promised, rel=1e-12)
        assert min(parts) > 0.5 / count * SPENT * promised


def test_what_outcomes_share_is_asked_for_once() -> None:
    terms = replace(make_terms((SECOND, THIRD), covariates=(GROUP,)), weight="visit", visit_cap=5)
    shared, own = make_plan(terms), make_plan(replace(terms, own_visits=True))
    for kind in OF_VISITS:
        assert [count_kind(plan, kind) for plan in (shared, own)] == [1, 3]
    assert [count_kind(plan, ClippedGradient) for plan in (shared, own)] == [9, 9]
    assert len(shared.rounds) == len(own.rounds) == 21


def count_kind(plan, kind):
    return sum(isinstance(each, kind) for planned in plan.rounds for each in planned.statistics)


def test_sharing_leaves_more_for_every_outcome_than_its_part_alone() -> None:
    """The last gradient of each outcome, against that of a plan without sharing; and the design is better known, too."""
    terms = make_terms(covariates=(GROUP,))
    shared, own = make_plan(terms), make_plan(replace(terms, own_visits=True))
    for plan_place in (6, 13):
        assert shared.event("north", plan_place).mu > 1.02 * own.event("north", plan_place).mu
    for kind, index in ((DesignMoments, 0), (CovariateMoments, 1)):
        number = [isinstance(each, kind) for each in shared.rounds[index].statistics].index(True)
        assert shared.statistic_mus("north", index)[number] > own.statistic_mus("north", index)[number]


def test_rounds_know_their_outcome() -> None:
    plan = make_plan(make_terms())
    assert [plan.locate(index) for index in (0, 6, 7, 13)] == [(0, 0), (0, 6), (1, 0), (1, 6)]
    assert plan.of_outcome(1).scaling.y_bounds == (30, 150)
    assert plan.event("north", 13).label == "round 13: clipped-gradient of dbp"
    for place in range(2):
        for own, planned in enumerate(plan.of_outcome(place).rounds):
            index = [plan.locate(k) for k in range(14)].index((place, own))
            assert plan.rounds[index].statistics == planned.statistics
            assert plan.event("south", index).mu == plan.of_outcome(place).event("south", own).mu


def test_batches_are_refused_with_several_outcomes() -> None:
    """They would be priced as disjoint, while a subject's curves of two outcomes need not lie in the same batch."""
    plan = make_plan(make_terms())
    with pytest.raises(InvalidInput, match="all curves"):
        replace(plan, rounds=(Round(plan.rounds[0].statistics, part=0, parts=2), *plan.rounds[1:]))


def test_a_plan_that_contradicts_itself_is_refused() -> None:
    plan = make_plan(make_terms())
    with pytest.raises(InvalidInput, match="does not have"):
        replace(plan, rounds=(*plan.rounds[:-1], replace(plan.rounds[-1], outcome=2)))
    with pytest.raises(InvalidInput, match="first outcome"):
        replace(plan, outcomes=plan.outcomes[::-1])
    assert isinstance(plan, Plan)
    assert all(isinstance(each, PlannedOutcome) for each in plan.outcomes)


def test_the_statement_is_one_for_all_outcomes() -> None:
    terms = make_terms((replace(SECOND, transform="log"), THIRD))
    made = statement(make_plan(terms), private=True)
    assert made.unit == SUBJECT
    text = str(made)
    assert "one subject with all outcomes" in text
    assert "adaptive mean of 3 outcomes, 21 rounds" in text
    assert "north: 2000 subjects, (epsilon, delta) = (1, 1e-05) for everything released" in text
    for fact in ("y_bounds of sbp = (60.0, 250.0)", "transform of dbp = log", "outcome of ill = binary"):
        assert fact in text


@pytest.mark.parametrize("covariates", [(), (GROUP,)])
@pytest.mark.parametrize("count", [2, 5])
@pytest.mark.parametrize("n", [100, 2000, 200_000])
def test_every_release_has_at_least_the_budget_that_it_has_in_a_fit_of_its_own(n, count, covariates) -> None:
    """Against fits with mu / sqrt(K) each, which compose to the same promise; the last gradient has more."""
    epsilon = gaussian_epsilon(mu_for(1.0, 1e-5) / math.sqrt(count), 1e-5)
    together = make_plan(
        make_terms(
            tuple(OutcomeTerms(f"y{k}", (0, 1)) for k in range(1, count)),
            silos=(SiloTerms("a", n, 1.0, 1e-5),),
            covariates=covariates,
        )
    )
    alone = make_plan(make_terms((), silos=(SiloTerms("a", n, epsilon, 1e-5),), covariates=covariates))
    for index in range(len(alone.rounds)):
        for ours, theirs in zip(together.statistic_mus("a", index), alone.statistic_mus("a", index), strict=True):
            assert ours >= theirs * (1 - 1e-9)
    gain = together.event("a", 6).mu / alone.event("a", 6).mu
    assert gain > (1.05 if n <= 2000 else 1.002)
