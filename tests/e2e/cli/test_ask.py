"""`dpfda ask`: the answers of Python on the command line, without data and without spending."""

from __future__ import annotations

import csv
import json
import warnings

import numpy as np
import pytest
from cli_helpers import COLUMNS, PUBLIC, dpfda, fund, visits

from dpfda import PrivateVaryingCoefficients
from dpfda.cli.commands.ask import parse_profile
from dpfda.curves.simulated import simulate_vcm
from dpfda.report.results import load, save


@pytest.fixture
def result(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = PrivateVaryingCoefficients(
            4, 1e-5, domain=(0, 1), y_bounds=(-4, 4), covariates={"dose": (-1, 1), "male": (-1, 1)},
            basis="free-ends", random_state=1,
        ).fit(simulate_vcm(1000, 6, 2, rng=1))  # fmt: skip
    save(fit, "result.json")
    return load("result.json")


def test_contrasts_reach_table_csv_and_figure(result, capsys, tmp_path) -> None:
    options = ["--curve", "dose=1,male=0.5", "--minus", "dose=-1,male=0.5", "--level", "0.9"]
    ran = dpfda(capsys, "ask", "result.json", *options, "--csv", "c.csv", "--points", 5, "--figure", "c.png")
    assert ran.code == 0, ran.err
    assert "is zero: p" in ran.out
    assert "maximum" in ran.out
    rows = list(csv.DictReader((tmp_path / "c.csv").open()))
    curve = result.curve_at(dose=1, male=0.5) - result.curve_at(dose=-1, male=0.5)
    x = np.linspace(0, 1, 5)
    np.testing.assert_array_equal([float(row["estimate"]) for row in rows], curve(x))
    np.testing.assert_array_equal([float(row["upper"]) for row in rows], curve.band(0.9, x)[1])
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")


def test_slopes_and_integrals_over_dates_have_a_unit(result, capsys, tmp_path) -> None:
    document = json.loads((tmp_path / "result.json").read_text())
    document["study"]["x_origin"] = "2020-01-31"
    (tmp_path / "dates.json").write_text(json.dumps(document))
    slopes, days = "Slopes are per day.", "Integrals are in units of y times days."
    over = ["--integral", "2020-01-31:2020-02-01"]
    for options, said in (([], []), (["--derivative"], [slopes]), (over, [days]), (["--derivative", *over], [])):
        ran = dpfda(capsys, "ask", "dates.json", *options)
        assert ran.code == 0, ran.err
        assert [sentence for sentence in (slopes, days) if sentence in ran.out] == said
    assert slopes not in dpfda(capsys, "ask", "result.json", "--derivative").out


def test_averages_slopes_and_effects(result, capsys) -> None:
    value = result.effect("dose").mean_over(0.2, 0.4)
    ran = dpfda(capsys, "ask", "result.json", "--effect", "dose", "--average", "0.2:0.4", "--integral", "0:1")
    assert f"{value.estimate:.4g}" in ran.out
    assert "Integral of dose over 0 to 1" in ran.out
    assert dpfda(capsys, "ask", "result.json", "--derivative", "--x", "0.1,0.9").code == 0


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--curve", "dose"], "--curve must be written NAME=VALUE"),
        (["--curve", "age=3"], "'age' is not a covariate of this fit; choose from dose, male"),
        (["--curve", "dose=7"], "dose must lie within its public bounds -1 to 1"),
        (["--effect", "dose", "--minus", "dose=0"], "leave out --curve and --minus"),
        (["--figure", "c.doc"], "must end in .png"),
        (["--x", "5"], "x must lie in the domain"),
        (["--average", "0.5:4"], "--average must lie in the domain, 0 to 1, got '0.5:4'."),
        (["--y", "hdl"], "result.json holds one outcome, y; leave out --y, or name that one."),
        (["--level", "2"], "--level must lie strictly between 0 and 1"),
        (["--csv", "result.json"], "result.json exists"),
    ],
)
def test_mistakes_are_one_sentence(result, capsys, options, sentence) -> None:
    ran = dpfda(capsys, "ask", "result.json", *options)
    assert ran.code == 2
    assert sentence in ran.err
    assert len(ran.complaints) == 1


