"""A real deployment for tests: one server, three sites, mutual TLS, separate processes on 127.0.0.1."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import itertools
import json
import os
import shutil
import socket
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from dpfda.cli.commands.federate_demo import free_ports
from dpfda.errors import BudgetExceeded, ProtocolError, TransportError
from dpfda.federation.flare.job import write_job
from dpfda.federation.flare.processes import start_server, start_site, stop, wait_until
from dpfda.federation.flare.provision import provision
from dpfda.federation.flare.session import CoordinatorSession
from dpfda.federation.hardening import harden_site
from dpfda.federation.policy import Allowed, SitePolicy
from dpfda.federation.site import FOLDER, SiteFolder
from dpfda.federation.study import ServerAddress, StudyDocument, make_document
from dpfda.privacy.ledger.ledger import Ledger
from dpfda.protocol.messages import Query, Release
from dpfda.protocol.terms import CovariateTerms, StudyTerms

HERE = Path(__file__).parent
SITES = ("alpha", "beta", "gamma")
PUPPET = "flare_puppet.PuppetController"
_NUMBERS = itertools.count()
ERRORS = {error.__name__: error for error in (BudgetExceeded, ProtocolError, TransportError)}


@contextlib.contextmanager
def environment(**values):
    kept = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in kept.items():
            os.environ.pop(name, None) if value is None else os.environ.__setitem__(name, value)


def write_table(path, curves, columns=()):
    """A CSV that reads back as these very curves."""
    with path.open("w") as file:
        file.write(",".join(["pid", "t", "value", *columns]) + "\n")
        for owner, x, y in zip(curves.owners, curves.x, curves.y, strict=True):
            extra = [repr(float(g)) for g in curves.design[owner, curves.design.shape[1] - len(columns) :]]
            file.write(",".join([f"s{owner:07d}", repr(float(x)), repr(float(y)), *extra]) + "\n")


@dataclass
class Deployment:
    """Kits, processes and an administrator's session."""

    root: Path
    sites: tuple[str, ...] = SITES
    processes: dict = field(default_factory=dict)
    session: CoordinatorSession | None = None

    def make(self):
        self.address = ServerAddress("127.0.0.1", *free_ports(2))
        provision("test", list(self.sites), self.address, self.root, extra_classes=(PUPPET,))
        self.tap = self.root / "tap.bin"
        for name in self.sites:
            harden_site(self.kit(name))
            self.folder(name).root.mkdir(parents=True, exist_ok=True)
        return self

    def start(self):
        self.start_server()
        for name in self.sites:
            self.start_site(name)
        self.connect_session()
        wanted = set(self.sites)
        assert wait_until(lambda: set(self.session.sites()) >= wanted, 60), "the sites did not connect"
        return self

    def start_server(self):
        path = os.pathsep.join(filter(None, [str(HERE / "tap"), str(HERE), os.environ.get("PYTHONPATH")]))
        with environment(PYTHONPATH=path, DPFDA_TAP=str(self.tap), HOME=str(self.root)):
            self.processes["server"] = start_server(self.root / "server", self.root / "server.log")

    def start_site(self, name):
        with environment(HOME=str(self.root)):
            self.processes[name] = start_site(self.kit(name), name, self.root / f"{name}.log")

    def connect_session(self):
        self.session = CoordinatorSession(self.root / "lead")
        self.session.connect(60)

    def stop(self):
        if self.session is not None:
            self.session.close()
        stop(list(self.processes.values()))

    def kit(self, name):
        return self.root / "kits" / name

    def folder(self, name):
        return SiteFolder(self.kit(name) / "local" / FOLDER)

    def log(self, name):
        return self.folder(name).audit.lines()

    def configure(self, site, curves, document, *, silo=None, columns=(), **policy):
        """Give a site data and a policy, and let it accept a study."""
        folder, silo = self.folder(site), silo or site
        place = self.root / "data" / f"{site}-{time.monotonic_ns()}"
        place.mkdir(parents=True)
        if curves is not None:
            write_table(place / "table.csv", curves, columns)
        mine = document.terms.silo(silo)
        defaults = {
            "epsilon": mine.epsilon, "delta": mine.delta, "total_epsilon": mine.epsilon, "total_delta": mine.delta,
            "ledger": str(place / "ledger"), "seed": None, "allow": Allowed(), "name": silo,
        }  # fmt: skip
        data = {"source": str(place / "table.csv"), "id": "pid", "x": "t", "y": "value", "duplicates": "keep"}
        data |= policy.pop("data", {})
        rules = SitePolicy(data, **(defaults | policy))
        if not os.path.lexists(rules.ledger_place):
            Ledger.create(rules.ledger_place, rules.total_epsilon, rules.total_delta)
        rules.save(folder.policy_path)
        shutil.rmtree(folder.root / "studies", ignore_errors=True)
        folder.accept(document)
        return folder.policy()

    def submit(self, name, **job):
        place = self.root / "jobs" / name
        shutil.rmtree(place, ignore_errors=True)
        arguments = job.pop("arguments", {})
        return self.session.submit(write_job(place, name, self.sites, arguments, **job))


