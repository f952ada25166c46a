"""Reports: one file, everything in it, nothing private by accident, readable back."""

from __future__ import annotations

import json
import re
import warnings

import numpy as np
import pytest

pytest.importorskip("jinja2")

from dpfda.curves.curves import Curves
from dpfda.curves.simulated import simulate_mean, simulate_vcm
from dpfda.errors import InvalidInput
from dpfda.estimators import PrivateMean, PrivateVaryingCoefficients
from dpfda.report.chart import (
    choose_date_ticks,
    choose_ticks,
    choose_y_range,
    find_neutral,
    find_sparse,
    leaves_the_picture,
)
from dpfda.report.document import (
    BudgetChange,
    StudyDescription,
    make_result_document,
    read_document,
    to_json,
    write_dates,
)
from dpfda.report.figures import draw_document
from dpfda.report.formatting import (
    describe_contributing,
    describe_error,
    format_number,
    format_small,
    typical_half_width,
)
from dpfda.report.html import render_report
from dpfda.report.privacy_card import write_privacy_card
from dpfda.report.schema import check_document

BUDGET = BudgetChange("visits.ledger", 1e-5, 3.0, 0.5, 1.2, 0.6, 0.02, 0.1)
ERROR = {"bias": 0.01, "sampling": 0.03, "privacy": 0.05, "total": 0.09}


@pytest.fixture(scope="module")
def document():
    fitted = PrivateMean(1.0, 1e-5, domain=(0, 1), y_bounds=(-4, 5)).fit(simulate_mean(80, 5, rng=1))
    study = StudyDescription(
        "visits.csv", "age", "hdl", ("mean",), title="HDL <over> age & more", x_label="age", y_label="hdl"
    )
    return make_result_document(fitted, study, budget=BUDGET, forecast=ERROR, command="dpfda fit visits.csv")


@pytest.fixture(scope="module")
def vcm_document():
    curves: Curves = simulate_vcm(120, 5, 2, rng=1)
    fitted = PrivateVaryingCoefficients(1.0, 1e-5, domain=(0, 1), y_bounds=(-4, 5), design_bounds=(-1, 1)).fit(curves)
    facts = ({"name": "bmi", "bounds": (-1, 1), "levels": ()}, {"name": "sex", "bounds": None, "levels": ("f", "m")})
    study = StudyDescription(
        "v.csv", "age", "hdl", ("intercept", "bmi", "sex: m"), title="t", x_label="a", y_label="h", covariates=facts
    )
    return make_result_document(fitted, study)


def test_the_document_is_json_and_reads_back_from_both_files(document, tmp_path) -> None:
    (tmp_path / "r.json").write_text(to_json(document))
    (tmp_path / "r.html").write_text(render_report(document))
    plain = json.loads(to_json(document))
    assert read_document(tmp_path / "r.json") == plain
    assert read_document(tmp_path / "r.html") == plain


def test_the_values_are_those_of_the_estimator(document) -> None:
    from dpfda.basis.basis import basis_from_dict

    basis = basis_from_dict(document["basis"])
    values = basis.evaluate(document["grid"]) @ np.asarray(document["coefficients"][0])
    np.testing.assert_allclose(values, document["functions"][0]["values"], rtol=1e-12)


def test_the_report_needs_no_network(document, vcm_document) -> None:
    for each in (document, vcm_document):
        html = render_report(each)
        assert "://" not in html
        assert not re.findall(r"""<[^>]+ (?:src|href)=""", html)
        assert not re.findall(r"@import|url\(", html)
        assert "default-src 'none'" in html


def test_texts_of_the_user_are_escaped(document) -> None:
    html = render_report(document)
    assert "HDL &lt;over&gt; age &amp; more" in html
    hostile = json.loads(to_json(document))
    hostile["study"]["title"] = "</script><script>alert(1)</script>"
    assert "<script>alert(1)" not in render_report(hostile)


def test_the_card_has_its_five_parts(document) -> None:
    headings = [section.heading for section in write_privacy_card(document)]
    assert headings == [
        "Who is protected",
        "Against what",
        "What ε = 1 means here",
        "What was taken as public",
        "What was not private about the process",
    ]
    words = " ".join(sentence for section in write_privacy_card(document) for sentence in section.sentences)
    assert "80 subjects" in words
    assert "2.72-fold" in words
    assert "0 to 1" in words


