"""Faults on purpose: kills, full disks, clocks, races, damage. Counts runs, faults and losses.

`python -m dpfda.audit.reliability --runs 100 --output docs/reliability.md` writes the page. Every study here is a process of
its own on a ledger file, killed with SIGKILL at random moments and started again until it is done.
"""

from __future__ import annotations

import os
import random
import resource
import signal
import sqlite3
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from unittest.mock import patch

from dpfda.audit import fault_worker
from dpfda.audit.fault_database import database_kills
from dpfda.audit.fault_worker import DELTA, DONE, FAILED, LEDGER_EPSILON
from dpfda.audit.forks import Tally, examined, finished, forked
from dpfda.errors import LedgerError
from dpfda.privacy.ledger import ledger as ledger_module
from dpfda.privacy.ledger.ledger import Ledger

_KILLS = 3  # per study, before it is left to finish


def kills(folder: Path, rng: random.Random) -> Tally:
    """One study whose process is killed a few times at random moments and started again."""
    Ledger.create(folder / "ledger.db", LEDGER_EPSILON, DELTA)
    tally: Tally = Counter({"runs": 1})
    for attempt in range(_KILLS + 2):
        child = forked(lambda: fault_worker.main(folder, "run"))
        if attempt < _KILLS:
            time.sleep(rng.uniform(0.005, usual_seconds()))
            os.kill(child, signal.SIGKILL)
        code = finished(child)
        tally["faults"] += code == -signal.SIGKILL
        if code == -signal.SIGKILL:
            ledger = Ledger.open(folder / "ledger.db")
            tally["mid-study"] += bool(ledger.log() or ledger.lost_draws("run"))
        if code == DONE:
            break
    return tally + examined(folder, ["run"])


@cache
def usual_seconds() -> float:
    """How long a study takes when kernels and noise are there: kills within it hit every round, not only the start."""
    for _ in range(2):
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            Ledger.create(Path(folder) / "ledger.db", LEDGER_EPSILON, DELTA)
            fault_worker.main(Path(folder), "run")
        seconds = time.monotonic() - began
    return max(seconds, 0.05)


def full_disk(folder: Path, rng: random.Random) -> Tally:
    """The ledger's disk fills up during a study (a limit on file sizes), then has room again."""
    path = folder / "ledger.db"
    Ledger.create(path, LEDGER_EPSILON, DELTA)
    tally: Tally = Counter({"runs": 1})
    limit = rng.randrange(512, path.stat().st_size)  # of any file: journal, ledger or record

    def cramped() -> int:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        return fault_worker.main(folder, "run")

    tally["faults"] += finished(forked(cramped)) == FAILED
    finished(forked(lambda: fault_worker.main(folder, "run")))
    return tally + examined(folder, ["run"])


def clock_back(folder: Path, rng: random.Random) -> Tally:
    """A study whose clock runs backwards, years at a time."""
    Ledger.create(folder / "ledger.db", LEDGER_EPSILON, DELTA)
    times = iter(range(10_000))

    def earlier() -> str:
        return (datetime.now(UTC) - timedelta(days=1 + rng.randrange(300) * next(times))).isoformat()

    with patch.object(ledger_module, "timestamp", earlier):
        finished(forked(lambda: fault_worker.main(folder, "run")))
    return Counter({"runs": 1, "faults": 1}) + examined(folder, ["run"])


def two_coordinators(folder: Path, rng: random.Random) -> Tally:
    """Two processes drive the same run at once, each with its own record; then one of them drives another run."""
    Ledger.create(folder / "ledger.db", LEDGER_EPSILON, DELTA)
    children = [forked(lambda run=run: fault_worker.main(folder, run)) for run in ("run", "run", "other")]  # type: ignore[misc]
    for child in children:
        finished(child)
    for run in ("run", "other"):  # who lost a race comes again
        finished(forked(lambda run=run: fault_worker.main(folder, run)))  # type: ignore[misc]
    return Counter({"runs": 2, "faults": 1}) + examined(folder, ["run", "other"])


