"""kill -9 of a site's job process, a site's parent and the server: the study finishes or resumes, ledgers tell the truth."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest
from numpy.testing import assert_array_equal

pytest.importorskip("nvflare")
sys.path.insert(0, str(Path(__file__).parents[1] / "flare"))

from world import curves, environment, write_table

from dpfda.cli.federate_demo import free_ports
from dpfda.engine.study import run_study
from dpfda.errors import TransportError
from dpfda.federation.joining import check_promise, check_study, join, site_folder, unpack
from dpfda.federation.policy import read_policy
from dpfda.federation.site import open_ledger, open_silo
from dpfda.federation.workspace import init_study
from dpfda.transport.checkpoint import Transcript
from dpfda.transport.flare.coordinator import RunOptions, StudyRun
from dpfda.transport.flare.processes import start_site, stop
from dpfda.transport.in_process import InProcessTransport

SITES, ROUNDS, N = ("north", "middle", "south"), 6, 120
OPTIONS = RunOptions(for_sites=60.0, for_late_sites=15.0, after_enough=1.0, in_all=60.0)


class Hospital:
    """One site: its kit, its policy, its process."""

    def __init__(self, root, folder, name, seed):
        self.name = name
        write_table(root / f"{name}.csv", curves(N, seed))
        policy = root / f"{name}.toml"
        policy.write_text(
            f'[data]\nsource = "{name}.csv"\nid = "pid"\nx = "t"\ny = "value"\nduplicates = "keep"\n'
            "[promise]\nepsilon = 1.0\ndelta = 1e-3\n[budget]\nepsilon = 1.0\ndelta = 1e-3\n[simulation]\nseed = 5\n"
        )
        self.kit = unpack(folder.kits / f"{name}.zip")
        self.policy = read_policy(policy)
        self.document = check_study(self.kit)
        join(self.kit, check_promise(self.document, self.policy, name))
        self.process = None

    def start(self):
        self.process = start_site(self.kit, self.name, self.kit / "site.log")

    def job_processes(self):
        return [
            p for p in psutil.Process(self.process.pid).children(recursive=True) if "site_worker" in str(p.cmdline())
        ]

    def twin(self):
        return open_silo(
            dataclasses.replace(self.policy, ledger=self.policy.ledger + ".twin"), self.document, self.name
        )


class Study:
    def __init__(self, root, min_sites):
        port, admin_port = free_ports(2)
        sites = "".join(
            f'[[sites]]\nname = "{name}"\nn = {N}\nepsilon = 1.0\ndelta = 1e-3\npoints_per_curve = 4\n'
            for name in SITES
        )
        study = root / "crash.toml"
        study.write_text(
            'name = "crash"\nmodel = "mean"\ndomain = [0, 1]\ny_bounds = [-5, 5]\nmethod = "published"\nn_basis = 4\n'
            f"min_sites = {min_sites}\n[constants]\nC_T = 1.0\n[server]\nport = {port}\nadmin_port = {admin_port}\n{sites}"
        )
        self.folder, self.document = init_study(study)
        assert len(self.document.plan.rounds) == ROUNDS
        self.sites = {name: Hospital(root, self.folder, name, seed) for seed, name in enumerate(SITES)}
        self.run = None

    def to_end(self):
        self.run = StudyRun(self.folder, OPTIONS, lambda *_: None)
        self.run.to_end()

    def coefficients(self):
        fitted = self.folder.outcome_estimator()
        return fitted.coef_

    def undisturbed(self):
        plan = self.document.plan
        silos = [site.twin() for site in self.sites.values()]
        outcome = run_study(plan, InProcessTransport(silos), self.document.id)
        return plan.scaling.to_user_units(outcome.coefficients)[0]

    def check_ledgers(self):
        """Each ledger holds one debit for each release that the coordinator has or the site has kept, and no more."""
        answered = Transcript(self.folder.transcript).answers()
        for name, site in self.sites.items():
            ledger = open_ledger(site.policy)
            ledger.verify()
            site_folder(site.kit).audit.verify()
            rounds = [entry.round for entry in ledger.log()]
            assert len(rounds) == len(set(rounds)) or len(rounds) == len(set(rounds)) + 1  # a killed draw is paid twice
            assert answered[name] <= len(set(rounds)) <= ROUNDS
            released = {
                line["round"] for line in site_folder(site.kit).audit.lines() if line.get("outcome") == "released"
            }
            assert released <= set(rounds)

    def at_round(self, round_, strike):
        """Strike as soon as a round is on record."""
        path = self.folder.transcript / f"round-{round_:06d}.bin"

        def wait():
            deadline = time.monotonic() + 90
            while not path.exists() and time.monotonic() < deadline:
                time.sleep(0.002)
            strike()

        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
        return thread

    def kill_server(self):
        """The server's parent and job process, at once."""
        parent = psutil.Process(self.run._server.pid)
        for process in [parent, *parent.children(recursive=True)]:
            process.kill()


