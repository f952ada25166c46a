"""A design with products and splines, read from a file: the same curves as from a table in memory, however it is read."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpfda import Curves
from dpfda.cli import parsing
from dpfda.curves.tables import Covariate, Domain, Reading, find_source, load_curves
from dpfda.errors import InvalidInput

FACTS = {"male": (0, 1), "bmi": (10, 40), "arm": ["A", "B", "C"]}
COVARIATES = (
    Covariate("male", (0, 1)),
    Covariate("bmi", (10, 40)),
    Covariate("arm", levels=("A", "B", "C")),
)
FORMULAS = [
    "male + bmi + C(arm) + male:bmi",
    "0 + male + C(arm)*bmi",
    "male + spline(bmi, 20, 30) + C(arm):spline(bmi, degree=1)",
    "male:bmi:arm",
]


def table(changing: bool) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    pid = np.repeat(np.arange(60), rng.integers(1, 6, 60))  # shown as 100, 101, ...: texts and numbers in one order
    own = pid if not changing else np.arange(pid.size)
    bmi = np.round(rng.normal(28, 9, pid.size)[own % pid.size], 2)  # some beyond the public bounds
    frame = pd.DataFrame(
        {
            "pid": 100 + pid,
            "age": np.round(rng.uniform(0, 10, pid.size), 3),
            "y": np.round(rng.normal(0, 1, pid.size), 3),
            "male": rng.integers(0, 2, 60)[pid],
            "bmi": bmi,
            "arm": np.array(["A", "B", "C"])[rng.integers(0, 3, 60)[pid]],
        }
    )
    frame.loc[[3, 40], "bmi"] = np.nan
    return frame


def read(path, formula, **how):
    used = parsing.parse_design(formula).names
    covariates = tuple(each for each in COVARIATES if each.name in used)
    reading = Reading(Domain(0, 10), (-5, 5), id="pid", x="age", y="y", covariates=covariates, formula=formula)
    return load_curves(find_source(str(path)), reading, **how)


@pytest.mark.parametrize("changing", [False, True])
@pytest.mark.parametrize("formula", FORMULAS)
def test_a_file_gives_the_curves_of_the_table(tmp_path, formula, changing) -> None:
    frame, path = table(changing), tmp_path / "visits.csv"
    frame.to_csv(path, index=False)
    used = parsing.parse_design(formula).names
    expected = Curves.from_frame(
        frame,
        id="pid",
        x="age",
        y="y",
        design=formula,
        covariates={name: FACTS[name] for name in FACTS if name in used},
    )
    whole = read(path, formula)
    assert whole.curves == expected.restrict((0, 10))
    assert whole.functions == expected.names
    frame.sample(frac=1, random_state=1).to_csv(path, index=False)
    np.testing.assert_allclose(read(path, formula, rows_at_once=7, scratch=tmp_path).curves.design, whole.curves.design)


def test_numbers_beyond_their_bounds_count_as_the_bound_in_products() -> None:
    frame = pd.DataFrame({"id": [1, 2], "x": [0.5, 0.5], "y": [0.0, 0.0], "a": [3.0, 1.0], "b": [0.5, -7.0]})
    made = Curves.from_frame(frame, id="id", x="x", y="y", design="a:b", covariates={"a": (-1, 1), "b": (-1, 1)})
    np.testing.assert_array_equal(made.design, [[1, 0.5], [1, -1.0]])


@pytest.mark.parametrize(
    ("design", "bounds", "levels", "sentence"),
    [
        ("a + C(b)", ["a=0:1", "b=0:1"], None, r"C\(b\) in --design needs --levels b="),
        ("a + spline(b)", ["a=0:1"], ["b=x,y"], r"spline\(b\) in --design needs --bounds b="),
        ("a + __import__('os')", ["a=0:1"], None, "cannot be read"),
        ("a:b", ["a=0:1"], None, "'b' needs public facts"),
    ],
)
def test_mistakes_in_a_design_are_one_sentence(design, bounds, levels, sentence) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        parsing.parse_covariates(parsing.parse_design(design), bounds, levels)
