"""What a round costs on the first and on the 200th study of one durable ledger: `python benchmarks/ledger_growth.py`."""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

from dpfda.privacy import GaussianEvent, Ledger

STUDIES, ROUNDS = 200, 6


def time_round(ledger: Ledger, run: str, number: int) -> tuple[float, float]:
    """Seconds (wall, processor) of one round: look up, count, commit, and what the site's log asks."""
    event, digest = GaussianEvent(1e-3), f"silo:plan:{number}"
    wall, cpu = time.perf_counter(), time.process_time()
    ledger.stored(run, number, digest)
    ledger.begin(run, number, event, digest)
    ledger.commit(run, number, event, digest, lambda head: head.encode() * 10)
    ledger.spent()
    return time.perf_counter() - wall, time.process_time() - cpu


def compare_rounds(place: str) -> tuple[float, float]:
    """The time of a round of the 200th study over that of the first: wall and processor.

    Rounds on a new ledger take turns with rounds on one that holds 200 studies, so that both see the same machine.
    """
    young, old = Ledger.create(f"{place}/young", 100.0, 1e-5), Ledger.create(f"{place}/old", 100.0, 1e-5)
    for study in range(STUDIES - 1):
        for number in range(ROUNDS):
            time_round(old, f"study {study}", number)
    first, last = [], []
    for repeat in range(20):
        for number in range(ROUNDS):
            first.append(time_round(young, f"repeat {repeat}", number))
            last.append(time_round(old, f"repeat {repeat}", number))
    wall, cpu = (
        statistics.median(now) / statistics.median(then)
        for now, then in zip(zip(*last, strict=True), zip(*first, strict=True), strict=True)
    )
    return wall, cpu


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as folder:
        Path(folder).chmod(0o700)
        print("ratio: wall {:.3f}, processor {:.3f}".format(*compare_rounds(folder)))
