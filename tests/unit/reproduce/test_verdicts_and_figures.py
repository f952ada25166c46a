"""Verdicts and figures from made-up errors whose law is known, and the real-data protocol on a small cut."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from dpfda.reproduce import catalogue
from dpfda.reproduce.cells import Method
from dpfda.reproduce.claims.claim import FAILS, HOLDS
from dpfda.reproduce.claims.dense import dense_claims, dense_lines
from dpfda.reproduce.claims.judge import CLAIMS, judge_claims
from dpfda.reproduce.claims.real_data import real_data_claims
from dpfda.reproduce.claims.sample_size import mean_claims
from dpfda.reproduce.claims.silos_and_covariates import silo_claims
from dpfda.reproduce.claims.tuning import tuning_claims
from dpfda.reproduce.figures.dense import draw_dense
from dpfda.reproduce.figures.draw import draw_experiment
from dpfda.reproduce.figures.panels import colours
from dpfda.reproduce.figures.real_data import draw_real_data
from dpfda.reproduce.figures.sweeps import draw_mean
from dpfda.reproduce.real_data import GRID_POINTS, RealCell, run_real
from dpfda.reproduce.results import Results


def made_up(name: str, *, law=lambda n, epsilon: 1 / n + 50 / (n * epsilon) ** 2) -> Results:
    """An experiment whose errors follow a law in n and epsilon, up to five percent."""
    experiment, rng, found = catalogue.load_experiment(name, quick=True), np.random.default_rng(1), []
    for point in experiment.points:
        arrays = {}
        for method in point.cell.methods:
            level = np.array([law(point.cell.n, epsilon) for epsilon in method.epsilons])
            arrays[method.name] = level * np.exp(0.05 * rng.normal(size=(method.repetitions, level.size)))
        found.append(arrays)
    return Results(experiment, found)


SIMULATED = [name for name in catalogue.list_experiments() if name != "real-data"]


@pytest.mark.parametrize("name", SIMULATED)
def test_every_experiment_has_verdicts_and_a_picture(name: str) -> None:
    results = made_up(name)
    claims = judge_claims(results)
    assert claims
    assert all(claim.measured and claim.verdict for claim in claims)
    assert draw_experiment(results).axes
    assert len(colours(5)) == 5
    assert name in CLAIMS


def private_gradient(results: Results) -> str:
    return next(claim.verdict for claim in dense_claims(results) if "private" in claim.claim)


def test_a_line_is_fitted_where_the_errors_follow_one() -> None:
    lines = dense_lines(made_up("dense", law=lambda n, epsilon: (n * epsilon) ** -2.0), "published")
    assert lines
    assert all(abs(line.gradient + 2) < 0.2 for pair in lines.values() for line in pair)
    assert draw_dense(made_up("dense")).axes


def test_the_papers_gradient_is_confirmed_and_another_one_is_not() -> None:
    assert private_gradient(made_up("dense", law=lambda n, epsilon: (n * epsilon) ** -1.81)) == HOLDS
    assert private_gradient(made_up("dense", law=lambda n, epsilon: n**-0.3)) == FAILS


def test_the_real_data_protocol_compares_private_curves_with_the_reference() -> None:
    methods = (Method("published", (1.0, 8.0), 3, n_basis=3), Method("adaptive", (1.0, 8.0), 3, "cosine", 3))
    cell = RealCell("blackmore", (8.0, 16.0), 60, 3, 1e-3, 1, methods)
    found = run_real(cell)
    assert found["n"].tolist() == [60.0]
    assert found["reference"].shape == (GRID_POINTS,)
    point = catalogue.Point("blackmore", (), cell)
    results = Results(catalogue.Experiment("real-data", "title", "source", (point,), True), [found])
    assert {claim.method for claim in real_data_claims(results)} >= {"published", "adaptive"}
    assert draw_real_data(results).axes


def test_each_experiment_is_judged_by_its_own_claims() -> None:
    judged = {"mean-1": mean_claims, "federated": silo_claims, "sensitivity": tuning_claims}
    for name, claims in judged.items():
        results = made_up(name)
        assert [claim.claim for claim in claims(results)] == [claim.claim for claim in judge_claims(results)]
    assert draw_mean(made_up("mean-1")).axes
