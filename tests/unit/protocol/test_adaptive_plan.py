"""What the default method may spend: the shares of its plan, priced a second time, and refused when tampered with."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from installed import installed

from dpfda import BudgetExceeded, ProtocolError, Silo
from dpfda.curves.simulated import simulate_mean
from dpfda.privacy.accounting import price_by_pld
from dpfda.protocol.messages import Query
from dpfda.protocol.plan import Plan
from dpfda.protocol.plans import adaptive_plan
from dpfda.protocol.scaling import Scaling
from dpfda.protocol.statistics import (
    ClippedGradient,
    CovariateHistograms,
    CovariateMoments,
    LengthHistogram,
    LevelHistogram,
    SharesAtBounds,
)
from dpfda.protocol.terms import SiloTerms

MEAN = Scaling((-4.0, 6.0), ((1.0, 1.0),), 1.0, 5.0)
VCM = Scaling((-4.0, 6.0), ((1.0, 1.0), (-1.0, 1.0), (-1.0, 1.0)), 1.0, 5.0)
NO_INTERCEPT = Scaling((-4.0, 6.0), ((-1.0, 1.0),), 1.0, 5.0)
SILOS = [(20, 0.1, 1e-5), (250, 0.5, 1e-3), (1000, 1.0, 1e-3), (20_000, 5.0, 1e-5)]


def plan_for(silos, scaling=MEAN, **kwargs) -> Plan:
    terms = [SiloTerms(f"s{number}", *silo) for number, silo in enumerate(silos)]
    return adaptive_plan(terms, scaling, domain=(0.0, 1.0), **kwargs)


@pytest.mark.parametrize("scaling", [MEAN, VCM])
@pytest.mark.parametrize("silos", [[silo] for silo in SILOS] + [SILOS])
def test_all_events_together_cost_at_most_epsilon(silos, scaling) -> None:
    """Priced by an independent accountant (dp-accounting), whose grid errs upwards."""
    plan = plan_for(silos, scaling)
    for silo in plan.silos:
        assert sum(sum(shares) for shares in silo.shares) <= 1
        assert price_by_pld(plan.events(silo.name), silo.terms.delta) <= silo.terms.epsilon


def test_every_gradient_round_comes_after_a_histogram_of_lengths() -> None:
    rounds = [[type(kind) for kind in planned.statistics] for planned in plan_for([(1000, 1.0, 1e-3)]).rounds]
    assert rounds[0][:2] == [LevelHistogram, SharesAtBounds]
    assert rounds[1::2] == [[LengthHistogram]] * len(rounds[1::2])
    assert rounds[2::2] == [[ClippedGradient]] * len(rounds[1::2])


@pytest.mark.parametrize(("scaling", "asked"), [(MEAN, False), (VCM, True), (NO_INTERCEPT, True)])
def test_covariates_are_asked_for_where_there_are_any(scaling, asked) -> None:
    first, second = plan_for([(1000, 1.0, 1e-3)], scaling).rounds[:2]
    assert (CovariateHistograms in map(type, first.statistics)) is asked
    assert (CovariateMoments in map(type, second.statistics)) is asked


@pytest.fixture
def joined():
    silo = Silo(simulate_mean(600, 3, rng=0), epsilon=1.0, delta=1e-3, name="s0")
    return silo, plan_for([(600, 1.0, 1e-3)], n_basis=3)


def test_a_plan_that_gives_the_rest_more_is_refused(joined) -> None:
    silo, plan = joined
    terms = plan.silos[0]
    dearer = (*terms.shares[:-1], tuple(share * 1.01 for share in terms.shares[-1]))
    tampered = dataclasses.replace(plan, silos=(dataclasses.replace(terms, shares=dearer),))
    with pytest.raises(BudgetExceeded):
        silo.join(installed(tampered), "run")
    assert silo.ledger.spent().debits == 0


@pytest.mark.parametrize("change", ["missing", "long", "nan", "zero", "negative"])
def test_a_query_without_a_proper_radius_is_refused(joined, change) -> None:
    silo, plan = joined
    silo.join(installed(plan), "run")
    last = len(plan.rounds) - 1
    arrays = {name: np.ones(size) for name, size in plan.query_sizes(last).items()}
    wrong = {"long": np.ones(2), "nan": np.array([np.nan]), "zero": np.zeros(1), "negative": -np.ones(1)}
    if change == "missing":
        del arrays["radius"]
    else:
        arrays["radius"] = wrong[change]
    with pytest.raises(ProtocolError):
        silo.release(Query("run", last, arrays))
    assert silo.ledger.spent().debits == 0


def test_a_plan_is_never_read() -> None:
    assert not hasattr(Plan, "from_dict")
