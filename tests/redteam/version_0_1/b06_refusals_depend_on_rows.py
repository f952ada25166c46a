"""B6: what a site answers depends on its rows, free of charge and without noise.

Promised: refusals "tell the kind of error, which follows from the question, the policy and the ledger; never ...
anything computed from data" (`federation/protocol.py`).
Breaks: the table is read when a study is joined, and what is in the rows can refuse that: a doubled visit, text in a
number column, nobody with a point in the domain or a value in the bounds, no row of a level, a constant column. The
coordinator chooses domain, levels and bounds, and sees "ok" or "unavailable". Each pair of tables below is a pair of
neighbours: the same subjects, and one of them has other rows.
Root cause: errors about data reach the protocol.
Removed by: rule 7 (one refusal, and never because of rows: such a subject becomes an empty curve).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import harness

harness.source()

from dpfda.engine.plan import SiloTerms  # noqa: E402
from dpfda.federation.protocol import Invitation  # noqa: E402

from dpfda.federation.policy import SitePolicy  # noqa: E402
from dpfda.federation.site import Site, SiteFolder  # noqa: E402
from dpfda.federation.study import CovariateTerms, StudyTerms, make_document  # noqa: E402

N, ONE = 12, range(2)  # subjects; the two rows of the one subject in which the tables of a pair differ
HEADER = ["id", "x", "y", "age", "sex"]
BASE = [
    [
        f"s{subject:02d}",
        f"{0.1 + 0.05 * subject + 0.3 * visit:.2f}",
        f"{0.02 * subject:.2f}",
        str(40 + subject),
        "FM"[subject % 2],
    ]
    for subject in range(N)
    for visit in range(2)
]


def others(column: int, change: Callable[[str], str]) -> list[list[str]]:
    """The base table with a column changed for everybody but the one subject."""
    return with_values(BASE, range(2, 2 * N), column, change)


def with_values(rows: list[list[str]], which: range, column: int, change: Callable[[str], str]) -> list[list[str]]:
    """The table with a column changed in some of its rows."""
    changed = [[*row[:column], change(row[column]), *row[column + 1 :]] for row in rows]
    return [changed[number] if number in which else row for number, row in enumerate(rows)]


def far(value: str) -> str:
    """Outside the public range, and different for different values."""
    return f"{float(value) + 10:.2f}"


def code(folder: Path, rows: list[list[str]], covariates: tuple[CovariateTerms, ...]) -> tuple[str, str]:
    """What the coordinator sees of an invitation, and what the owner's log says."""
    folder.mkdir()
    (folder / "table.csv").write_text("\n".join(",".join(row) for row in [HEADER, *rows]) + "\n")
    own = SiteFolder(folder / "site")
    own.root.mkdir()
    data = {"source": str(folder / "table.csv"), "id": "id", "x": "x", "y": "y"}
    SitePolicy(data, 1.0, 1e-6, 10.0, 1e-5, str(folder / "ledger")).save(own.policy_path)
    site = SiloTerms("north", N, 1.0, 1e-6)
    model = "vcm" if covariates else "mean"
    document = make_document(
        StudyTerms("lipid", model, (0.0, 1.0), (-1.0, 1.0), (site,), 1, 1000, covariates=covariates)
    )
    own.accept(document)
    answer = Site(own, "north").invite(Invitation(document.id, document.plan.digest()).encode())
    line = own.audit.lines()[-1]
    return answer.code, str(line.get("reason", ""))


AGE, SEX = CovariateTerms("age", (0.0, 100.0)), CovariateTerms("sex", None, ("F", "M"))
FAR_X, FAR_Y = others(1, far), others(2, far)
LEVEL, ONES = others(4, lambda _: "X"), others(3, lambda _: "1")
CASES = {
    "a visit of one subject is in the table twice": (BASE, [*BASE, BASE[0]], ()),
    "one y of one subject is 'n.d.'": (BASE, with_values(BASE, range(1), 2, lambda _: "n.d."), ()),
    "the one subject with a point in the domain has none": (FAR_X, with_values(FAR_X, ONE, 1, far), ()),
    "the one subject with a y within y_bounds has none": (FAR_Y, with_values(FAR_Y, ONE, 2, far), ()),
    "the one subject with a listed level has another": (LEVEL, with_values(LEVEL, ONE, 4, lambda _: "X"), (SEX,)),
    "the one subject with age other than 1 has age 1": (ONES, with_values(ONES, ONE, 3, lambda _: "1"), (AGE,)),
    "the age of one subject differs between its rows": (BASE, with_values(BASE, range(1), 3, lambda _: "99"), (AGE,)),
}
different = []
with harness.scratch() as folder:
    for number, (what, (one, other, covariates)) in enumerate(CASES.items()):
        usual, _ = code(folder / f"{number}a", one, covariates)
        unusual, reason = code(folder / f"{number}b", other, covariates)
        if usual != unusual:
            different.append(what)
        print(f"{what}: {usual} -> {unusual}{'  [owner: ' + reason[:90] + '...]' if reason else ''}")
harness.verdict(
    bool(different),
    f"{len(different)} of {len(CASES)} changes of ONE subject's rows change the code that the coordinator sees, free",
    "the codes are the same for all tables",
)
