"""A study of separate processes, as people run it: a consortium, policies, sites that can be struck in a given round."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import subprocess
import sys
import threading
import time

import psutil
from world import PASSPHRASE, accept, curves, enrol, set_policy, wait_until, write_table

from dpfda.cli.commands.federate_demo import free_port
from dpfda.federation.audit_log import AuditLog
from dpfda.federation.consortium import ConsortiumFolder
from dpfda.federation.policy import read_policy
from dpfda.federation.running import RunOptions, StudyRun
from dpfda.federation.site import open_silo
from dpfda.federation.site_ledger import create_ledger, open_ledger
from dpfda.federation.study import name_study
from dpfda.federation.workspace import propose_study
from dpfda.methods.run import run_study
from dpfda.protocol.plans.registry import make_plan
from dpfda.transports.checkpoint import Transcript
from dpfda.transports.in_process import InProcessTransport

NAMES = ("north", "middle", "south")
COMMAND = [sys.executable, "-m", "dpfda.cli.main"]
PATIENT = RunOptions(for_sites=90.0, for_late_sites=15.0, after_enough=8.0, in_all=90.0)  # for a busy machine, too


class Hospital:
    """One site: its folder, its policy, its processes. Seeded, so that results can be compared bit by bit."""

    def __init__(self, study, root, name, seed, n):
        self.name, self.study, self.process = name, study, None
        write_table(root / f"{name}.csv", curves(n, seed))
        policy = root / f"{name}.toml"
        policy.write_text(
            f'[data]\nsource = "{name}.csv"\nid = "pid"\nx = "t"\ny = "value"\nduplicates = "keep"\n'
            "[promise]\nepsilon = 1.0\ndelta = 1e-3\n[budget]\nepsilon = 1.0\ndelta = 1e-3\n[simulation]\nseed = 5\n"
        )
        self.policy, self.folder = read_policy(policy), enrol(study.consortium, root / name, name)
        set_policy(self.folder, self.policy)

    def start(self):
        """`dpfda site run`: a supervisor, a client and a silo."""
        words = ["--quiet", "site", "run", str(self.folder.root), "--simulation"]
        self.process = subprocess.Popen([*COMMAND, *words], stdin=subprocess.DEVNULL)

    def family(self):
        parent = psutil.Process(self.process.pid)
        return [parent, *parent.children(recursive=True)]

    def kill_part(self, part):
        """kill -9 of the silo's or the client's process; the supervisor starts it again."""
        for process in self.family():
            with contextlib.suppress(psutil.Error):
                if any(part in word for word in process.cmdline()):
                    process.kill()

    def kill(self):
        for process in self.family():
            with contextlib.suppress(psutil.Error):
                process.kill()
        self.process.wait()

    def kill_and_start_again(self):
        self.kill()
        self.start()

    def signal(self, number):
        for process in self.family():
            with contextlib.suppress(psutil.Error):
                process.send_signal(number)

    def stop(self):
        """End it, frozen or not."""
        if self.process is not None and self.process.poll() is None:
            self.signal(signal.SIGCONT)
            self.process.terminate()
            self.process.wait(30)

    def audit(self):
        return AuditLog(self.folder.audit)

    def twin(self):
        """The same site with a ledger of its own, in this process."""
        policy = dataclasses.replace(self.policy, ledger=f"{self.policy.ledger}.twin-{time.monotonic_ns()}")
        create_ledger(policy)
        return open_silo(policy, self.study.terms, self.name)


class Study:
    """Three sites, published method; `rounds` is checked, it follows from n and `c_t`."""

    def __init__(self, root, min_sites, *, n=120, c_t=1.0, rounds=6, more=""):
        self.consortium = ConsortiumFolder.create(
            root / "consortium", "lipids", "127.0.0.1", free_port(), PASSPHRASE, "127.0.0.1"
        )
        self.sites = {name: Hospital(self, root, name, seed, n) for seed, name in enumerate(NAMES)}
        sites = "".join(
            f'[[sites]]\nname = "{name}"\nn = {n}\nepsilon = 1.0\ndelta = 1e-3\npoints_per_curve = 4\n'
            for name in NAMES
        )
        self.path = root / "crash.toml"
        self.path.write_text(
            'consortium = "consortium"\nname = "crash"\nmodel = "mean"\ndomain = [0, 1]\ny_bounds = [-5, 5]\n'
            f'method = "published"\nn_basis = 4\nmin_sites = {min_sites}\n{more}{sites}[constants]\nC_T = {c_t}\n'
        )
        self.folder = propose_study(self.path)
        self.terms = self.folder.terms()
        self.name, self.rounds = name_study(self.terms), len(make_plan(self.terms).rounds)
        assert self.rounds == rounds
        for site in self.sites.values():
            accept(site.folder, self.terms, self.consortium)
        self.run = None

    def start(self):
        for site in self.sites.values():
            site.start()
        return self

    def stop(self):
        for site in self.sites.values():
            site.stop()

    def to_end(self, options=PATIENT):
        self.run = StudyRun(self.folder, options, lambda _: None)
        self.run.to_end()

    def kill_server(self):
        os.kill(self.run.server._process.pid, signal.SIGKILL)

    def in_round(self, round_, strike):
        """Strike while a round is under way: the round before it is on record, or the sites have joined the first."""
        thread = threading.Thread(target=lambda: (self.wait_for_round(round_), strike()), daemon=True)
        thread.start()
        return thread

    def wait_for_round(self, round_):
        deadline = time.monotonic() + 300
        while not self._reached(round_) and time.monotonic() < deadline:
            time.sleep(0.002)

    def wait_until_missed(self, name):
        assert wait_until(lambda: name in self.folder.status().absent, 120, 0.01), "the site was not missed"

    def _reached(self, round_):
        if round_:
            return (self.folder.transcript / f"round-{round_ - 1:06d}.bin").exists()
        return all(any(line["event"] == "invitation" for line in site.audit().lines()) for site in self.sites.values())

    def answered(self):
        return Transcript(self.folder.transcript).answers()

    def present(self):
        """Which sites' answers the coordinator used, round by round."""
        kept = {name: set(open_ledger(site.policy).releases(self.name)) for name, site in self.sites.items()}
        seen = Seen(InProcessTransport([site.twin() for site in self.sites.values()]), self.folder.transcript)
        run_study(self.terms, seen, self.name)
        for round_, names in enumerate(seen.rounds):
            assert all(round_ in kept[name] for name in names), "an answer that its site has not on record"
        return seen.rounds

    def coefficients(self):
        return self.folder.load_estimator().coef_

    def expected(self):
        """The result in process, where each round has the answers of those sites that gave one, and of no other."""
        inner = InProcessTransport([site.twin() for site in self.sites.values()])
        return self._in_user_units(run_study(self.terms, Partial(inner, self.present()), self.name))

    def undisturbed(self):
        silos = [site.twin() for site in self.sites.values()]
        return self._in_user_units(run_study(self.terms, InProcessTransport(silos), self.name))

    def _in_user_units(self, outcome):
        return make_plan(self.terms).scaling.to_user_units(outcome.coefficients)[0]

    def check_ledgers(self):
        """Each ledger holds one debit for each release on record there, and what the coordinator has is among them."""
        answered = self.answered()
        for name, site in self.sites.items():
            ledger = open_ledger(site.policy)
            ledger.verify()
            site.audit().verify()
            rounds = [entry.round for entry in ledger.log()]
            assert len(rounds) == len(set(rounds)), "a round was charged twice"
            assert set(rounds) == set(ledger.releases(self.name)), "a debit without its release, or the reverse"
            assert answered.get(name, 0) <= len(rounds) <= self.rounds
            asked = [line for line in site.audit().lines() if line["event"] == "query"]
            on_time = [
                line for line in asked if "is past" not in line.get("reason", "")
            ]  # not of a round that had closed
            outcomes = [line["outcome"] for line in on_time]
            assert set(outcomes) <= {"released", "replayed"}, "a site refused an honest question"
            assert outcomes.count("released") <= len(rounds)


class Seen:
    """The transcript as a transport that notes who is in it."""

    def __init__(self, inner, folder):
        self._inner, self._transcript, self.rounds = inner, Transcript(folder), []

    def open(self, terms, run):
        self._inner.open(terms, run)

    def gather(self, query):
        releases = self._transcript.recorded(query)
        self.rounds.append(list(releases))
        return releases


class Partial:
    """An in-process transport in which each round has the answers of these sites only."""

    def __init__(self, inner, rounds):
        self._inner, self._rounds = inner, rounds

    def open(self, terms, run):
        self._inner.open(terms, run)

    def gather(self, query):
        releases = self._inner.gather(query)
        return {name: releases[name] for name in self._rounds[query.round]}
