"""Result files: what is read back answers as the estimator did; what is damaged or old is refused in one sentence."""

from __future__ import annotations

import copy
import json
import warnings

import numpy as np
import pytest

import dpfda
from dpfda import Curves, InvalidInput, PrivateMean, PrivateVaryingCoefficients
from dpfda.curves.simulated import simulate_mean
from dpfda.inference.coding import make_coding
from dpfda.inference.result_model import ModelAnswers, describe_model
from dpfda.report.results import Result, load, save
from dpfda.report.schema import find_mistake, result_schema

X = np.linspace(20, 80, 25)


@pytest.fixture(scope="module")
def fit():
    rng = np.random.default_rng(1)
    n, m = 800, 5
    ids = np.repeat(np.arange(n), m)
    male, arm, x = rng.integers(0, 2, n)[ids], rng.integers(0, 3, n)[ids], rng.uniform(20, 80, n * m)
    y = 50 + 5 * male + 3 * (arm == 1) * (x - 50) / 30 + 8 * rng.normal(size=n)[ids] + rng.normal(size=n * m)
    design = np.column_stack([np.ones(n * m), male, arm == 1, arm == 2])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return PrivateVaryingCoefficients(
            4, 1e-5, domain=(20, 80), y_bounds=(0, 100), basis="free-ends", random_state=1,
            covariates={"male": (0, 1), "arm": ["A", "B", "C"]},
        ).fit(Curves.from_long(ids, x, y, design))  # fmt: skip


@pytest.fixture
def path(fit, tmp_path):
    return save(fit, tmp_path / "result.json", x="age", y="hdl")


def test_a_loaded_result_answers_as_the_fit_did(fit, path) -> None:
    result = load(path)
    assert repr(result) == "Result('varying coefficients of hdl over age')"
    for here, there in (
        (
            fit.curve_at(male=1, arm="B") - fit.curve_at(arm="A"),
            result.curve_at(male=1, arm="B") - result.curve_at(arm="A"),
        ),
        (fit.effect("arm", "C").derivative(), result.effect("arm: C").derivative()),
    ):
        np.testing.assert_allclose(there(X), here(X), atol=1e-10)
        np.testing.assert_allclose(there.band(0.9, X), here.band(0.9, X), atol=1e-10)
        assert there.is_zero().p_value == pytest.approx(here.is_zero().p_value, abs=1e-10)
        assert there.argmax().intervals == here.argmax().intervals
    assert result.curve_.limits == (0, 100)
    assert result.estimand_.startswith("Every subject counts equally: the mean over subjects of hdl at each age")
    assert result.warnings_ == ()
    assert "hdl over age" in result.summary()
    assert "hdl over age" in result._repr_html_()
    assert result.privacy_["silos"][0]["n"] == 800
    assert dpfda.load is load
    assert isinstance(dpfda.load(str(path)), Result)


def test_the_document_is_as_its_schema_says(path) -> None:
    document = json.loads(path.read_text())
    assert find_mistake(document, result_schema(), "it") is None
    assert document["repeat"]["terms_digest"]
    assert document["model"]["covariates"][1]["reference"] == "A"


def test_files_of_version_0_1_are_refused(tmp_path) -> None:
    old = tmp_path / "old.json"
    old.write_text('{"schema": "dpfda-result/1", "functions": []}')
    with pytest.raises(InvalidInput, match=r"old\.json was written by version 0\.1 of dpfda"):
        load(old)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda d: d.pop("model"), "has no 'model'"),
        (lambda d: d.update(warnings="none"), "the document.warnings must be of type array"),
        (lambda d: d["model"].update(domain=[1]), "domain has a wrong number of entries"),
        (lambda d: d["model"].update(domain=[2, 1]), "domain are impossible"),
        (lambda d: d["model"]["covariance"].pop(), "covariance does not have the size"),
        (lambda d: d["model"]["columns"].reverse(), "columns do not belong to its covariates"),
        (lambda d: d["model"]["functions"].update(kind="bumps"), "model.functions"),
        (lambda d: d["model"]["functions"]["breaks"].append(2), "not described correctly"),
        (lambda d: d["model"]["functions"].update(size=0), "model.functions"),
        (lambda d: d["model"]["coefficients"][0].append(0.0), "damaged"),
        (lambda d: d["model"]["covariates"][0].update(bounds=[1, 0]), "low < high"),
        (lambda d: d["study"].update(model="other"), "must be one of"),
    ],
)
def test_damaged_files_are_refused(path, change, sentence) -> None:
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    with pytest.raises(InvalidInput, match=sentence):
        load(path)


def test_models_without_a_covariance_or_limits_are_stored_too() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = PrivateMean(domain=(0, 1), y_bounds=(-4, 4), method="nonprivate", basis="fourier").fit(
            simulate_mean(200, 5, rng=1)
        )
    fit.limits_ = (-np.inf, 5.0)
    model = describe_model(fit)
    assert model["covariance"] is None
    assert model["limits"] == [None, 5.0]
    again = ModelAnswers(copy.deepcopy(model))
    assert again.limits_ == (-np.inf, 5.0)
    np.testing.assert_allclose(again.curve_([0.3]), fit.curve_([0.3]))
    with pytest.raises(InvalidInput, match="do not fit 1 design columns"):
        describe_model(fit, make_coding({"a": (0, 1)}))
