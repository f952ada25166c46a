"""A study of separate processes, as people run it: kits, policies, sites that can be struck in a given round."""

from __future__ import annotations

import contextlib
import dataclasses
import signal
import threading
import time

import psutil
<<<<<<< HEAD
from dpfda.federation.flare.processes import start_site, stop, wait_until
from dpfda.federation.flare.run_study import RunOptions, StudyRun
from dpfda.federation.joining import check_promise, check_study, join, site_folder, unpack
from installed import installed
=======
>>>>>>> border-terms
from world import curves, write_table

from dpfda.cli.commands.federate_demo import free_ports
from dpfda.errors import LedgerError
from dpfda.federation.policy import read_policy
from dpfda.federation.site import open_ledger, open_silo
from dpfda.federation.workspace import init_study
from dpfda.methods.run import run_study
from dpfda.protocol.messages import Query
from dpfda.transports.checkpoint import Transcript
from dpfda.transports.in_process import InProcessTransport

NAMES = ("north", "middle", "south")
PATIENT = RunOptions(for_sites=90.0, for_late_sites=15.0, after_enough=8.0, in_all=90.0)  # for a busy machine, too


class Hospital:
    """One site: its kit, its policy, its process. Seeded, so that results can be compared bit by bit."""

    def __init__(self, root, folder, name, seed, n):
        self.name = name
        write_table(root / f"{name}.csv", curves(n, seed))
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

    def family(self):
        parent = psutil.Process(self.process.pid)
        return [parent, *parent.children(recursive=True)]

    def kill_job_process(self):
        for process in self.family():
            if "site_worker" in str(process.cmdline()):
                process.kill()

    def kill(self):
        for process in self.family():
            process.kill()
        self.process.wait()

    def kill_and_start_again(self):
        self.kill()
        self.start()

    def signal(self, number):
        for process in self.family():
            with contextlib.suppress(psutil.NoSuchProcess):  # a job process may just have ended
                process.send_signal(number)

    def stop(self):
        """End it, frozen or not."""
        if self.process is not None and self.process.poll() is None:
            self.signal(signal.SIGCONT)
            stop([self.process])

    def audit(self):
        return site_folder(self.kit).audit

    def twin(self):
        """The same site with a ledger of its own, in this process."""
        policy = dataclasses.replace(self.policy, ledger=f"{self.policy.ledger}.twin-{time.monotonic_ns()}")
        return open_silo(policy, self.document, self.name)


