"""One process of a fault run: a coordinator and its silo, resuming a study on a ledger file until it is done.

Everything that leaves the silo is written to a log before anything else happens with it, as if sent to the world.
Run as a script; whoever starts it may kill it at any moment.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from dpfda.audit.cases import DOMAIN, Y_BOUNDS, ordinary_curves
from dpfda.errors import BudgetExceeded, DpfdaError
from dpfda.methods.run import run_study
from dpfda.privacy.ledger.ledger import Ledger
from dpfda.protocol.messages import Query, Release
from dpfda.protocol.published_constants import PublishedConstants
from dpfda.protocol.terms import StudyTerms
from dpfda.silo.silo import Silo
from dpfda.transports.checkpoint import CheckpointTransport
from dpfda.transports.in_process import InProcessTransport

EPSILON, DELTA, NAME = 1.0, 1e-5, "silo"
LEDGER_EPSILON = 3.0  # room for two runs
DONE, REFUSED, FAILED = 0, 3, 4


class Witnessed(Silo):
    """Notes every release that leaves, at the moment it does."""

    log: Path

    def release(self, query: Query) -> Release:
        answer = super().release(query)
        with self.log.open("ab", buffering=0) as log:
            log.write(json.dumps([query.run, query.round, answer.encode().hex()]).encode() + b"\n")
            os.fsync(log.fileno())
        return answer


def ledger_at(folder: Path) -> str:
    """The ledger of a fault run: a file in its folder, or the URL that stands there."""
    url = folder / "ledger.url"
    return url.read_text() if url.exists() else str(folder / "ledger.db")


def study(folder: Path, ledger: Ledger) -> tuple[StudyTerms, Witnessed]:
    """The terms and the silo, the same after every restart."""
    import numpy as np

    silo = Witnessed(
        ordinary_curves(60, 1, np.random.default_rng(0)),
        epsilon=EPSILON, delta=DELTA, name=NAME, points_per_curve=3, ledger=ledger,
    )  # fmt: skip
    silo.log = folder / "left.jsonl"
    constants = PublishedConstants(C_T=2.0)
    terms = StudyTerms("published", DOMAIN, Y_BOUNDS, (silo.terms(),), basis="fourier", n_basis=3, constants=constants)
    return terms, silo


def main(folder: Path, run: str) -> int:
    """Resume the run where its record ends."""
    try:
        ledger = Ledger.open(ledger_at(folder), timeout=5.0)
        terms, silo = study(folder, ledger)
        transport = CheckpointTransport(InProcessTransport([silo]), folder / f"record {run}")
        outcome = run_study(terms, transport, run)
    except BudgetExceeded:
        return REFUSED
    except DpfdaError as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return FAILED
    (folder / f"result {run}.json").write_text(json.dumps(outcome.coefficients.tolist()))
    return DONE


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