def test_the_card_and_the_report_state_what_was_declared(document) -> None:
    declared = {"assume_symmetric": True, "outcome": "binary", "visit_times": [46, 63]}
    stated = json.loads(to_json(document))
    stated["privacy"]["public_inputs"] |= declared
    (public,) = (each for each in write_privacy_card(stated) if each.heading == "What was taken as public")
    for words in ("curves lie symmetrically", "y is one of two values", "visits are scheduled at 46, 63"):
        assert f"declared: {words}" in public.sentences[0]
        assert words in render_report(stated)
        assert words not in render_report(document)


def test_the_card_and_the_report_state_that_visits_weigh_the_same(document) -> None:
    stated = json.loads(to_json(document))
    stated["privacy"]["public_inputs"] |= {"weight": "visit", "visit_cap": 12, "robust_sites": False}
    (public,) = (each for each in write_privacy_card(stated) if each.heading == "What was taken as public")
    assert "every visit counts equally" in public.sentences[0]
    assert "a subject with more than 12 visits counts as one with 12" in render_report(stated)
    assert "declared: a site that is unlike all others counts like any other" in public.sentences[0]


@pytest.mark.parametrize("covariates", [{}, {"covariates": {"old": (0, 1)}}])
def test_a_transform_is_told_and_effects_are_ratios(covariates) -> None:
    rng = np.random.default_rng(1)
    ids, old = np.repeat(np.arange(400), 4), np.repeat(rng.integers(0, 2, 400), 4)
    y = np.exp(rng.normal(1 + 0.7 * old, 0.3))
    curves = Curves.from_long(ids, rng.uniform(0, 1, ids.size), y, design=old[:, None] if covariates else None)
    public = {"epsilon": 4, "delta": 1e-5, "domain": (0, 1), "y_bounds": (0.1, 90), "transform": "log"}
    kind = PrivateVaryingCoefficients if covariates else PrivateMean
    fitted = kind(**public, **covariates).fit(curves.with_intercept() if covariates else curves)
    study = StudyDescription("v.csv", "age", "hdl", fitted.names_, title="t", x_label="age", y_label="hdl")
    made = make_result_document(fitted, study)
    check_document(json.loads(to_json(made)), "it")
    page = render_report(made)
    for words in (
        "geometric mean",
        "not the mean of hdl",
        "y is transformed by log",
        "log(hdl)" if not covariates else "ratio of hdl",
    ):
        assert words in page
    assert made["model"]["transform"] == "log"
    if covariates:
        assert np.median(made["functions"][1]["values"]) == pytest.approx(np.exp(0.7), rel=0.2)
        assert find_neutral(made) == 1.0
        assert "the ratio of two profiles" in page
    draw_document(made)


def test_the_guess_in_the_card_follows_from_mu(document) -> None:
    from scipy.stats import norm

    accuracy = 100 * norm.cdf(document["privacy"]["silos"][0]["mu"] / 2)
    assert f"right at most {accuracy:.1f} times in 100" in write_privacy_card(document)[2].sentences[0]


def test_a_result_that_is_not_private_says_so_in_red(document) -> None:
    fitted = PrivateMean(domain=(0, 1), y_bounds=(-4, 5), method="nonprivate")
    with pytest.warns(UserWarning, match="protects nobody"):
        fitted.fit(simulate_mean(80, 5, rng=1))
    study = StudyDescription("visits.csv", "age", "hdl", ("mean",), title="t", x_label="age", y_label="hdl")
    html = render_report(make_result_document(fitted, study))
    assert "NOT PRIVATE: do not release" in html
    assert "Differentially private" not in html


def test_a_result_has_no_place_for_what_only_the_owner_may_know(document) -> None:
    with_notes = {**document, "owner_notes": ["3 of 80 subjects had values outside the bounds and were clamped"]}
    with pytest.raises(InvalidInput, match="must not have 'owner_notes'"):
        check_document(with_notes, "result.json")


