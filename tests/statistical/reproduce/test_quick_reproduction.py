"""The quick version of every experiment of `dpfda reproduce all --quick`, with fewer repetitions, and its verdicts.

Levels are those of `reproduce/claims/verdicts.py`: a direction of the published method counts as seen when EACH of its
one-sided tests has p < 1e-4 (p < 0.01 with fewer than 60 repetitions, as the readings have here); where nothing is true a
row of several comparisons would hold with probability far below that. What did not reproduce is asserted as found. The
default method has at most five repetitions here: none of its rows may be refuted, and some may be undecided. Everything
is seeded: a run is the same every time.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from dpfda.reproduce import catalogue
from dpfda.reproduce.claims.claim import FAILS, HOLDS
from dpfda.reproduce.claims.judge import judge_claims
from dpfda.reproduce.compute import run_all
from dpfda.reproduce.readings import READINGS
from dpfda.reproduce.store import Store

DIRECTIONS = {
    "mean-1": ("Error falls as eps grows", "Error falls with visits", "Error falls with subjects"),
    "mean-2": ("Error falls as eps grows", "Error falls with visits", "Error falls with subjects"),
    "dense": (
        "Average fitted gradient in the private dense regime",
        "In the private dense regime the error falls like",
    ),
    "heat": ("For fixed m the error falls", "m = 2 to 6 helps clearly", "Visits help most"),
    "visits": (),
    "sensitivity": ("A larger C_R raises the error", "The effect of C_R is smaller for larger eps"),
    "federated": ("Error falls with S", "Splitting 2000 subjects"),
    "covariates": ("Error grows with the number d", "Error falls with n", "Error falls with S"),
    "readings": (
        "mean-1: Error falls as eps grows",
        "sensitivity: The effect of C_R is smaller for larger eps",
    ),
    "real-data": ("Distance to the non-private curve", "The 90% band", "Single private curves"),
}
NOT_REPRODUCED = {
    "dense": ("Past the break the error no longer depends on eps",),
    "sensitivity": ("C_T matters little", "rho matters little", "Anisotropic noise is substantially smaller"),
    "federated": ("A silo with a tenth of the budget does no harm",),
}


def test_every_experiment_is_here():
    assert set(DIRECTIONS) == set(catalogue.list_experiments())


@pytest.mark.parametrize("name", DIRECTIONS)
def test_the_quick_version_shows_the_claims(name, tmp_path):
    experiment = catalogue.load_experiment(name, quick=True, adaptive_at_most=5)
    if name == "readings":  # the same claims seven times
        experiment = _repeat_less(experiment, 30)
    results = run_all([experiment], Store(tmp_path), jobs=1, progress=lambda done, total: None)
    rows = judge_claims(results[0])
    for wanted, verdict in ((DIRECTIONS, HOLDS), (NOT_REPRODUCED, FAILS)):
        for start in wanted.get(name, ()):
            found = [row for row in rows if row.method == "published" and row.claim.startswith(start)]
            assert found, start
            assert [row.verdict for row in found] == [verdict] * len(found), found
    refuted = [row for row in rows if row.method == "adaptive" and row.verdict == FAILS]
    assert refuted == []
    if name == "readings":
        _check_readings(rows)
    else:
        assert all(row.why for row in rows if row.method == "published" and row.verdict == FAILS)


def _repeat_less(experiment: catalogue.Experiment, most: int) -> catalogue.Experiment:
    """The same with at most so many repetitions of every method."""
    points = []
    for point in experiment.points:
        methods = tuple(replace(each, repetitions=min(each.repetitions, most)) for each in point.cell.methods)
        points.append(replace(point, cell=replace(point.cell, methods=methods)))
    parts = tuple(_repeat_less(part, most) for part in experiment.parts)
    return replace(experiment, points=tuple(points), parts=parts)


def _check_readings(rows):
    """What tells the readings apart, with wide margins."""
    sizes = {row.reading: float(row.measured) for row in rows if row.claim.startswith("(size)")}
    assert 3 < sizes["A"] < 7
    assert 0.7 < sizes["F"] < 1.5
    assert sizes["literal"] > 100
    assert sizes["full-batch"] < 0.15
    private = {row.reading for row in rows if "DP as claimed" in row.claim and row.verdict == HOLDS}
    assert private == {"A", "B", "F", "literal", "full-batch"}
    assert {row.reading for row in rows} == set(READINGS)
