"""X3 (new): one release of one site ends a study for everybody, for good.

Promised: a study goes on with the sites that answer; after a crash, `dpfda study resume` goes on.
Breaks: the coordinator accepts any array as a release: NaN, 1e300, a noise sd of zero, a wrong length. It is written
to the transcript BEFORE it is used; using it raises an error that is none of ours, and every resume replays it.
Root cause: `Release.decode` and `FlareTransport._release` check names, not length, range or the public noise sd.
Removed by: rule 2, applied to the coordinator as well: length, finite values and noise_sd (which the plan determines)
are checked before anything is recorded; a release that fails counts as no answer.
"""

from __future__ import annotations

from pathlib import Path

import harness

harness.source()

import numpy as np  # noqa: E402
from dpfda.engine.plan import Plan, SiloTerms  # noqa: E402
from dpfda.engine.study import run_study  # noqa: E402
from dpfda.messages import Query, Release  # noqa: E402
from dpfda.transport.checkpoint import CheckpointTransport  # noqa: E402
from dpfda.transport.in_process import InProcessTransport  # noqa: E402

from dpfda.curves import Curves  # noqa: E402
from dpfda.federation.study import StudyTerms, make_document  # noqa: E402
from dpfda.silo import Silo  # noqa: E402

np.seterr(all="ignore")
CASES = {
    "values are NaN": lambda values, sd: (values * np.nan, sd),
    "values are 1e300": lambda values, sd: (values * 0 + 1e300, sd),
    "one value only": lambda values, sd: (values[:1], sd[:1]),
    "noise sd is 0": lambda values, sd: (values, sd * 0),
}


def silo(name: str) -> Silo:
    """Forty subjects."""
    rng = np.random.default_rng(0)
    ids = np.repeat(np.arange(40), 4)
    curves = Curves.from_long(ids, rng.uniform(0, 1, 160), rng.normal(0, 0.2, 160))
    return Silo(curves, epsilon=1.0, delta=1e-6, name=name)


class Hostile:
    """A site that answers in its own way."""

    def __init__(self, case: str) -> None:
        self._silo, self._case, self.name = silo("b"), case, "b"

    def join(self, plan: Plan, run: str) -> None:
        """As any other."""
        self._silo.join(plan, run)

    def release(self, query: Query) -> Release:
        """Almost as any other."""
        own = self._silo.release(query)
        return Release(own.run, own.round, own.silo, *CASES[self._case](own.values, own.noise_sd), True)


def outcome(plan: Plan, folder: Path, second: Silo | Hostile) -> str:
    """What becomes of the study."""
    try:
        run_study(plan, CheckpointTransport(InProcessTransport([silo("a"), second]), folder), "run")
    except Exception as error:
        return type(error).__name__
    return "finished"


sites = tuple(SiloTerms(name, 40, 1.0, 1e-6) for name in "ab")
plan = make_document(StudyTerms("lipid", "mean", (0.0, 1.0), (-1.0, 1.0), sites, 1, 1000)).plan
ended = 0
with harness.scratch() as folder:
    for number, case in enumerate(CASES):
        first = outcome(plan, folder / str(number), Hostile(case))
        again = outcome(plan, folder / str(number), silo("b"))
        ended += first != "finished" and again != "finished"
        print(f"{case}: {first}; resumed with honest sites only: {again}")
harness.verdict(ended > 0, f"{ended} of {len(CASES)} hostile releases ended the study for good", "the study went on")
