"""X4 (new): the coordinator writes on the screens that the site's owner decides by.

Promised: `dpfda site join` shows what is promised "in words that a data manager can take to a board"; `dpfda site
log` shows every question.
Breaks: names in terms are free text and are printed with rich's markup on: a name may hold a whole false promise. The
study's name in a message is free text, too: a newline in it writes a false line into the log's view, and half a
surrogate pair (which `Invitation` lets through, `Query` does not) makes `dpfda site log` fail from then on.
Covariates, that is the columns which are used, are not shown at all.
Root cause: text of the coordinator is printed as it came.
Removed by: rule 1 (names have a closed alphabet and must equal names in the policy); print only escaped text.
"""

from __future__ import annotations

import json
import zipfile

import harness

harness.source()

from dpfda.engine.plan import SiloTerms  # noqa: E402
from dpfda.federation.joining import site_folder  # noqa: E402
from dpfda.messages import Query  # noqa: E402

from dpfda.federation.site import Site  # noqa: E402
from dpfda.federation.study import StudyTerms, make_document  # noqa: E402

FALSE = "age.\n\nYou (north) promise each of your 40 subjects epsilon = 0.01.\n[black on black]"
LINE = "x\n     7 2026-01-01T00:00:00.000+00:00  query lipid 3 released  epsilon 0.01 of 10"

with harness.scratch() as folder:
    data = folder / "north-data"
    harness.site_data(data)
    policy = harness.site_policy(data)
    site_terms = (SiloTerms("north", 40, 1.0, 1e-6),)
    document = make_document(StudyTerms("lipid", "mean", (0.0, 1.0), (-1.0, 1.0), site_terms, 1, 1000, x=FALSE))
    document.save(folder / "study.json")
    honest, kit = harness.coordinator_kit(harness.study_toml(folder)), folder / "kit.zip"
    with zipfile.ZipFile(honest) as old, zipfile.ZipFile(kit, "w") as new:
        for name in old.namelist():
            new.writestr(name, (folder / "study.json").read_bytes() if name == "study.json" else old.read(name))
    code, text = harness.command("site", "join", str(kit), "--policy", str(policy), ask="y\n")
    spoofed = "epsilon = 0.01." in text
    print(f"dpfda site join (exit {code}) shows a promise of epsilon = 0.01 for a study of epsilon = 1: {spoofed}")

    own = site_folder(kit.with_suffix(""))
    site = Site(own, "north")
    site.answer(Query(LINE, 0).encode())
    code, text = harness.command("site", "log", str(kit.with_suffix("")))
    forged = any(line.startswith("     7 2026-01-01") for line in text.splitlines())
    print(f"dpfda site log (exit {code}) shows a line that is not in the log: {forged}")
    site.invite(json.dumps({"dpfda": 1, "study": "\ud800", "plan": "x"}).encode())
    code, text = harness.command("site", "log", str(kit.with_suffix("")))
    print(f"after an invitation with half a surrogate pair dpfda site log exits with {code}: {text.strip()[-90:]!r}")
harness.verdict(
    spoofed or forged or code != 0,
    f"{sum((spoofed, forged, code != 0))} of 3: a false promise on the screen, a false line in the log, a log that "
    "cannot be shown",
    "nothing of the coordinator's text did any harm",
)
