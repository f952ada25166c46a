"""F1: a lost ledger comes back empty, and is called whole.

Promised: "The ledger bounds the sum over studies"; `dpfda site log --verify` checks "the chain of hashes and the
ledger".
Breaks: `open_ledger` makes a new file where none is. After the ledger is lost (moved disk, wrong mount, mistaken
clean-up) the command that is meant to notice it makes an empty one and says that it is whole; the site then spends
the total budget again.
Root cause: opening creates; the audit log, which knows what was spent, is not compared with the ledger.
Removed by: rule 5 (opening never creates; the audit log carries the ledger's head).
"""

from __future__ import annotations

import harness

harness.source()

import numpy as np  # noqa: E402
from dpfda.engine.study import COORDINATORS  # noqa: E402
from dpfda.federation.joining import site_folder  # noqa: E402
from dpfda.messages import Query  # noqa: E402

from dpfda.federation.site import Site, open_ledger  # noqa: E402

with harness.scratch() as folder:
    data = folder / "north-data"
    harness.site_data(data)
    policy = harness.site_policy(data, epsilon=1.0, delta=1e-6)  # room for exactly one study
    kit = harness.coordinator_kit(harness.study_toml(folder))
    harness.command("site", "join", str(kit), "--policy", str(policy), "--yes")
    joined = kit.with_suffix("")
    own = site_folder(joined)
    document = own.studies()[0]
    question = COORDINATORS[document.plan.method](document.plan).question(0)
    query = Query(document.id, 0, {name: np.asarray(array) for name, array in question.items()}).encode()
    first = Site(own, "north").answer(query)
    spent = open_ledger(own.policy()).spent()
    print(f"one round answered ({first.code}); the ledger: {spent.debits} debit, epsilon = {spent.epsilon:.4g}")

    (data / "ledger.sqlite").unlink()
    print("the ledger's file is lost")
    code, text = harness.command("site", "log", str(joined), "--verify")
    print(f"dpfda site log --verify exits with {code} and says: {' '.join(text.split())}")
    after = open_ledger(own.policy()).spent()
    print(f"the ledger now: {after.debits} debits, epsilon = {after.epsilon:g}")
    again = Site(own, "north").answer(query)
    print(
        f"the same question again: {again.code}, {'ANOTHER' if again.payload != first.payload else 'the same'} answer"
    )
harness.verdict(
    code == 0 and "the ledger is whole" in " ".join(text.split()) and again.payload != first.payload,
    f"verify made a new ledger ({spent.debits} debit before, {after.debits} after), called it whole; "
    "the same round was answered twice with independent noise",
    "the loss was noticed",
)
