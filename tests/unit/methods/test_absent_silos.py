"""A silo that misses a round, whichever it is, answers the later ones: the study ends, and its result can be shown."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dpfda import Silo
from dpfda.curves.simulated import simulate_mean, simulate_vcm
from dpfda.federation.study import make_estimator
from dpfda.methods.adaptive.odd_sites import FirstTraits, Traits, judge_sites
from dpfda.methods.run import make_coordinator, run_study
from dpfda.protocol.messages import Query
from dpfda.protocol.plans.registry import make_plan
from dpfda.protocol.statement import statement
from dpfda.protocol.terms import CovariateTerms, SiloTerms, StudyTerms
from dpfda.transports.in_process import InProcessTransport

SIZES = (300, 240, 360, 280)
COVARIATES = {"mean": (), "vcm": (CovariateTerms("age", (-1.0, 1.0)), CovariateTerms("dose", (-1.0, 1.0)))}


class WithAbsences(InProcessTransport):
    """As a server has it: a silo is not asked in the rounds that it misses."""

    def __init__(self, silos, missed):
        super().__init__(silos)
        self._missed = missed

    def gather(self, query):
        everyone = self._members
        self._members = [silo for silo in everyone if (silo.name, query.round) not in self._missed]
        try:
            return super().gather(query)
        finally:
            self._members = everyone


def make_terms(model, count, **fields):
    silos = tuple(SiloTerms(f"s{k}", n, 3.0, 1e-5, 5.0) for k, n in enumerate(SIZES[:count]))
    return StudyTerms("adaptive", (0.0, 1.0), (-4.0, 4.0), silos, COVARIATES[model], n_basis=4, **fields)


def simulate(model, n, seed):
    return simulate_mean(n, 5, rng=seed) if model == "mean" else simulate_vcm(n, 5, d=2, rng=seed)


def run(terms, missed, change=lambda name, curves: curves):
    """The study's outcome, with silos away in the given rounds."""
    silos = []
    for k, each in enumerate(terms.silos):
        curves = change(each.name, simulate(terms.model, each.n, k))
        silos.append(Silo(curves, epsilon=3.0, delta=1e-5, name=each.name, points_per_curve=5.0, random_state=k))
    return run_study(terms, WithAbsences(silos, missed), "run")


def check(terms, outcome, sites):
    """The outcome is whole, and an estimator shows the curves of the sites that were heard in a gradient round."""
    plan = make_plan(terms)
    assert np.isfinite(outcome.coefficients).all()
    assert np.linalg.eigvalsh(outcome.covariance).min() > 0
    assert set(outcome.heads) == {silo.name for silo in terms.silos}
    if len(sites) == 1:
        assert outcome.sites is None
        return
    assert set(outcome.sites.names) == set(outcome.sites.each) == sites
    estimator = make_estimator(terms).remember(
        plan.basis, plan.scaling, outcome, statement(plan, private=outcome.private)
    )
    assert set(estimator.sites_.names) == sites
    assert set(outcome.sites.shrinkage) == sites
    assert all(np.isfinite(each.mean).all() for each in outcome.sites.each.values())


@pytest.mark.parametrize("round_", range(7))
@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("model", ["mean", "vcm"])
def test_each_silo_may_miss_any_round(model, count, round_) -> None:
    terms = make_terms(model, count)
    assert len(make_plan(terms).rounds) == 7
    everyone = {silo.name for silo in terms.silos}
    for name in (f"s{k}" for k in range(count)):
        is_left_out = count == 2 and round_ == 0  # one site cannot tell whether designs differ
        outcome = run(terms, {(name, round_)})
        check(terms, outcome, everyone - {name} if is_left_out else everyone)
        assert (
            any(f"first round, which asks when subjects are seen: '{name}'" in each for each in outcome.notices)
            == is_left_out
        )


@pytest.mark.parametrize("model", ["mean", "vcm"])
@pytest.mark.parametrize("last", [1, 2, 5])
def test_a_silo_may_come_late(model, last) -> None:
    terms = make_terms(model, 4)
    check(terms, run(terms, {("s1", round_) for round_ in range(last + 1)}), {"s0", "s1", "s2", "s3"})


def test_a_silo_that_has_left_before_the_first_gradients_has_no_curve_of_its_own() -> None:
    terms = make_terms("mean", 4)
    check(terms, run(terms, {("s2", round_) for round_ in range(2, 7)}), {"s0", "s1", "s3"})


