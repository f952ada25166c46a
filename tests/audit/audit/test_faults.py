"""Kills, full disks, clocks, races and damage: nothing lost, nothing spent twice, nothing released unspent."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from dpfda.audit.faults import KINDS, LOSSES
from dpfda.audit.reliability import markdown

RUNS = 8


@pytest.fixture(scope="module")
def found() -> dict[str, dict[str, int]]:
    """In a process of its own: the faults fork, and pytest has threads."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "dpfda.audit.reliability", "--runs", str(RUNS), "--seed", "3", "--json"]
    command.append("--no-databases")
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("kind", KINDS)
def test_no_fault_loses_anything(found, kind) -> None:
    assert {loss: found[kind].get(loss, 0) for loss in LOSSES} == dict.fromkeys(LOSSES, 0)
    assert found[kind]["runs"] >= 1
    assert found[kind]["releases"] >= 9 * found[kind]["runs"]


def test_the_faults_that_do_not_depend_on_timing_did_happen(found) -> None:
    assert found["full disk"]["faults"] >= 1
    assert found["damaged or edited ledger"]["detected"] >= 8
    assert found["damaged or edited ledger"]["faults"] == 29


def test_kills_hit_studies_and_not_only_processes_that_start(found) -> None:
    """Each of about 15 kills does with probability one half or more; at a slow start all would miss."""
    assert found["SIGKILL at random moments"].get("mid-study", 0) >= 1


def test_the_page_shows_losses() -> None:
    page = markdown({"SIGKILL": {"runs": 2, "faults": 3, "lost": 1}}, 2)
    assert "**2 studies, 3 faults, 1 losses.**" in page


@pytest.mark.slow
def test_a_killed_database_loses_nothing() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    code = "import json, random; from dpfda.audit.fault_database import database_kills as kills; "
    code += "print(json.dumps(kills(3, random.Random(1))))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=True)
    found = json.loads(done.stdout)
    if found is None:
        pytest.skip("the system package 'postgresql' is not installed; `make setup-system` installs it")
    assert found["faults"] >= 3
    assert {loss: found.get(loss, 0) for loss in LOSSES} == dict.fromkeys(LOSSES, 0)
