"""Results of several outcomes as files: what was fitted is what is read."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from dpfda import Curves, InvalidInput, PrivateMean, load, save
from dpfda.report.document import OUTCOMES_SCHEMA, has_outcomes, read_any_document, read_document
from dpfda.report.html import render_report
from dpfda.report.outcomes import has_bands
from dpfda.report.results import OutcomesResult, load_one


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(1)
    ids, x = np.repeat(np.arange(500), 4), rng.uniform(size=2000)
    curves = {name: Curves.from_long(ids, x, rng.normal(level, 0.5, 2000)) for name, level in (("a", 0.2), ("b", -0.4))}
    with pytest.warns():
        return PrivateMean(2, 1e-5, domain=(0, 1), y_bounds=(-2, 2), random_state=1).fit(curves)


@pytest.fixture
def path(fitted, tmp_path):
    return save(fitted, tmp_path / "new" / "both.json", x="time", title="Two", x_origin="2020-01-31")


def test_a_saved_result_answers_as_the_fit_does(fitted, path) -> None:
    result = load(path)
    assert isinstance(result, OutcomesResult)
    assert repr(result) == "OutcomesResult('a', 'b')"
    for name in fitted:
        assert_allclose(result[name].curve_([0.2, 0.7]), fitted[name].curve_([0.2, 0.7]), atol=1e-10)
    for ours, theirs in zip(result.simultaneous_bands()["b"], fitted.simultaneous_bands()["b"], strict=True):
        assert_allclose(ours, theirs, atol=1e-9)
    assert list(result.tidy(x=["2020-01-31"])["outcome"]) == ["a", "b"]
    assert result.summary().startswith("2 outcomes over time: a, b")


def test_the_document_says_once_what_is_the_same_for_all(fitted, path) -> None:
    document = read_any_document(path)
    assert has_outcomes(document)
    assert document["schema"] == OUTCOMES_SCHEMA
    assert has_bands(document["outcomes"])
    assert document["study"]["title"] == "Two"
    assert document["repeat"]["terms_digest"] == fitted.terms_.digest()
    assert {one["repeat"]["terms_digest"] for one in document["outcomes"].values()} == {fitted.terms_.digest()}
    assert {one["created"] for one in document["outcomes"].values()} == {document["created"]}


def test_one_outcome_is_chosen_by_its_name(path) -> None:
    assert load_one(path, "b").y_name == "b"
    assert read_document(path, "a")["study"]["y"] == "a"
    for wrong in (None, "c"):
        with pytest.raises(InvalidInput, match="holds the outcomes a, b"):
            read_document(path, wrong)


def test_outcomes_keep_their_names_in_a_file(fitted, tmp_path) -> None:
    with pytest.raises(InvalidInput, match="y must be left out"):
        save(fitted, tmp_path / "r.json", y="c")


def test_the_page_explains_where_a_chart_is_grey(path) -> None:
    document = read_any_document(path)
    for one in document["outcomes"].values():
        (function,) = one["functions"]
        function["low"], function["high"] = ([value + side for value in function["values"]] for side in (-0.1, 0.1))
    assert "Where it is grey there are few data" not in render_report(document)
    function["high"][:20] = [value + 1 for value in function["values"][:20]]
    assert "Where it is grey there are few data" in render_report(document)
