"""A real consortium for tests: a server and three sites with data and ledgers, as processes with mutual TLS on 127.0.0.1."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import sys
import threading
import time
from pathlib import Path

import numpy as np

from dpfda.cli.commands.federate_demo import free_port
from dpfda.errors import TransportError
from dpfda.federation.audit_log import AuditLog
from dpfda.federation.carried import CarriedTransport
from dpfda.federation.consortium import ConsortiumFolder
from dpfda.federation.decisions import Decisions
from dpfda.federation.enrolment import request_enrolment, take_credentials
from dpfda.federation.flare.launch import make_command, make_environment, start_process, stop_process
from dpfda.federation.flare.settings import encode_settings
from dpfda.federation.flare.supervisor import Supervisor
from dpfda.federation.folder import SiteFolder
from dpfda.federation.policy import Allowed, SitePolicy
from dpfda.federation.proposal import sign_terms
from dpfda.federation.rounds import Closing, count_all
from dpfda.federation.seal import write_seal
from dpfda.federation.server_link import ServerLink
from dpfda.federation.signed import INVITATION
from dpfda.federation.signing import QUERY, Subject, sign_message
from dpfda.federation.site_ledger import create_ledger, open_ledger
from dpfda.federation.study import name_study
from dpfda.federation.wire import StudyWire
from dpfda.protocol.messages import Query
from dpfda.protocol.published_constants import PublishedConstants
from dpfda.protocol.terms import CovariateTerms, SiloTerms, StudyTerms

HERE = Path(__file__).parent
SITES = ("alpha", "beta", "gamma")
PASSPHRASE = b"a passphrase for tests"
_NUMBERS = itertools.count()


@contextlib.contextmanager
def environment(**values):
    kept = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in kept.items():
            os.environ.pop(name, None) if value is None else os.environ.__setitem__(name, value)


def wait_until(condition, seconds=120.0, step=0.05):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(step)
    return bool(condition())


def write_table(path, curves, columns=()):
    """A CSV that reads back as these very curves."""
    with path.open("w") as file:
        file.write(",".join(["pid", "t", "value", *columns]) + "\n")
        for owner, x, y in zip(curves.owners, curves.x, curves.y, strict=True):
            extra = [repr(float(g)) for g in curves.design[owner, curves.design.shape[1] - len(columns) :]]
            file.write(",".join([f"s{owner:07d}", repr(float(x)), repr(float(y)), *extra]) + "\n")


def enrol(consortium, root, name):
    """A site's folder with its keys and credentials."""
    request = request_enrolment(root, name)
    credentials, _ = consortium.sign(request, name, "clinic", PASSPHRASE)
    folder = SiteFolder(root)
    take_credentials(folder, credentials, lambda fingerprints: fingerprints == consortium.fingerprints())
    return folder


def set_policy(folder, policy, *, new_ledger=True):
    """What `dpfda site policy` does."""
    if new_ledger:
        create_ledger(policy, AuditLog(folder.audit))
    policy.save(folder.policy_path)
    write_seal(folder)
    return policy


def accept(folder, terms, consortium):
    """What `dpfda site inbox --add` and `accept --yes` do, without a look at the data."""
    decisions = Decisions(folder)
    decisions.keep(sign_terms(terms, consortium.signing_key()))
    decisions.accept(terms, open_ledger(SitePolicy.load(folder.policy_path)))


class Site:
    """One site of the world: its folder, and its client and silo processes."""

    def __init__(self, world, name):
        self.world, self.name = world, name
        self.folder = enrol(world.consortium, world.root / "sites" / name, name)
        self._stop, self._thread, self.said = threading.Event(), None, []

    def start(self):
        self._stop.clear()
        command = make_command("dpfda.federation.silo_main", str(self.folder.root), "--simulation")
        supervisor = Supervisor(self.folder, command, self.said.append)
        self._thread = threading.Thread(target=supervisor.run, args=(self._stop,), name=self.name)
        self._thread.start()
        return self

    def stop(self):
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def configure(self, curves, terms, *, columns=(), **policy):
        """Give the site data, a policy and a ledger, and let it accept these terms and no others."""
        place = self.world.root / "data" / f"{self.name}-{time.monotonic_ns()}"
        place.mkdir(parents=True)
        if curves is not None:
            write_table(place / "table.csv", curves, columns)
        mine = terms.silo(self.name)
        defaults = {
            "epsilon": mine.epsilon, "delta": mine.delta, "total_epsilon": mine.epsilon, "total_delta": mine.delta,
            "ledger": str(place / "ledger"), "seed": None, "allow": Allowed(covariates=columns),
        }  # fmt: skip
        data = {"source": str(place / "table.csv"), "id": "pid", "x": "t", "y": "value", "duplicates": "keep"}
        data |= policy.pop("data", {})
        made = SitePolicy(data, **(defaults | policy))
        set_policy(self.folder, made, new_ledger=not Path(made.ledger_place).exists())
        accept(self.folder, terms, self.world.consortium)
        return made

    def log(self):
        return AuditLog(self.folder.audit).lines()


