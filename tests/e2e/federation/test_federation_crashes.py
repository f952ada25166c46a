"""kill -9 of a site's job process, a site's parent and the server: the study finishes or resumes, ledgers tell the truth."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from numpy.testing import assert_array_equal

pytest.importorskip("nvflare")

from hospitals import Study
from world import environment

from dpfda.errors import TransportError

ROUNDS = 6


@pytest.fixture
def crash(tmp_path, request):
    with environment(HOME=str(tmp_path)):
        study = Study(tmp_path, getattr(request, "param", 3), rounds=ROUNDS).start()
        try:
            yield study
        finally:
            study.stop()


def finish(study):
    """`dpfda study run`, and `resume` as often as the server was killed; how often that was."""
    for resumed in range(3):
        try:
            study.to_end()
        except TransportError as error:
            if "dpfda study resume" not in str(error):
                raise
        else:
            return resumed
    raise AssertionError("the study could not be resumed")


def check_undisturbed(study):
    assert study.folder.rounds_done() == ROUNDS
    study.check_ledgers()
    assert_array_equal(study.coefficients(), study.undisturbed())


def test_one_study_survives_two_kinds_of_kill(crash):
    """A site's job process in the first round, the server in the fifth; every site is needed."""
    first = crash.in_round(0, crash.sites["middle"].kill_job_process)
    second = crash.in_round(4, lambda: (first.join(), crash.kill_server()))
    assert finish(crash) == 1
    second.join(60)
    check_undisturbed(crash)


every_round = pytest.mark.parametrize("round_", range(ROUNDS))


@pytest.mark.slow
@every_round
def test_kill_a_job_process(crash, round_):
    """The job is run again by itself; the bits are the same."""
    striking = crash.in_round(round_, crash.sites["middle"].kill_job_process)
    assert finish(crash) == 0
    striking.join(60)
    check_undisturbed(crash)


@pytest.mark.slow
@every_round
def test_kill_the_server(crash, round_):
    striking = crash.in_round(round_, crash.kill_server)
    assert finish(crash) <= 1  # in the last round it may have finished first
    striking.join(60)
    check_undisturbed(crash)


@pytest.mark.slow
@pytest.mark.parametrize("crash", [pytest.param(2, id="two are enough")], indirect=True)
@every_round
def test_kill_a_sites_parent(crash, round_):
    """The others go on with renormalised weights; the site comes back with its ledger."""
    striking = crash.in_round(round_, crash.sites["south"].kill_and_start_again)
    assert finish(crash) == 0
    striking.join(60)
    answered = crash.answered()
    assert answered["north"] == answered["middle"] == ROUNDS
    assert answered.get("south", 0) >= round_
    crash.check_ledgers()
    assert_array_equal(crash.coefficients(), crash.expected())


@pytest.mark.slow
def test_kill_a_sites_parent_when_every_site_is_needed(crash):
    """FLARE takes a minute to notice: the study goes on by itself or is resumed, and nothing is missing."""
    striking = crash.in_round(2, crash.sites["south"].kill_and_start_again)
    assert finish(crash) <= 1
    striking.join(60)
    check_undisturbed(crash)


@pytest.mark.slow
def test_the_commands_end_to_end(tmp_path):
    """The coordinator's and the sites' commands as people type them."""
    with environment(HOME=str(tmp_path)):
        study = Study(tmp_path, 3, rounds=ROUNDS)
        command = [sys.executable, "-m", "dpfda.cli.main"]
        sites = [subprocess.Popen([*command, "site", "run", str(site.kit)]) for site in study.sites.values()]
        try:
            done = subprocess.run([*command, "study", "run", str(study.path)], check=False, timeout=120)
            assert done.returncode == 0
            for word in ("status", "result"):
                tail = ["study", word, str(study.path)]
                assert subprocess.run([*command, *tail], check=False, timeout=60).returncode == 0
        finally:
            for process in sites:
                os.kill(process.pid, signal.SIGTERM)
            for process in sites:
                assert process.wait(30) == 0