@pytest.fixture
def crash(tmp_path, request):
    with environment(HOME=str(tmp_path)):
        study = Study(tmp_path, getattr(request, "param", 2))
        for site in study.sites.values():
            site.start()
        try:
            yield study
        finally:
            stop([site.process for site in study.sites.values()])


def kill_job_process(study):
    for process in study.sites["middle"].job_processes():
        process.kill()


every_round = [pytest.param(round_, marks=pytest.mark.slow) for round_ in range(ROUNDS - 1)]


@pytest.mark.parametrize("crash", [pytest.param(3, id="every site is needed")], indirect=True)
@pytest.mark.parametrize("round_", every_round)
def test_kill_a_job_process_then_the_server(crash, round_):
    """Two kinds of kill in one study: the job is run again by itself, the server by `resume`; the bits are the same."""
    killed = crash.at_round(max(0, round_ - 1), lambda: kill_job_process(crash))
    crash.at_round(round_, lambda: (killed.join(), crash.kill_server()))
    try:
        crash.to_end()
    except TransportError:
        before = crash.folder.rounds_done()
        crash.to_end()  # dpfda study resume
        assert before < ROUNDS
    assert crash.folder.rounds_done() == ROUNDS
    crash.check_ledgers()
    assert_array_equal(crash.coefficients(), crash.undisturbed())


@pytest.mark.parametrize("round_", every_round)
def test_kill_a_sites_parent(crash, round_):
    """The others go on with renormalised weights; the site comes back with its ledger and may answer later rounds."""
    site = crash.sites["south"]

    def strike():
        parent = psutil.Process(site.process.pid)
        for process in [parent, *parent.children(recursive=True)]:
            process.kill()
        site.process.wait()
        site.start()

    striking = crash.at_round(round_, strike)
    crash.to_end()
    striking.join(60)
    answered = Transcript(crash.folder.transcript).answers()
    assert crash.folder.rounds_done() == ROUNDS
    assert answered["north"] == answered["middle"] == ROUNDS
    assert answered["south"] > round_
    crash.check_ledgers()
    if answered["south"] == ROUNDS:
        assert_array_equal(crash.coefficients(), crash.undisturbed())


@pytest.mark.slow
def test_the_commands_end_to_end(tmp_path):
    """The coordinator's and the sites' commands as people type them, with a site's client killed in between."""
    with environment(HOME=str(tmp_path)):
        study = Study(tmp_path, 3)
        command = [sys.executable, "-m", "dpfda.cli.main"]
        sites = [subprocess.Popen([*command, "site", "run", str(site.kit)]) for site in study.sites.values()]
        try:
            done = subprocess.run([*command, "study", "run", str(tmp_path / "crash.toml")], check=False, timeout=120)
            assert done.returncode == 0
            for word in ("status", "result"):
                tail = ["study", word, str(tmp_path / "crash.toml")]
                assert subprocess.run([*command, *tail], check=False, timeout=60).returncode == 0
        finally:
            for process in sites:
                os.kill(process.pid, signal.SIGTERM)
            for process in sites:
                assert process.wait(30) == 0
