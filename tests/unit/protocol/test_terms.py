"""Terms, their ranges, and the registry of plan builders."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dpfda import InvalidInput
from dpfda.methods.run import make_coordinator
from dpfda.protocol.plans.registry import BUILDERS, COORDINATORS, make_plan, register_method
from dpfda.protocol.published_constants import PublishedConstants
from dpfda.protocol.ranges import Ends, Real, Text, Whole
from dpfda.protocol.scaling import symmetric_scaling, unit_scaling
from dpfda.protocol.terms import CovariateTerms, SiloTerms, StudyTerms, plain_name

SILO = SiloTerms("north", 500, 1.0, 1e-5, 4.0)
TERMS = StudyTerms("adaptive", (0, 1), (-4, 4), (SILO,))


def test_values_become_canonical() -> None:
    assert TERMS.domain == (0.0, 1.0)
    assert isinstance(TERMS.domain[0], float)
    silo = SiloTerms("north", np.int64(500), np.float64(1.0), 1e-5, 4)
    assert silo == SILO
    assert type(silo.n) is int
    assert str(Real(-1.0, 1.0).check("x", -0.0)) == "0.0"


def test_equal_terms_have_equal_plans_and_digests() -> None:
    other = StudyTerms("adaptive", (0.0, 1.0), (-4.0, 4.0), [SILO])
    assert other == TERMS
    assert other.digest() == TERMS.digest()
    assert make_plan(other) is make_plan(TERMS)


def test_design_and_functions_follow_from_covariates() -> None:
    covariates = (CovariateTerms("age", (18, 90)), CovariateTerms("sex", None, ("f", "m", "x")))
    terms = dataclasses.replace(TERMS, covariates=covariates)
    assert terms.design_bounds == ((1.0, 1.0), (18.0, 90.0), (0.0, 1.0), (0.0, 1.0))
    assert terms.functions == ("intercept", "age", "sex: m", "sex: x")
    assert (terms.model, TERMS.model) == ("vcm", "mean")
    assert make_plan(terms).scaling == symmetric_scaling(terms.y_bounds, terms.design_bounds)
    published = dataclasses.replace(TERMS, method="published", constants=PublishedConstants(C_T=2.0))
    assert make_plan(published).scaling == unit_scaling((-4.0, 4.0), ((1.0, 1.0),), scale_y=True)


@pytest.mark.parametrize(
    "wrong",
    [
        {"silos": ()}, {"silos": (SILO, SILO)}, {"min_silos": 2}, {"intercept": False}, {"n_basis": 201}, {"n_basis": 1.0},
        {"basis": "wavelet"}, {"levels": (0.5, 0.5)}, {"levels": (1.0,)}, {"domain": (1, 0)},
        {"y_bounds": (0, float("inf"))},
        {"extension": 1.0}, {"alpha": 0.1}, {"constants": {"C_T": 1.0}}, {"max_rounds": 0}, {"intercept": 1},
        {"covariates": (CovariateTerms("g", (0, 1)),) * 2},
    ],
)  # fmt: skip
def test_what_lies_outside_the_ranges_cannot_be_made(wrong) -> None:
    with pytest.raises(InvalidInput):
        dataclasses.replace(TERMS, **wrong)


def test_more_rounds_than_allowed_are_refused() -> None:
    with pytest.raises(InvalidInput, match="max_rounds"):
        make_plan(dataclasses.replace(TERMS, max_rounds=2))


def test_a_method_is_registered_once_and_runs_with_its_coordinator() -> None:
    register_method("mine", BUILDERS["adaptive"], COORDINATORS["adaptive"])
    try:
        mine = dataclasses.replace(TERMS, method="mine")
        assert make_plan(mine).digest() == make_plan(TERMS).digest()
        assert make_coordinator(mine).question(0) == {}
        with pytest.raises(InvalidInput, match="already"):
            register_method("mine", BUILDERS["adaptive"])
    finally:
        del BUILDERS["mine"], COORDINATORS["mine"]


def test_ranges_say_what_they_allow() -> None:
    for allowed, value, words in (
        (Whole(1, 3), 4, "between 1 and 3"),
        (Real(0.0, 1.0, open=True), 1, "strictly"),
        (Text("[a-z]+", 3), "a\x1b", "plain characters"),
        (Ends(), (1.0, 1.0 + 1e-12), "narrow"),
    ):
        with pytest.raises(InvalidInput, match=words):
            allowed.check("it", value)


def test_any_text_becomes_a_plain_name() -> None:
    assert plain_name("mean of Größe over t, data/t.csv") == "mean of Gr-e over t, data-t.csv"
    assert plain_name("///") == "silo"