def test_how_many_subjects_contribute_is_read_from_releases() -> None:
    whole = simulate_mean(3000, 5, rng=1)
    x = np.where(np.arange(whole.n_points) < whole.n_points // 2, whole.x, 7)
    half = Curves.from_long(np.repeat(np.arange(3000), whole.counts), x, whole.y)
    study = StudyDescription("visits.csv", "age", "hdl", ("mean",), title="t", x_label="age", y_label="hdl")
    for curves, about, said in ((whole, 3000, "nearly all of whom contribute"), (half, 1500, "of whom about 1,")):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = PrivateMean(4.0, 1e-5, domain=(0, 1), y_bounds=(-4, 5), random_state=1).fit(curves)
        assert fitted.contributing_ == pytest.approx(about, rel=0.05)
        document = make_result_document(fitted, study)
        check_document(json.loads(to_json(document)), "result.json")
        assert describe_contributing(document).startswith(said)
    published = PrivateMean(4.0, 1e-5, domain=(0, 1), y_bounds=(-4, 5), method="published", points_per_curve=5)
    assert describe_contributing(make_result_document(published.fit(whole), study)) == ""


def test_coefficient_curves_are_captioned(vcm_document) -> None:
    html = render_report(vcm_document)
    assert html.count('class="chart"') == 3
    assert "sex: m instead of f" in html
    assert "Change of h for one more unit of bmi" in html


def test_budget_and_accuracy_are_shown(document) -> None:
    html = render_report(document)
    assert "visits.ledger" in html
    assert "forecast, before spending" in html
    assert format_number(0.3) in html


def test_figures_of_a_document(document, vcm_document) -> None:
    pytest.importorskip("matplotlib")
    from dpfda.report.figures import draw_document, encode_figure

    assert encode_figure(draw_document(document), "png").startswith(b"\x89PNG")
    assert b"<svg" in encode_figure(draw_document(vcm_document), "svg")


def test_a_band_that_is_wide_in_one_place_does_not_hide_the_curve() -> None:
    values = [1.0, 2.0, 3.0, 2.0, 1.0]
    low, high = [value - 1 for value in values], [value + 1 for value in values]
    function = {"name": "mean", "values": values, "low": low, "high": high}
    assert not leaves_the_picture(function)
    wide = {**function, "low": [*low[:4], -500.0], "high": [*high[:4], 500.0]}
    unknown = {**function, "low": [*low[:4], None], "high": [*high[:4], None]}
    for each in (wide, unknown):
        assert leaves_the_picture(each)
        bottom, top = choose_y_range(each)
        assert -6 < bottom < -4
        assert 6 < top < 8


def test_places_with_few_data_are_marked(document) -> None:
    import copy

    low, high = [-1.0] * 10, [1.0] * 10
    grid = [float(place) for place in range(10)]
    wide = {"low": [*low[:6], -9.0, -9.0, -9.0, None], "high": [*high[:6], 9.0, 9.0, 9.0, None]}
    assert find_sparse(grid, wide) == [(6.0, 9.0)]
    assert find_sparse(grid, {"low": low, "high": high}) == []
    assert find_sparse(grid, {"low": None, "high": None}) == []
    marked = copy.deepcopy(document)
    for side, end in (("low", -50.0), ("high", 50.0)):
        marked["functions"][0][side][:20] = [end] * 20
    html = render_report(marked)
    assert 'class="sparse"' in html
    assert "few data: the band is more than twice as wide" in html


@pytest.mark.parametrize("content", ["", "{}", "<html></html>", '{"schema": "dpfda-result/99"}', "[1]"])
def test_other_files_are_refused(content: str, tmp_path) -> None:
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(InvalidInput, match="not a result"):
        read_document(tmp_path / "x.json")


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (49.586, "49.59"), (-0.006821, "-0.006821"), (15205.0, "15,205"), (1e-9, "1.000e-09"), (None, "–")],
)
def test_numbers_are_written_for_readers(value, text: str) -> None:
    assert format_number(value) == text