class World:
    """The coordinator's side, on a string: tests say what it sends, honest or not."""

    def __init__(self, root, sites=SITES):
        self.root = root
        self.consortium = ConsortiumFolder.create(
            root / "consortium", "lipids", "127.0.0.1", free_port(), PASSPHRASE, "127.0.0.1"
        )
        self.key = self.consortium.signing_key()
        self.sites = {name: Site(self, name) for name in sites}
        self.tap = root / "tap.bin"
        self.server = None

    def start(self):
        self.start_server()
        for site in self.sites.values():
            site.start()
        assert wait_until(lambda: self.connected() >= set(self.sites), 120), "the sites did not connect"
        self._warm_up()
        return self

    def _warm_up(self):
        """One round, so that no test waits for compiled code to be loaded."""
        terms = study([SiloTerms(name, 20, 1.0, 1e-3, 4.0) for name in self.sites])
        for seed, site in enumerate(self.sites.values()):
            site.configure(curves(20, seed), terms)
        transport = self.transport(terms, seconds=120.0)
        transport.open(terms, name_study(terms))
        transport.gather(Query(name_study(terms), 0, {"iterate": np.zeros(4)}))

    def start_server(self):
        settings = self.consortium.settings()
        root = str(Path(sys.modules["dpfda"].__file__).parents[1])
        command = [sys.executable, "-P", "-u", str(HERE / "tapped_server.py"), str(self.tap), encode_settings(settings)]
        more = make_environment(settings.authority, {"PYTHONPATH": root})
        self.server = start_process(command, self.root, self.consortium.log, more)
        assert wait_until(lambda: self._listens(settings.socket), 120), self.consortium.log.read_text()

    def close(self):
        for site in self.sites.values():
            site.stop()
        if self.server is not None:
            stop_process(self.server)

    def link(self):
        return ServerLink(self.consortium.settings().socket)

    def connected(self):
        return {name for name, contact in self.link().look().items() if contact.connected}

    def send(self, site, message, seconds=30.0):
        """Any bytes to one site; its answer, or None."""
        return self.link().ask([site], message, Closing(1, 0.0, seconds), count_all).given.get(site)

    def invite(self, site, terms, *, run=None, seconds=30.0, key=None):
        signed = sign_terms(terms, key or self.key)
        subject = Subject(terms.digest(), run or name_study(terms), INVITATION)
        return self.send(site, sign_message(QUERY, subject, signed, key or self.key), seconds)

    def ask(self, site, study, query, *, seconds=30.0, **subject):
        """A signed question; `subject` overrides what the signature says it is about."""
        about = {"terms": study.digest(), "run": name_study(study), "round": getattr(query, "round", 0)} | subject
        payload = query if isinstance(query, bytes) else query.encode()
        return self.send(site, sign_message(QUERY, Subject(**about), payload, self.key), seconds)

    def transport(self, terms, *, quorum=None, seconds=30.0):
        """The coordinator's real transport."""
        wire = StudyWire(self.consortium.questions(), terms)
        return CarriedTransport(self.link(), wire, Closing(quorum or len(terms.silos), 5.0, seconds))

    def connect(self, silos):
        """A transport to real site processes that hold what these silos hold (contract suite)."""
        return Renaming(self, silos)

    @staticmethod
    def _listens(path):
        with contextlib.suppress(TransportError):
            ServerLink(path).look()
            return True
        return False


class Renaming:
    """Runs of the contract suite have names of their own; at a site the run is the study's id. Bits do not depend on it."""

    def __init__(self, world, silos):
        self._world, self._silos, self._inner = world, {silo.name: silo for silo in silos}, None

    def open(self, terms, run):
        self._run, self._terms = run, dataclasses.replace(terms, name=f"{run.replace(' ', '-')}-{next(_NUMBERS)}")
        for name in {silo.name for silo in terms.silos} & set(self._silos):
            silo, site = self._silos[name], self._world.sites[name]
            if hasattr(silo, "policy"):
                accept(site.folder, self._terms, self._world.consortium)
                continue
            total = {"total_epsilon": silo.epsilon, "total_delta": silo.delta, "epsilon": 100.0, "delta": 0.1}
            silo.policy = site.configure(silo._curves, self._terms, seed=silo._seed, **total)
            silo.ledger = open_ledger(silo.policy)
        self._inner = self._world.transport(self._terms, seconds=3.0)
        self._inner.open(self._terms, name_study(self._terms))
        self._inner._closing = dataclasses.replace(
            self._inner._closing, deadline=2.0
        )  # refusals come when a round closes

    def gather(self, query):
        known = name_study(self._terms) if query.run == self._run else query.run
        releases = self._inner.gather(Query(known, query.round, query.arrays))
        return {name: dataclasses.replace(release, run=query.run) for name, release in releases.items()}


def study(sites, *, model="mean", method="published", covariates=(), **options):
    """Terms with a name that no other test has."""
    chosen = {"n_basis": 4, "domain": (0.0, 1.0), "y_bounds": (-5.0, 5.0), "name": f"test{next(_NUMBERS)}"} | options
    if isinstance(chosen.get("constants"), dict):
        chosen["constants"] = PublishedConstants(**chosen["constants"])
    assert (model == "vcm") == bool(covariates)
    return StudyTerms(method, silos=tuple(sites), covariates=tuple(covariates), **chosen)


def covariate(name, low, high):
    return CovariateTerms(name, (low, high))


def three(n=60, epsilon=1.0, delta=1e-3, points=4.0):
    return tuple(SiloTerms(name, n, epsilon, delta, points) for name in SITES)


def curves(n, seed, *, points=4, columns=0, offset=0.0):
    from dpfda.curves.curves import Curves

    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(n), points)
    x = rng.uniform(0, 1, ids.size)
    design = None
    y = offset + x + rng.normal(0, 0.3, ids.size)
    if columns:
        per_curve = rng.uniform(-1, 1, (n, columns))
        design = per_curve[ids]
        y = y + design @ np.ones(columns)
    made = Curves.from_long(ids, x, y, design)
    return made.with_intercept() if columns else made
