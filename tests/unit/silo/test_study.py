"""What a silo computes before noise, and that only an examiner sees it; shares of a table for workers."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from installed import installed

from dpfda import Curves, Ledger, Silo
from dpfda.basis.basis import make_basis
from dpfda.privacy.clipping import EntrywiseBound
from dpfda.protocol.messages import Query
from dpfda.protocol.plan import Plan, Round, SiloPlan
from dpfda.protocol.scaling import Scaling
from dpfda.protocol.statistics import ClippedGradient, LengthHistogram, SharesAtBounds
from dpfda.protocol.terms import SiloTerms
from dpfda.silo import silo as silo_module
from dpfda.silo.chunked_sums import sums_of_curves
from dpfda.silo.cluster.part import Part, Seal, facts_of, lanes_of, words_of
from dpfda.silo.cluster.shares import Share
from dpfda.silo.examination import Examiner
from dpfda.silo.release_statistics import centred_shares
from dpfda.silo.study import Study
from dpfda.silo.sums import RowSum

CURVES = Curves.from_long(np.repeat(np.arange(30), 3), np.tile([0.1, 0.5, 0.8], 30), np.linspace(-1, 1, 90))


def load():
    """What a worker loads."""
    return CURVES, None


def make_plan(*statistics):
    silo = SiloPlan(SiloTerms("clinic", 30, 1.0, 1e-5), shares=((0.2,) * len(statistics),))
    scaling = Scaling((-1.0, 1.0), ((1.0, 1.0),))
    return Plan("adaptive", "test", make_basis("cosine", 2), 1, scaling, (Round(statistics),), (silo,))


def make_query(plan, value=0.3):
    return Query("run", 0, {name: np.full(size, value) for name, size in plan.query_sizes(0).items()})


class Counting:
    """Sums that count how often the curves are gone through."""

    def __init__(self, plan):
        self.sums, self.passes = sums_of_curves(CURVES, plan.basis, plan.scaling), 0
        self.n = self.sums.n

    def words(self, request, positions):
        self.passes += 1
        return self.sums.words(request, positions)


@pytest.mark.parametrize("statistic", [ClippedGradient(), LengthHistogram(), SharesAtBounds()])
def test_a_statistic_is_one_pass_over_the_curves(statistic) -> None:
    """The clipped gradient and all of its companions, too."""
    plan = make_plan(statistic)
    counting = Counting(plan)
    found, n = Study(plan, "clinic", (counting,)).bounded_sum(make_query(plan))
    assert (counting.passes, n) == (1, 30)
    assert found.total.size == statistic.width(plan.dimensions)


def test_statistics_of_a_round_are_those_of_each_alone() -> None:
    statistics = ClippedGradient(), SharesAtBounds(), LengthHistogram()
    plan, alone = make_plan(*statistics), []
    sums = sums_of_curves(CURVES, plan.basis, plan.scaling)
    for statistic in statistics:
        other = make_plan(statistic)
        alone.append(Study(other, "clinic", (sums,)).bounded_sum(make_query(other))[0].total)
    np.testing.assert_array_equal(
        Study(plan, "clinic", (sums,)).bounded_sum(make_query(plan))[0].total, np.concatenate(alone)
    )


def test_an_examiner_sees_what_a_silo_adds_noise_to_and_spends_nothing(monkeypatch) -> None:
    class NoNoise:
        private = True

        def make_ready(self, size):
            pass

        def standard_normal(self, whitened):
            return whitened

    monkeypatch.setattr(silo_module, "OpenDPNoise", NoNoise)
    plan = make_plan(ClippedGradient(), SharesAtBounds())
    ledger = Ledger.in_memory(1.0, 1e-5)
    examiner = Examiner(CURVES, plan, name="clinic")
    seen = examiner.bounded_sum(make_query(plan))
    assert ledger.spent().debits == 0
    silo = Silo(CURVES, epsilon=1.0, delta=1e-5, name="clinic", ledger=ledger)
    silo.join(installed(plan), "run")
    np.testing.assert_allclose(silo.release(make_query(plan)).values, seen.total / 30, rtol=1e-12)


def test_shares_of_a_table_hold_every_row_once() -> None:
    pl = pytest.importorskip("polars")
    from dpfda.curves.tables.keys import Ranges

    ranges = Ranges.from_sample(pl.Series(range(1000)))
    shares = [Share(ranges, 0, ranges.count // 2), Share(ranges, ranges.count // 2, ranges.count)]

    class Rows:
        def __init__(self, ids):
            self.ids = ids

        def __len__(self):
            return len(self.ids)

        def __getitem__(self, keep):
            return Rows(self.ids.filter(pl.Series(keep)))

    kept = [share.of(Rows(pl.Series(range(1000)))).ids.to_list() for share in shares]
    assert sorted(kept[0] + kept[1]) == list(range(1000))
    assert kept[0]
    assert kept[1]


def test_a_worker_s_part_travels_as_its_recipe_and_answers_with_exact_words() -> None:
    part, plan = Part(load), make_plan(ClippedGradient())
    assert part.__reduce__() == (Part, (load,))
    assert facts_of(part) == (30, 1, False, None)
    request = RowSum(partial(centred_shares, threshold=0.1), EntrywiseBound([0.5]))
    key = b"k" * 32
    seal = Seal(key, 0, lanes_of(part, key, 0))
    words = words_of(part, seal, "study", plan.basis, plan.scaling, request, 5, 20)
    whole = sums_of_curves(CURVES, plan.basis, plan.scaling).words(request, range(5, 20))
    np.testing.assert_array_equal(words, whole)
