"""F3: data that change between rounds put one subject into two batches that are priced as disjoint.

Promised: a subject lies in one batch of the published method; `accounting.mu_squared` charges the dearest batch only,
because "the replaced curve lies in one part only".
Breaks: the site reads its table again in each process. Between two rounds the table is exported again with other ids
(here: one subject's id gets the prefix of another ward, so that it sorts last). n is the same, the terms are the
same, nothing is noticed: the subject is in the first batch before, and in the last batch after. Its influence is on
two releases, it pays for one.
Root cause: the ledger binds terms, not data.
Removed by: rule 6 (a keyed fingerprint of ordered ids and rows, checked at each load and on resume).
"""

from __future__ import annotations

import math
from pathlib import Path

import harness

harness.source()

import numpy as np  # noqa: E402
from dpfda.engine.plan import SiloTerms  # noqa: E402
from dpfda.messages import Query, Release  # noqa: E402

from dpfda.federation.policy import SitePolicy  # noqa: E402
from dpfda.federation.site import Site, SiteFolder, open_ledger  # noqa: E402
from dpfda.federation.study import StudyDocument, StudyTerms, make_document  # noqa: E402
from dpfda.privacy.accounting import mu_squared  # noqa: E402

N = 60


def document() -> StudyDocument:
    """A study of the published method, whose rounds use disjoint batches."""
    terms = StudyTerms(
        "lipid", "mean", (0.0, 1.0), (-1.0, 1.0), (SiloTerms("north", N, 1.0, 1e-3, 4.0),), 1, 1000,
        method="published", n_basis=4, constants={"C_T": 1.0},
    )  # fmt: skip
    return make_document(terms)


def write_table(path: Path, subject_value: float, subject_id: str) -> None:
    """Sixty subjects; all values are fixed but those of one subject."""
    rng = np.random.default_rng(3)
    lines = ["id,x,y"]
    for number in range(N):
        for x, y in zip(rng.uniform(0, 1, 4), rng.normal(0, 0.2, 4), strict=True):
            one = number == 0
            lines.append(f"{subject_id if one else f's{number:03d}'},{x:.6f},{subject_value if one else y:.6f}")
    path.write_text("\n".join(lines) + "\n")


def answers(folder: Path, subject_value: float, *, changed: bool) -> tuple[list[bytes], SiteFolder]:
    """All rounds of the study; after round 0 the table is exported again, and the site's process is a new one."""
    folder.mkdir()
    table, own, study = folder / "table.csv", SiteFolder(folder / "site"), document()
    own.root.mkdir()
    data = {"source": str(table), "id": "id", "x": "x", "y": "y"}
    # a seed, so that two runs can be compared bit by bit; nothing else about the border depends on it
    SitePolicy(data, 1.0, 1e-3, 1.0, 1e-3, str(folder / "ledger"), seed=5).save(own.policy_path)
    own.accept(study)
    write_table(table, subject_value, "s000")
    found = []
    for index in range(len(study.plan.rounds)):
        if changed and index == 1:
            write_table(table, subject_value, "w2-000")
        answer = Site(own, "north").answer(Query(study.id, index, {"iterate": np.zeros(4)}).encode())
        assert answer.code == "ok", answer.code
        found.append(Release.decode(answer.payload).values.tobytes())
    return found, own


with harness.scratch() as folder:
    plan = document().plan
    touched = {}
    for changed in (False, True):
        (low, _), (high, own) = (answers(folder / f"{changed}{y}", y, changed=changed) for y in (-1.0, 1.0))
        touched[changed] = [index for index, pair in enumerate(zip(low, high, strict=True)) if pair[0] != pair[1]]
    charged = open_ledger(own.policy()).spent().mu_squared
    single = plan.event("north", 0).mu ** 2
    print(
        f"the plan: {len(plan.rounds)} rounds on disjoint batches, in all mu^2 = {mu_squared(plan.events('north')):.4g}"
    )
    print(f"same table throughout: the subject moves the releases of rounds {touched[False]}")
    print(f"table exported again after round 0: it moves the releases of rounds {touched[True]}, every answer is ok")
    print(f"charged mu^2 = {charged:.4g}, due for {len(touched[True])} batches: {len(touched[True]) * single:.4g}")
harness.verdict(
    len(touched[True]) > len(touched[False]) == 1,
    f"one subject moved {len(touched[True])} releases and paid for 1: "
    f"mu = {math.sqrt(len(touched[True]) * single):.3g} in place of {math.sqrt(charged):.3g}, not noticed",
    f"rounds {touched}",
)
