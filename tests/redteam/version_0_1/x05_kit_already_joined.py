"""X5 (new): a kit arrives already joined, with the coordinator's own policy; and a study's name leaves its folder.

Promised: "The policy is the site's own file. Nothing that the coordinator sends can change it."
Breaks: (a) what `dpfda site join` writes are public constants and three JSON files. A kit may bring them all: a
policy with a seed (noise that the coordinator can compute) and a total of epsilon = 10000, an accepted study, the two
hardened files. Whoever calls `dpfda site run` first gets no objection (under umask 077; otherwise the key's mode is
noticed, by luck). (b) `StudyTerms.from_dict` does not check the name: "../../../x" makes `accept` write outside the
site's folder.
Root cause: nothing binds the site's state to the site (no key, no signature); names are checked by one of two doors.
Removed by: rules 3, 4 (a folder of the site's own, signed acceptance) and 1 (one validated type for all doors).
"""

from __future__ import annotations

import json
import os
import zipfile

import harness

harness.source()

from dpfda.engine.plan import SiloTerms  # noqa: E402
from dpfda.federation.hardening import site_authorization, site_resources  # noqa: E402
from dpfda.federation.joining import check_ready, unpack  # noqa: E402

from dpfda.federation.policy import SitePolicy  # noqa: E402
from dpfda.federation.site import SiteFolder  # noqa: E402
from dpfda.federation.study import StudyDocument, StudyTerms, make_document  # noqa: E402

with harness.scratch() as folder:
    table = harness.site_data(folder / "north-data")
    kit = harness.coordinator_kit(harness.study_toml(folder))
    data = {"source": str(table), "id": "id", "x": "x", "y": "y"}
    policy = SitePolicy(data, 1.0, 1e-6, 1e4, 0.5, str(folder / "a-ledger-of-theirs"), seed=1)
    with zipfile.ZipFile(kit, "a") as archive:
        archive.writestr("local/resources.json", json.dumps(site_resources()))
        archive.writestr("local/authorization.json", json.dumps(site_authorization()))
        fields = {**vars(policy), "allow": vars(policy.allow), "data": dict(policy.data)}
        archive.writestr("local/dpfda/policy.json", json.dumps(fields))
        archive.writestr("local/dpfda/studies/x.json", archive.read("study.json"))
    kept = os.umask(0o077)
    try:
        ready = check_ready(unpack(kit), "north")  # what `dpfda site run` asks before it starts
        print(
            f"nobody joined anything; check_ready(): no objection, seed {ready.seed}, epsilon {ready.total_epsilon:g}"
        )
        theirs = True
    except Exception as error:
        print(f"check_ready(): {error}")
        theirs = False
    os.umask(kept)

    site_terms = (SiloTerms("north", 40, 1.0, 1e-6),)
    named = make_document(StudyTerms("../../escaped", "mean", (0.0, 1.0), (-1.0, 1.0), site_terms, 1, 1000))
    named.save(folder / "study.json")
    (folder / "site").mkdir()
    SiteFolder(folder / "site").accept(StudyDocument.load(folder / "study.json"))
    outside = sorted(path.name for path in folder.glob("escaped-*.json"))
    print(f"a study called ../../escaped was written to {outside}, beside the site's folder")
harness.verdict(
    theirs or bool(outside),
    f"a kit brought its own policy (seed: {theirs}) and a study's name wrote {len(outside)} file outside the folder",
    "neither was possible",
)
