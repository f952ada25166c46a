"""A consortium whose every step is a command in a process of its own, as people type them."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import numpy as np
import psutil
from world import wait_until

from dpfda.cli.commands.federate_demo import free_port

COMMAND = [sys.executable, "-m", "dpfda.cli.main"]
SECRET = ("--passphrase-file", "ca.pass")
POLICY = (
    '[data]\nsource = "{name}.csv"\nid = "pid"\nx = "age"\ny = "hdl"\n[promise]\nepsilon = 1.0\ndelta = 1e-5\n'
    "[budget]\nepsilon = 5.0\ndelta = 1e-4\n"
)
SUBJECTS = 150


def write_visits(path, seed, n=SUBJECTS):
    rng = np.random.default_rng(seed)
    rows = [(pid, age, 50 + 0.2 * age + rng.normal(0, 8)) for pid in range(n) for age in rng.uniform(20, 90, 4)]
    path.write_text("pid,age,hdl\n" + "".join(f"p{pid},{age:.3f},{hdl:.2f}\n" for pid, age, hdl in rows))


class Consortium:
    """Everything in one folder; `ran` runs a command to its end, `start` leaves it running."""

    def __init__(self, root: Path) -> None:
        self.root, self.running = root, {}
        (root / "ca.pass").write_text("correct horse battery\n")
        self.port = free_port()
        self.ran("consortium", "init", "lipids", "--name", "lipids", "--host", "127.0.0.1", "--port", str(self.port),
                 "--listen", "127.0.0.1", *SECRET)  # fmt: skip

    def ran(self, *words, code=0, answer=""):
        done = subprocess.run(
            [*COMMAND, *words], cwd=self.root, input=answer, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == code, f"{words}: {done.stdout}{done.stderr}"
        return done

    def json(self, *words):
        return json.loads(self.ran(*words, "--json").stdout)

    def start(self, key, *words):
        log = (self.root / f"{key}.said").open("a")
        with log:
            self.running[key] = subprocess.Popen(
                [*COMMAND, *words], cwd=self.root, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        return self.running[key]

    def said(self, key):
        return (self.root / f"{key}.said").read_text()

    def enrol(self, name, seed, policy=POLICY):
        write_visits(self.root / f"{name}.csv", seed)
        (self.root / f"{name}.toml").write_text(policy.format(name=name))
        self.ran("site", "enrol", name, "--site", name)
        self.ran("consortium", "sign", "lipids", f"{name}.request", "--site", name, "--organisation", "clinic", *SECRET)
        self.ran("site", "take", name, f"{name}.credentials", "--yes")
        self.ran("site", "policy", name, f"{name}.toml", "--new-ledger")

    def propose(self, study, names, more="", sites=""):
        head = (
            f'consortium = "lipids"\nname = "{study}"\nmodel = "mean"\nx = "age"\ny = "hdl"\ndomain = [20, 90]\n'
            f"y_bounds = [0, 150]\n{more}"
        )
        site = '[[sites]]\nname = "{}"\nn = {}\nepsilon = 1.0\ndelta = 1e-5\npoints_per_curve = 4\n' + sites
        (self.root / f"{study}.toml").write_text(head + "".join(site.format(name, SUBJECTS) for name in names))
        return self.json("study", "propose", f"{study}.toml")

    def accept(self, study, names):
        for name in names:
            self.ran("site", "inbox", name, "--add", f"{study}.study/terms.json")
            self.ran("site", "accept", name, study, "--yes")

    def sites(self):
        return {row["site"]: row for row in self.json("consortium", "list", "lipids")}

    def wait_for(self, *names, seconds=180):
        assert wait_until(lambda: all(self.sites()[name]["state"] == "connected" for name in names), seconds, 0.5), (
            self.sites()
        )

    def children(self, key):
        """The processes of a site, by what they run."""
        found = {}
        for process in psutil.Process(self.running[key].pid).children():
            with contextlib.suppress(psutil.Error):
                words = process.cmdline()
                found |= {part: process for part in ("silo_main", "flare.client", "flare.server") if any(
                    word.endswith(part) for word in words)}  # fmt: skip
        return found

    def close(self):
        for process in self.running.values():
            if process.poll() is None:
                with contextlib.suppress(psutil.Error):
                    for each in [*psutil.Process(process.pid).children(), process]:
                        each.send_signal(signal.SIGCONT)
                process.terminate()
        for process in self.running.values():
            process.wait(30)


def scrape(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        lines = answer.read().decode().splitlines()
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}
