"""Configurations, resuming, statistics and what a run writes."""

from __future__ import annotations

import csv
import dataclasses
import json
import subprocess
import sys

import numpy as np
import pytest

from dpfda.errors import InvalidInput
from dpfda.reproduce import catalogue
from dpfda.reproduce import compute as computing
from dpfda.reproduce.cells import run_methods
from dpfda.reproduce.compute import find_missing, run_all
from dpfda.reproduce.document import Run, write_all
from dpfda.reproduce.store import Store
from dpfda.reproduce.trends import falls, levelling, lines_with_break, sorted_gradients


def nothing(done, total):
    pass


@pytest.mark.parametrize("quick", [False, True])
def test_every_configuration_can_be_read_and_has_both_methods(quick):
    assert len(catalogue.list_experiments()) == 10
    for name in catalogue.list_experiments():
        points = catalogue.load_experiment(name, quick=quick).points
        wanted = {"published"} if name == "readings" else {"published", "adaptive"}
        assert {method.name for point in points for method in point.cell.methods} >= wanted


def test_the_paper_s_axes_are_in_the_configurations():
    mean = catalogue.load_experiment("mean-1").points
    assert [p.cell.m for p in mean if p.sweep == "visits"] == list(range(2, 21, 2))
    assert [p.cell.n for p in mean if p.sweep == "subjects"] == list(range(100, 501, 50))
    assert {m.repetitions for p in mean for m in p.cell.methods} == {100}
    dense = [p.cell for p in catalogue.load_experiment("dense").points if p.sweep == "dense"]
    assert [cell.n for cell in dense] == list(range(200, 3601, 200))
    assert [cell.m for cell in dense] == [round(cell.n ** (1 / 3)) for cell in dense]
    assert np.allclose(dense[0].methods[0].epsilons, np.arange(1, 81) / 10)
    assert dense[0].methods[0].repetitions == 200


def test_an_unknown_experiment_is_refused():
    with pytest.raises(InvalidInput, match="experiment must be one of"):
        catalogue.load_experiment("figure-7")


def small(monkeypatch):
    """The experiment on mu_1 with three repetitions of the published method only."""
    raw = catalogue._read_config("mean-1")
    raw["methods"] = {"published": raw["methods"]["published"] | {"repetitions": 3}}
    monkeypatch.setattr(catalogue, "_read_config", lambda name: raw)
    return catalogue.load_experiment("mean-1")


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path, monkeypatch):
    experiment, store = small(monkeypatch), Store(tmp_path)
    computed, compute = [], computing._compute

    def failing(point):
        if len(computed) == 5:
            raise KeyboardInterrupt
        computed.append(point)
        return compute(point)

    monkeypatch.setattr(computing, "_compute", failing)
    with pytest.raises(KeyboardInterrupt):
        run_all([experiment], store, jobs=1, progress=nothing)
    monkeypatch.setattr(computing, "_compute", compute)
    whole = len(find_missing([experiment], Store(tmp_path / "empty")))
    assert len(find_missing([experiment], store)) == whole - 5
    again = run_all([experiment], store, jobs=1, progress=nothing)[0]
    assert find_missing([experiment], store) == []
    afresh = run_all([experiment], Store(tmp_path / "other"), jobs=1, progress=nothing)[0]
    assert all(np.array_equal(a.errors, b.errors) for a, b in zip(again.series, afresh.series, strict=True))


def test_a_cell_that_fails_stops_no_other(tmp_path, monkeypatch):
    experiment, store, compute = small(monkeypatch), Store(tmp_path), computing._compute
    unlucky = find_missing([experiment], store)[3]

    def failing(point):
        if point == unlucky:
            raise ValueError("no such luck")
        return compute(point)

    monkeypatch.setattr(computing, "_compute", failing)
    with pytest.raises(RuntimeError, match=f"1 cells failed; the first is {unlucky.sweep} at") as caught:
        run_all([experiment], store, jobs=1, progress=nothing)
    assert "no such luck" in str(caught.value.__cause__)
    assert find_missing([experiment], store) == [unlucky]


def test_methods_can_be_computed_one_after_the_other(tmp_path):
    experiment = catalogue.load_experiment("federated", quick=True, adaptive_at_most=2)
    points = tuple(point for point in experiment.points if len(point.cell.profile) <= 3)
    experiment = dataclasses.replace(experiment, points=points)
    store = Store(tmp_path / "staged")
    computing.compute_missing(
        [experiment], store, jobs=1, progress=nothing, only=["published", "full-batch", "nonprivate"]
    )
    assert {method.name for point in find_missing([experiment], store) for method in point.cell.methods} == {"adaptive"}
    staged = run_all([experiment], store, jobs=1, progress=nothing)[0]
    at_once = run_all([experiment], Store(tmp_path / "once"), jobs=1, progress=nothing)[0]
    for a, b in zip(staged.series, at_once.series, strict=True):
        assert (a.method, a.epsilon, a.coordinates) == (b.method, b.epsilon, b.coordinates)
        assert np.allclose(a.errors, b.errors, rtol=1e-12)


