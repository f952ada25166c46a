"""Child processes for fault runs, and what to look at when they are gone."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from dpfda.audit.fault_worker import ledger_at, study
from dpfda.privacy.ledger.ledger import Ledger
from dpfda.protocol.plans.registry import make_plan

Tally = Counter[str]


def forked(work: Callable[[], int]) -> int:
    """Do the work in a child process; its pid."""
    child = os.fork()
    if child == 0:
        code = 70
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            code = work()
        finally:
            os._exit(code)
    return child


def finished(child: int) -> int:
    """The exit code of a child; negative if it was killed."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def examined(folder: Path, runs: list[str]) -> Tally:
    """Compare what left the silo with what was paid, and what is stored with what left."""
    ledger = Ledger.open(ledger_at(folder))
    ledger.verify()
    plan = make_plan(study(folder, ledger)[0])
    left: dict[tuple[str, int], set[str]] = {}
    log = folder / "left.jsonl"
    for line in log.read_text().splitlines() if log.exists() else []:
        run, round_, payload = json.loads(line)
        left.setdefault((run, round_), set()).add(payload)
    paid = Counter((entry.run, entry.round) for entry in ledger.log())
    tally: Tally = Counter()
    tally["released unspent"] = sum(key not in paid for key in left)
    tally["two answers"] = sum(len(payloads) > 1 for payloads in left.values())
    tally["releases"] = len(left)
    tally["charged twice"] = sum(count - 1 for count in paid.values())
    tally["lost draws"] = sum(ledger.lost_draws(run) for run in runs)
    over = ledger.spent().mu_squared > ledger.budget_mu_squared * (1 + 1e-9)
    tally["over budget"] = int(over)
    for run in runs:
        stored = {round_: payload.hex() for round_, payload in ledger.releases(run).items()}
        missing = [r for r in range(len(plan.rounds)) if {stored.get(r)} != left.get((run, r), {None})]
        done = (folder / f"result {run}.json").exists()
        tally["lost"] += int(not done) + (len(missing) if done else 0)
    return tally
