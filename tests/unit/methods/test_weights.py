"""What a curve weighs on average, from noisy releases of one silo or several."""

from __future__ import annotations

import numpy as np
import pytest

from dpfda.methods.adaptive.level import Filled
from dpfda.methods.adaptive.weights import CurveWeights, MeanWeight, fit_means, fit_weights
from dpfda.protocol.messages import Release
from dpfda.protocol.plans.registry import make_plan
from dpfda.protocol.statistics import VisitWeights
from dpfda.protocol.terms import SiloTerms, StudyTerms

LIMITS = (0.1, 1.0)
ALL = Filled(1.0, 0.0)


def plan_of(*sizes: int, **options):
    silos = tuple(SiloTerms(f"silo {number}", n, 1.0, 1e-5) for number, n in enumerate(sizes))
    return make_plan(StudyTerms("adaptive", (0.0, 1.0), (-1.0, 1.0), silos, **options))


def release(plan, name, mean, square, sd):
    """A release of round 0 that holds these weights and nothing else."""
    place = plan.slice_of(0, VisitWeights)
    values = np.zeros(plan.release_width(0))
    values[place] = mean - 0.5, square - 0.5
    return Release("run", 0, name, values, np.full(values.size, sd), True)


def fit(plan, found, sd):
    releases = {name: release(plan, name, mean, square, sd) for name, (mean, square) in found.items()}
    return fit_weights(plan, releases, {}, ALL)


def test_subjects_that_weigh_the_same_weigh_their_share_with_points() -> None:
    found = fit_weights(plan_of(1000), {}, {}, Filled(0.8, 0.01))
    assert found == CurveWeights(MeanWeight(0.8, 0.8, 0.0))
    assert found.blend({"any": 1.0}) == 0.8
    assert found.relative("any") == 1.0


def test_one_silo_has_what_it_released() -> None:
    plan = plan_of(1000, weight="visit", visit_cap=10)
    found = fit(plan, {"silo 0": (0.42, 0.25)}, 0.01)
    assert found.pooled.mean == pytest.approx(0.42, abs=1e-3)
    assert found.pooled.square == pytest.approx(0.25, rel=0.01)
    assert found.pooled.doubt == pytest.approx(0.01 / 0.42, rel=0.05)
    assert found.each == {}


@pytest.mark.parametrize("square", [-3.0, 0.01, 0.9, 5.0])
def test_squares_lie_where_squares_can_lie(square) -> None:
    found = fit(plan_of(1000, weight="visit", visit_cap=10), {"silo 0": (0.5, square)}, 0.02).pooled
    assert found.mean**2 - 1e-12 <= found.square <= found.mean + 1e-12


@pytest.mark.parametrize("mean", [-1.0, 0.0, 1.4])
def test_noise_leaves_the_mean_weight_within_what_is_possible(mean) -> None:
    found = fit(plan_of(1000, weight="visit", visit_cap=10), {"silo 0": (mean, 0.5)}, 0.5).pooled
    assert 0.1 <= found.mean <= 1.0
    assert found.doubt > 0.1


def test_silos_that_clearly_differ_keep_their_own() -> None:
    plan = plan_of(1000, 1000, 1000, weight="visit", visit_cap=10)
    found = fit(plan, {"silo 0": (0.2, 0.05), "silo 1": (0.5, 0.3), "silo 2": (0.9, 0.85)}, 0.01)
    assert [found.of(f"silo {k}").mean for k in range(3)] == pytest.approx([0.2, 0.5, 0.9], abs=0.01)
    assert found.pooled.mean == pytest.approx((0.2 + 0.5 + 0.9) / 3, abs=0.01)
    assert found.blend({"silo 0": 0.5, "silo 2": 0.5}) == pytest.approx(0.55, abs=0.01)


def test_noisy_silos_lean_on_each_other() -> None:
    values, sds = np.array([0.3, 0.5, 0.7, 0.5]), np.full(4, 0.2)
    found, elsewhere = fit_means(values, sds, LIMITS)
    apart = [mean - 0.5 for mean, _ in found]
    assert apart == pytest.approx([apart[0], 0.0, -apart[0], 0.0], abs=0.01)
    assert 0 < -apart[0] < 0.1
    assert all(sd < 0.2 for _, sd in found)
    assert elsewhere[0] == pytest.approx(0.5, abs=0.02)
    assert elsewhere[1] > max(sd for _, sd in found)


def test_a_silo_that_missed_the_round_has_the_doubt_of_not_knowing_it() -> None:
    plan = plan_of(1000, 1000, 1000, weight="visit", visit_cap=10)
    alike = fit(plan, {"silo 0": (0.5, 0.3), "silo 1": (0.5, 0.3)}, 0.01)
    apart = fit(plan, {"silo 0": (0.3, 0.1), "silo 1": (0.8, 0.7)}, 0.01)
    assert alike.of("silo 2").mean == pytest.approx(0.5, abs=0.02)
    assert alike.of("silo 2").doubt < apart.of("silo 2").doubt
    assert apart.of("silo 2").doubt > 0.2


def test_posterior_sds_are_honest() -> None:
    """Over 2000 draws of three silos 95% intervals hold 92% to 98%, ten binomial sds on either side."""
    rng, held = np.random.default_rng(1), []
    for _ in range(2000):
        truth = np.clip(rng.normal(0.5, rng.choice([0.0, 0.03, 0.1]), 3), *LIMITS)
        sds = rng.uniform(0.01, 0.1, 3)
        found, _ = fit_means(truth + sds * rng.normal(size=3), sds, LIMITS)
        held += [abs(mean - true) < 1.96 * sd for (mean, sd), true in zip(found, truth, strict=True)]
    assert 0.92 < np.mean(held) < 0.98
