"""Sites that freeze, withdraw and come back: above the minimum the study goes on with the right weights, below it waits."""

from __future__ import annotations

import contextlib
import signal
import time

import psutil
import pytest
from numpy.testing import assert_array_equal

pytest.importorskip("nvflare")

from hospitals import PATIENT, Study
from world import wait_until

from dpfda.errors import TransportError
from dpfda.federation.running import RunOptions
from dpfda.federation.server_link import ServerLink

pytestmark = pytest.mark.slow
ROUNDS = 50
HASTY = RunOptions(for_sites=90.0, for_late_sites=8.0, after_enough=2.0, in_all=10.0)
QUICK = RunOptions(for_sites=90.0, for_late_sites=15.0, after_enough=1.0, in_all=90.0)


@pytest.fixture
def study(tmp_path):
    made = Study(tmp_path, 2, n=160, c_t=8.0, rounds=ROUNDS)
    try:
        yield made
    finally:
        made.stop()


def check_partial(study, absent):
    """The result is that of the sites that answered, round by round; `absent` missed some rounds and was used again."""
    present = study.present()
    missed = [round_ for round_, names in enumerate(present) if absent not in names]
    assert missed, "the site was never missed: the test shows nothing"
    assert any(absent in names for names in present[missed[0] :]), "the site was not used again"
    assert all(len(names) >= 2 for names in present), "a round below the minimum"
    study.check_ledgers()
    assert_array_equal(study.coefficients(), study.expected())
    return present


def test_a_frozen_site_is_left_out_and_used_again_when_it_thaws(study):
    study.start()
    site = study.sites["south"]
    frozen = study.in_round(3, lambda: site.signal(signal.SIGSTOP))
    thawed = study.in_round(8, lambda: (frozen.join(), site.signal(signal.SIGCONT)))
    study.to_end(QUICK)
    thawed.join(60)
    assert "south" in check_partial(study, "south")[0]


def come_back(study, leave, return_):
    """Leave in round 3; once a round went on without the site, hold the others back until it has returned."""
    leave()
    study.wait_until_missed("south")
    study.sites["middle"].signal(signal.SIGSTOP)
    try:
        return_()
        link = ServerLink(study.consortium.settings().socket)
        assert wait_until(lambda: link.look()["south"].connected, 120), "the site did not come back"
    finally:
        study.sites["middle"].signal(signal.SIGCONT)


def test_a_site_that_withdraws_may_come_back(study):
    """`dpfda site run` ended as by Ctrl-C, and started again after some rounds without it; nothing of it is left over."""
    south = study.start().sites["south"]
    first = south.process

    def leave():
        first.send_signal(signal.SIGINT)
        first.wait(30)

    leaving = study.in_round(3, lambda: come_back(study, leave, south.start))
    study.to_end(QUICK)
    leaving.join(60)
    assert first.returncode == 0
    assert "south" in check_partial(study, "south")[0]
    study.stop()
    folder = str(south.folder.root)
    assert not [each for each in psutil.process_iter(["cmdline"]) if folder in (each.info["cmdline"] or ())]


def test_a_site_killed_in_the_first_round_comes_back(study):
    """kill -9 of everything that the site runs; whether it is back in time for that round depends on the machine."""
    south = study.start().sites["south"]
    striking = study.in_round(0, lambda: (south.kill(), south.start()))
    study.to_end(PATIENT)
    striking.join(60)
    assert all(len(names) >= 2 for names in study.present())
    study.check_ledgers()
    assert_array_equal(study.coefficients(), study.expected())


def test_below_the_minimum_the_study_stops_and_can_be_resumed(study):
    study.start()
    away = [study.sites[name] for name in ("middle", "south")]
    frozen = study.in_round(3, lambda: [site.signal(signal.SIGSTOP) for site in away])
    with pytest.raises(TransportError, match=r"1 of 3 sites answered, the minimum is 2; missing: "):
        study.to_end(HASTY)
    frozen.join(60)
    before = study.folder.rounds_done()
    assert 3 <= before < ROUNDS
    for site in away:
        site.signal(signal.SIGCONT)
    study.to_end(PATIENT)
    assert study.folder.rounds_done() == ROUNDS
    study.check_ledgers()
    assert_array_equal(study.coefficients(), study.expected())


BY_THE_TERMS = RunOptions(for_sites=90.0)  # how long a round stays open is not said here


@contextlib.contextmanager
def study_of(root, min_sites, more):
    made = Study(root, min_sites, more=more)
    try:
        yield made.start()
    finally:
        made.stop()


def test_a_late_answer_counts_while_the_terms_keep_the_round_open(tmp_path):
    """The quorum has answered for six seconds already: the terms, not the minimum, say how long to wait for the others."""
    with study_of(tmp_path, 2, "grace_seconds = 60\nround_seconds = 90\n") as study:
        site = study.sites["south"]
        late = study.in_round(2, lambda: (site.signal(signal.SIGSTOP), time.sleep(6), site.signal(signal.SIGCONT)))
        began = time.monotonic()
        study.to_end(BY_THE_TERMS)
        late.join(60)
        assert time.monotonic() - began > 6
        assert max(study.folder.status().round_seconds) > 5, "the round was not held open: the test shows nothing"
        assert study.answered() == dict.fromkeys(study.sites, study.rounds)
        assert_array_equal(study.coefficients(), study.undisturbed())


def test_a_round_closes_as_soon_after_the_quorum_as_the_terms_say(tmp_path):
    with study_of(tmp_path, 2, "grace_seconds = 1\nround_seconds = 90\n") as study:
        site = study.sites["south"]
        frozen = study.in_round(2, lambda: site.signal(signal.SIGSTOP))
        study.to_end(BY_THE_TERMS)
        frozen.join(60)
        site.signal(signal.SIGCONT)
        assert study.answered()["south"] < study.rounds
        assert study.answered()["north"] == study.answered()["middle"] == study.rounds
        study.check_ledgers()
        assert_array_equal(study.coefficients(), study.expected())


def test_a_round_below_the_quorum_closes_at_the_deadline_of_the_terms(tmp_path):
    with study_of(tmp_path, 3, "grace_seconds = 1\nround_seconds = 5\n") as study:
        site = study.sites["south"]
        frozen = study.in_round(2, lambda: site.signal(signal.SIGSTOP))
        with pytest.raises(TransportError, match="the minimum is 3; missing: south"):
            study.to_end(BY_THE_TERMS)
        frozen.join(60)
        site.signal(signal.SIGCONT)
        study.to_end(BY_THE_TERMS)
        assert study.answered() == dict.fromkeys(study.sites, study.rounds)
        study.check_ledgers()
        assert_array_equal(study.coefficients(), study.undisturbed())
