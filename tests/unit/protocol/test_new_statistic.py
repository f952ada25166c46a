"""A new statistic is one class, one function and one line of a plan: released with noise, on the ledger, at its price.

The toy counts visits: how many points each curve has, up to a public limit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from installed import installed

from dpfda import Curves, ProtocolError, Silo
from dpfda.audit.cases import Case
from dpfda.audit.search import worst_pair
from dpfda.basis.basis import make_basis
from dpfda.privacy.accounting import mu_for
from dpfda.privacy.clipping import BoundedSum, EntrywiseBound
from dpfda.privacy.noise import OpenDPNoise
from dpfda.protocol import statistics
from dpfda.protocol.messages import Query
from dpfda.protocol.plan import Plan, Round, SiloPlan
from dpfda.protocol.scaling import Scaling
from dpfda.protocol.statistics import KINDS, Dimensions, ShareBelow, Statistic
from dpfda.silo import release_statistics
from dpfda.silo import silo as silo_module
from dpfda.silo.release_statistics import MEASURES, Measurement, measures
from dpfda.silo.sums import RowSum

EPSILON, DELTA = 1.0, 1e-5


@pytest.fixture(autouse=True)
def registries():
    """What a test adds is gone after it."""
    known, computed = dict(KINDS), dict(MEASURES)
    yield
    for registry, before in ((KINDS, known), (MEASURES, computed)):
        registry.clear()
        registry.update(before)


def add_toy():
    """Everything that a new statistic takes, but for the line in a plan."""

    @statistics.register
    @dataclass(frozen=True)
    class Visits(Statistic):
        kind: ClassVar[str] = "visits"
        most: float = 10.0

        def width(self, dimensions: Dimensions) -> int:
            return 1

    @measures(Visits)
    def visits(statistic: Visits, measurement: Measurement) -> BoundedSum:
        bound = EntrywiseBound(np.array([statistic.most]))
        rows = RowSum(lambda curves: np.diff(curves.offsets)[:, None].astype(float), bound)
        return bound.total(measurement.words(rows), measurement.n)

    return Visits


def make_curves(n=400):
    counts = np.random.default_rng(0).integers(0, 9, n)
    points = int(counts.sum())
    return Curves(np.full(points, 0.5), np.zeros(points), np.concatenate([[0], np.cumsum(counts)]), np.ones((n, 1)))


def make_plan(*kinds: Statistic, shares: tuple[float, ...] = (0.5, 0.25)):
    def planner(silos):
        members = [SiloPlan(terms, shares=(shares[: len(kinds)],)) for terms in silos]
        scaling = Scaling((-1.0, 1.0), ((1.0, 1.0),))
        return Plan("toy", "toy", make_basis("cosine", 1), 1, scaling, (Round(kinds),), tuple(members))

    return planner


def test_it_is_released_with_noise_on_the_ledger_and_at_its_price() -> None:
    visits, curves = add_toy(), make_curves()
    silo = Silo(curves, epsilon=EPSILON, delta=DELTA, name="clinic")
    plan = make_plan(visits(10.0), ShareBelow())([silo.terms()])
    silo.join(installed(plan), "run")
    release = silo.release(Query("run", 0, {"iterate": np.zeros(1)}))
    place = plan.slice_of(0, visits)
    assert place == slice(0, 1)
    assert release.values.size == plan.release_width(0) == 2
    assert release.private
    mu = mu_for(EPSILON, DELTA) * math.sqrt(0.5)
    assert release.noise_sd[0] == pytest.approx(2 * 10.0 / (mu * curves.n), rel=1e-9)
    off = (release.values[0] - np.diff(curves.offsets).mean()) / release.noise_sd[0]
    assert 0 < abs(off) < 7
    (entry,) = silo.ledger.log()
    assert entry.mu == plan.event("clinic", 0).mu == pytest.approx(mu_for(EPSILON, DELTA) * math.sqrt(0.75))
    assert silo.ledger.spent().mu_squared == pytest.approx(0.75 * mu_for(EPSILON, DELTA) ** 2)


def test_a_plan_with_it_is_described() -> None:
    visits = add_toy()
    plan = make_plan(visits(3.0))([Silo(make_curves(), epsilon=1, delta=1e-5).terms()])
    assert plan.to_dict()["rounds"][0]["statistics"] == [{"kind": "visits", "most": 3.0}]
    assert "visits" in plan.event("silo-1", 0).label


def test_the_auditor_s_search_finds_its_sensitivity_and_no_more() -> None:
    visits = add_toy()
    case = Case("visits", lambda silos: installed(make_plan(visits(4.0), shares=(1.0,))(silos)), columns=1, n=4)
    pair = worst_pair(case, np.random.default_rng(1), restarts=2, steps=60)
    assert 0.1 < pair.change <= 1 + 1e-9


def test_a_wild_curve_moves_it_by_its_sensitivity_at_most(monkeypatch) -> None:
    """Without noise: 100,000 visits of one subject count as the public limit."""
    visits = add_toy()

    class NoNoise(OpenDPNoise):
        def standard_normal(self, whitened):
            return whitened

    monkeypatch.setattr(silo_module, "OpenDPNoise", NoNoise)
    answers = []
    for points in (0, 100_000):
        curves = Curves(np.full(points, 0.5), np.zeros(points), np.array([0, points, points]), np.ones((2, 1)))
        silo = Silo(curves, epsilon=EPSILON, delta=DELTA, name="clinic")
        plan = make_plan(visits(4.0), shares=(1.0,))([silo.terms()])
        silo.join(installed(plan), "run")
        answers.append(silo.release(Query("run", 0, {})))
    moved = (answers[1].values - answers[0].values) / answers[0].noise_sd
    assert answers[1].values[0] == pytest.approx(4.0 / 2)
    assert abs(moved[0]) <= plan.event("clinic", 0).mu


def test_a_silo_refuses_a_statistic_that_it_cannot_compute_before_anything_is_spent() -> None:
    visits = add_toy()
    del MEASURES[visits]
    silo = Silo(make_curves(), epsilon=EPSILON, delta=DELTA)
    with pytest.raises(ProtocolError, match="'visits', which this silo cannot compute"):
        silo.join(installed(make_plan(visits(), shares=(1.0,))([silo.terms()])), "run")


def test_two_statistics_cannot_share_a_name_nor_two_functions_a_statistic() -> None:
    visits = add_toy()
    with pytest.raises(ValueError, match="visits"):
        statistics.register(visits)
    with pytest.raises(ValueError, match="visits"):
        release_statistics.measures(visits)(lambda statistic, measurement: None)


def test_rows_that_are_not_one_per_curve_are_refused() -> None:
    """A row for every point would be bounded point by point."""
    from dpfda.silo.prepared import PreparedCurves

    curves = PreparedCurves(np.zeros(3), np.zeros(3), np.array([0, 1, 3]), np.ones((2, 1)))
    with pytest.raises(ValueError, match="one row"):
        RowSum(lambda some: some.y[:, None], EntrywiseBound([1.0])).prepared_words(curves)