class Study:
    """Three sites, published method; `rounds` is checked, it follows from n and `c_t`."""

    def __init__(self, root, min_sites, *, n=120, c_t=1.0, rounds=6):
        port, admin_port = free_ports(2)
        sites = "".join(
            f'[[sites]]\nname = "{name}"\nn = {n}\nepsilon = 1.0\ndelta = 1e-3\npoints_per_curve = 4\n'
            for name in NAMES
        )
        self.path = root / "crash.toml"
        self.path.write_text(
            'name = "crash"\nmodel = "mean"\ndomain = [0, 1]\ny_bounds = [-5, 5]\nmethod = "published"\nn_basis = 4\n'
            f"min_sites = {min_sites}\n[constants]\nC_T = {c_t}\n"
            f"[server]\nport = {port}\nadmin_port = {admin_port}\n{sites}"
        )
        self.folder, self.document = init_study(self.path)
        self.rounds = len(self.document.plan.rounds)
        assert self.rounds == rounds
        self.sites = {name: Hospital(root, self.folder, name, seed, n) for seed, name in enumerate(NAMES)}
        self.run, self.seen = None, []

    def start(self):
        for site in self.sites.values():
            site.start()
        return self

    def stop(self):
        for site in self.sites.values():
            site.stop()

    def to_end(self, options=PATIENT):
        self.run = StudyRun(self.folder, options, lambda _, seen: setattr(self, "seen", seen))
        self.run.to_end()

    def kill_server(self):
        """The server's parent and job process, at once."""
        parent = psutil.Process(self.run._server.pid)
        for process in [parent, *parent.children(recursive=True)]:
            process.kill()

    def in_round(self, round_, strike):
        """Strike while a round is under way: the round before it is on record, or the sites have joined the first."""
        thread = threading.Thread(target=lambda: (self.wait_for_round(round_), strike()), daemon=True)
        thread.start()
        return thread

    def hold_until_back(self, name, come_back):
        """Once a round went on without this site, freeze another, so that nothing goes on until the site is seen again."""
        assert wait_until(lambda: name in self.folder.status().absent, 90, 0.01), "the site was not missed"
        self.sites["middle"].signal(signal.SIGSTOP)
        try:
            assert wait_until(lambda: name not in self.seen, 60), "the site did not leave"
            come_back()
            assert wait_until(lambda: name in self.seen, 90), "the site did not come back"
        finally:
            self.sites["middle"].signal(signal.SIGCONT)

    def wait_for_round(self, round_):
        deadline = time.monotonic() + 90
        while not self._reached(round_) and time.monotonic() < deadline:
            time.sleep(0.002)

    def _reached(self, round_):
        if round_:
            return (self.folder.transcript / f"round-{round_ - 1:06d}.bin").exists()
        return all(any(line["event"] == "invitation" for line in _lines(site)) for site in self.sites.values())

    def answered(self):
        return Transcript(self.folder.transcript).answers()

    def present(self):
        """Which sites' answers the coordinator used, round by round."""
        kept = {name: set(open_ledger(site.policy).releases(self.document.id)) for name, site in self.sites.items()}
        seen = Seen(InProcessTransport([site.twin() for site in self.sites.values()]), self.folder.transcript)
        run_study(self.document.terms, seen, self.document.id)
        for round_, names in enumerate(seen.rounds):
            assert all(round_ in kept[name] for name in names), "an answer that its site has not on record"
        return seen.rounds

    def coefficients(self):
        return self.folder.load_estimator().coef_

    def expected(self):
        """The result in process, where each round has the answers of those sites that gave one, and of no other."""
        plan = self.document.plan
        inner = InProcessTransport([site.twin() for site in self.sites.values()])
        outcome = run_study(self.document.terms, Partial(inner, self.present()), self.document.id)
        return plan.scaling.to_user_units(outcome.coefficients)[0]

    def undisturbed(self):
        plan = self.document.plan
        outcome = run_study(
            self.document.terms, InProcessTransport([site.twin() for site in self.sites.values()]), self.document.id
        )
        return plan.scaling.to_user_units(outcome.coefficients)[0]

    def check_ledgers(self):
        """Each ledger holds one debit for each release on record there, and what the coordinator has is among them."""
        answered = self.answered()
        for name, site in self.sites.items():
            ledger = open_ledger(site.policy)
            ledger.verify()
            site.audit().verify()
            rounds = [entry.round for entry in ledger.log()]
            assert len(rounds) == len(set(rounds)), "a round was charged twice"
            assert set(rounds) == set(ledger.releases(self.document.id)), "a debit without its release, or the reverse"
            assert answered.get(name, 0) <= len(rounds) <= self.rounds
            outcomes = [line.get("outcome") for line in site.audit().lines() if line["event"] == "query"]
            assert set(outcomes) <= {"released", "replayed"}, "a site refused an honest question"
            assert outcomes.count("released") <= len(rounds)


class Seen:
    """The transcript as a transport that notes who is in it."""

    def __init__(self, inner, folder):
        self._inner, self._transcript, self.rounds = inner, Transcript(folder), []

    def open(self, plan, run):
        self._inner.open(self.document.terms, run)

    def gather(self, query):
        releases = self._transcript.recorded(query)
        self.rounds.append(list(releases))
        return releases


class Partial:
    """A transport that leaves out the absent."""

    def __init__(self, inner, present):
        self._inner, self._present = inner, present

    def open(self, plan, run):
        self._inner.open(self.document.terms, run)

    def gather(self, query):
        members = [silo for silo in self._inner._members if silo.name in self._present[query.round]]
        message = query.encode()
        return {silo.name: silo.release(Query.decode(message)) for silo in members}


def _lines(site):
    try:
        return site.audit().lines()
    except LedgerError:  # a line that is being written
        return []
