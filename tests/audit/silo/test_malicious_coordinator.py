"""A coordinator that plays foul gets nothing beyond the budget, and the silo goes on serving."""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import pytest
from installed import installed

from dpfda import BudgetExceeded, Curves, Ledger, ProtocolError, Silo
from dpfda.basis.basis import make_basis
from dpfda.errors import DpfdaError
from dpfda.methods.run import run_study
from dpfda.privacy.accounting import GaussianEvent, mu_squared
from dpfda.protocol.messages import Query, Release
from dpfda.protocol.plan import Plan, Round, SiloPlan
from dpfda.protocol.plans import published_plan
from dpfda.protocol.published_constants import PublishedConstants
from dpfda.protocol.scaling import Scaling
from dpfda.protocol.statistics import LevelHistogram, ShareBelow
from dpfda.protocol.terms import SiloTerms
from dpfda.silo.silo import MOST_STUDIES
from dpfda.transports.in_process import InProcessTransport

N, R, EPSILON, DELTA = 12, 3, 1.0, 1e-5
SCALING = Scaling((-2.0, 2.0), ((1.0, 1.0),), 0.0, 2.0)


def make_silo(**options) -> Silo:
    rng = np.random.default_rng(5)
    ids = np.repeat(np.arange(N), 3)
    curves = Curves.from_long(ids, rng.uniform(size=ids.size), rng.normal(size=ids.size))
    return Silo(curves, epsilon=EPSILON, delta=DELTA, name="clinic", points_per_curve=3, **options)


def honest_plan(silo) -> Plan:
    return published_plan([silo.terms()], SCALING, domain=(0.0, 1.0), n_basis=R, constants=PublishedConstants(C_T=1.0))


def cheap_plan(rounds, share, part=None, parts=1, scaling=SCALING) -> Plan:
    silo = SiloPlan(SiloTerms("clinic", N, EPSILON, DELTA, 3), shares=((share,) * len(rounds[0]),) * len(rounds))
    planned = tuple(Round(statistics, part, parts) for statistics in rounds)
    return Plan("adaptive", "attack", make_basis("cosine", 1), 1, scaling, planned, (silo,))


def vandal_queries(count: int, rng: np.random.Generator):
    """Every kind of nonsense, 10,000 times: as bytes, as a coordinator would have to send it."""
    wild = [np.nan, np.inf, -np.inf, 1e300, -1e300, 1e7, 5e-324, 0.0]
    good = Query("honest", 0, {"iterate": np.zeros(R)}).encode()
    for number in range(count):
        kind = number % 8
        if kind == 0:
            yield Query("honest", int(rng.integers(0, 3)), {"iterate": rng.choice(wild[:6], R)}).encode()
        elif kind == 1:
            yield Query(f"other {number}", 0, {"iterate": np.zeros(R)}).encode()
        elif kind == 2:
            yield Query("honest", int(rng.integers(50, 2**31)), {"iterate": np.zeros(R)}).encode()
        elif kind == 3:
            yield Query("honest", 0, {"iterate": np.zeros(int(rng.integers(0, 40)) + R + 1)}).encode()
        elif kind == 4:
            yield Query("honest", 0, {"iterate": np.zeros(R), "mu": np.ones(1), "radius": np.ones(1)}).encode()
        elif kind == 5:
            changed = bytearray(good)
            changed[int(rng.integers(0, len(good) - 8 * R))] ^= int(rng.integers(1, 256))
            yield bytes(changed)
        elif kind == 6:
            yield rng.bytes(int(rng.integers(0, 200)))
        else:
            yield good[: int(rng.integers(0, len(good)))]


def test_10000_nonsense_queries_spend_nothing_and_an_honest_study_then_runs() -> None:
    silo = make_silo()
    plan = honest_plan(silo)
    silo.join(installed(plan), "honest")
    refused = 0
    for message in vandal_queries(10_000, np.random.default_rng(0)):
        try:
            silo.release(Query.decode(message))
        except ProtocolError:
            refused += 1
    spent = silo.ledger.spent()
    assert refused + spent.debits >= 9_990, "only a flipped bit that leaves a valid question may be answered"
    assert spent.mu_squared <= plan.event("clinic", 0).mu ** 2
    run_study(installed(plan), InProcessTransport([silo]), "after the storm")
    assert silo.ledger.spent().epsilon <= EPSILON


def test_a_greedy_coordinator_ends_at_the_budget_and_answered_rounds_stay_available() -> None:
    """Valid plans, run after run, rounds repeated and out of order, terms changed: the sum stays within (eps, delta)."""
    silo, rng = make_silo(), np.random.default_rng(1)
    answers: dict[tuple[str, int], bytes] = {}
    outcomes = {"answered": 0, "refused": 0}
    for attempt in range(1500):
        run = f"run {rng.integers(0, 60)}"
        plan = cheap_plan(
            [(ShareBelow(),)] * 4, float(rng.choice([0.01, 0.02])), *[(None, 1), (0, 2), (1, 2)][attempt % 3]
        )
        query = Query(run, int(rng.integers(0, 4)), {"iterate": rng.uniform(-1, 1, 1).round(1)})
        try:
            silo.join(installed(plan), run)
            payload = silo.release(query).encode()
        except (ProtocolError, BudgetExceeded):
            outcomes["refused"] += 1
            continue
        outcomes["answered"] += 1
        assert answers.setdefault((run, query.round), payload) == payload, "two answers to one round"
    spent = silo.ledger.spent()
    assert outcomes["answered"] > 50
    assert outcomes["refused"] > 500
    assert spent.mu_squared <= spent.budget_mu_squared * (1 + 1e-12)
    assert spent.epsilon <= EPSILON
    assert len(answers) == spent.debits
    events = {}
    for entry in silo.ledger.log():
        events.setdefault(entry.run, []).append(GaussianEvent(entry.mu, entry.event["part"]))
    assert sum(map(mu_squared, events.values())) == pytest.approx(spent.mu_squared)


