"""F5: four assumptions about the surroundings that do not hold.

Promised: writers of a ledger on PostgreSQL are serialised, "what is read afterwards is the latest"; sums over a batch
touch that batch; a message has at most 8 MB; a site or a study is one process.
Breaks: (a) on a server whose default isolation is REPEATABLE READ the snapshot is taken by the statement that WAITS
for the lock, so what is read afterwards is older than the lock: of two studies at once one fails with a wrong reason
and a draw counted as lost. (b) `ChunkedSums._packs` reads `_kept` twice without a lock: a thread that loses the
processor in between gets the curves of another thread's batch (CPython 3.11 happens not to switch there without a
tracer; nothing promises that). (c) a message is refused for its size after FLARE has read and decoded all of it. (d)
a second `dpfda site run` or `dpfda study resume` ends the process of the first: the pid file is taken for a
left-over.
Root cause: assumptions about the surroundings that nothing enforces.
Removed by: B5/B7/F5 of the issue (READ COMMITTED set explicitly; locks; size checked before reading; flock of
4-federation.md).
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import harness

source = harness.source()
HERE = Path(__file__).parent
sys.path.insert(0, str(source.parent / "tests" / "flare"))

import numpy as np  # noqa: E402
import psutil  # noqa: E402

MEGABYTES = 100


@contextmanager
def postgres() -> Iterator[str]:
    """A PostgreSQL server on loopback whose default isolation level is REPEATABLE READ, ended by its process."""
    from dpfda.cli.federate_demo import free_ports

    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    binaries = found[-1].parent if found else Path(str(shutil.which("initdb"))).parent
    identity: dict[str, Any] = {"cwd": "/"}
    folder, port = Path(tempfile.mkdtemp(prefix="dpfda-redteam-pg-")), free_ports(1)[0]
    if os.geteuid() == 0:
        known = {entry.pw_name for entry in pwd.getpwall()}
        user = pwd.getpwnam("postgres" if "postgres" in known else "nobody")
        identity |= {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        os.chown(folder, user.pw_uid, user.pw_gid)
    make = [binaries / "initdb", "-D", folder / "data", "-U", "analyst", "--auth=trust", "--no-sync"]
    subprocess.run(make, check=True, capture_output=True, **identity)
    options = [
        "-h",
        "127.0.0.1",
        "-p",
        str(port),
        "-k",
        str(folder),
        "-c",
        "default_transaction_isolation=repeatable read",
    ]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [binaries / "postgres", "-D", folder / "data", *options], stdout=log, stderr=log, **identity
        )
    try:
        import psycopg

        for _ in range(200):
            try:
                psycopg.connect(host="127.0.0.1", port=port, user="analyst", dbname="postgres").close()
                break
            except psycopg.OperationalError:
                time.sleep(0.05)
        yield f"postgresql://analyst@127.0.0.1:{port}/postgres"
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(timeout=20)
        shutil.rmtree(folder, ignore_errors=True)


def stale_snapshot() -> str:
    """Two studies commit at once on one ledger."""
    from dpfda.errors import DpfdaError
    from dpfda.privacy.accounting import GaussianEvent
    from dpfda.privacy.ledger import Ledger

    with postgres() as url:
        Ledger.create(url, 1.0, 1e-6)
        inside, outcome = threading.Event(), []

        def slow() -> bytes:
            inside.set()
            time.sleep(1.0)
            return b"first"

        def first() -> None:
            ledger = Ledger.open(url)
            ledger.begin("one", 0, GaussianEvent(0.01), "a:b:c")
            ledger.commit("one", 0, GaussianEvent(0.01), "a:b:c", slow)

        holder = threading.Thread(target=first)
        ledger = Ledger.open(url)
        ledger.begin("two", 0, GaussianEvent(0.01), "a:b:d")
        holder.start()
        inside.wait(10)
        try:
            ledger.commit("two", 0, GaussianEvent(0.01), "a:b:d", lambda: b"second")
        except DpfdaError as error:
            outcome.append(str(error))
        holder.join()
        lost = ledger.lost_draws("two")
        print(f"(a) second writer: {outcome[0].split('(', 2)[-1][:99] if outcome else 'served'}; lost draws: {lost}")
        return "a writer that waited read a stale snapshot and failed" if outcome else ""


def mixed_batches() -> str:
    """Two threads ask the same sums about different batches."""
    from dpfda.curve_sums import LevelCounts
    from dpfda.engine.plan import Scaling
    from dpfda.kernels.chunked import sums_of_curves

    from dpfda.basis import Cosine
    from dpfda.curves import Curves
    from dpfda.privacy.cones import HistogramBound

    n = 400
    level = np.repeat([-0.9, 0.9], n // 2)  # the first batch is low, the second high
    curves = Curves.from_long(np.arange(n), np.full(n, 0.5), level)
    sums = sums_of_curves(curves, Cosine(3), Scaling((-1.0, 1.0), ((1.0, 1.0),)))
    ask, batches = LevelCounts(HistogramBound(3)), (range(n // 2), range(n // 2, n))
    truth = [sums.words(ask, batch)[1].tolist() for batch in batches]
    arrived, done = threading.Event(), threading.Event()
    found: list[list[int]] = []

    def paused(frame: Any, event: str, _: Any) -> Any:
        """Stop the first thread before the last line of `_packs`, as any scheduler may, until the second has asked."""
        if frame.f_code.co_name != "_packs":
            return paused if event == "call" else None
        if event == "line" and frame.f_lineno == last_line:
            arrived.set()
            done.wait(10)
        return paused

    code = type(sums)._packs.__code__
    last_line = max(line for *_, line in code.co_lines() if line is not None)

    def first() -> None:
        sys.settrace(paused)
        found.append(sums.words(ask, batches[0])[1].tolist())

    sums.words(ask, batches[1])
    thread = threading.Thread(target=first)
    thread.start()
    arrived.wait(10)
    sums.words(ask, batches[1])
    done.set()
    thread.join()
    print(f"(b) the first batch's counts are {truth[0]}; a thread held between two reads of `_kept` gets {found[0]}")
    return "a thread summed up the curves of another batch" if found[0] == truth[1] != truth[0] else ""


def large_message() -> str:
    """A message far above the limit, through real FLARE processes on loopback."""
    import world
    from dpfda.transport.flare.processes import wait_until

    world.PUPPET = "flare_big.BigController"
    os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), str(source)])
    peak = 0.0
    with harness.scratch() as folder:
        deployed = world.Deployment(folder, sites=("alpha",)).make()
        answer = folder / "answer"
        try:
            deployed.start_server()
            deployed.start_site("alpha")
            deployed.connect_session()
            assert wait_until(lambda: "alpha" in deployed.session.sites(), 60), "the site did not connect"
            arguments = {"site": "alpha", "size": MEGABYTES << 20, "answer": str(answer)}
            deployed.submit("big", controller=world.PUPPET, arguments=arguments)
            parent, before = psutil.Process(deployed.processes["alpha"].pid), 0.0
            end = time.monotonic() + 75
            while time.monotonic() < end and not answer.exists():
                for child in parent.children(recursive=True):
                    try:
                        used = child.memory_info().rss / 2**20
                    except psutil.Error:
                        continue
                    before = before or used
                    peak = max(peak, used)
                time.sleep(0.02)
            reason = deployed.log("alpha")[-1].get("reason", "") if deployed.log("alpha") else ""
            code = answer.read_text() if answer.exists() else "nothing"
        finally:
            deployed.stop()
    os.environ["PYTHONPATH"] = str(source)
    print(f"(c) {MEGABYTES} MB: answer {code!r} ({reason}); the site's job process grew to {peak:.0f} MB before that")
    return (
        f"{MEGABYTES} MB were read before the limit of 8 MB refused them"
        if "length" in reason and peak > MEGABYTES + 100
        else ""
    )


def start(*words: str) -> subprocess.Popen[bytes]:
    """A `dpfda ...` of our own in the background."""
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "dpfda", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def finish(process: subprocess.Popen[bytes]) -> None:
    """Ctrl-C, then wait; by process id."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
    try:
        process.wait(timeout=25)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def pid_in(path: Path, seconds: float = 25.0) -> int:
    """The process that a pid file names, once there is one."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if path.exists() and path.read_text().strip():
            return int(path.read_text())
        time.sleep(0.1)
    return 0


def two_at_once() -> list[str]:
    """The same command twice, for a site and for a study."""
    shown = []
    with harness.scratch() as folder:
        os.environ["HOME"] = str(folder)
        data = folder / "north-data"
        harness.site_data(data)
        study = harness.study_toml(folder)
        kit = harness.coordinator_kit(study)
        harness.command("site", "join", str(kit), "--policy", str(harness.site_policy(data)), "--yes")
        for what, words, again, pids in (
            ("site run", ("site", "run", str(kit.with_suffix(""))), None, kit.with_suffix("") / "site.pid"),
            (
                "study run",
                ("study", "run", str(study)),
                ("study", "resume", str(study)),
                study.with_suffix(".study") / "server.pid",
            ),
        ):
            first = start(*words)
            victim = pid_in(pids)
            time.sleep(2.0)
            second = start(*(again or words))
            end = time.monotonic() + 20
            while time.monotonic() < end and psutil.pid_exists(victim):
                time.sleep(0.2)
            ended = bool(victim) and not psutil.pid_exists(victim)
            time.sleep(3.0)
            print(
                f"(d) a second `dpfda {' '.join((again or words)[:2])}`: the process of the first was "
                f"{'ENDED' if ended else 'left alone'}; "
                f"the first is {'over' if first.poll() is not None else 'still there'}"
            )
            if ended:
                shown.append(f"a second {what} ended the first's process")
            finish(second)
            finish(first)
    return shown


facts = [stale_snapshot(), mixed_batches(), large_message(), *two_at_once()]
facts = [fact for fact in facts if fact]
harness.verdict(bool(facts), f"{len(facts)} of 5 shown: " + "; ".join(facts), "none of the five was shown")
