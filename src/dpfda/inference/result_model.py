"""The part of a result file that answers questions: functions, coefficients, covariance, coding, limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dpfda._typing import Floats
from dpfda.errors import InvalidInput
from dpfda.inference.answers import Answers
from dpfda.inference.coding import Coding, coding_from_dict
from dpfda.inference.law import Law
from dpfda.inference.stored_functions import POLYNOMIALS, WAVES, StoredFunctions, describe_functions
from dpfda.protocol.transforms import NO_TRANSFORM, check_transform


def describe_model(answers: Answers, coding: Coding | None = None) -> dict[str, Any]:
    """JSON values; `read_model` is the inverse. The covariance is its lower triangle, row by row."""
    law, coding = answers.law_, answers.coding_ if coding is None else coding
    if len(coding.columns) != law.columns:
        raise InvalidInput(f"the names {', '.join(coding.columns)} do not fit {law.columns} design columns.")
    below = np.tril_indices(law.mean.size)
    finite = np.isfinite(answers.limits_)
    return {
        "domain": list(law.functions.domain),
        "functions": describe_functions(law.functions),
        "columns": list(coding.columns),
        **coding.to_dict(),
        "coefficients": law.mean.tolist(),
        "covariance": None if law.covariance is None else law.covariance[below].tolist(),
        "transform": answers.transform_,
        "limits": [float(limit) if known else None for limit, known in zip(answers.limits_, finite, strict=True)],
    }


def read_transform(model: Mapping[str, Any]) -> str:
    """The transform of y that a model names; none if it names none."""
    return str(model.get("transform", NO_TRANSFORM))


class ModelAnswers(Answers):
    """Answers from the model of a result file."""

    def __init__(self, model: Mapping[str, Any], *, x_name: str = "x", y_name: str = "y") -> None:
        self.coding_ = coding_from_dict(model)
        self.law_ = _read_law(model)
        low, high = model["limits"]
        self.limits_ = (-np.inf if low is None else float(low), np.inf if high is None else float(high))
        self.transform_ = check_transform(read_transform(model), self.limits_)
        self.x_name, self.y_name = x_name, y_name
        if self.law_.columns != len(self.coding_.columns) or list(self.coding_.columns) != model["columns"]:
            raise InvalidInput("the model's columns do not belong to its covariates.")


def _read_law(model: Mapping[str, Any]) -> Law:
    mean = np.asarray(model["coefficients"], dtype=np.float64)
    low, high = (float(end) for end in model["domain"])
    if mean.ndim != 2 or not low < high:
        raise InvalidInput("the model's coefficients or its domain are impossible.")
    functions = _check_functions(StoredFunctions((low, high), model["functions"]))
    return Law(functions, mean, _read_covariance(model["covariance"], mean.size))


def _read_covariance(entries: Any, size: int) -> Floats | None:
    if entries is None:
        return None
    if len(entries) != size * (size + 1) // 2:
        raise InvalidInput("the model's covariance does not have the size of its coefficients.")
    covariance = np.zeros((size, size))
    covariance[np.tril_indices(size)] = entries
    lower = np.tril(covariance, -1)
    return covariance + lower.T


def _check_functions(functions: StoredFunctions) -> StoredFunctions:
    """The lists of a description have the lengths that its size says."""
    fields, size = functions.fields, functions.size
    if fields["kind"] == WAVES:
        right = all(len(fields[name]) == size for name in ("multiples", "quarters", "scales"))
    else:
        breaks = fields["breaks"]
        lengths = [len({len(row) for row in piece}) == 1 and len(piece) == size for piece in fields["pieces"]]
        right = fields["kind"] == POLYNOMIALS and len(lengths) == len(breaks) - 1 and all(lengths)
        right = right and breaks[0] == 0 and breaks[-1] == 1 and bool((np.diff(breaks) > 0).all())
    if not right:
        raise InvalidInput("the model's functions are not described correctly.")
    return functions
