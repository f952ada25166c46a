"""The result of a fit as one plain document: what JSON files hold, what reports are drawn from, what export reads.

Everything here is post-processing of a release and of public inputs; what only the owner of the data may know has no place.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from dpfda import __version__
from dpfda.errors import InvalidInput
from dpfda.inference.coding import Coding, Covariate, default_coding
from dpfda.inference.places import is_date, write_place
from dpfda.inference.result_model import ModelAnswers, describe_model
from dpfda.report.forest import describe_sites
from dpfda.report.schema import check_document, check_outcomes_document

SCHEMA = "dpfda-result/2"
OLD_SCHEMA = "dpfda-result/1"
OUTCOMES_SCHEMA = "dpfda-outcomes/1"  # several outcomes: `outcomes.py`
GRID_POINTS = 201
ERROR_PARTS = ("bias", "sampling", "privacy", "total")
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?")
_PLACES = re.compile(
    rf"(?<=where x is ){_NUMBER.pattern} to {_NUMBER.pattern}(?: and {_NUMBER.pattern} to {_NUMBER.pattern})*"
)
EMBEDDED = re.compile(r'<script type="application/json" id="dpfda-result">(.*?)</script>', re.DOTALL)

Document = dict[str, Any]


@dataclass(frozen=True)
class StudyDescription:
    """The public description of a study: what its owner called things."""

    source: str
    x: str
    y: str
    functions: tuple[str, ...]
    title: str = ""
    x_label: str = ""
    y_label: str = ""
    level: float = 0.95
    x_origin: str | None = None
    covariates: tuple[Mapping[str, Any], ...] = ()

    def __post_init__(self) -> None:
        if self.x_origin is not None and not is_date(self.x_origin):
            raise InvalidInput(f"x_origin must be a date such as '2020-01-31', got {self.x_origin!r}.")

    @property
    def model(self) -> str:
        """Mean, or varying coefficients."""
        return "mean" if self.functions == ("mean",) else "varying coefficients"

    def coding(self, fitted: Any) -> Coding:
        """What the design columns mean: as described here or, if nothing is, as the estimator knows it."""
        known: Coding = fitted.coding_
        if not self.covariates:
            bounds = [pair for each in known.covariates for pair in each.column_bounds]
            renamed = (
                len(self.functions) == len(known.columns) and not known.is_mean and self.functions != known.columns
            )
            return (
                default_coding([*([(1.0, 1.0)] if known.intercept else []), *bounds], self.functions)
                if renamed
                else known
            )
        facts = [
            (each["name"], each["bounds"] and tuple(each["bounds"]), tuple(each["levels"])) for each in self.covariates
        ]
        references = {each["name"]: each.get("reference") for each in self.covariates}
        covariates = tuple(Covariate(name, bounds, levels, references[name]) for name, bounds, levels in facts)
        same = {each.name for each in known.covariates} == set(references)
        return Coding(covariates, known.intercept, known.terms if same else ())

    def estimand(self, fitted: Any) -> str:
        """What the curve is a mean of, with the names of this study in the default sentence."""
        if fitted.estimand_ == fitted.name_estimand(fitted.y_name, fitted.x_name):
            return str(fitted.name_estimand(self.y, self.x))
        return str(fitted.estimand_)


@dataclass(frozen=True)
class BudgetChange:
    """The ledger before and after, as epsilon at its delta and as mu^2; `epsilon_left` is room for one more study."""

    ledger: str
    delta: float
    total_epsilon: float
    epsilon_before: float
    epsilon_after: float
    total_mu_squared: float
    mu_squared_before: float
    mu_squared_after: float
    epsilon_left: float | None = None


def make_result_document(
    fitted: Any,
    study: StudyDescription,
    *,
    budget: BudgetChange | None = None,
    forecast: Mapping[str, float] | None = None,
    command: str = "",
    settings: str = "",
    run: str = "",
) -> Document:
    """Collect a fitted estimator and its circumstances into JSON values."""
    model = describe_model(fitted, study.coding(fitted))
    document: Document = {
        "schema": SCHEMA,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "study": {**dataclasses.asdict(study), "model": study.model},
        "estimand": study.estimand(fitted),
        "contributing": fitted.contributing_,
        "warnings": [write_dates(sentence, study.x_origin) for sentence in fitted.warnings_],
        "privacy": _privacy(fitted.privacy_),
        "model": model,
        "basis": fitted.basis_.to_dict(),
        "coefficients": np.atleast_2d(fitted.coef_).tolist(),
        **_curves(model, study),
        "error": {
            "expected": dict(forecast) if forecast else None,
            "achieved": error_parts(fitted),
        },
        "budget": dataclasses.asdict(budget) if budget is not None else None,
        "repeat": {
            "command": command,
            "settings": settings,
            "run": run,
            "heads": dict(getattr(fitted, "heads_", {})),  # of the ledgers; see `dpfda budget verify --result`
            "terms_digest": fitted.terms_.digest() if hasattr(fitted, "terms_") else None,
            "versions": list_versions(),
        },
    }
    sites = describe_sites(fitted, study.level)
    if sites is not None:
        document["sites"] = sites
    return document


def write_dates(sentence: str, origin: str | None) -> str:
    """A sentence of the method about places of x, in dates where x is a date."""
    if origin is None:
        return sentence
    return _PLACES.sub(lambda found: _NUMBER.sub(lambda each: write_place(float(each[0]), origin), found[0]), sentence)


def error_parts(fitted: Any) -> dict[str, float] | None:
    """The squared L2 error that the released quantities and the known noise imply: bias, sampling, privacy, total.

    Added up over coefficient functions, each in its own units. None for methods without such an estimate.
    """
    parts = getattr(fitted, "expected_error_", None)
    return None if parts is None else {name: float(getattr(parts, name)) for name in ERROR_PARTS}


def _privacy(statement: Any) -> Document:
    fields: Document = {
        "private": statement.private,
        "unit": statement.unit,
        "neighbours": statement.neighbours,
        "mechanism": statement.mechanism,
        "silos": [dataclasses.asdict(silo) for silo in statement.silos],
        "public_inputs": {name: _plain(value) for name, value in statement.public_inputs.items()},
    }
    if statement.private:
        fields.update(epsilon=statement.epsilon, delta=statement.delta)
    return fields


def _curves(model: Document, study: StudyDescription) -> Document:
    """The mean, or the reference profile and the effects, on a grid."""
    curves = ModelAnswers(model, x_name=study.x, y_name=study.y).list_curves()
    low, high = model["domain"]
    grid = np.linspace(low, high, GRID_POINTS)
    functions = []
    for curve in curves:
        sides = curve.band(study.level, grid) if curve.has_band else None
        band = {name: None if sides is None else sides[place].tolist() for place, name in enumerate(("low", "high"))}
        functions.append({"name": curve.name, "values": curve(grid).tolist(), **band})
    return {"grid": grid.tolist(), "functions": functions}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(entry) for name, entry in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(entry) for entry in value]
    return value.item() if isinstance(value, np.generic) else value


def list_versions() -> dict[str, str]:
    """The versions of what a result depends on."""
    found = {"dpfda": __version__, "python": platform.python_version()}
    for package in ("numpy", "scipy", "opendp", "polars"):
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def to_json(document: Document) -> str:
    """Stable, readable JSON; NaN is not JSON and cannot get in."""
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


def read_document(path: str | Path, y: str | None = None) -> Document:
    """A result from a JSON file, or from the JSON inside a report; of several outcomes, that of `y`."""
    document = read_any_document(path)
    if not has_outcomes(document):
        only = document["study"]["y"]
        if y is not None and y != only:
            raise InvalidInput(f"{Path(path).name} holds one outcome, {only}; leave out --y, or name that one.")
        return document
    names = document["outcomes"]
    if y not in names:
        raise InvalidInput(
            f"{Path(path).name} holds the outcomes {', '.join(names)}: name one of them with --y (in Python, "
            f"dpfda.load(path)[{next(iter(names))!r}])."
        )
    chosen: Document = names[y]
    return chosen


def has_outcomes(document: Document) -> bool:
    """Whether a document holds several outcomes."""
    return bool(document["schema"] == OUTCOMES_SCHEMA)


def read_any_document(path: str | Path) -> Document:
    """The same, of one outcome or of several."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InvalidInput(f"There is no file {path}; name the JSON or HTML that `dpfda fit` wrote.") from None
    except UnicodeDecodeError:
        raise InvalidInput(f"{path.name} is not a result of dpfda; name its JSON or HTML file.") from None
    inside = EMBEDDED.search(text)
    try:
        document: Document = json.loads(inside.group(1) if inside else text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise InvalidInput(f"{path.name} is not a result of dpfda; name its JSON or HTML file.") from None
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema == OLD_SCHEMA:
        raise InvalidInput(
            f"{path.name} was written by version 0.1 of dpfda, whose results cannot answer questions; fit again, or open "
            "it with version 0.1."
        )
    if schema == OUTCOMES_SCHEMA:
        check_outcomes_document(document, path.name)
        return document
    if schema != SCHEMA:
        raise InvalidInput(
            f"{path.name} is not a result of this version of dpfda ({SCHEMA}); name its JSON or HTML file."
        )
    check_document(document, path.name)
    return document
