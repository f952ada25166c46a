"""A silo of several outcomes: what the ledger writes is what is spent, and one subject moves all releases by no more."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpfda import Curves, Ledger, Outcomes, ProtocolError, Silo
from dpfda.errors import BudgetExceeded, SourceError
from dpfda.methods.run import run_outcomes
from dpfda.privacy.accounting import mu_for, mu_squared
from dpfda.privacy.gaussian import prepare_release
from dpfda.protocol.messages import Query
from dpfda.protocol.plans import make_plan
from dpfda.protocol.statement import statement
from dpfda.protocol.terms import CovariateTerms, OutcomeTerms, StudyTerms
from dpfda.silo.examination import Examiner
from dpfda.transports.in_process import InProcessTransport

EPSILON, DELTA = 1.0, 1e-5
BOUNDS = {"sbp": (-2.0, 2.0), "dbp": (0.0, 1.0)}


def draw(n=300, seed=1, columns=1):
    """Both outcomes of n subjects, at the same points; with two columns a group."""
    rng = np.random.default_rng(seed)
    ids, x = np.repeat(np.arange(n), 4), rng.uniform(size=4 * n)
    design = np.column_stack([np.ones(n), rng.integers(0, 2, n)])[ids] if columns == 2 else None
    y = {"sbp": np.sin(3 * x) + rng.normal(0, 0.4, x.size), "dbp": 0.5 + 0.2 * x + rng.normal(0, 0.1, x.size)}
    return Outcomes({name: Curves.from_long(ids, x, values, design) for name, values in y.items()})


def make_terms(silo, **fields):
    further = (OutcomeTerms("dbp", BOUNDS["dbp"]),)
    fields |= {"covariates": (CovariateTerms("group", (0, 1)),)} if silo.n_coefficients == 2 else {}
    return StudyTerms(
        "adaptive", (0, 1), BOUNDS["sbp"], (silo.terms(),), y="sbp", n_basis=5, further=further,
        **{"own_visits": silo.own_visits} | fields,
    )  # fmt: skip


class Recording(InProcessTransport):
    """Keeps every question."""

    def __init__(self, silos):
        super().__init__(silos)
        self.asked = []

    def gather(self, query):
        self.asked.append(query)
        return super().gather(query)


def replace_first(outcomes, x, y, design):
    """The same outcomes with another first subject: the points x, the values y by outcome, one design vector."""
    changed = {}
    for name in outcomes.outcomes:
        curves = outcomes[name]
        start = curves.offsets[1]
        offsets = np.concatenate([[0], curves.offsets[1:] - start + x.size])
        changed[name] = Curves(
            np.concatenate([x, curves.x[start:]]), np.concatenate([y[name], curves.y[start:]]), offsets,
            np.vstack([design, curves.design[1:]]),
        )  # fmt: skip
    return Outcomes(changed)


def test_the_ledger_holds_one_run_whose_debits_are_the_plan_and_the_statement(tmp_path) -> None:
    """Every round is one debit; their sum, the plan's price and what the statement says are the same number."""
    ledger = Ledger.create(tmp_path / "ledger.sqlite", 3.0, DELTA, "test")
    silo = Silo(draw(), epsilon=EPSILON, delta=DELTA, name="clinic", ledger=ledger)
    terms = make_terms(silo)
    plan = make_plan(terms)
    run_outcomes(terms, InProcessTransport([silo]), "both")
    entries = ledger.log()
    assert {entry.run for entry in entries} == {"both"}
    assert [entry.round for entry in entries] == list(range(14))
    assert sum(entry.event["mu"] ** 2 for entry in entries) == pytest.approx(ledger.spent().mu_squared, rel=1e-12)
    assert ledger.spent().mu_squared == pytest.approx(mu_squared(plan.events("clinic")), rel=1e-12)
    assert statement(plan, private=True).silos[0].mu ** 2 == pytest.approx(ledger.spent().mu_squared, rel=1e-12)
    assert ledger.spent().mu_squared <= mu_for(EPSILON, DELTA) ** 2
    run_outcomes(terms, InProcessTransport([silo]), "both")
    assert len(ledger.log()) == 14  # the same run again is replayed, free of charge


def test_a_silo_without_room_for_all_outcomes_refuses_before_the_first_is_asked() -> None:
    """What is left would do for the rounds of one outcome."""
    ledger = Ledger.in_memory(EPSILON, DELTA)
    silo = Silo(draw(), epsilon=0.8, delta=DELTA, name="clinic", ledger=ledger)
    terms = make_terms(silo)
    run_outcomes(terms, InProcessTransport([silo]), "first")
    before = ledger.spent()
    left = before.budget_mu_squared - before.mu_squared
    assert mu_squared(make_plan(terms).of_outcome(1).events("clinic")) <= left
    with pytest.raises(BudgetExceeded):
        run_outcomes(terms, InProcessTransport([silo]), "second")
    assert ledger.spent() == before


