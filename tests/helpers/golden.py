"""Results, of made-up laws and of fits, with questions and answers, shared by Python, R and JavaScript.

`python tests/helpers/golden.py` writes them. They are written once and then only compared: all three must agree with
them to 1e-10, relative to the size of the answers.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from laws import Known, make_law

from dpfda.curves.simulated import simulate_mean, simulate_vcm
from dpfda.curves.tables.design import Design
from dpfda.errors import InvalidInput
from dpfda.estimators.design_coding import make_design_coding
from dpfda.inference.answers import Answers
from dpfda.inference.coding import Coding, make_coding
from dpfda.inference.curve import ReleasedCurve, simultaneous_bands
from dpfda.inference.law import Law
from dpfda.inference.result_model import describe_model
from dpfda.report.document import StudyDescription, make_result_document
from dpfda.report.results import Result

FOLDER = Path(__file__).parents[2] / "r" / "dpfda" / "inst" / "golden"
Question = dict[str, Any]

_DOSE, _BOTH = {"dose": (-1, 1)}, {"male": (0, 1), "bmi": {"bounds": (10, 70), "reference": 25}}
_ARM = {"arm": ["A", "B", "C"], "age": (20, 80)}
_ALL = {"male": (0, 1), "arm": ["A", "B", "C"], "age": (20, 80)}
CASES: list[dict[str, Any]] = [
    {"basis": "cosine", "size": 30},
    {"basis": "cosine", "size": 1, "domain": (-5.0, 5.0)},
    {"basis": "fourier", "size": 7, "domain": (0.0, 24.0)},
    {"basis": "fourier", "size": 4},
    {"basis": "fourier-extension", "size": 6, "domain": (46.0, 63.0)},
    {"basis": "free-ends", "size": 9, "domain": (20.0, 80.0)},
    {"basis": "free-ends", "size": 40},
    {"basis": "free-ends", "size": 2},
    {"basis": "bspline", "size": 10, "domain": (20.0, 80.0)},
    {"basis": "bspline", "size": 4},
    {"basis": "free-ends", "size": 12, "limits": (-0.1, 0.4)},
    {"basis": "free-ends", "size": 8, "scale": 1e5, "limits": (-2e4, np.inf)},
    {"basis": "bspline", "size": 7, "scale": 1e-6},
    {"basis": "cosine", "size": 12, "covariates": _DOSE},
    {"basis": "free-ends", "size": 10, "covariates": _DOSE, "domain": (0.0, 365.0)},
    {"basis": "free-ends", "size": 8, "covariates": _BOTH, "limits": (-20.0, 20.0)},
    {"basis": "bspline", "size": 9, "covariates": _ARM},
    {"basis": "fourier", "size": 5, "covariates": _ARM, "domain": (0.0, 12.0)},
    {"basis": "free-ends", "size": 15, "covariates": {"g": (1, 3)}, "intercept": False},
    {"basis": "free-ends", "size": 9, "covariance": False},
    {"basis": "free-ends", "size": 7, "formula": "male*C(arm) + spline(age, 30, 50)", "covariates": _ALL},
    {"basis": "bspline", "size": 6, "formula": "0 + male + male:spline(age, 45.5, degree=1)", "covariates": _ALL},
]
LATER_CASES: list[dict[str, Any]] = [  # after the fits, so that the files before keep their numbers
    {"basis": "free-ends", "size": 9, "domain": (20.0, 80.0), "transform": "log", "limits": (0.5, 90.0)},
    {"basis": "free-ends", "size": 8, "covariates": _BOTH, "transform": "log", "limits": (0.01, 100.0), "scale": 0.04},
    {"basis": "bspline", "size": 7, "covariates": _ARM, "transform": "log1p", "limits": (0.0, 40.0), "scale": 0.1},
    {"basis": "cosine", "size": 6, "covariates": _DOSE, "transform": "sqrt", "limits": (0.0, 30.0), "scale": 2.0},
]
PROFILES: dict[str, list[tuple[dict[str, Any], dict[str, Any]]]] = {
    "": [({}, {})],
    "dose": [({"dose": 1}, {"dose": -0.5}), ({}, {"dose": 0.25})],
    "male": [({"male": 1, "bmi": 30}, {"male": 0, "bmi": 30}), ({"male": 1}, {"bmi": 40})],
    "male:age": [
        ({"male": 1, "age": 30}, {"male": 0, "age": 80}),
        ({"age": 45.5, "male": 1}, {"male": 0.5, "age": 20}),
    ],
    "arm": [({"arm": "B"}, {"arm": "A"}), ({"arm": "C", "age": 60}, {"arm": "B", "age": 30})],
    "g": [({"g": 2}, {"g": 1.5})],
}
LEVELS = (0.95, 0.9, 0.99, 0.5)


def make_answers(case: dict[str, Any], seed: int) -> Known:
    """The law of a case."""
    covariates = case.get("covariates")
    coding = make_coding(covariates, intercept=case.get("intercept", True)) if covariates else Coding()
    if "formula" in case:
        coding = make_design_coding(Design(case["formula"], case["covariates"]), case["covariates"])
    law = make_law(case["basis"], case["size"], len(coding.columns), seed, case.get("domain", (0.0, 1.0)))
    scale = case.get("scale", 1.0)
    covariance = scale**2 * law.covariance if case.get("covariance", True) else None
    limits, transform = case.get("limits", (-np.inf, np.inf)), case.get("transform", "none")
    return Known(Law(law.functions, scale * law.mean, covariance), coding, limits, transform)


def make_document(answers: Known, number: int) -> dict[str, Any]:
    """A result document around the law, with nothing in it that readers of golden files do not need."""
    curve = answers.list_curves()[0]
    grid = np.linspace(*curve.domain, 5)
    silo = {
        "name": "silo-1",
        "n": 1000,
        "epsilon": 1.0,
        "delta": 1e-5,
        "mu": 0.25,
        "epsilon_spent": 1.0,
        "epsilon_total": 1.0,
    }
    study = {
        "source": "golden", "x": "x", "y": "y", "functions": list(answers.names_), "title": f"Golden {number}",
        "x_label": "x", "y_label": "y", "level": 0.95, "x_origin": None, "covariates": [],
        "model": "mean" if answers.coding_.is_mean else "varying coefficients",
    }  # fmt: skip
    return {
        "schema": "dpfda-result/2", "created": "2026-11-17T00:00:00+00:00", "study": study,
        "estimand": "Every subject counts equally: the mean over subjects of y at each x.", "warnings": [],
        "privacy": {
            "private": True, "unit": "curve", "neighbours": "replace-one", "mechanism": "golden", "silos": [silo],
            "public_inputs": {}, "epsilon": 1.0, "delta": 1e-5,
        },
        "model": describe_model(answers), "basis": {"name": "golden", "size": 1, "domain": list(curve.domain)},
        "coefficients": answers.law_.mean.tolist(), "grid": grid.tolist(),
        "functions": [
            {"name": each.name, "values": each(grid).tolist(), "low": None, "high": None} for each in answers.list_curves()
        ],
        "error": {"expected": None, "achieved": None}, "budget": None,
        "repeat": {
            "command": "", "settings": "", "run": "", "heads": {}, "terms_digest": None, "versions": {"dpfda": "golden"},
        },
    }  # fmt: skip


def list_questions(answers: Answers, number: int) -> list[Question]:
    """Profiles, contrasts, effects and slopes of a case."""
    names = [each.name for each in answers.coding_.covariates]
    first = "" if not names else "male:age" if {"male", "age"} <= set(names) else names[0]
    level = LEVELS[number % len(LEVELS)]
    slopes = [0, 1] if answers.curve_at().has_free_ends else [0]
    questions: list[Question] = []
    for one, other in PROFILES[first]:
        chosen = (
            [{"profile": one}, {"profile": one, "minus": other}] if answers.coding_.covariates else [{"profile": one}]
        )
        questions += [{**each, "derivative": order, "level": level} for each in chosen for order in slopes]
    questions += [{"effect": name, "derivative": 0, "level": level} for name in answers.names_[1:]]
    return questions


def choose_curve(answers: Any, question: Question) -> ReleasedCurve:
    """The curve that a question is about."""
    if "effect" in question:
        curve = answers.effect(question["effect"])
    else:
        curve = answers.curve_at(**question["profile"])
        if "minus" in question:
            curve = curve - answers.curve_at(**question["minus"])
    return curve.derivative(question["derivative"]) if question["derivative"] else curve


def answer(curve: ReleasedCurve, level: float) -> dict[str, Any]:
    """Every number that is compared."""
    low, high = curve.domain
    x = low + (high - low) * np.array([0.0, 0.07, 0.31, 0.5, 0.77, 0.98, 1.0])
    a, b = low + 0.2 * (high - low), low + 0.55 * (high - low)
    mean = curve.mean_over(a, b)
    found: dict[str, Any] = {"x": x.tolist(), "estimate": curve(x).tolist(), "from": a, "to": b}
    found["average"] = mean.estimate
    if curve.scale.is_plain:
        found["integral"] = curve.integral(a, b).estimate
    else:
        found["integral_refused"] = is_refused(lambda: curve.integral(a, b))
    if not curve.has_band:
        return found
    constant = curve.is_constant(level)
    if curve.scale.is_mean:
        found["zero_refused"] = is_refused(lambda: curve.is_zero(level)) and is_refused(lambda: mean.p_value)
    else:
        zero = curve.is_zero(level)
        found |= {
            "average_p": mean.p_value, "zero_p": zero.p_value, "zero_statistic": zero.statistic,
            "zero_intervals": [[each.low, each.high, each.sign] for each in zero.intervals],
        }  # fmt: skip
    band, pointwise = curve.band(level, x), curve.band(level, x, simultaneous=False)
    return {
        **found, "standard_error": curve.standard_error(x).tolist(), "path_length": curve.path_length,
        "critical_value": curve.critical_value(level), "lower": band[0].tolist(), "upper": band[1].tolist(),
        "pointwise_lower": pointwise[0].tolist(), "pointwise_upper": pointwise[1].tolist(),
        "average_error": mean.standard_error, "average_interval": list(mean.interval(level)),
        "constant_p": constant.p_value,
        "constant_intervals": [[each.low, each.high, each.sign] for each in constant.intervals],
        **{name: {"x": e.x, "value": e.value, "intervals": [list(pair) for pair in e.intervals]}
           for name, e in (("argmax", curve.argmax(level)), ("argmin", curve.argmin(level)))},
    }  # fmt: skip


def is_refused(ask: Callable[[], Any]) -> bool:
    """Whether a question has no answer on the scale of a curve."""
    try:
        ask()
    except InvalidInput:
        return True
    return False


def answer_all(answers: Any, questions: list[Question]) -> dict[str, Any]:
    """Each question, and the bands of all curves at once."""
    curves = [choose_curve(answers, question) for question in questions]
    found: dict[str, Any] = {
        "answers": [answer(curve, question["level"]) for curve, question in zip(curves, questions, strict=True)]
    }
    if curves[0].has_band:
        bands = simultaneous_bands(curves, 0.95, np.linspace(*curves[0].domain, 3))
        found["joint"] = [[lower.tolist(), upper.tolist()] for lower, upper in bands]
    return found


def load_cases() -> list[tuple[str, Result, dict[str, Any]]]:
    """Name, loaded result and expected answers of every golden file."""
    found = []
    for path in sorted(FOLDER.glob("*.json")):
        golden = json.loads(path.read_text())
        found.append((path.stem, Result(golden["result"]), golden))
    return found


def make_fits() -> list[dict[str, Any]]:
    """Result documents of fits, with noise that is drawn from a seed; their questions are those of the made-up laws."""
    from dpfda import PrivateMean, PrivateVaryingCoefficients, Silo

    mean = {"epsilon": 2, "delta": 1e-5, "domain": (0, 1), "y_bounds": (-4, 4), "random_state": 1}
    parts = [Silo(simulate_mean(n, 6, rng=n), epsilon=1, delta=1e-5) for n in (400, 600, 900)]
    people = draw_people(1200)
    share = people.assign(y=(people["y"] > 1).astype(float))
    by_name = {"covariates": _ALL, **mean}
    columns = {"id": "pid", "x": "t", "y": "y"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        fits = [
            PrivateMean(**mean).fit(simulate_mean(2000, 6, rng=1)),
            PrivateMean(**(mean | {"basis": "bspline"})).fit(parts),
            PrivateMean(**(mean | {"method": "published", "points_per_curve": 6})).fit(simulate_mean(2000, 6, rng=2)),
            PrivateMean(**(mean | {"y_bounds": (0, 1), "outcome": "binary"})).fit(share, **columns),
            PrivateVaryingCoefficients(**(mean | {"covariates": _DOSE})).fit(simulate_vcm(1500, 6, 1, rng=3)),
            PrivateVaryingCoefficients(**by_name, design="male*C(arm) + spline(age, 50, degree=1)").fit(people, **columns),
        ]  # fmt: skip
    study = {"source": "golden", "x": "x", "y": "y", "x_label": "x", "y_label": "y"}
    return [
        make_result_document(fit, StudyDescription(**study, functions=fit.names_, title="Golden fit")) for fit in fits
    ]


def draw_people(count: int) -> pd.DataFrame:
    """A table with covariates, five rows for each subject."""
    rng = np.random.default_rng(4)
    facts = {"pid": np.arange(count), "male": rng.integers(0, 2, count), "arm": rng.choice(["A", "B", "C"], count)}
    table = pd.DataFrame({**facts, "age": rng.uniform(20, 80, count)})
    table = table.loc[table.index.repeat(5)].reset_index(drop=True)
    t = rng.uniform(0, 1, len(table))
    table["t"], table["y"] = t, 1 + table["male"] * np.sin(3 * t) + table["age"] / 80 + rng.normal(0, 0.4, len(table))
    return table


def write() -> None:
    """Write all files."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    laws = [make_document(make_answers(case, number), number) for number, case in enumerate(CASES, start=1)]
    before = [*laws, *make_fits()]
    later = [make_document(make_answers(case, k), k) for k, case in enumerate(LATER_CASES, start=len(before) + 1)]
    for number, document in enumerate([*before, *later], start=1):
        questions = list_questions(Result(document), number)
        golden = {"result": document, "questions": questions, **answer_all(Result(document), questions)}
        (FOLDER / f"{number:02d}.json").write_text(json.dumps(golden, allow_nan=False) + "\n")


if __name__ == "__main__":
    write()
