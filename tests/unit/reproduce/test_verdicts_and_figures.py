"""Verdicts and figures from made-up errors whose law is known, and the real-data protocol on a small cut."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from dpfda.reproduce.claims.more import MORE
from dpfda.reproduce.claims.verdicts import FAILS, HOLDS, claims_of
from dpfda.reproduce.figures.figures import colours, picture_of
from dpfda.reproduce.figures.more import dense_figure, real_figure
from dpfda.reproduce.running import Results

from dpfda.reproduce import catalogue
from dpfda.reproduce.cells import Method
from dpfda.reproduce.claims.dense import dense_claims, dense_lines
from dpfda.reproduce.claims.real_data import real_claims
from dpfda.reproduce.real_data import GRID_POINTS, RealCell, run_real


def made_up(name: str, *, law=lambda n, epsilon: 1 / n + 50 / (n * epsilon) ** 2) -> Results:
    """An experiment whose errors follow a law in n and epsilon, up to five percent."""
    experiment, rng, found = catalogue.load(name, quick=True), np.random.default_rng(1), []
    for point in experiment.points:
        arrays = {}
        for method in point.cell.methods:
            level = np.array([law(point.cell.n, epsilon) for epsilon in method.epsilons])
            arrays[method.name] = level * np.exp(0.05 * rng.normal(size=(method.repetitions, level.size)))
        found.append(arrays)
    return Results(experiment, found)


SIMULATED = [name for name in catalogue.names() if name != "real-data"]


@pytest.mark.parametrize("name", SIMULATED)
def test_every_experiment_has_verdicts_and_a_picture(name: str) -> None:
    results = made_up(name)
    claims = claims_of(results)
    assert claims
    assert all(claim.measured and claim.verdict for claim in claims)
    assert picture_of(results).axes
    assert len(colours(5)) == 5
    assert {"sensitivity", "federated", "covariates"} <= set(MORE)


def private_gradient(results: Results) -> str:
    return next(claim.verdict for claim in dense_claims(results) if "private" in claim.claim)


def test_a_line_is_fitted_where_the_errors_follow_one() -> None:
    lines = dense_lines(made_up("dense", law=lambda n, epsilon: (n * epsilon) ** -2.0), "published")
    assert lines
    assert all(abs(line.gradient + 2) < 0.2 for pair in lines.values() for line in pair)
    assert dense_figure(made_up("dense")).axes


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
    assert {claim.method for claim in real_claims(results)} >= {"published", "adaptive"}
    assert real_figure(results).axes
