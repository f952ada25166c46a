"""B4: a kit carries a study that nobody accepted, with a plan that nobody derived.

Promised: "A site accepts that one plan; the coordinator later names it by its digest and cannot send another"
(`federation/study.py`); the data manager is shown what is promised and asked.
Breaks: the zip holds `local/dpfda/studies/<id>.json`. `dpfda site join` shows and re-derives `study.json` only, then
writes into the same folder; whatever lies in `studies/` counts as accepted. The hostile plan is checked against the
policy by its terms (honest looking) and never derived again, so it may hold B1's histogram.
Root cause: state by file name in a folder that the coordinator filled; only the offered study is re-derived.
Removed by: rules 1 and 4 (acceptance is a signed record of the terms' digest; the plan is derived at every join).
"""

from __future__ import annotations

import json
import zipfile

import harness

harness.source()

from dpfda.engine.plan import Plan, Round, Scaling, SiloTerms  # noqa: E402
from dpfda.engine.quantities import LevelHistogram  # noqa: E402
from dpfda.federation.joining import check_ready, site_folder  # noqa: E402
from dpfda.federation.protocol import Invitation  # noqa: E402
from dpfda.messages import Query, Release  # noqa: E402

from dpfda.basis import Cosine  # noqa: E402
from dpfda.federation.site import Site  # noqa: E402
from dpfda.federation.study import StudyDocument, StudyTerms  # noqa: E402

N = 40


def hostile() -> StudyDocument:
    """Terms as any study has them, and a plan of forty histograms without bins, one for each subject."""
    site = SiloTerms("north", N, 1.0, 1e-6)
    terms = StudyTerms("second", "mean", (0.0, 0.25), (-1.0, 1.0), (site,), 1, 1000, method="published")
    silo = SiloTerms("north", N, 1.0, 1e-6, shares=((1e-12,),) * N)
    rounds = tuple(Round((LevelHistogram(bins=0),), part, N) for part in range(N))
    scaling = Scaling((-1.0, 1.0), ((1.0, 1.0),))
    plan = Plan("published", "attack", Cosine(3, (0.0, 0.25)), 1, scaling, rounds, (silo,))
    return StudyDocument(terms, plan)


with harness.scratch() as folder:
    data = folder / "north-data"
    table, policy = harness.site_data(data, N, points=1), harness.site_policy(data)
    kit = harness.coordinator_kit(harness.study_toml(folder, n=N))
    document = hostile()
    document.save(folder / "hostile.json")
    with zipfile.ZipFile(kit, "a") as archive:
        archive.write(folder / "hostile.json", f"local/dpfda/studies/{document.id}.json")

    code, shown = harness.command("site", "join", str(kit), "--policy", str(policy), ask="y\n")
    print(f"dpfda site join exits with {code}; its screen names the hostile study: {document.id in shown}")
    joined = kit.with_suffix("")
    own = site_folder(joined)
    accepted = [line["study"] for line in own.audit.lines() if line["event"] == "promise"]
    print(f"the log has {len(accepted)} promise; the folder has {len(own.studies())} accepted studies")
    check_ready(joined, "north")
    print("check_ready(), as dpfda site run calls it: no objection")

    site = Site(own, "north")  # what the executor calls with the coordinator's bytes
    invited = site.invite(Invitation(document.id, document.plan.digest()).encode()).code
    found = []
    for part in range(N):
        answer = site.answer(Query(document.id, part).encode())
        found.append(answer.code == "ok" and Release.decode(answer.payload).values[0] > 2.0**31)
    truth = [float(line.split(",")[1]) <= 0.25 for line in table.read_text().splitlines()[1:]]
    right = sum(a == b for a, b in zip(found, truth, strict=True))
    last = json.loads((own.root / "audit.jsonl").read_bytes().splitlines()[-1])
    print(f"invitation: {invited}; for {right} of {N} subjects the answer tells whether x <= 0.25")
    print(f"the ledger says epsilon = {last['epsilon_spent']:.2g}")
harness.verdict(
    invited == "ok" and right == N and document.id not in shown,
    f"a study that nobody saw or accepted was joined and told one fact about {right} of {N} subjects at "
    f"epsilon = {last['epsilon_spent']:.1g}",
    f"invitation {invited}, {right} of {N} right",
)
