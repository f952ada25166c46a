"""The analyst's day: budget, fit, report, export, describe, settings in a file; in process, on small tables."""

from __future__ import annotations

import csv
import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("polars")

from cli_helpers import ALL, COLUMNS, PROMISE, PUBLIC, command, dpfda, environment, fund, plain, visits

from dpfda.cli.main import COMMANDS
from dpfda.privacy.ledger.ledger import Ledger
from dpfda.report.document import read_document
from dpfda.report.results import load


@pytest.fixture(autouse=True)
def _in_an_own_folder(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DPFDA_LEDGER", raising=False)


@pytest.fixture
def table(tmp_path):
    return visits(tmp_path / "visits.csv")


def test_budget_fit_report_and_log(table, capsys) -> None:
    made = dpfda(capsys, "budget", "init", table, "--epsilon", 3, "--delta", 1e-5, "--note", "board of 3 May")
    assert made.code == 0
    ran = dpfda(
        capsys,
        "fit",
        table,
        *ALL,
        "--report",
        "hdl.html",
        "--json",
        "hdl.json",
        "--figure",
        "a.png",
        "--figure",
        "a.svg",
    )
    assert ran.code == 0, ran.err
    said = " ".join(ran.out.split())  # noise decides whether releases show how many contribute
    assert re.search(r"60 subjects, ((nearly all|of whom about \d+).* contribute, )?each protected as a whole", said)
    document = json.loads((table.parent / "hdl.json").read_text())
    assert document["privacy"]["private"]
    assert document["budget"]["epsilon_before"] == 0
    assert document["budget"]["total_epsilon"] == 3
    assert document["repeat"]["command"].startswith(f"dpfda fit {table}")
    assert read_document("hdl.html") == document
    assert (table.parent / "a.png").read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in (table.parent / "a.svg").read_bytes()
    ledger = Ledger.open(f"{table}.ledger")
    assert ledger.spent().epsilon == pytest.approx(document["budget"]["epsilon_after"])
    log = dpfda(capsys, "budget", "log", table)
    assert "mean of hdl over age, visits.csv" in log.out
    assert dpfda(capsys, "budget", "verify", table).code == 0
    shown = json.loads(dpfda(capsys, "budget", "show", table, "--json").out)
    assert shown["total_epsilon"] == 3
    assert 0 < shown["epsilon_left"] < 3
    lines = dpfda(capsys, "budget", "log", table, "--json").out.splitlines()
    assert {"at", "actor", "silo", "mu", "hash"} <= json.loads(lines[0]).keys()


def test_a_fit_without_a_budget_is_refused_with_the_command_to_give(table, capsys) -> None:
    refused = dpfda(capsys, "fit", table, *ALL)
    assert refused.code == 2
    assert "dpfda budget init --ledger" in refused.complaints[0]
    assert [path.name for path in table.parent.iterdir()] == ["visits.csv"]


def test_a_budget_of_one_fit_is_spent_by_one_fit(table, capsys) -> None:
    fund(table)
    assert dpfda(capsys, "fit", table, *ALL).code == 0
    assert (table.parent / "result.json").exists()
    again = dpfda(capsys, "fit", table, *ALL)
    assert again.code == 2
    assert "has room for" in again.complaints[0]
    assert "no data were read and nothing was spent" in again.complaints[0]


def test_a_delta_above_one_over_the_subjects_is_refused(table, capsys) -> None:
    fund(table, 3.0)
    ran = dpfda(capsys, "fit", table, *COLUMNS, *PUBLIC, "--epsilon", 1, "--delta", 0.02)
    assert ran.code == 2
    assert "far below one over the number of subjects" in " ".join(ran.err.split())


def test_overspending_is_refused_before_the_data_are_read(table, capsys, monkeypatch) -> None:
    dpfda(capsys, "budget", "init", table, "--epsilon", 0.5, "--delta", 1e-5)
    monkeypatch.setattr("dpfda.curves.tables.load_curves", lambda *_: pytest.fail("the data were read"))
    ran = dpfda(capsys, "fit", table, *ALL)
    assert ran.code == 2
    assert "ask for --epsilon 0.5 or less" in ran.complaints[0]


def test_the_advised_epsilon_is_then_allowed(table, capsys) -> None:
    dpfda(capsys, "budget", "init", table, "--epsilon", 1, "--delta", 1e-5)
    half = [*COLUMNS, *PUBLIC, "--epsilon", 0.5, "--delta", 1e-5]
    assert dpfda(capsys, "fit", table, *half).code == 0
    refused = dpfda(capsys, "fit", table, *ALL).complaints[0]
    advised = refused.split("--epsilon ")[1].split()[0]
    assert dpfda(capsys, "fit", table, *COLUMNS, *PUBLIC, "--epsilon", advised, "--delta", 1e-5).code == 0


def test_coefficient_curves_with_a_category(table, capsys) -> None:
    fund(table, 3.0)
    design = ["--design", "male,smoker", "--bounds", "male=0:1", "--levels", "smoker=never,former,current"]
    ran = dpfda(capsys, "fit", table, *ALL, *design, "--json", "v.json", "--report", "v.html")
    assert ran.code == 0, ran.err
    document = read_document("v.json")
    assert [f["name"] for f in document["functions"]] == [
        "mean at male=0, smoker=never", "male", "smoker: former", "smoker: current"
    ]  # fmt: skip
    assert document["model"]["columns"] == ["intercept", "male", "smoker: former", "smoker: current"]
    assert np.isfinite(document["coefficients"]).all()
    named = document["privacy"]["public_inputs"]["design_bounds"]
    assert named == {"intercept": [1, 1], "male": [0, 1], "smoker: former": [0, 1], "smoker: current": [0, 1]}


def test_the_reference_profile_is_as_declared(table, capsys) -> None:
    fund(table, 3.0)
    design = [
        "--design",
        "male + C(smoker) + male:C(smoker)",
        "--bounds",
        "male=0:1",
        "--levels",
        "smoker=never,former,current",
    ]
    references = ["--reference", "male=0.5", "--reference", "smoker=former"]
    ran = dpfda(capsys, "fit", table, *ALL, *design, *references, "--json", "v.json")
    assert ran.code == 0, ran.err
    result = load("v.json")
    assert [each.reference for each in result.coding_.covariates] == [0.5, "former"]
    assert result.curve_.name == result.document["functions"][0]["name"] == "mean at male=0.5, smoker=former"
    np.testing.assert_allclose(result.curve_([50.0]), result.curve_at(male=0.5, smoker="former")([50.0]))
    (table.parent / "again.toml").write_text(result.document["repeat"]["settings"])
    again = dpfda(capsys, "fit", "again.toml", "--overwrite", "--dry-run")
    assert 'reference = ["male=0.5", "smoker=former"]' in again.out, again.err


def test_owner_notes_go_to_stderr_and_never_into_a_report_or_result(table, capsys) -> None:
    fund(table, 3.0)
    table.write_text(table.read_text() + "p0001,50,9999,1,former\n")
    note = "1 of 60 subjects had values outside the bounds and was clamped"
    ran = dpfda(capsys, "fit", table, *ALL, "--report", "a.html", "--json", "a.json")
    assert f"NOT PRIVATE, for the data's owner only: {note}." in ran.err
    assert note not in ran.out
    for name in ("a.html", "a.json"):
        assert note not in (table.parent / name).read_text()


def test_covariates_that_change_or_are_blank_fit_and_their_counts_stay_with_the_owner(table, capsys) -> None:
    fund(table, 3.0)
    lines = table.read_text().splitlines()
    rows = [line.split(",") for line in lines[1:]]
    for number, row in enumerate(rows):  # a dose at the first row of a subject, then blank or another one
        row.append("3" if number % 5 == 0 else "" if number % 5 < 3 else f"{number % 4}")
    table.write_text("\n".join([f"{lines[0]},dose", *map(",".join, rows)]) + "\n")
    model = ["--design", "dose", "--bounds", "dose=0:9"]
    ran = dpfda(capsys, "fit", table, *ALL, *model, "--report", "a.html", "--json", "a.json")
    assert ran.code == 0, ran.err
    note = "120 of 300 rows have x and y, but 'dose' is missing: left out"
    assert note in ran.err.replace("\n", " ")
    for text in (ran.out, *((table.parent / name).read_text() for name in ("a.html", "a.json"))):
        assert "left out" not in text
    filled = dpfda(capsys, "fit", table, *ALL, *model, "--fill-down", "dose", "--json", "b.json")
    assert filled.code == 0, filled.err
    assert note not in filled.err.replace("\n", " ")
    refused = dpfda(capsys, "fit", table, *ALL, *model, "--method", "published")
    assert refused.code == 2
    assert "changes within a subject" in refused.err.replace("\n", " ")
    assert Ledger.open(f"{table}.ledger").spent().epsilon <= 2


def test_settings_from_toml_print_back_and_run(table, capsys) -> None:
    fund(table, 3.0)
    (table.parent / "study.toml").write_text(
        'source = "visits.csv"\nid = "pid"\nx = "age"\ny = "hdl"\ndomain = [46, 63]\ny-bounds = "0:150"\nepsilon = 1\n'
        'delta = 1e-5\ndesign = ["male"]\njson = "out.json"\n[bounds]\nmale = [0, 1]\n'
    )
    dry = dpfda(capsys, "fit", "study.toml", "--dry-run", "--epsilon", 0.5)
    assert dry.code == 0, dry.err
    assert "# Would spend at most epsilon = 0.5" in dry.out
    assert "# 60 subjects" in dry.out
    assert tomllib.loads(dry.out)["epsilon"] == 0.5
    assert Ledger.open(f"{table}.ledger").spent().debits == 0
    (table.parent / "again.toml").write_text(dry.out)
    assert dpfda(capsys, "fit", "again.toml", "--dry-run").out == dry.out
    assert dpfda(capsys, "fit", "again.toml").code == 0
    assert read_document("out.json")["privacy"]["epsilon"] == 0.5


def test_dry_run_says_that_it_would_be_refused(table, capsys) -> None:
    dpfda(capsys, "budget", "init", table, "--epsilon", 0.5, "--delta", 1e-5)
    assert "REFUSED" in dpfda(capsys, "fit", table, *ALL, "--dry-run").out


def test_a_mean_over_visits_says_so_everywhere(table, capsys) -> None:
    fund(table, 3.0)
    by_visits = (*ALL, "--weight", "visit", "--visit-cap", 3)
    dry = dpfda(capsys, "fit", table, *by_visits, "--dry-run").out
    assert "# Every visit counts equally, up to 3 of a subject; the forecast assumes that all have as many." in dry
    assert tomllib.loads(dry)["visit-cap"] == 3
    ran = dpfda(capsys, "fit", table, *by_visits, "--report", "r.html", "--json", "r.json")
    assert ran.code == 0, ran.err
    said = "Every visit counts equally, but a subject with more than 3 counts as 3: the mean over visits of hdl"
    assert said in " ".join(ran.out.split())
    document = read_document("r.json")
    assert document["estimand"].startswith(said)
    assert document["privacy"]["public_inputs"]["visit_cap"] == 3
    page = (table.parent / "r.html").read_text()
    assert said in page
    assert "a subject with more than 3 visits counts as one with 3" in page
    assert load("r.json").estimand_ == document["estimand"]


def test_export_and_report_from_a_result(table, capsys) -> None:
    fund(table, 3.0)
    dpfda(capsys, "fit", table, *ALL, "--report", "r.html")
    ran = dpfda(capsys, "export", "r.html", "--coefficients", "c.csv", "--grid", "g.csv", "--points", 11)
    assert ran.code == 0, ran.err
    document = read_document("r.html")
    rows = list(csv.DictReader((table.parent / "c.csv").open()))
    assert [float(row["coefficient"]) for row in rows] == document["coefficients"][0]
    grid = list(csv.DictReader((table.parent / "g.csv").open()))
    assert len(grid) == 11
    assert float(grid[0]["mean"]) == pytest.approx(document["functions"][0]["values"][0])
    functions = load("r.html").curve_.to_skfda()
    assert float(functions(46)[0, 0, 0]) == pytest.approx(document["functions"][0]["values"][0], rel=1e-6)
    assert dpfda(capsys, "export", "r.html", "--coefficients", "c.json", "--grid", "g.json").code == 0
    assert dpfda(capsys, "report", "r.html", "--report", "again.html", "--title", "Another title").code == 0
    assert "Another title" in (table.parent / "again.html").read_text()


def test_json_on_stdout_is_nothing_but_json(table, capsys) -> None:
    fund(table, 3.0)
    assert json.loads(dpfda(capsys, "fit", table, *ALL, "--json", "-").out)["schema"] == "dpfda-result/2"


def test_files_are_not_replaced_unless_asked(table, capsys) -> None:
    fund(table, 3.0)
    (table.parent / "r.html").write_text("mine")
    refused = dpfda(capsys, "fit", table, *ALL, "--report", "r.html")
    assert refused.code == 2
    assert "--overwrite" in refused.complaints[0]
    assert dpfda(capsys, "fit", table, *ALL, "--report", "r.html", "--overwrite").code == 0


def test_describe_reads_no_value_unless_paid(table, capsys) -> None:
    guide = dpfda(capsys, "describe")
    assert "Do not look at minima" in guide.out
    assert "0:150" in dpfda(capsys, "describe", "hdl").out
    columns = dpfda(capsys, "describe", table)
    assert "HDL cholesterol: 0:150" in columns.out
    dpfda(capsys, "budget", "init", table, "--epsilon", 3, "--delta", 1e-5)
    paid = dpfda(capsys, "describe", table, *COLUMNS, "--search", "0:400", "--epsilon", 1, "--delta", 1e-6)
    assert paid.code == 0, paid.err
    assert "--y-bounds=" in paid.out
    assert "quantiles of hdl" in dpfda(capsys, "budget", "log", table).out
    narrow = dpfda(capsys, "describe", table, *COLUMNS, "--search", "54:56.25", "--epsilon", 1, "--delta", 1e-6)
    low, high = narrow.out.split("--y-bounds=")[1].split(":")
    assert 54 <= float(low) < float(high) <= 56.25, "never beyond the range that certainly contains y"


def test_a_budget_is_shown_as_epsilon_at_its_delta(table, capsys) -> None:
    dpfda(capsys, "budget", "init", table, "--epsilon", 3, "--delta", 1e-5)
    assert dpfda(capsys, "fit", table, *ALL, "--json", "deep/er/a.json", "--report", "deep/b.html").code == 0
    plain = dpfda(capsys, "budget", "show", table).out
    assert "of 3 is spent, in 7 releases, at delta = 1e-05" in plain
    assert "mu^2" not in plain + dpfda(capsys, "budget", "log", table, "--rounds").out
    assert "mu^2 = " in dpfda(capsys, "budget", "show", table, "--verbose").out
    assert "mu^2" in dpfda(capsys, "budget", "log", table, "--rounds", "--verbose").out


def test_simulated_and_example_data_fit_with_the_printed_command(tmp_path, capsys) -> None:
    printed = dpfda(capsys, "simulate", "s.csv", "--n", 80, "--m", 4, "--covariates", 1).out
    fund("s.csv")
    assert dpfda(capsys, *shlex.split(printed)[1:]).code == 0
    assert "nafld-lipid" in dpfda(capsys, "datasets").out
    printed = dpfda(capsys, "datasets", "export", "pbcseq", "b.parquet").out
    fund("b.parquet")
    ran = dpfda(capsys, *shlex.split(printed)[1:])
    assert ran.code == 0, ran.err


def test_the_same_seed_simulates_the_same_table(capsys, tmp_path) -> None:
    for name in ("a.csv", "b.csv"):
        dpfda(capsys, "simulate", name, "--n", 20, "--seed", 7)
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def test_database_source_and_server_ledger(table, capsys, postgres_url) -> None:
    import polars as pl
    import psycopg

    rows = pl.read_csv(table).select("pid", "age", "hdl").rows()
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TABLE clinic (pid TEXT, age DOUBLE PRECISION, hdl DOUBLE PRECISION)")
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO clinic VALUES (%s, %s, %s)", rows)
    ledger = f"{postgres_url}?ledger=clinic"
    assert dpfda(capsys, "budget", "init", "--ledger", ledger, "--epsilon", 1, "--delta", 1e-5).code == 0
    query = ["--query", "SELECT pid, age, hdl FROM clinic"]
    ran = dpfda(capsys, "fit", postgres_url, *query, *ALL, "--ledger", ledger, "--json", "p.json")
    assert ran.code == 0, ran.err
    again = dpfda(capsys, "fit", postgres_url, *query, *ALL, "--ledger", ledger, "--json", "q.json")
    assert again.code == 2
    assert dpfda(capsys, "budget", "verify", "--ledger", ledger).code == 0


def test_quiet_says_nothing_but_results(table, capsys) -> None:
    fund(table, 3.0)
    ran = dpfda(capsys, "fit", table, *ALL, "--quiet")
    assert ran.err == ""
    fund("other")
    assert "Reading" in dpfda(capsys, "-v", "fit", table, *ALL, "--ledger", "other.ledger").err


def _help_pages() -> list[tuple[str, ...]]:
    there = [name for name, entry in COMMANDS.items() if importlib.util.find_spec(entry.module)]
    subcommands = [("budget", name) for name in ("init", "show", "log", "verify")]
    return [(), *((name,) for name in there), *subcommands, ("datasets", "export"), ("datasets", "list")]


@pytest.mark.parametrize("page", _help_pages(), ids=" ".join)
def test_every_help_page_has_an_example(page: tuple[str, ...], capsys) -> None:
    shown = dpfda(capsys, *page, "--help")
    assert shown.code == 0
    text = plain(shown.out)
    assert "Example" in text
    assert f"dpfda {' '.join(page)}".strip() in " ".join(text.split())


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from dpfda.cli.main import run; run(['--help']); "
        "sys.exit(', '.join({'numpy', 'polars', 'scipy', 'sklearn', 'matplotlib'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=False)
    assert not done.stderr.strip(), done.stderr


def test_completion_lists_the_commands() -> None:
    variables = {"_DPFDA_COMPLETE": "complete_bash", "COMP_WORDS": "dpfda bu", "COMP_CWORD": "1"}
    program = "import sys; sys.argv[0] = 'dpfda'; from dpfda.cli.main import main; main()"
    done = subprocess.run(
        [command()[0], "-c", program],
        env={**os.environ, **environment(), **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["budget"]


def test_demo_writes_report_and_picture(capsys, tmp_path) -> None:
    ran = dpfda(capsys, "demo", "--folder", "out")
    assert ran.code == 0, ran.err
    assert "15,205 subjects" in ran.out
    assert (tmp_path / "out" / "demo.html").stat().st_size > 10_000


def test_a_study_of_its_own_promise(table, capsys) -> None:
    """The promise is in the arguments: other options cannot change it."""
    fund(table)
    document = json.loads(dpfda(capsys, "fit", table, *COLUMNS, *PUBLIC, *PROMISE, "--json", "-").out)
    assert (document["privacy"]["epsilon"], document["privacy"]["delta"]) == (1.0, 1e-5)


@pytest.mark.parametrize("basis", ["free-ends", "bspline"])
def test_a_basis_by_name_reaches_report_and_exports(table, capsys, basis) -> None:
    assert dpfda(capsys, "budget", "init", table, "--epsilon", 3, "--delta", 1e-5).code == 0
    ran = dpfda(capsys, "fit", table, *ALL, "--basis", basis, "--report", "hdl.html", "--json", "hdl.json")
    assert ran.code == 0, ran.err
    document = read_document("hdl.json")
    assert document["basis"]["name"] == basis
    made = dpfda(capsys, "export", "hdl.json", "--coefficients", "c.json", "--grid", "g.csv")
    assert made.code == 0, made.err
    assert json.loads((table.parent / "c.json").read_text())["basis"]["name"] == basis
    assert dpfda(capsys, "ask", "hdl.json", "--derivative", "--csv", "slope.csv").code == 0
    assert len((table.parent / "slope.csv").read_text().splitlines()) == 202
