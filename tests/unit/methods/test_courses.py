"""Courses of made-up studies: releases are those of silos, and the method learns from them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpfda.curves.curves import Curves
from dpfda.methods.adaptive.coordinator import AdaptiveCoordinator
from dpfda.methods.adaptive.courses import MadeUpCurves, _draw_release, _measure, can_follow, follow_course, pool_plan
from dpfda.protocol.plan import Plan
from dpfda.protocol.plans import make_plan
from dpfda.protocol.statistics import CovariateMoments
from dpfda.protocol.terms import CovariateTerms, SiloTerms, StudyTerms
from dpfda.reproduce.adaptive_runs import prepare_sums
from dpfda.silo.release_statistics import Question, measure

POINTS = 6


def local_plan(subjects: int = 40, epsilon: float = 8.0, covariates: int = 0) -> Plan:
    """Every subject a silo of its own."""
    columns = tuple(CovariateTerms(f"column-{k}", (-1.0, 1.0)) for k in range(covariates))
    silos = tuple(SiloTerms(f"silo-{k}", 1, epsilon, 1e-5) for k in range(subjects))
    return make_plan(StudyTerms("adaptive", (0.0, 1.0), (-1.0, 1.0), silos, columns))


def draw_points(count: int = 300, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Points in [0, 1] and values, some of them at a bound."""
    rng = np.random.default_rng(seed)
    points = rng.random((count, POINTS))
    return points, np.clip(0.4 * np.sin(6 * points) + 0.4 * rng.standard_normal(points.shape), -1, 1)


def test_made_up_curves_measure_what_silos_measure():
    plan = pool_plan(local_plan())
    points, y = draw_points()
    made_up = MadeUpCurves.of(plan.basis, points, y)
    curves = Curves(points.ravel(), y.ravel(), np.arange(len(points) + 1) * POINTS, np.ones((len(points), 1)))
    sums = prepare_sums(plan, [curves])["all"]
    coordinator, rng = AdaptiveCoordinator(plan, with_band=False), np.random.default_rng(2)
    for index, planned in enumerate(plan.rounds):
        asked = coordinator.question(index)
        wanted = measure(planned.statistics, sums, range(len(points)), Question(plan, asked))
        for statistic, exact in zip(planned.statistics, wanted, strict=True):
            found = _measure(statistic, plan, asked, made_up)
            np.testing.assert_allclose(found.total, exact.total, atol=1e-6 * len(points))
            np.testing.assert_allclose(found.sensitivity.scale, exact.sensitivity.scale, rtol=1e-9)
        coordinator.learn(index, {"all": _draw_release(plan, index, asked, made_up, rng)})


def test_one_silo_has_the_precision_of_all():
    plan = local_plan(40)
    pooled = pool_plan(plan)
    assert [silo.n for silo in pooled.silos] == [40]
    for index in range(len(plan.rounds)):
        alone = [math.hypot(*plan.statistic_mus(silo.name, index)) for silo in plan.silos]
        together = 40 * math.hypot(*pooled.statistic_mus("all", index))
        assert together == pytest.approx(math.hypot(*alone), rel=1e-6)


def test_noise_is_that_of_the_plan():
    plan = pool_plan(local_plan(40))
    made_up = MadeUpCurves.of(plan.basis, *draw_points())
    draws = [_draw_release(plan, 0, {}, made_up, np.random.default_rng(seed)) for seed in range(400)]
    spread = np.std([each.values for each in draws], axis=0)
    np.testing.assert_allclose(spread / draws[0].noise_sd, 1.0, atol=0.2)


def test_a_course_finds_the_curve_where_noise_is_small():
    plan = pool_plan(local_plan(900, epsilon=60.0))
    points, y = draw_points(2000)
    found = follow_course(plan, MadeUpCurves.of(plan.basis, points, y), np.random.default_rng(3))
    grid = np.linspace(0.05, 0.95, 50)
    away = plan.basis.evaluate_unit(grid) @ found - 0.4 * np.sin(6 * grid)
    assert math.sqrt(float((away**2).mean())) < 0.15


def test_courses_are_those_of_a_mean_alone():
    assert can_follow(local_plan())
    with_covariate = local_plan(covariates=1)
    assert not can_follow(with_covariate)
    made_up, size = MadeUpCurves.of(with_covariate.basis, *draw_points(10)), with_covariate.basis.size
    asked = {"iterate": np.zeros(size), "whitener": np.eye(size).ravel()}
    with pytest.raises(TypeError, match="no course can be drawn of 'covariate-moments'"):
        _measure(CovariateMoments(), with_covariate, asked, made_up)
