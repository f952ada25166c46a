"""The parts of the auditor by themselves: it must see what is wrong, and find nothing where nothing is."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from dpfda.audit import fault_worker
from dpfda.audit.cases import DELTA, NAME, default_arrays, make_silo, ordinary_curves, single_cases, study_cases
from dpfda.audit.fault_database import Server
from dpfda.audit.forks import examined, finished
from dpfda.audit.releases import LARGE, audit_release, grid_points
from dpfda.audit.search import worst_pair
from dpfda.audit.studies import Playback, Recorder, worst_neighbours
from dpfda.methods.run import run_study
from dpfda.privacy.ledger.ledger import Ledger
from dpfda.protocol.messages import Query, Release
from dpfda.protocol.plans.registry import make_plan


def test_releases_lie_on_the_grid_and_a_float_beside_it_is_seen() -> None:
    case = single_cases()[0]
    silo = make_silo(ordinary_curves(case.n, case.columns, np.random.default_rng(1)))
    plan = make_plan(case.terms(silo))
    silo.join(case.terms(silo), "a-study")
    release = silo.release(Query("a-study", 0, default_arrays(plan, 0)))
    assert grid_points(release, case.n)[1].all()
    moved = Release(release.run, 0, NAME, release.values * (1 + 1e-13), release.noise_sd, True)
    assert not grid_points(moved, case.n)[1].all()


def test_an_honest_release_is_not_refuted() -> None:
    case = single_cases()[0]
    pair = worst_pair(case, np.random.default_rng(2), restarts=1, steps=5)
    result = audit_release(pair, 40)
    assert not result.violations
    assert result.name == case.name


def test_a_recorded_study_plays_back_with_the_same_questions() -> None:
    case = next(case for case in study_cases() if case.silos == 1)
    neighbours, attained = worst_neighbours(case, np.random.default_rng(3), tries=1)
    assert 0 <= attained <= 1 + 1e-9
    recorder = Recorder(neighbours.silos(neighbours.data_sets()[0], Ledger.in_memory(LARGE, DELTA)))
    first = run_study(neighbours.terms, recorder, "a-study")
    playback = Playback(recorder.rounds)
    again = run_study(neighbours.terms, playback, "a-study")
    assert playback.same
    np.testing.assert_array_equal(first.coefficients, again.coefficients)
    assert recorder.spent == sorted(recorder.spent)


def test_a_fault_worker_finishes_its_study_and_the_examiner_finds_nothing_lost(tmp_path: Path) -> None:
    Ledger.create(fault_worker.ledger_at(tmp_path), fault_worker.LEDGER_EPSILON, DELTA)
    assert fault_worker.main(tmp_path, "run-1") == fault_worker.DONE
    tally = examined(tmp_path, ["run-1"])
    assert tally["releases"] > 0
    assert [
        name for name in ("released unspent", "two answers", "charged twice", "over budget", "lost") if tally[name]
    ] == []


def test_the_examiner_sees_a_release_that_nobody_paid_for(tmp_path: Path) -> None:
    ledger = Ledger.create(fault_worker.ledger_at(tmp_path), fault_worker.LEDGER_EPSILON, DELTA)
    assert make_plan(fault_worker.study(tmp_path, ledger)[0]).rounds
    (tmp_path / "left.jsonl").write_text('["run-1", 0, "00"]\n')
    tally = examined(tmp_path, ["run-1"])
    assert tally["released unspent"] == 1
    assert tally["lost"] >= 1


def test_a_child_tells_its_exit_code() -> None:
    child = os.posix_spawn("/bin/sh", ["sh", "-c", "exit 3"], {})
    assert finished(child) == 3


def test_a_ledger_on_the_fault_server_has_its_own_name(tmp_path: Path) -> None:
    server = object.__new__(Server)
    server._port = 5432
    assert server.url("one") != server.url("two")
