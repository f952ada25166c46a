"""Estimators on tables: columns by name, covariates by public facts, designs by formula."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pandas as pd
import pytest

from dpfda import Curves, InvalidInput, LargeDeltaWarning, PrivateMean, PrivateVaryingCoefficients
from dpfda.curves.tables.design import Design
from dpfda.estimators.design_coding import make_design_coding
from dpfda.inference.coding import coding_from_dict
from dpfda.report.html import render_report
from dpfda.report.results import load, save

PUBLIC = {"epsilon": 4, "delta": 1e-5, "domain": (0, 1), "y_bounds": (-5, 5), "random_state": 1}
FACTS = {"male": (0, 1), "bmi": (10, 70), "arm": ["A", "B"]}
FORMULAS = [
    "male + C(arm)",
    "male:bmi",
    "0 + male*C(arm)*bmi",
    "spline(bmi, 30, degree=1)",
    "spline(bmi, 20, 30.5) + male",
]


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    people = pd.DataFrame(
        {"pid": np.arange(1500), "male": rng.integers(0, 2, 1500), "arm": rng.choice(["A", "B"], 1500)}
    )
    people["bmi"] = rng.uniform(15, 45, 1500)
    rows = people.loc[people.index.repeat(4)].reset_index(drop=True)
    rows["t"] = rng.uniform(0, 1, len(rows))
    rows["y"] = 1 + rows["male"] + 0.5 * (rows["arm"] == "B") * rows["t"] + rng.normal(0, 0.3, len(rows))
    return rows


def test_a_mean_of_a_table_is_the_mean_of_its_curves(table) -> None:
    whole = PrivateMean(**PUBLIC).fit(table, id="pid", x="t", y="y")
    curves = Curves.from_frame(table, id="pid", x="t", y="y")
    np.testing.assert_array_equal(whole.coef_, PrivateMean(**PUBLIC).fit(curves).coef_)


def test_coefficients_of_a_table_by_names(table) -> None:
    fitted = PrivateVaryingCoefficients(covariates=FACTS, **PUBLIC).fit(table, id="pid", x="t", y="y")
    assert fitted.names_ == ("intercept", "male", "bmi", "arm: B")
    np.testing.assert_array_equal(fitted.effect("arm")([0.2, 0.7]), fitted.effect("arm", "B")([0.2, 0.7]))
    assert fitted.effect("arm").name == "arm: B"
    with pytest.raises(InvalidInput, match="'ward' is not a coefficient"):
        fitted.effect("ward")
    effect = fitted.curve_at(male=1) - fitted.curve_at(male=0)
    assert effect(np.array([0.5]))[0] == pytest.approx(1.0, abs=0.3)


def test_products_and_splines_answer_by_names(table) -> None:
    model = PrivateVaryingCoefficients(covariates=FACTS, design="male*C(arm) + spline(bmi, 30, degree=1)", **PUBLIC)
    fitted = model.fit(table, id="pid", x="t", y="y")
    assert fitted.names_[:4] == ("intercept", "male", "arm: B", "male:arm: B")
    profile = {"male": 1, "arm": "B", "bmi": 30}
    row = Design(model.design, FACTS).row(**profile)
    np.testing.assert_allclose(fitted.predict([0.2, 0.8], **profile), fitted.predict([0.2, 0.8], [row]))
    difference = fitted.curve_at(male=1, arm="B") - fitted.curve_at(male=0, arm="B")
    sum_ = fitted.effect("male") + fitted.effect("male:arm: B")
    np.testing.assert_allclose(difference(np.array([0.5])), sum_(np.array([0.5])))


@pytest.mark.parametrize(
    "formula",
    [
        "male + C(arm)",
        "male:bmi",
        "0 + male*C(arm)*bmi",
        "spline(bmi, 30, degree=1)",
        "spline(bmi, 20, 30.5) + male",
        "spline(bmi)",
    ],
)
def test_a_coding_has_the_columns_and_rows_of_its_design_and_survives_a_file(formula) -> None:
    design = Design(formula, FACTS)
    coding = make_design_coding(design, FACTS)
    assert coding_from_dict(json.loads(json.dumps(coding.to_dict()))) == coding
    assert coding.columns == design.names
    for male, bmi, arm in itertools.product((0, 0.25, 1), (10, 19.5, 20, 30, 30.5, 69, 70), ("A", "B")):
        profile = {
            name: value for name, value in (("male", male), ("bmi", bmi), ("arm", arm)) if name in design.parsed.names
        }
        np.testing.assert_allclose(coding.row(profile), design.row(**profile), rtol=1e-13, atol=1e-15)


def test_products_and_splines_answer_from_a_file(table, tmp_path) -> None:
    model = PrivateVaryingCoefficients(covariates=FACTS, design="male*C(arm) + spline(bmi, 30, degree=2)", **PUBLIC)
    fitted = model.fit(table, id="pid", x="t", y="y")
    result = load(save(fitted, tmp_path / "result.json"))
    assert (result.x_name, result.y_name) == (fitted.x_name, fitted.y_name) == ("t", "y")
    assert result.names_ == fitted.names_
    profile = {"male": 1, "arm": "B", "bmi": 33}
    for ours, theirs in zip(fitted.curve_at(**profile).band(), result.curve_at(**profile).band(), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10)
    html = render_report(result.document)
    assert "Coefficient of male:arm: B" in html
    assert "Coefficient of male, its products apart" in html


def test_what_a_table_needs_is_said_in_one_sentence(table) -> None:
    with pytest.raises(InvalidInput, match="x must name a column"):
        PrivateMean(**PUBLIC).fit(table, id="pid", y="y")
    with pytest.raises(InvalidInput, match="y must name a column"):
        PrivateMean(**PUBLIC).fit(table, np.zeros(3), id="pid", x="t")
    with pytest.raises(InvalidInput, match="name the columns of a table"):
        PrivateMean(**PUBLIC).fit(table)
    with pytest.raises(InvalidInput, match="covariates must be given to fit a table"):
        PrivateVaryingCoefficients(design_bounds=[(0, 1)], **PUBLIC).fit(table, id="pid", x="t", y="y")
    with pytest.raises(InvalidInput, match="contradict each other"):
        PrivateVaryingCoefficients(covariates=FACTS, design="0 + male", **PUBLIC).fit(table, id="pid", x="t", y="y")


def test_a_large_delta_is_warned_of_before_anything_is_spent(table) -> None:
    with pytest.warns(LargeDeltaWarning, match="1,500 subjects"):
        PrivateMean(**(PUBLIC | {"delta": 0.01})).fit(table, id="pid", x="t", y="y")


def test_two_values_declare_a_binary_outcome(table) -> None:
    table = table.assign(y=np.where(table["y"] > 1.5, "yes", "no"))
    public = PUBLIC | {"y_bounds": (0, 1)}
    columns = {"id": "pid", "x": "t", "y": "y"}
    fitted = PrivateMean(**public).fit(table, **columns, y_levels=["no", "yes"])
    declared = PrivateMean(outcome="binary", **public).fit(table.assign(y=1.0 * (table["y"] == "yes")), **columns)
    np.testing.assert_array_equal(fitted.coef_, declared.coef_)
    assert fitted.terms_.outcome == "binary"
    assert fitted.estimand_ == "Every subject counts equally: the share of subjects with y = 1 at each t."
    assert "counting as the nearer" not in fitted.summary()
    for wrong in ({"y_bounds": (0, 2)}, {"outcome": "count"}):
        with pytest.raises(InvalidInput, match="y_bounds must be"):
            PrivateMean(**(public | wrong)).fit(table, **columns, y_levels=["no", "yes"])


def test_a_column_of_dates_is_refused_with_the_way_to_count_days() -> None:
    frame = pd.DataFrame({"id": [1, 2], "when": pd.to_datetime(["2019-01-03", "2019-02-01"]), "y": [1.0, 2.0]})
    with pytest.raises(InvalidInput, match=r"'when' holds dates: count days from a public date"):
        PrivateMean(1, 1e-5, domain=(0, 365), y_bounds=(0, 5)).fit(frame, id="id", x="when", y="y")