class Puppet:
    """The coordinator's job process on a string, see flare_puppet.py."""

    def __init__(self, world):
        self.world = world
        path = str(world.root / "puppet.sock")
        self.job = world.submit("puppet", controller=PUPPET, arguments={"socket_path": path})
        assert wait_until(lambda: Path(path + ".ready").exists(), 60), "the job did not start"
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(path)
        self._stream = self._socket.makefile("rwb")

    def __call__(self, op, **command):
        self._stream.write(json.dumps({"op": op, **command}).encode() + b"\n")
        self._stream.flush()
        reply = json.loads(self._stream.readline())
        if "error" in reply:
            raise ERRORS[reply["error"]](reply["text"])
        return reply

    def raw(self, site, message, task="dpfda_ask", form="bytes"):
        return self("raw", task=task, data=base64.b64encode(message).decode(), site=site, form=form)

    def close(self):
        with contextlib.suppress(OSError):
            self._stream.write(b'{"op": "stop"}\n')
            self._stream.flush()
            self._socket.close()


class RemoteTransport:
    """The real FlareTransport in the coordinator's job process, driven from here."""

    def __init__(self, puppet, clients, prepare=lambda terms, run: run, min_sites=None):
        self._puppet, self._clients, self._prepare, self._min_sites = puppet, clients, prepare, min_sites
        self._names = {}

    def open(self, terms, run):
        self._names = {run: self._prepare(terms, run)}
        minimum = self._min_sites or len(terms.silos)
        if self._names[run] != run:  # the site knows the study by its id, which holds a name of its own
            terms = dataclasses.replace(terms, name=self._names[run].rpartition("-")[0])
        self._puppet(
            "open",
            terms=base64.b64encode(terms.encode()).decode(),
            run=self._names[run],
            clients=self._clients,
            min_sites=minimum,
        )

    def gather(self, query):
        asked = Query(self._names.get(query.run, query.run), query.round, query.arrays)
        reply = self._puppet("gather", query=base64.b64encode(asked.encode()).decode())
        releases = {name: Release.decode(base64.b64decode(data)) for name, data in reply["releases"]}
        return {name: _renamed(release, query.run) for name, release in releases.items()}


def _renamed(release, run):
    return dataclasses.replace(release, run=run)


class FlareWorld:
    """What the fixture `flare` hands to tests."""

    def __init__(self, root):
        self.deployment = Deployment(root).make().start()
        self.puppet = Puppet(self.deployment)

    def close(self):
        self.puppet.close()
        self.deployment.stop()

    def connect(self, silos):
        """A transport to real site processes that hold what these silos hold (contract suite)."""
        clients = dict(zip([silo.name for silo in silos], SITES, strict=False))
        for silo in silos:
            if not hasattr(silo, "durable_copy"):
                silo.durable_copy = self.deployment.root / "ledgers" / f"{silo.name}-{time.monotonic_ns()}"
                silo.durable_copy.parent.mkdir(exist_ok=True)
                place = f"{silo.durable_copy}.simulation" if silo._seed is not None else silo.durable_copy
                silo.ledger = Ledger.create(place, silo.ledger.epsilon, silo.ledger.delta)

        def prepare(terms, run):
            document = document_for(terms, run)
            for silo in silos:
                if silo.name in clients and silo.name in {each.name for each in terms.silos}:
                    self.deployment.configure(
                        clients[silo.name], silo._curves, document, silo=silo.name, seed=silo._seed,
                        epsilon=10.0, delta=0.1, ledger=str(silo.durable_copy),
                        total_epsilon=silo.ledger.epsilon, total_delta=silo.ledger.delta,
                    )  # fmt: skip
            return document.id

        return RemoteTransport(self.puppet, clients, prepare)

    def transport(self, clients=None, **options):
        """A transport to the sites as they are configured."""
        return RemoteTransport(self.puppet, clients or {name: name for name in SITES}, **options)


def document_for(terms, run):
    """A study of these terms, named after the run."""
    return StudyDocument(dataclasses.replace(terms, name="".join(c if c.isalnum() else "-" for c in run)))


def study(sites, *, method="published", covariates=(), **options):
    """A study by the library's own plan builder."""
    chosen = {"n_basis": 4, "domain": (0.0, 1.0), "y_bounds": (-5.0, 5.0)} | options
    return make_document(
        StudyTerms(method, silos=tuple(sites), covariates=tuple(covariates), name=f"test{next(_NUMBERS)}", **chosen)
    )


def covariate(name, low, high):
    return CovariateTerms(name, (low, high))


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


if __name__ == "__main__":
    sys.exit("a module for tests")