def test_a_silo_that_missed_the_first_round_is_left_out_where_designs_differ() -> None:
    """Halves of the domain: read with the design of all, the late silo's gradients would spoil the estimate."""
    halves = [lambda rng, size: 0.5 * rng.uniform(size=size), lambda rng, size: 1 - 0.5 * rng.uniform(size=size)]
    silos = [
        Silo(
            simulate_mean(3000, 5, rng=k, design_density=halves[k % 2]),
            epsilon=3.0,
            delta=1e-5,
            name=f"s{k}",
            points_per_curve=5.0,
            random_state=k,
        )
        for k in range(3)
    ]
    terms = tuple(SiloTerms(silo.name, 3000, 3.0, 1e-5, 5.0) for silo in silos)
    study = StudyTerms("adaptive", (0.0, 1.0), (-4.0, 4.0), terms, n_basis=4)
    coordinator, transport = make_coordinator(study), WithAbsences(silos, {("s2", 0)})
    transport.open(study, "run")
    for index in range(7):
        coordinator.learn(index, transport.gather(Query("run", index, coordinator.question(index))))
    assert set(coordinator.state.own_designs) == {"s0", "s1"}
    assert coordinator.state.left_out == {"s2"}
    assert set(coordinator.state.measured) == {"s0", "s1"}
    assert np.isfinite(coordinator.coefficients()).all()


def test_one_silo_may_be_alone_in_a_round_of_gradients() -> None:
    """Nobody is judged by the answers of one or two."""
    for alone in (["s0"], ["s0", "s3"]):
        terms = make_terms("mean", 4)
        missed = {(silo.name, 2) for silo in terms.silos if silo.name not in alone}
        check(terms, run(terms, missed), {"s0", "s1", "s2", "s3"})


def test_a_silo_that_missed_the_first_round_adds_to_the_estimate() -> None:
    """Where designs are alike its answers count: the level is known better than without them."""
    terms = make_terms("mean", 4)
    late = run(terms, {("s0", 0)})
    never = run(terms, {("s0", round_) for round_ in range(7)})
    assert late.covariance[0, 0] < 0.9 * never.covariance[0, 0]


def test_only_silos_that_missed_the_first_round_may_be_there_for_gradients() -> None:
    terms = make_terms("mean", 2)
    outcome = run(terms, {("s0", 0), *(("s1", round_) for round_ in range(1, 7))})
    assert np.isfinite(outcome.coefficients).all()


def test_an_odd_silo_is_found_although_it_missed_the_first_round() -> None:
    """Its curves are upside down and far from the others; the honest ones are not suspected."""
    sizes = (3000, 3000, 3000, 3000)
    silos = tuple(SiloTerms(f"s{k}", n, 3.0, 1e-5, 5.0) for k, n in enumerate(sizes))
    terms = StudyTerms("adaptive", (0.0, 1.0), (-4.0, 4.0), silos, n_basis=4)

    def spoil(name, curves):
        return dataclasses.replace(curves, y=3.5 - 0.1 * curves.y) if name == "s1" else curves

    assert run(terms, {("s1", 0)}, spoil).sites.oddness.flagged == ("s1",)
    assert run(terms, {("s1", 0)}).sites.oddness.flagged == ()


def test_a_silo_of_which_round_0_tells_nothing_leaves_the_judgement_of_the_others() -> None:
    values = np.array([[0.0], [0.1], [-0.1], [4.0]])
    traits = Traits(values, np.full((4, 1, 1), 0.01), np.array([0.3]))
    names = ("a", "b", "c", "d")
    kept = FirstTraits(names, (traits,)).keep(("a", "late", "b", "c", "d"))
    judged = judge_sites(("a", "late", "b", "c", "d"), kept, robust=True).probability
    alone = judge_sites(names, [traits], robust=True).probability
    assert judged["d"] > 0.99
    assert judged["late"] < 0.2
    for name in names:
        assert judged[name] == pytest.approx(alone[name], abs=0.03)


def test_traits_of_silos_that_all_answered_round_0_keep_their_bits() -> None:
    rng = np.random.default_rng(4)
    traits = Traits(rng.normal(size=(3, 2)), rng.uniform(size=(3, 2, 2)), np.array([0.3, 0.5]))
    (kept,) = FirstTraits(("a", "b", "c"), (traits,)).keep(("c", "a"))
    np.testing.assert_array_equal(kept.values, traits.values[[2, 0]])
    np.testing.assert_array_equal(kept.covariances, traits.covariances[[2, 0]])
