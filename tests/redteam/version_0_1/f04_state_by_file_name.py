"""F4: a second kit re-accepts the old study in silence; answering "no" pins the budget.

Promised: `dpfda site join` shows "what you are about to promise" of the kit that is named; "Nothing was accepted."
after a no.
Breaks: (a) a zip is unpacked beside itself only if that folder does not exist: a second kit of the same name, with
another study, is never opened, and the old study is shown and accepted again. (b) `check_promise` opens the ledger,
which makes it, before the person is asked: after "no" a ledger with the policy's total budget is on disk, and a
corrected policy is refused for ever.
Root cause: state by file name; checking creates.
Removed by: rules 4 and 5 (acceptance by digest; a declined promise changes nothing on disk).
"""

from __future__ import annotations

import shutil

import harness

harness.source()

from dpfda.federation.joining import site_folder  # noqa: E402

with harness.scratch() as folder:
    data = folder / "north-data"
    harness.site_data(data)
    policy = harness.site_policy(data, epsilon=10.0)
    before = sorted(path.name for path in data.iterdir())
    first = harness.coordinator_kit(harness.study_toml(folder, "first"))
    second = harness.coordinator_kit(harness.study_toml(folder, "second", more="n_basis = 3\n"))
    inbox = folder / "inbox"
    inbox.mkdir()

    shutil.copy(first, inbox / "north.zip")
    code, text = harness.command("site", "join", str(inbox / "north.zip"), "--policy", str(policy), ask="n\n")
    made = sorted({path.name for path in data.iterdir()} - set(before))
    said = "Nothing was accepted." if "Nothing was accepted." in text else "something else"
    print(f"answering no: exit {code}, {said}; new beside the data: {made}")
    harness.site_policy(data, epsilon=2.0)  # the board wants a smaller total
    code, text = harness.command("site", "join", str(inbox / "north.zip"), "--policy", str(policy), ask="y\n")
    pinned = "cannot be changed" in " ".join(text.split())
    print(f"joining with a corrected total budget: exit {code}: {' '.join(text.split())[-150:]}")

    harness.site_policy(data, epsilon=10.0)
    harness.command("site", "join", str(inbox / "north.zip"), "--policy", str(policy), ask="y\n")
    shutil.copy(second, inbox / "north.zip")  # the next kit has the same name: the site's
    code, text = harness.command("site", "join", str(inbox / "north.zip"), "--policy", str(policy), ask="y\n")
    studies = [document.terms.name for document in site_folder(inbox / "north").studies()]
    promises = [line["study"] for line in site_folder(inbox / "north").audit.lines() if line["event"] == "promise"]
    print(f"joining the second kit: exit {code}; its screen names: {'second' if 'second-' in text else 'first'}")
    print(f"accepted studies: {studies}; promises in the log: {len(promises)}, of {len(set(promises))} study")
harness.verdict(
    pinned and bool(made) and studies == ["first"] and code == 0,
    f'"no" made {", ".join(made)} and pinned its total; the second kit re-accepted the first study '
    f"({len(promises)} promises of one study in the log)",
    "the second kit was opened, or no left nothing behind",
)
