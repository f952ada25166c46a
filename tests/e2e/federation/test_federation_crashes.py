"""kill -9 of a silo, a client, a whole site, the server and the study: it goes on or resumes, ledgers tell the truth."""

from __future__ import annotations

import json
import signal
import stat
import subprocess

import pytest
from numpy.testing import assert_array_equal

pytest.importorskip("nvflare")

from hospitals import COMMAND, Study
from world import wait_until

from dpfda.errors import TransportError
from dpfda.federation.lock import AlreadyRunning
from dpfda.federation.running import RunOptions, StudyRun
from dpfda.methods.published import PublishedCoordinator
from dpfda.protocol.plans.registry import COORDINATORS

ROUNDS = 6
SILO, CLIENT = "dpfda.federation.silo_main", "dpfda.federation.flare.client"


@pytest.fixture
def crash(tmp_path, request):
    study = Study(tmp_path, getattr(request, "param", 3), rounds=ROUNDS).start()
    try:
        yield study
    finally:
        study.stop()


def check_undisturbed(study):
    assert study.folder.rounds_done() == ROUNDS
    assert study.folder.true_status().phase == "finished"
    study.check_ledgers()
    assert_array_equal(study.coefficients(), study.undisturbed())


def test_one_study_survives_three_kinds_of_kill(crash):
    """A silo in the first round, a client in the third, the server in the fifth; every site is needed."""
    first = crash.in_round(0, lambda: crash.sites["middle"].kill_part(SILO))
    second = crash.in_round(2, lambda: (first.join(), crash.sites["north"].kill_part(CLIENT)))
    third = crash.in_round(4, lambda: (second.join(), crash.kill_server()))
    crash.to_end()
    third.join(60)
    check_undisturbed(crash)


def test_the_study_itself_is_killed_and_resumed_and_two_do_not_run_at_once(crash):
    crash.sites["south"].signal(signal.SIGSTOP)  # so that the study cannot end before it is struck
    running = subprocess.Popen([*COMMAND, "--quiet", "study", "run", str(crash.path)], stdin=subprocess.DEVNULL)
    assert wait_until(
        lambda: (found := crash.folder.status()) is not None and found.sites["north"]["state"] == "joined", 90
    )
    again = StudyRun(crash.folder, RunOptions(for_sites=1.0), lambda _: None)
    with pytest.raises(AlreadyRunning, match=f"Process {running.pid} on"):
        again.to_end()
    assert crash.folder.true_status().phase == "inviting"
    running.send_signal(signal.SIGKILL)
    running.wait()
    assert crash.folder.true_status().phase == "killed"
    crash.sites["south"].signal(signal.SIGCONT)
    done = subprocess.run(
        [*COMMAND, "study", "resume", str(crash.path)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    check_undisturbed(crash)
    said = subprocess.run([*COMMAND, "study", "status", str(crash.path), "--json"], capture_output=True, check=True)
    assert json.loads(said.stdout)["phase"] == "finished"


class Mistaken(PublishedCoordinator):
    """A mistake of the coordinator's own code, in the third round."""

    def learn(self, index, releases):
        if index == 2:
            raise KeyError("a mistake")
        super().learn(index, releases)


def test_a_mistake_of_the_coordinator_is_told_in_a_sentence_and_mended_by_an_upgrade(crash, monkeypatch):
    monkeypatch.setitem(COORDINATORS, "published", Mistaken)
    with pytest.raises(TransportError, match="dpfda made a mistake") as told:
        crash.to_end()
    assert "(KeyError)" in str(told.value)
    assert "upgrade dpfda, and run dpfda study resume" in str(told.value)
    assert crash.folder.true_status().phase == "stopped"
    assert crash.folder.true_status().message == str(told.value)
    assert 'raise KeyError("a mistake")' in crash.folder.log.read_text()
    assert stat.S_IMODE(crash.folder.log.stat().st_mode) == 0o600
    assert crash.folder.rounds_done() == 3
    monkeypatch.undo()
    crash.to_end()
    check_undisturbed(crash)


every_round = pytest.mark.parametrize("round_", range(ROUNDS))


@pytest.mark.slow
@every_round
@pytest.mark.parametrize("part", [SILO, CLIENT])
def test_kill_a_process_of_a_site(crash, round_, part):
    """It is started again by itself, in the same round; the bits are the same."""
    striking = crash.in_round(round_, lambda: crash.sites["middle"].kill_part(part))
    crash.to_end()
    striking.join(60)
    check_undisturbed(crash)


@pytest.mark.slow
@every_round
def test_kill_the_server(crash, round_):
    """`study run` starts it again, the sites come back by themselves."""
    striking = crash.in_round(round_, crash.kill_server)
    crash.to_end()
    striking.join(60)
    check_undisturbed(crash)


@pytest.mark.slow
@pytest.mark.parametrize("crash", [pytest.param(2, id="two are enough")], indirect=True)
@every_round
def test_kill_a_whole_site(crash, round_):
    """The others go on with renormalised weights; the site comes back with its ledger."""
    striking = crash.in_round(round_, crash.sites["south"].kill_and_start_again)
    crash.to_end()
    striking.join(60)
    answered = crash.answered()
    assert answered["north"] == answered["middle"] == ROUNDS
    assert answered.get("south", 0) >= round_
    crash.check_ledgers()
    assert_array_equal(crash.coefficients(), crash.expected())


@pytest.mark.slow
def test_kill_a_whole_site_when_every_site_is_needed(crash):
    striking = crash.in_round(2, crash.sites["south"].kill_and_start_again)
    crash.to_end()
    striking.join(60)
    check_undisturbed(crash)


def test_two_site_runs_do_not_fight(crash):
    site = crash.sites["north"]
    assert wait_until((site.folder.run / "silo.sock").exists, 120)
    words = ["site", "run", str(site.folder.root), "--simulation"]
    second = subprocess.run([*COMMAND, *words], capture_output=True, text=True, timeout=300, check=False)
    assert second.returncode == 2
    assert "end it first" in second.stderr
    assert site.process.poll() is None
    assert (site.folder.run / "silo.sock").exists()
