"""B5: 256 free questions close a ledger for ever.

Promised: "an answer and its debit are written in one transaction"; lost draws are counted because crashes lose them.
Breaks: a share whose mu is below the noise grid (2 sqrt(q) 2^-40) raises `InvalidInput` inside the draw, that is
after `begin` counted a lost draw and before `commit` takes the count back. Nothing is spent, nothing crashed, yet
each question counts as a draw lost in a crash: 32 close the run, 256 close the ledger for all later studies of the
data.
Root cause: work that can fail (here: a check of public numbers) stands between the count and the commit.
Removed by: rule 8 (nothing that can fail stands between count and commit) and rule 1 (shares are derived).
"""

from __future__ import annotations

import harness

harness.source()

import numpy as np  # noqa: E402
from dpfda.engine.plan import Round  # noqa: E402
from dpfda.engine.quantities import ShareBelow  # noqa: E402
from dpfda.messages import Query  # noqa: E402

from dpfda.curves import Curves  # noqa: E402
from dpfda.errors import DpfdaError  # noqa: E402
from dpfda.privacy.ledger import Ledger  # noqa: E402
from dpfda.silo import Silo  # noqa: E402

N = 20
curves = Curves.from_long(np.arange(N), np.linspace(0, 1, N), np.zeros(N))
with harness.scratch() as folder:
    ledger = Ledger.create(folder / "ledger", 1.0, 1e-9)
    silo = Silo(curves, epsilon=1.0, delta=1e-9, name="north", ledger=ledger)
    asked, reasons = 0, []
    for number in range(8):
        run = f"study-{number}"
        silo.join(harness.plan_of(N, [Round((ShareBelow(),))], shares=((1e-30,),), basis=harness.one_function()), run)
        for _ in range(32):
            try:
                silo.release(Query(run, 0, {"iterate": np.zeros(1)}))
            except DpfdaError as error:
                asked += 1
                reasons.append(type(error).__name__)
    print(f"{asked} questions at a share of 1e-30, each refused by {sorted(set(reasons))}")
    print(f"debits: {ledger.spent().debits}, mu^2 spent: {ledger.spent().mu_squared:g}")
    honest = harness.plan_of(N, [Round((ShareBelow(),))], shares=((0.5,),), basis=harness.one_function())
    fresh = Silo(curves, epsilon=1.0, delta=1e-9, name="north", ledger=Ledger.open(folder / "ledger"))
    fresh.join(honest, "an honest study, later")
    try:
        fresh.release(Query("an honest study, later", 0, {"iterate": np.zeros(1)}))
        outcome = ""
    except DpfdaError as error:
        outcome = str(error)
    print(f"an honest study afterwards: {outcome or 'answered'}")
harness.verdict(
    "this ledger is closed" in outcome,
    f"{asked} questions that cost nothing closed the ledger for ever, with 0 debits on it",
    "the honest study was answered",
)
