"""The result of a fit as one plain document: what JSON files hold, what reports are drawn from, what export reads.

Everything here is post-processing of a release and of public inputs, except `owner_notes`, which is there only if its owner
asked for it.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
import math
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from dpfda import __version__
from dpfda.errors import InvalidInput

SCHEMA = "dpfda-result/1"
GRID_POINTS = 201
ERROR_PARTS = ("bias", "sampling", "privacy", "total")
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

    @property
    def model(self) -> str:
        """Mean, or varying coefficients."""
        return "mean" if self.functions == ("mean",) else "varying coefficients"


@dataclass(frozen=True)
class BudgetChange:
    """The ledger before and after, as epsilon at its delta and as mu^2."""

    ledger: str
    delta: float
    total_epsilon: float
    epsilon_before: float
    epsilon_after: float
    total_mu_squared: float
    mu_squared_before: float
    mu_squared_after: float


def make_result_document(
    fitted: Any,
    study: StudyDescription,
    *,
    budget: BudgetChange | None = None,
    forecast: Mapping[str, float] | None = None,
    command: str = "",
    settings: str = "",
    run: str = "",
    owner_notes: Sequence[str] | None = None,
) -> Document:
    """Collect a fitted estimator and its circumstances into JSON values."""
    document: Document = {
        "schema": SCHEMA,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "study": {**dataclasses.asdict(study), "model": study.model},
        "privacy": _privacy(fitted.privacy_),
        "basis": fitted.basis_.to_dict(),
        "coefficients": np.atleast_2d(fitted.coef_).tolist(),
        **_curves(fitted, study),
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
            "versions": list_versions(),
        },
    }
    if owner_notes is not None:
        document["owner_notes"] = list(owner_notes)
    return document


def error_parts(fitted: Any) -> dict[str, float] | None:
    """The squared L2 error that the released quantities and the known noise imply: bias, sampling, privacy, total.

    Added up over coefficient functions, each in its own units. None for methods without such an estimate.
    """
    parts = getattr(fitted, "expected_error_", None)
    return None if parts is None else {name: float(getattr(parts, name)) for name in ERROR_PARTS}


def _grid(fitted: Any) -> Any:
    low, high = fitted.basis_.domain
    return np.linspace(low, high, GRID_POINTS)


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


def _curves(fitted: Any, study: StudyDescription) -> Document:
    grid = _grid(fitted)
    values = _columns(fitted.predict(grid) if study.model == "mean" else fitted.predict_coefficients(grid))
    low = high = None
    if getattr(fitted, "has_band", False):
        low, high = (_columns(side) for side in fitted.band(study.level, x=grid))
    functions = [
        {
            "name": name,
            "values": values[:, index].tolist(),
            "low": None if low is None else _finite(low[:, index]),
            "high": None if high is None else _finite(high[:, index]),
        }
        for index, name in enumerate(study.functions)
    ]
    return {"grid": grid.tolist(), "functions": functions}


def _columns(values: Any) -> Any:
    array = np.asarray(values, dtype=np.float64)
    return array[:, None] if array.ndim == 1 else array


def _finite(values: Any) -> list[float | None]:
    return [float(value) if math.isfinite(value) else None for value in values]


def _plain(value: Any) -> Any:
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


def read_document(path: str | Path) -> Document:
    """A result from a JSON file, or from the JSON inside a report."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InvalidInput(f"There is no file {path}; name the JSON or HTML that `dpfda fit` wrote.") from None
    except UnicodeDecodeError:
        raise InvalidInput(f"{path.name} is not a result of dpfda; name its JSON or HTML file.") from None
    inside = EMBEDDED.search(text)
    try:
        document: Document = json.loads(inside.group(1) if inside else text)
    except (ValueError, RecursionError):
        raise InvalidInput(f"{path.name} is not a result of dpfda; name its JSON or HTML file.") from None
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise InvalidInput(f"{path.name} is not a result of this version of dpfda ({SCHEMA}); fit again or upgrade.")
    return document