@pytest.mark.parametrize(("value", "text"), [(1e-5, "10⁻⁵"), (3e-6, "3×10⁻⁶"), (0.25, "2.5×10⁻¹")])
def test_small_probabilities_are_powers_of_ten(value: float, text: str) -> None:
    assert format_small(value) == text


def test_ticks_are_round_and_inside() -> None:
    assert choose_ticks(0.0, 1.0, 5) == [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    assert choose_ticks(20.0, 100.0, 9) == [20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 100.0]
    for low, high in ((-3.7, 12.9), (1e-6, 2e-6), (1e5, 9e6)):
        inside = choose_ticks(low, high, 6)
        assert 2 <= len(inside) <= 12
        assert all(low <= tick <= high for tick in inside)


def test_the_error_sentence_names_its_sources() -> None:
    sources = "its square is 56% privacy noise, 33% sampling of subjects, 11% smoothing."
    assert describe_error(ERROR, "mg/dl").endswith(f"0.3 in units of mg/dl; {sources}")
    assert "of the 3 coefficient curves together" in describe_error(ERROR, "mg/dl", 3)


def test_forecast_and_estimated_errors_are_those_of_the_estimator() -> None:
    curves = simulate_vcm(120, 5, 2, rng=1)
    fitted = PrivateVaryingCoefficients(1.0, 1e-5, domain=(0, 1), y_bounds=(-4, 5), design_bounds=(-1, 1)).fit(curves)
    study = StudyDescription("v.csv", "age", "hdl", ("intercept", "a", "b"), title="t", x_label="a", y_label="h")
    document = make_result_document(fitted, study, forecast=ERROR)
    error, html = fitted.expected_error_, render_report(document)
    assert document["error"]["achieved"] == pytest.approx(
        {"bias": error.bias, "sampling": error.sampling, "privacy": error.privacy, "total": error.total}
    )
    assert html.index("forecast, before spending") < html.index("estimated, from what was released")
    for share in (error.privacy / error.total, error.sampling / error.total):
        assert f"{share:.0%}" in html


def test_the_typical_half_width_is_the_median_of_the_band(vcm_document) -> None:
    function = vcm_document["functions"][1]
    widths = np.subtract(function["high"], function["low"]) / 2
    assert typical_half_width(function) == pytest.approx(np.median(widths))
    assert typical_half_width({"low": None, "high": None}) is None
    assert typical_half_width({"low": [None], "high": [None]}) is None


def test_ticks_of_dates_are_first_days_of_months_and_years() -> None:
    assert choose_date_ticks(0, 1095, 6, "2019-01-01") == [
        (0.0, "2019-01"), (181.0, "2019-07"), (365.0, "2020-01"), (547.0, "2020-07"), (731.0, "2021-01"), (912.0, "2021-07")
    ]  # fmt: skip
    assert [name for _, name in choose_date_ticks(0, 3652, 6, "1984-05-10")] == ["1986", "1988", "1990", "1992", "1994"]
    assert choose_date_ticks(0, 20, 9, "2019-01-05")[1] == (5.0, "2019-01-10")


def test_a_covariate_with_products_is_not_captioned_as_a_change_by_itself(vcm_document) -> None:
    document = json.loads(json.dumps(vcm_document))
    name = document["model"]["covariates"][-1]["name"]
    others = [each["name"] for each in document["model"]["covariates"] if each["name"] != name]
    document["model"]["terms"].append([{"name": name, "spline": None}, {"name": others[0], "spline": None}])
    html = render_report(document)
    assert "Coefficient of sex: m, its products apart" in html
    assert "Coefficient of bmi, its products apart" in html
    assert "sex: m instead of f" not in html


def test_places_in_warnings_are_dates_where_x_is_a_date() -> None:
    said = (
        "Few points lie where x is -2.5 to 31 and 59 to 1.2e+02: the curve there is an extrapolation with a wide band."
    )
    assert write_dates(said, None) == said
    assert write_dates(said, "2019-01-01").startswith(
        "Few points lie where x is 2018-12-30 to 2019-02-01 and 2019-03-01 to 2019-05-01: the curve"
    )
    assert write_dates("More than 3 of 10.", "2019-01-01") == "More than 3 of 10."