def test_results_of_the_default_method_do_not_outlive_its_code(tmp_path, monkeypatch):
    experiment, store = catalogue.load_experiment("federated", quick=True), Store(tmp_path)
    point = experiment.points[0]
    keys = {method.name: computing._key(point, method) for method in point.cell.methods}
    monkeypatch.setattr(computing, "adaptive_code", lambda: "changed")
    changed = {method.name: computing._key(point, method) for method in point.cell.methods}
    assert {name for name in keys if keys[name] != changed[name]} == {"adaptive"}
    assert store.read(changed["adaptive"]) is None


def test_points_with_the_same_data_are_computed_together_and_each_method_has_the_same_result_alone(tmp_path):
    experiment = catalogue.load_experiment("sensitivity", quick=True, reading="F")
    assert len(experiment.points) > 20
    (merged,) = find_missing([experiment], Store(tmp_path))
    methods = [dataclasses.replace(method, repetitions=3) for method in merged.cell.methods[::7]]
    together = run_methods(dataclasses.replace(merged.cell, methods=tuple(methods)))
    for method, errors in zip(methods, together, strict=True):
        alone = run_methods(dataclasses.replace(merged.cell, methods=(method,)))[0]
        assert np.allclose(alone, errors, rtol=1e-9)


def test_a_damaged_result_is_computed_again(tmp_path):
    store, key = Store(tmp_path), {"a": 1}
    store.write(key, {"x": np.arange(3.0)})
    assert np.array_equal(store.read(key)["x"], np.arange(3.0))
    next(tmp_path.glob("*.npz")).write_bytes(b"PK\x03\x04 half a file")
    assert store.read(key) is None


def test_a_run_writes_figures_tables_and_verdicts(tmp_path):
    experiment = catalogue.load_experiment("federated", quick=True, adaptive_at_most=2)
    points = tuple(point for point in experiment.points if len(point.cell.profile) <= 4)
    experiment = type(experiment)(experiment.name, experiment.title, experiment.source, points, quick=True)
    results = run_all([experiment], Store(tmp_path / "cache"), jobs=1, progress=nothing)
    write_all(tmp_path, results, Run("dpfda reproduce federated", True, 1.0, len(points)))
    assert (tmp_path / "figures/federated.png").stat().st_size > 20_000
    assert b"<svg" in (tmp_path / "figures/federated.svg").read_bytes()
    rows = list(csv.DictReader((tmp_path / "tables/federated.csv").open()))
    assert len(rows) == len(results[0].series)
    assert float(rows[0]["mean"]) == pytest.approx(results[0].series[0].mean, rel=1e-5)
    claims = json.loads((tmp_path / "tables/claims-federated.json").read_text())
    text = (tmp_path / "RESULTS-federated.md").read_text()
    assert all(claim["measured"] in text for claim in claims)
    assert "QUICK" in text


def test_a_break_is_found_where_it_is_and_not_where_there_is_none():
    x = np.log(np.arange(200, 3601, 200))
    rng = np.random.default_rng(1)
    broken = np.where(x < np.log(1500), -2 * x, -x - np.log(1500)) + 0.02 * rng.standard_normal(x.size)
    first, second = lines_with_break(x, broken)
    assert first.gradient == pytest.approx(-2, abs=0.1)
    assert second.gradient == pytest.approx(-1, abs=0.1)
    assert 1200 <= np.exp(second.start) <= 1800
    straight = [len(lines_with_break(x, -1.8 * x + 0.02 * rng.standard_normal(x.size))) for _ in range(1000)]
    assert np.mean(np.array(straight) == 2) < 0.01 + 4 * np.sqrt(0.01 / 1000)
    assert sorted_gradients([first, second]) == ([first.gradient], [second.gradient])


def test_levelling_off():
    m = np.arange(2, 26)
    exact = levelling(m, 0.1 + 1 / m, claimed=10)
    share = (1 / exact.turn - 1 / 25) / (1 / 2 - 1 / 25)
    assert share == pytest.approx(0.1, abs=0.01)
    assert exact.still_falls == pytest.approx(1 - (0.1 + 1 / 25) / (0.1 + 1 / 10), abs=0.01)


def test_directions_have_their_level():
    rng = np.random.default_rng(0)
    rejected = [falls(*np.exp(rng.standard_normal((2, 40)))).holds(0.05) for _ in range(400)]
    assert np.mean(rejected) < 0.09  # 0.05 plus 4 standard errors
    assert falls(np.exp(rng.standard_normal(100) + 2), np.exp(rng.standard_normal(100))).holds(1e-4)


PARENT = """
import multiprocessing, os, time
from concurrent.futures import ProcessPoolExecutor
from dpfda.reproduce.cells import run_methods
from dpfda.reproduce.compute import _end_with_parent

if __name__ == "__main__":
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), initializer=_end_with_parent) as pool:
        print(pool.submit(os.getpid).result(), flush=True)
        time.sleep(60)
"""


def test_workers_end_when_their_parent_is_killed(tmp_path):
    (tmp_path / "parent.py").write_text(PARENT)
    with subprocess.Popen([sys.executable, str(tmp_path / "parent.py")], stdout=subprocess.PIPE, text=True) as parent:
        assert int(parent.stdout.readline()) != parent.pid
        parent.kill()
        parent.communicate(timeout=300)  # ends when nobody holds the pipe any more, the worker neither