def test_profiles_are_names_and_values() -> None:
    assert parse_profile("curve", "male=1, arm = B") == {"male": "1", "arm": "B"}


def test_a_design_with_products_and_splines_is_fitted_and_asked_on_the_command_line(
    tmp_path, capsys, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table = visits(tmp_path / "visits.csv", subjects=300)
    fund(table, 8)
    design = ["--design", "1 + male*C(smoker)", "--bounds", "male=0:1", "--levels", "smoker=never,former,current"]
    options = [*COLUMNS, *PUBLIC, "--epsilon", "8", "--delta", "1e-5"]
    ran = dpfda(capsys, "fit", table, *options, *design, "--json", "result.json", "--report", "r.html")
    assert ran.code == 0, ran.err
    found = load("result.json")
    expected = ("intercept", "male", "smoker: former", "smoker: current", "male:smoker: former", "male:smoker: current")
    assert found.names_ == expected
    row = found.coding_.row({"male": 1, "smoker": "current"})
    np.testing.assert_array_equal(row, [1, 1, 0, 1, 0, 1])
    assert dpfda(capsys, "ask", "result.json", "--curve", "male=1,smoker=former", "--minus", "male=0").code == 0
    debit = json.loads(dpfda(capsys, "budget", "log", table, "--json").out.splitlines()[0])
    assert "male" not in json.dumps({**debit, "silo": ""}), "no formula text goes into terms"


def test_a_logarithm_is_fitted_reported_and_asked(capsys, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(2)
    ids, old = np.repeat(np.arange(600), 4), np.repeat(rng.integers(0, 2, 600), 4)
    y = np.exp(1 + 0.7 * old + np.repeat(rng.normal(0, 0.3, 600), 4) + rng.normal(0, 0.2, ids.size))
    rows = zip(ids, rng.uniform(0, 1, ids.size), y, old, strict=True)
    (tmp_path / "v.csv").write_text("pid,age,crp,old\n" + "".join(f"{a},{b:.6f},{c:.6f},{d}\n" for a, b, c, d in rows))
    assert dpfda(capsys, "budget", "init", "--ledger", "v.csv.ledger", "--epsilon", 9, "--delta", 1e-5).code == 0
    public = ["--domain", "0:1", "--y-bounds", "0.05:200", "--epsilon", 8, "--delta", 1e-5, "--transform", "log"]
    columns = ["--id", "pid", "--x", "age", "--y", "crp", "--design", "old", "--bounds", "old=0:1"]
    ran = dpfda(capsys, "fit", "v.csv", *columns, *public, "--json", "r.json", "--report", "r.html", "--yes")
    assert ran.code == 0, ran.err
    assert "geometric mean at old=0" in ran.out
    assert 'transform = "log"' in load("r.json").document["repeat"]["settings"]
    contrast = dpfda(capsys, "ask", "r.html", "--curve", "old=1", "--minus", "old=0", "--average", "0:1")
    assert "Geometric average of (geometric mean at old=1) / (geometric mean at old=0)" in contrast.out
    assert "for a ratio of 1" in contrast.out
    result = load("r.json")
    ratio = result.curve_at(old=1) - result.curve_at(old=0)
    assert ratio.mean_over().estimate == pytest.approx(2, rel=0.15)
    assert "is zero" not in dpfda(capsys, "ask", "r.json").out
    refused = dpfda(capsys, "ask", "r.json", "--integral", "0:1")
    assert refused.code != 0
    assert "without a transform" in refused.err
    assert dpfda(capsys, "ask", "r.json", "--integral", "0:1", "--transformed").code == 0