@pytest.mark.parametrize("columns", [1, 2])
def test_one_subject_moves_all_releases_by_no_more_than_is_paid_for(columns) -> None:
    """Neighbours that differ in a subject with both outcomes: the squared whitened changes of all rounds add up to less
    than the budget, and to more than the part of one outcome alone, which would not have paid for it.

    The subjects are extreme: everything at one end of the bounds against everything at the other.
    """
    base = draw(columns=columns)
    silo = Silo(base, epsilon=EPSILON, delta=DELTA, name="clinic")
    terms, transport = make_terms(silo), Recording([silo])
    run_outcomes(terms, transport, "run")
    plan = make_plan(terms)
    ends = np.array([0.0, 0.0]), np.array([1.0, 1.0])
    designs = np.ones((2, columns)) if columns == 1 else np.array([[1.0, 0.0], [1.0, 1.0]])
    neighbours = [
        replace_first(base, x, {name: np.full(2, BOUNDS[name][side]) for name in BOUNDS}, designs[side])
        for side, x in enumerate(ends)
    ]
    examiners = [Examiner(each, plan, name="clinic") for each in neighbours]
    moved = np.zeros(len(plan.rounds))
    for index, query in enumerate(transport.asked):
        mu = plan.event("clinic", index).mu
        sums = [examiner.bounded_sum(query) for examiner in examiners]
        one, other = (prepare_release(each.total, each.sensitivity, mu).whitened for each in sums)
        moved[index] = np.linalg.norm(one - other)
        assert moved[index] <= mu * (1 + 1e-9)
    spent = mu_squared(plan.events("clinic"))
    assert (moved**2).sum() <= spent <= mu_for(EPSILON, DELTA) ** 2
    largest = max(mu_squared(plan.of_outcome(place).events("clinic")) for place in range(2))
    assert (moved**2).sum() > 1.2 * largest


def test_a_subject_who_differs_in_one_outcome_moves_the_rounds_of_that_outcome_only() -> None:
    base = draw()
    y = {name: base[name].y[:4].copy() for name in base.outcomes}
    other = replace_first(base, base["sbp"].x[:4], y | {"dbp": 1 - y["dbp"]}, np.ones((1, 1)))
    silo = Silo(base, epsilon=EPSILON, delta=DELTA, name="clinic")
    terms, transport = make_terms(silo), Recording([silo])
    run_outcomes(terms, transport, "run")
    plan = make_plan(terms)
    for query in transport.asked:
        sums = [Examiner(each, plan, name="clinic").bounded_sum(query).total for each in (base, other)]
        assert np.array_equal(*sums) == (plan.locate(query.round)[0] == 0)


@pytest.mark.parametrize(
    "change",
    [
        {"further": ()},
        {"further": (OutcomeTerms("pulse", (0, 1)),)},
        {"further": (OutcomeTerms("dbp", (0, 1)), OutcomeTerms("more", (0, 1)))},
        {"own_visits": True},
        {"y": "systolic"},
    ],
)
def test_terms_must_name_the_outcomes_that_the_silo_has(change) -> None:
    silo = Silo(draw(30), epsilon=EPSILON, delta=DELTA, name="clinic")
    with pytest.raises(ProtocolError, match="misstate the outcomes"):
        silo.join(replace(make_terms(silo), **change), "run")


def test_terms_of_several_outcomes_are_refused_by_a_silo_with_one() -> None:
    silo = Silo(draw(30)["sbp"], epsilon=EPSILON, delta=DELTA, name="clinic")
    with pytest.raises(ProtocolError, match="misstate the outcomes"):
        silo.join(make_terms(silo), "run")


def test_a_run_goes_on_with_the_same_values_of_every_outcome_only(tmp_path) -> None:
    ledger = Ledger.create(tmp_path / "ledger.sqlite", 3.0, DELTA, "test")
    silo = Silo(draw(50), epsilon=EPSILON, delta=DELTA, name="clinic", ledger=ledger)
    terms = make_terms(silo)
    silo.join(terms, "run")
    silo.release(Query("run", 0, {}))
    base = draw(50)
    changed = Outcomes(
        {
            "sbp": base["sbp"],
            "dbp": Curves(base["dbp"].x, base["dbp"].y + 0.01, base["dbp"].offsets, base["dbp"].design),
        }
    )
    other = Silo(changed, epsilon=EPSILON, delta=DELTA, name="clinic", ledger=ledger)
    with pytest.raises(SourceError, match="not those with which this run began"):
        other.join(terms, "run")