def test_averaging_repeated_answers_does_not_help() -> None:
    """Thousand-fold repetition returns the same bytes: the noise does not average out."""
    silo = make_silo()
    plan = cheap_plan([(ShareBelow(),)], 1.0)
    silo.join(installed(plan), "run")
    query = Query("run", 0, {"iterate": np.zeros(1)})
    assert len({silo.release(query).encode() for _ in range(1000)}) == 1
    assert silo.ledger.spent().debits == 1


def recovered_range(silo: Silo, position: int) -> list[float]:
    """The attack: refusals of a histogram of y scaled into overflow say whether a threshold splits a curve's values."""
    hits = []
    for number, threshold in enumerate(np.linspace(-3, 3, 61)):
        scaling = Scaling((-5.0, 5.0), ((1.0, 1.0),), float(threshold), 1e-320)
        plan = cheap_plan([(LevelHistogram(8),)], 1e-20, position, N, scaling)
        run = f"curve {position} threshold {number}"
        try:
            silo.join(installed(plan), run)
            silo.release(Query(run, 0, {}))
        except DpfdaError as refusal:
            hits.append((threshold, str(refusal)))
    return hits


def test_refusals_do_not_reconstruct_curves() -> None:
    """Found by this audit: refusals once gave away the smallest and largest y of every curve, for almost no budget."""
    silo = make_silo()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        per_curve = [recovered_range(silo, position) for position in range(N)]
    assert len({tuple(hits) for hits in per_curve}) == 1, "refusals differ between curves"


def test_a_plan_that_changes_between_rounds_is_refused_even_after_a_restart(tmp_path) -> None:
    path = tmp_path / "clinic.ledger"
    silo = make_silo(ledger=path)
    plan = honest_plan(silo)
    silo.join(installed(plan), "run")
    first = silo.release(Query("run", 0, {"iterate": np.zeros(R)}))
    for change in ({"step": 0.9}, {"calibration": "exact"}, {"rounds": plan.rounds[:2]}):
        restarted = make_silo(ledger=path)
        restarted.join(installed(dataclasses.replace(plan, **change)), "run")
        with pytest.raises(ProtocolError):
            restarted.release(Query("run", 1, {"iterate": np.zeros(R)}))
        with pytest.raises(ProtocolError):
            restarted.release(Query("run", 0, {"iterate": np.zeros(R)}))
    again = make_silo(ledger=path)
    again.join(installed(plan), "run")
    assert again.release(Query("run", 0, {"iterate": np.zeros(R)})).encode() == first.encode()
    assert Ledger.open(path).spent().debits == 1


def test_thousands_of_studies_do_not_fill_the_silo_s_memory() -> None:
    silo = make_silo()
    plan = cheap_plan([(ShareBelow(),)], 1e-6)
    for number in range(3 * MOST_STUDIES):
        silo.join(installed(plan), f"run {number}")
    assert len(silo._studies) == MOST_STUDIES
    last = f"run {3 * MOST_STUDIES - 1}"
    assert isinstance(silo.release(Query(last, 0, {"iterate": np.zeros(1)})), Release)
    with pytest.raises(ProtocolError, match="not joined"):
        silo.release(Query("run 0", 0, {"iterate": np.zeros(1)}))
    silo.join(installed(plan), "run 0")
    silo.release(Query("run 0", 0, {"iterate": np.zeros(1)}))


@pytest.mark.parametrize("bins", [10**6, 10**12, 10**30])
def test_a_plan_that_asks_for_more_numbers_than_memory_is_refused(bins) -> None:
    silo = make_silo()
    with pytest.raises(DpfdaError):
        silo.join(installed(cheap_plan([(LevelHistogram(bins),)], 0.1)), "run")
    assert silo.ledger.spent().debits == 0


def test_a_plan_of_a_million_rounds_or_functions_is_refused() -> None:
    silo = make_silo()
    plan = cheap_plan([(ShareBelow(),)], 0.1)
    wide = dataclasses.replace(plan, basis=make_basis("cosine", 10**7))
    with pytest.raises(DpfdaError):
        silo.join(installed(wide), "run")
    many = dataclasses.replace(
        plan, rounds=plan.rounds * 20_000, silos=(SiloPlan(SiloTerms("clinic", N, EPSILON, DELTA, 3)),)
    )
    with pytest.raises(DpfdaError):
        silo.join(installed(many), "run")
