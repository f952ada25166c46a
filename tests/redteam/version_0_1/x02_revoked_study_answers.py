"""X2 (new): a study that the site has taken back is answered as long as the process lives.

Promised: every message is checked "against the policy as it is now" (`federation/site.py`).
Breaks: `Site._answer` looks at studies and policy only if the study is not among its open silos. Once joined, the
owner may delete the study and the policy: new questions are answered, and paid for, until the process ends.
Root cause: acceptance is looked at when a study is opened, not when it is answered.
Removed by: rule 4, if `run` checks the acceptance record (and a withdrawal) before EVERY answer; say so in its test.
"""

from __future__ import annotations

import harness

harness.source()

import numpy as np  # noqa: E402
from dpfda.engine.plan import SiloTerms  # noqa: E402
from dpfda.engine.study import COORDINATORS  # noqa: E402
from dpfda.federation.protocol import Invitation  # noqa: E402
from dpfda.messages import Query  # noqa: E402

from dpfda.federation.policy import SitePolicy  # noqa: E402
from dpfda.federation.site import Site, SiteFolder  # noqa: E402
from dpfda.federation.study import StudyTerms, make_document  # noqa: E402

with harness.scratch() as folder:
    table = harness.site_data(folder)
    own = SiteFolder(folder / "site")
    own.root.mkdir()
    data = {"source": str(table), "id": "id", "x": "x", "y": "y"}
    SitePolicy(data, 1.0, 1e-6, 10.0, 1e-5, str(folder / "ledger")).save(own.policy_path)
    site_terms = (SiloTerms("north", 40, 1.0, 1e-6),)
    document = make_document(StudyTerms("lipid", "mean", (0.0, 1.0), (-1.0, 1.0), site_terms, 1, 1000))
    own.accept(document)
    site = Site(own, "north")
    invited = site.invite(Invitation(document.id, document.plan.digest()).encode()).code
    for path in (own.root / "studies").glob("*.json"):
        path.unlink()
    own.policy_path.unlink()
    question = COORDINATORS[document.plan.method](document.plan).question(0)
    query = Query(document.id, 0, {name: np.asarray(array) for name, array in question.items()})
    answer = site.answer(query.encode())
    outcome = own.audit.lines()[-1]["outcome"]
    print(f"invitation: {invited}; then the owner removes the study and the policy")
    print(f"the next question: {answer.code}, {outcome}")
harness.verdict(
    outcome == "released", "a NEW release left the site after study and policy were removed", f"the answer is {outcome}"
)
