"""Names, references and profiles."""

from __future__ import annotations

import numpy as np
import pytest

from dpfda import InvalidInput
from dpfda.inference.coding import Coding, Covariate, coding_from_dict, default_coding, make_coding

CODING = make_coding(
    {"male": (0, 1), "bmi": {"bounds": (10, 70), "reference": 25}, "arm": ["A", "B", "C"], "age": (20, 80)}
)


def test_columns_and_rows_by_name() -> None:
    assert CODING.columns == ("intercept", "male", "bmi", "arm: B", "arm: C", "age")
    np.testing.assert_array_equal(CODING.row({}), [1, 0, 25, 0, 0, 50])
    np.testing.assert_array_equal(CODING.row({"intercept": 1, "male": True, "arm": "C"}), [1, 1, 25, 0, 1, 50])
    assert CODING.complete({"age": 30}) == {"male": 0.0, "bmi": 25.0, "arm": "A", "age": 30.0}
    assert coding_from_dict(CODING.to_dict()) == CODING
    assert make_coding({"a": (1, 2)}, intercept=False).columns == ("a",)


@pytest.mark.parametrize(
    ("profile", "sentence"),
    [
        ({"sex": 1}, "'sex' is not a covariate of this fit; choose from male, bmi, arm, age"),
        ({"bmi": 500}, "bmi must lie within its public bounds 10 to 70"),
        ({"bmi": "high"}, "bmi must be a finite number"),
        ({"arm": "D"}, "arm must be one of A, B, C"),
        ({"intercept": 0}, "intercept must be 1"),
    ],
)
def test_impossible_profiles_are_refused(profile, sentence) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        CODING.row(profile)


@pytest.mark.parametrize(
    ("covariates", "sentence"),
    [
        ({}, "covariates must map names"),
        ({"a": 3}, "needs \\(low, high\\)"),
        ({"a": (3, 1)}, "low < high"),
        ({"a": ["x"]}, "at least two different"),
        ({"a": {"bounds": (0, 1), "unit": "kg"}}, "may have bounds, levels and reference"),
        ({"a": {"bounds": (0, 1), "reference": 7}}, "within its public bounds"),
        ({"intercept": (0, 1)}, "must differ"),
    ],
)
def test_impossible_covariates_are_refused(covariates, sentence) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        make_coding(covariates)


def test_columns_without_names_are_numbered() -> None:
    assert default_coding([(1, 1), (-1, 1), (0, 3)]).columns == ("intercept", "column-1", "column-2")
    assert default_coding([(1, 1), (-1, 1)], ("intercept", "dose")).columns == ("intercept", "dose")
    assert default_coding([(-1, 1)], ("dose",)).columns == ("dose",)
    assert default_coding([(1, 1)]) == Coding()
    with pytest.raises(InvalidInput, match="needs bounds if it is a number"):
        Covariate("a")
    with pytest.raises(InvalidInput, match="not a coefficient of this fit"):
        CODING.column("sex")
