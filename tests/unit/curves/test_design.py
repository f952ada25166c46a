"""Designs by formula: a closed grammar, public facts only, the same columns from every kind of table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfda import Curves, InvalidInput
from dpfda.curves.tables.design import Design
from dpfda.curves.tables.formula import Factor, Formula, parse_formula
from dpfda.curves.tables.frames import make_design, take_design, take_values

FACTS = {"male": (0, 1), "bmi": {"bounds": (10, 70), "reference": 25}, "arm": ["A", "B", "C"], "age": (20, 80)}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("male", ("intercept", "male")),
        ("1 + male + bmi", ("intercept", "male", "bmi")),
        ("0 + male", ("male",)),
        ("C(arm)", ("intercept", "arm: B", "arm: C")),
        ("arm", ("intercept", "arm: B", "arm: C")),
        ("male:bmi", ("intercept", "male:bmi")),
        ("male*C(arm)", ("intercept", "male", "arm: B", "arm: C", "male:arm: B", "male:arm: C")),
        ("spline(age, 30, 50, degree=1)", ("intercept", "spline(age) 1", "spline(age) 2", "spline(age) 3")),
        (" `male`+spline( age,+3e1 ) ", ("intercept", "male", *(f"spline(age) {k}" for k in range(1, 5)))),
    ],
)
def test_columns_follow_from_formula_and_facts(text: str, names: tuple[str, ...]) -> None:
    assert Design(text, FACTS).names == names


def test_a_formula_is_what_was_written() -> None:
    assert parse_formula("0 + a:C(`b c`) + spline(d.e, -1, 2)") == Formula(
        False, ((Factor("a"), Factor("b c", "C")), (Factor("d.e", "spline", (-1.0, 2.0)),))
    )


@pytest.mark.parametrize(
    "text",
    [
        "", "+", "male +", "1", "male - bmi", "male / bmi", "male ** 2", "log(bmi)", "I(bmi^2)", "C(arm", "C()", "C(arm, A)",
        "spline(age, 50, 30)", "spline(age, 10)", "spline(age, 30, degree=9)", "spline(age, knots)", "male male",
        "male + male", "male:male", "male:bmi*age", "__import__('os')", "male; bmi", "lambda: 0", "C(male)", "spline(arm)",
        "height", "2", "spline(age, 30) 3", "a" * 3000,
    ],
)  # fmt: skip
def test_everything_else_is_refused_with_one_sentence(text: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        Design(text, FACTS)
    assert str(refusal.value).count(". ") == 0


@given(st.text(alphabet="abC1+:*(),=` .spline-degr0", max_size=40))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        formula = parse_formula(text)
    except InvalidInput:
        return
    assert formula.terms


@settings(deadline=None)  # the first evaluation imports scipy
@given(st.floats(-100, 200), st.sampled_from(["0", "1"]), st.sampled_from(["A", "B", "C"]), st.floats(0, 100))
def test_values_of_public_range_stay_within_the_public_bounds(bmi: float, male: str, arm: str, age: float) -> None:
    design = Design("male*bmi*C(arm) + spline(age, 30, 50)", FACTS)
    row = design.row(male=float(male), bmi=min(max(bmi, 10.0), 70.0), arm=arm, age=age)
    low, high = np.array(design.bounds).T
    assert ((low <= row) & (row <= high)).all()


def test_splines_are_smooth_sum_to_one_with_the_first_and_know_no_data() -> None:
    design = Design("0 + spline(age, 40, 60)", FACTS)
    ages = np.linspace(20, 80, 61)
    values = design.matrix({"age": ages})
    assert values.shape == (61, 5)
    assert (values.sum(axis=1) <= 1 + 1e-12).all()
    np.testing.assert_array_equal(design.matrix({"age": ages[30:]}), values[30:])
    np.testing.assert_array_equal(design.matrix({"age": np.array([5.0, 99.0])}), values[[0, -1]])


ROWS = {
    "pid": ["a", "a", "b", "c", "d"],
    "t": [1.0, 2.0, 3.0, 4.0, 5.0],
    "y": [1.0, 2.0, 3.0, 4.0, 5.0],
    "male": [1, 1, 0, 1, 0],
    "arm": ["B", "B", "A", None, "C"],
    "ok": ["yes", "no", None, "yes", "no"],
}


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"])
def test_text_columns_with_public_levels_in_every_kind_of_table(kind) -> None:
    facts = {"male": (0, 1), "arm": ["A", "B", "C"]}
    curves = Curves.from_frame(kind(ROWS), id="pid", x="t", y="y", design="male + C(arm)", covariates=facts)
    assert curves.names == ("intercept", "male", "arm: B", "arm: C")
    assert curves.design.tolist() == [[1, 1, 1, 0], [1, 0, 0, 0], [0, 0, 0, 0], [1, 0, 0, 1]]
    assert curves.counts.tolist() == [2, 1, 0, 1]
    assert curves == Curves.from_frame(kind(ROWS), id="pid", x="t", y="y", covariates=facts)
    assert curves == Curves.from_frame(kind(ROWS), id="pid", x="t", y="y", design=["male", "arm"], covariates=facts)
    shares = Curves.from_frame(kind(ROWS), id="pid", x="t", y="ok", y_levels=("no", "yes"))
    assert shares.y.tolist() == [1.0, 0.0, 1.0, 0.0]


def test_categories_that_are_numbers_are_named_by_their_digits() -> None:
    frame = pd.DataFrame({"g": [1.0, 2.0, np.nan]})
    design = make_design("C(g)", {"g": ["1", "2"]})
    import narwhals as nw

    np.testing.assert_array_equal(take_design(nw.from_native(frame), design), [[1, 0], [1, 1], [1, np.nan]])


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        ({"arm": ["A", "b", "C"]}, "No row of 'arm' is 'b', but row 1 is 'B'"),
        ({"arm": ["x", "z"]}, "No row of 'arm' has a level"),
        ({"arm": (0, 1)}, "arm must be numeric, got text; give its public levels"),
        ({"height": (0, 1)}, "design names the column 'height'"),
        ({"male": "01"}, "covariate 'male' needs"),
        ({}, "covariates must map names"),
    ],
)
def test_wrong_facts_are_refused(facts, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        Curves.from_frame(pd.DataFrame(ROWS), id="pid", x="t", y="y", covariates=facts)


def test_a_yes_no_column_has_two_known_values() -> None:
    import narwhals as nw

    frame = nw.from_native(pd.DataFrame(ROWS))
    with pytest.raises(InvalidInput, match="the value 'yes'"):
        take_values(frame, "ok", ("no", "Yes"))
    with pytest.raises(InvalidInput, match="two different values"):
        take_values(frame, "ok", ("no", "no"))
    with pytest.raises(
        InvalidInput, match="ok must be numeric, got text; give both values of a yes/no column as y_levels"
    ):
        take_values(frame, "ok", None)


@pytest.mark.parametrize(
    "text",
    [
        "*".join(f"v{k}" for k in range(400)),  # 2^400 terms
        "*".join(f"v{k}" for k in range(8)),
        " + ".join("*".join(f"{group}{k}" for k in range(7)) for group in "abcdefgh"),
        " + ".join(f"v{k}" for k in range(201)),
    ],
)
def test_a_design_is_refused_before_its_terms_are_made(text: str) -> None:
    with pytest.raises(InvalidInput, match="at most 200 columns"):
        parse_formula(text)
    assert len(parse_formula("*".join("abcdefg")).terms) == 127


def test_a_design_is_refused_before_its_columns_are_made() -> None:
    """Twelve categories of 30 levels: 29^12 columns."""
    facts = {f"v{k}": list(map(str, range(30))) for k in range(12)}
    with pytest.raises(InvalidInput, match="at most 200 columns"):
        Design(":".join(f"C({name})" for name in facts), facts)
