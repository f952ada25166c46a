"""`dpfda fit` of several outcomes: one command, one debit, one report; and questions to one outcome of it."""

from __future__ import annotations

import json
import re
from contextlib import closing

import numpy as np
import pytest
from cli_helpers import dpfda, fund

from dpfda import load
from dpfda.privacy.ledger.ledger import Ledger

COLUMNS = ["--id", "pid", "--x", "age", "--y", "sbp", "--y", "dbp"]
BOUNDS = ["--y-bounds", "sbp=60:250", "--y-bounds", "dbp=30:150"]
ALL = [*COLUMNS, *BOUNDS, "--domain", "20:80", "--epsilon", 1, "--delta", 1e-5]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Visits of 400 subjects; dbp is missing at some of them."""
    rng = np.random.default_rng(1)
    path = tmp_path_factory.mktemp("clinic") / "visits.csv"
    rows = ["pid,age,sbp,dbp,male,note"]
    for subject in range(400):
        for _ in range(4):
            age, male = rng.uniform(20, 80), subject % 2
            dbp = "" if rng.random() < 0.2 else f"{60 + 0.3 * age + rng.normal(0, 6):.1f}"
            rows.append(f"{subject},{age:.2f},{100 + 0.5 * age + rng.normal(0, 8):.1f},{dbp},{male},x")
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.fixture(scope="module")
def folder(table, tmp_path_factory):
    """After one fit with a transform of one outcome: its files and its ledger."""
    place = tmp_path_factory.mktemp("fit")
    Ledger.create(place / "budget.ledger", 3, 1e-5, "test").close()
    return place


def fit(capsys, table, folder, *more):
    return dpfda(capsys, "fit", table, *ALL, "--ledger", folder / "budget.ledger", *more)


def test_one_command_fits_both_and_spends_once(capsys, table, folder) -> None:
    outputs = ["--json", folder / "both.json", "--report", folder / "both.html", "--figure", folder / "both.png"]
    ran = fit(capsys, table, folder, *outputs, "--transform", "dbp=log", "--title", "Blood pressure")
    assert ran.code == 0, ran.err
    assert "all outcomes together" in ran.out
    assert "Mean of sbp over age" in ran.out
    assert "Geometric mean of" in ran.out
    with closing(Ledger.open(folder / "budget.ledger")) as ledger:
        assert len(ledger.log()) == 14
        assert 0.99 < ledger.spent().epsilon <= 1
    result = load(folder / "both.json")
    assert list(result) == ["sbp", "dbp"]
    assert [result[name].transform_ for name in result] == ["none", "log"]
    assert result.document["budget"]["epsilon_before"] == 0
    assert result.privacy_["unit"] == "subject with all outcomes"
    assert result["sbp"].privacy_ == result["dbp"].privacy_ == result.privacy_
    low, _ = result.document["joint"]["dbp"][0]
    assert np.all(np.array(low) < result.document["outcomes"]["dbp"]["functions"][0]["low"])
    assert (folder / "both.png").read_bytes().startswith(b"\x89PNG")


def test_the_report_shows_both_under_one_promise_and_holds_the_result(folder) -> None:
    page = (folder / "both.html").read_text(encoding="utf-8")
    assert page.count("<h1>Blood pressure</h1>") == 1
    assert len(re.findall(r'<svg class="chart" ', page)) == 2
    assert len(re.findall(r'<svg class="chart asked" ', page)) == 2, "a form for each outcome"
    assert len(re.findall(r"<path class=\"joint\"", page)) == 4
    assert "promised for all outcomes together" in page
    assert "with all outcomes" in page
    assert page.count('id="budget"') == 1
    assert not re.findall(r'(?:src|href)="http', page)
    assert list(load(folder / "both.html")) == ["sbp", "dbp"]


def test_questions_go_to_one_outcome(capsys, folder) -> None:
    result = load(folder / "both.json")
    ran = dpfda(capsys, "ask", folder / "both.json", "--y", "sbp", "--average", "40:60")
    assert f"{result['sbp'].curve_.mean_over(40, 60).estimate:.4g}" in ran.out
    ran = dpfda(capsys, "ask", folder / "both.json", "--average", "40:60")
    assert ran.code != 0
    assert "holds the outcomes sbp, dbp: name one of them with --y" in ran.err
    ran = dpfda(capsys, "export", folder / "both.json", "--y", "dbp", "--grid", folder / "dbp.csv", "--points", 5)
    assert ran.code == 0, ran.err
    assert len((folder / "dbp.csv").read_text().splitlines()) == 6
    ran = dpfda(capsys, "report", folder / "both.json", "--report", folder / "again.html", "--x-label", "years")
    assert ran.code == 0, ran.err
    assert "years" in (folder / "again.html").read_text(encoding="utf-8")
    ran = dpfda(capsys, "report", folder / "both.json", "--report", folder / "third.html", "--y-label", "mm Hg")
    assert "--y-label must be left out" in ran.err


def test_the_settings_in_the_result_are_a_file_that_fits_the_same(capsys, table, folder) -> None:
    """The dry run writes TOML, which is read back; own visits are another study."""
    ran = fit(capsys, table, folder, "--transform", "dbp=log", "--dry-run", "--visits", "own")
    assert ran.code == 0, ran.err
    assert "in units of sbp" in ran.out
    assert "in units of log(dbp)" in ran.out
    (folder / "study.toml").write_text(ran.out.replace("json = ", "# json = "))
    ran = dpfda(capsys, "fit", folder / "study.toml", "--json", folder / "own.json", "--epsilon", 0.5)
    assert ran.code == 0, ran.err
    assert "dbp: " in ran.err  # the owner is told of dbp alone how many rows have none
    assert load(folder / "own.json").document["study"]["visits"] == "own"


def test_complete_visits_are_counted_for_the_owner_once(capsys, table, tmp_path) -> None:
    fund(tmp_path / "budget")
    ran = fit(capsys, table, tmp_path, "--json", tmp_path / "r.json", "--design", "male", "--bounds", "male=0:1")
    assert ran.code == 0, ran.err
    assert len(re.findall(r"rows lack x or an outcome and were left out", ran.err)) == 1
    assert load(tmp_path / "r.json")["dbp"].names_ == ("intercept", "male")
    assert "dbp: Half the width of each band" in ran.out


def test_a_visit_is_a_copy_only_if_every_outcome_is_the_same(capsys, table, tmp_path) -> None:
    fund(tmp_path / "budget")
    alike, other = tmp_path / "alike.csv", tmp_path / "other.csv"
    alike.write_text(table.read_text() + "7,50.00,120.0,80.0,1,x\n" * 2)
    other.write_text(table.read_text() + "7,50.00,120.0,80.0,1,x\n7,50.00,124.0,80.0,1,x\n")
    refused = fit(capsys, alike, tmp_path, "--dry-run")
    assert refused.code == 2
    assert "1 row is an exact copy of another row; add --duplicates drop" in refused.err
    dropped = fit(capsys, alike, tmp_path, "--dry-run", "--duplicates", "drop")
    assert dropped.code == 0, dropped.err
    assert dropped.err.count("1 row is an exact copy of another row and was dropped") == 1
    assert "exact copy" not in fit(capsys, alike, tmp_path, "--dry-run", "--duplicates", "keep").err
    for more in ((), ("--duplicates", "drop")):
        ran = fit(capsys, other, tmp_path, "--dry-run", *more)
        assert ran.code == 0, ran.err
        assert "exact copy" not in ran.err


def test_outcomes_with_a_comma_between_them_are_told_apart(capsys, table, tmp_path) -> None:
    fund(tmp_path / "budget")
    more = ["--id", "pid", "--x", "age", "--y", "sbp,dbp", "--domain", "20:80", "--y-bounds", "30:250"]
    ran = dpfda(capsys, "fit", table, *more, "--epsilon", 1, "--delta", 1e-5, "--ledger", tmp_path / "budget.ledger")
    assert ran.code == 2
    assert "for several outcomes repeat the option: --y sbp --y dbp" in ran.err


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--y-levels", "no,yes"], "write yes/no values as 0 and 1 in the table and add --outcome"),
        (["--wide"], "(--y given more than once); reshape the table to one row per visit."),
        (["--y-bounds", "sbp=60:250,dbp=30:150"], "--y-bounds must be given once for each outcome"),
        (["--visits", "all"], "--visits must be one of"),
        (["--transform", "hdl=log"], "--transform names 'hdl'"),
        (["--y", "sbp"], "y must list every outcome once; leave out the second 'sbp'"),
        (["--y", "pulse"], "those of 'pulse' are missing: add --y-bounds pulse=LOW:HIGH"),
        (["--outcome", "dbp=often"], "--outcome must be"),
        (["--method", "published"], "--method must be adaptive for several outcomes"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_spent(capsys, table, tmp_path, more, sentence) -> None:
    fund(tmp_path / "budget")
    ran = fit(capsys, table, tmp_path, "--json", tmp_path / "r.json", *more)
    assert ran.code != 0
    assert sentence in ran.err
    with closing(Ledger.open(tmp_path / "budget.ledger")) as ledger:
        assert not ledger.log()


def test_bounds_that_miss_every_value_are_refused_with_the_outcomes_name(capsys, table, tmp_path) -> None:
    fund(tmp_path / "budget")
    more = ["--id", "pid", "--x", "age", "--y", "sbp", "--y", "dbp", "--domain", "20:80", "--y-bounds", "sbp=60:250"]
    more += ["--y-bounds", "dbp=900:999", "--epsilon", 1, "--delta", 1e-5, "--ledger", tmp_path / "budget.ledger"]
    ran = dpfda(capsys, "fit", table, *more)
    assert ran.code == 2
    assert "--y-bounds 900:999 misses every value of 'dbp'; check units" in ran.err


def test_a_damaged_file_is_refused_with_its_place(folder, tmp_path) -> None:
    document = json.loads((folder / "both.json").read_text())
    del document["outcomes"]["dbp"]["model"]
    (tmp_path / "bad.json").write_text(json.dumps(document))
    with pytest.raises(ValueError, match=r"bad\.json \(outcome dbp\) is damaged"):
        load(tmp_path / "bad.json")
    document["outcomes"].pop("dbp")
    (tmp_path / "bad.json").write_text(json.dumps(document))
    with pytest.raises(ValueError, match="fewer than two outcomes"):
        load(tmp_path / "bad.json")
    document["study"].pop("visits")
    (tmp_path / "bad.json").write_text(json.dumps(document))
    with pytest.raises(ValueError, match="has no 'visits'"):
        load(tmp_path / "bad.json")