def damage(folder: Path, rng: random.Random) -> Tally:
    """Bytes of a finished ledger are changed, or its rows edited; opening it must refuse or find nothing changed."""
    path = folder / "ledger.db"
    Ledger.create(path, LEDGER_EPSILON, DELTA)
    finished(forked(lambda: fault_worker.main(folder, "run")))
    good = path.read_bytes()
    before = _content(Ledger.open(path))
    tally: Tally = Counter({"runs": 1})
    for _ in range(20):
        _put(path, _damaged(good, rng))
        tally["faults"] += 1
        try:
            tally["undetected"] += _content(Ledger.open(path)) != before
        except LedgerError as refusal:
            tally["detected"] += 1
            tally["without advice"] += ";" not in str(refusal)
        except Exception:
            tally["crashes"] += 1
    for statement in _EDITS:
        _put(path, good)
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(statement)
        tally["faults"] += 1
        try:
            Ledger.open(path)
            tally["undetected"] += 1
        except LedgerError:
            tally["detected"] += 1
    _put(path, good)
    return tally + examined(folder, ["run"])


def _put(path: Path, content: bytes) -> None:
    """A ledger with this content and no write-ahead log of another one."""
    for companion in ("-wal", "-shm"):
        Path(f"{path}{companion}").unlink(missing_ok=True)
    path.write_bytes(content)


_EDITS = (
    "DELETE FROM debits WHERE seq = (SELECT max(seq) FROM debits)",
    "DELETE FROM debits",
    "UPDATE debits SET event = replace(event, '\"mu\": 0', '\"mu\": 1e-9') WHERE seq = 1",
    "UPDATE debits SET round = round + 100 WHERE seq = 2",
    "UPDATE meta SET value = '1000.0' WHERE name = 'epsilon'",
    "UPDATE releases SET payload = zeroblob(10) WHERE round = 0",
    "UPDATE debits SET actor = x'ff00' WHERE seq = 1",
    "DELETE FROM runs",
    "UPDATE runs SET debits = debits - 1",
)


def _damaged(good: bytes, rng: random.Random) -> bytes:
    changed = bytearray(good)
    if rng.random() < 0.2:
        return bytes(changed[: rng.randrange(len(good))])
    for _ in range(rng.choice([1, 1, 8, 64])):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def _content(ledger: Ledger) -> object:
    return ledger.epsilon, ledger.delta, ledger.log(), ledger.releases("run"), ledger.spent()


KINDS: dict[str, tuple[Callable[[Path, random.Random], Tally], float]] = {
    "SIGKILL at random moments": (kills, 0.6),
    "full disk": (full_disk, 0.12),
    "clock going back": (clock_back, 0.04),
    "two coordinators at once": (two_coordinators, 0.12),
    "damaged or edited ledger": (damage, 0.12),
}
_DATABASE_SHARE = 0.1
LOSSES = (
    "lost", "two answers", "charged twice", "released unspent", "over budget", "undetected", "crashes", "without advice",
)  # fmt: skip


def run_faults(runs: int, seed: int = 0, *, databases: bool = True) -> dict[str, Tally]:
    """About `runs` studies in all, shared out over the kinds of faults."""
    found: dict[str, Tally] = {}
    rng = random.Random(seed)
    usual_seconds()  # before the first fork, so that children find kernels and noise built
    for name, (fault, share) in KINDS.items():
        tally: Tally = Counter()
        for _ in range(max(1, round(runs * share))):
            with tempfile.TemporaryDirectory() as folder:
                tally.update(fault(Path(folder), rng))
        found[name] = tally
    killed = database_kills(max(1, round(runs * _DATABASE_SHARE)), rng) if databases else None
    return found if killed is None else {**found, "SIGKILL of the ledger's PostgreSQL": killed}
