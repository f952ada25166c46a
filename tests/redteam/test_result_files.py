"""Third review, F8: result files that somebody else wrote move no terminal and end in one sentence."""

from __future__ import annotations

import json
import warnings

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import dpfda
from dpfda.cli.main import app
from dpfda.curves.simulated import simulate_mean
from dpfda.report.document import StudyDescription

ESCAPE = "t\x1b]0;pwned\x07\x1b[31m[bold]z[/x]"


@pytest.fixture(scope="module")
def document(tmp_path_factory) -> dict:
    model = dpfda.PrivateMean(4, 1e-5, domain=(0, 1), y_bounds=(-4, 4), random_state=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = model.fit(simulate_mean(300, 6, rng=1))
    path = dpfda.save(fit, tmp_path_factory.mktemp("result") / "r.json", x="time", y="score")
    return json.loads(path.read_text())


def write_changed(document: dict, folder, place: tuple, value: object) -> str:
    changed = json.loads(json.dumps(document))
    inner = changed
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    path = folder / "hostile.json"
    path.write_text(json.dumps(changed))
    return str(path)


@pytest.mark.parametrize("field", ["x", "y"])
@pytest.mark.parametrize("options", [[], ["--average", "0.2:0.5"]])
def test_a_name_moves_no_terminal(field, options, document, tmp_path) -> None:
    said = CliRunner().invoke(app, ["ask", write_changed(document, tmp_path, ("study", field), ESCAPE), *options])
    assert said.exit_code == 0, said.output
    assert "\x1b]0;" not in said.output


def test_a_column_s_name_moves_no_terminal(tmp_path) -> None:
    """Sixth review, R6-7: a name in brackets was markup, and an escape sequence reached the terminal."""
    path = tmp_path / "hostile.csv"
    path.write_text(f"id,x,bmi [kg/m2],[/bold],{ESCAPE}\n1,2,3,4,5\n")
    said = CliRunner().invoke(app, ["describe", str(path)])
    assert said.exit_code == 0, said.output
    assert "bmi [kg/m2]" in said.output
    assert "\x1b]0;" not in said.output


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("created",), "2020"), (("study", "x_origin"), "zzz"), (("study", "x_origin"), "9999-12-31"), (("grid",), []),
        (("grid",), [0] * 201), (("grid", 0), float("nan")), (("repeat", "versions"), -1), (("privacy", "delta"), {}),
        (("repeat",), [1]), (("study",), 7), (("functions", 0, "high"), []),
    ],
)  # fmt: skip
def test_what_cannot_be_drawn_ends_in_one_sentence(place, value, document, tmp_path) -> None:
    path = write_changed(document, tmp_path, place, value)
    said = CliRunner().invoke(app, ["report", path, "--report", str(tmp_path / "o.html")])
    assert said.exception is None or isinstance(said.exception, dpfda.errors.InvalidInput), said.exception


@pytest.fixture(scope="module")
def two_outcomes(tmp_path_factory) -> dict:
    rng = np.random.default_rng(2)
    y = {name: rng.normal(size=1200) for name in ("sbp", "dbp")}
    table = pl.DataFrame({"pid": np.repeat(np.arange(300), 4), "time": rng.random(1200), **y})
    model = dpfda.PrivateMean(4, 1e-5, domain=(0, 1), y_bounds={"sbp": (-4, 4), "dbp": (-4, 4)}, random_state=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = model.fit(table, id="pid", x="time", y=["sbp", "dbp"])
    return json.loads(dpfda.save(fit, tmp_path_factory.mktemp("results") / "r.json").read_text())


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("repeat", "versions"), -1), (("privacy", "delta"), {}), (("outcomes", "sbp", "functions", 0, "high"), []),
        (("outcomes", "dbp"), 3), (("study",), 7), (("joint",), []),
    ],
)  # fmt: skip
def test_what_cannot_be_drawn_of_several_outcomes_ends_in_one_sentence(place, value, two_outcomes, tmp_path) -> None:
    """Eighth review, R8-9: an error of the page's template was none of those that were expected."""
    path = write_changed(two_outcomes, tmp_path, place, value)
    said = CliRunner().invoke(app, ["report", path, "--report", str(tmp_path / "o.html"), "--x-label", "t"])
    assert said.exception is None or isinstance(said.exception, dpfda.errors.InvalidInput), said.exception


@pytest.mark.parametrize(
    "origin",
    ["20200101", "2020-W01-1", "2020W011", "2020-01-01\n", "2020-13-45", "2021-02-29", "0000-01-01", "٢٠٢٠-٠١-٠١", ""],
)
def test_a_date_has_one_form(origin, document, tmp_path) -> None:
    """Python reads other forms of ISO 8601 as well, a browser does not."""
    with pytest.raises(dpfda.InvalidInput, match=r"study\.x_origin must"):
        dpfda.load(write_changed(document, tmp_path, ("study", "x_origin"), origin))
    with pytest.raises(dpfda.InvalidInput, match="x_origin must be a date"):
        StudyDescription("Python", "x", "y", ("mean",), x_origin=origin)
    assert dpfda.load(write_changed(document, tmp_path, ("study", "x_origin"), "2020-02-29")).x_origin == "2020-02-29"
