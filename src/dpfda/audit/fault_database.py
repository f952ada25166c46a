"""A ledger on a PostgreSQL server that is killed, all its processes at once, while a study writes to it."""

from __future__ import annotations

import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from dpfda.audit import fault_worker
from dpfda.audit.fault_worker import DELTA, DONE, LEDGER_EPSILON
from dpfda.audit.forks import examined, finished, forked
from dpfda.errors import LedgerError
from dpfda.privacy.ledger.ledger import Ledger

_KILLS = 2


class Server:
    """A PostgreSQL server of our own, on a free port of this machine, with its data in a scratch folder."""

    def __init__(self, binaries: Path, folder: Path) -> None:
        self._binaries, self._folder, self._user = binaries, folder, _user()
        self._process: subprocess.Popen[Any] | None = None
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = int(probe.getsockname()[1])
        if "user" in self._user:
            os.chown(folder, self._user["user"], self._user["group"])
        create = [
            str(binaries / "initdb"),
            "-D",
            str(folder / "data"),
            "-U",
            "audit",
            "--auth=trust",
            "--encoding=UTF8",
        ]
        subprocess.run(create, check=True, capture_output=True, **self._user)

    def url(self, name: str) -> str:
        """Where a ledger of this name is."""
        return f"postgresql://audit@127.0.0.1:{self._port}/postgres?ledger={name}"

    def start(self) -> None:
        """Start it and wait until it answers."""
        options = ["-h", "127.0.0.1", "-p", str(self._port), "-k", str(self._folder)]
        command = [str(self._binaries / "postgres"), "-D", str(self._folder / "data"), *options]
        quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self._process = subprocess.Popen(command, start_new_session=True, **quiet, **self._user)
        for _ in range(600):
            try:
                Ledger.open(self.url("nothing"))
            except LedgerError as refusal:
                if "cannot be reached" not in str(refusal):
                    return  # it answers: there is no such ledger
                time.sleep(0.1)
        raise LedgerError("The scratch PostgreSQL server did not start; look at its installation.")

    def kill(self) -> None:
        """SIGKILL to all processes of this server, the group that `start` made."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None


def database_kills(studies: int, rng: random.Random) -> Counter[str] | None:
    """Studies whose database is killed under them and started again; None where there is no PostgreSQL."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if not found:
        return None
    scratch = Path(tempfile.mkdtemp(prefix="dpfda-audit-"))
    tally: Counter[str] = Counter()
    server = Server(found[-1].parent, scratch)
    try:
        server.start()
        for number in range(studies):
            with tempfile.TemporaryDirectory() as folder:
                tally.update(_study(server, Path(folder), f"study_{number}", rng))
    finally:
        server.kill()
        shutil.rmtree(scratch, ignore_errors=True)
    return tally


def _study(server: Server, folder: Path, name: str, rng: random.Random) -> Counter[str]:
    (folder / "ledger.url").write_text(server.url(name))
    Ledger.create(server.url(name), LEDGER_EPSILON, DELTA)
    tally: Counter[str] = Counter({"runs": 1})
    for attempt in range(_KILLS + 1):
        child = forked(lambda: fault_worker.main(folder, "run"))
        if attempt < _KILLS:
            time.sleep(rng.uniform(0.02, 0.4))
            server.kill()
            tally["faults"] += 1
        code = finished(child)
        if attempt < _KILLS:
            server.start()
        if code == DONE:
            break
    return tally + examined(folder, ["run"])


def _user() -> dict[str, Any]:
    """PostgreSQL refuses to run as root: root hands over to `postgres` or `nobody`."""
    if os.geteuid() != 0:
        return {}
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    entry = known.get("postgres") or known["nobody"]
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": [], "cwd": "/"}
