"""Results that answer: `dpfda.load` reads a result file, `dpfda.save` writes one. Neither needs data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from dpfda.errors import InvalidInput
from dpfda.inference.outcomes import OutcomeAnswers
from dpfda.inference.result_model import ModelAnswers
from dpfda.inference.summary import write_differing_sites, write_summary_html
from dpfda.report.document import (
    Document,
    StudyDescription,
    has_outcomes,
    make_result_document,
    read_any_document,
    read_document,
    to_json,
)
from dpfda.report.outcomes import make_outcomes_document
from dpfda.report.privacy_card import write_privacy_card

_Kind = TypeVar("_Kind")


class Result(ModelAnswers):
    """A result file, which answers every question that the fitted estimator does. Nothing is spent by asking.

    Attributes
    ----------
    document : dict
        All that the file holds, see `src/dpfda/report/assets/result-2.schema.json`.
    coding_ : Coding
        The covariates with their public bounds or levels, and reference values.
    estimand_, warnings_ : str, tuple of str
        What the curve is a mean of, and what the method warned of.
    privacy_ : dict
        The privacy statement.

    Examples
    --------
    >>> import tempfile, dpfda
    >>> from dpfda.curves.simulated import simulate_mean
    >>> fit = dpfda.PrivateMean(4, 1e-5, domain=(0, 1), y_bounds=(-4, 4), random_state=1).fit(simulate_mean(2000, 6, rng=1))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = dpfda.save(fit, f"{folder}/result.json", x="time", y="score")
    ...     result = dpfda.load(path)
    >>> result
    Result('mean of score over time')
    >>> bool(abs(result.curve_([0.5]) - fit.curve_([0.5])).max() < 1e-10)
    True
    """

    def __init__(self, document: Document) -> None:
        study = document["study"]
        super().__init__(document["model"], x_name=study["x"], y_name=study["y"])
        self.document, self.x_origin = document, study["x_origin"]
        self.estimand_, self.warnings_ = document["estimand"], tuple(document["warnings"])
        self.privacy_ = document["privacy"]

    def describe_privacy(self) -> list[str]:
        """The sentences of the privacy card about who is protected and what epsilon means."""
        wanted = ("Who", "What ε", "This result")
        card = [part for part in write_privacy_card(self.document) if part.heading.startswith(wanted)]
        return [sentence for part in card for sentence in part.sentences[:2]]

    def describe_sites(self) -> list[str]:
        """A sentence about sites that differ, with the mean that is shown; none for one site or sites that are alike."""
        sites = self.document.get("sites")
        if sites is None:
            return []
        share = sites["i_squared"]
        return write_differing_sites(
            (share["value"], share["low"], share["high"]), sites["probability"], sites["summaries"][0]["name"]
        )

    def _repr_html_(self) -> str:
        return write_summary_html(self)

    def __repr__(self) -> str:
        return f"Result('{self.document['study']['model']} of {self.y_name} over {self.x_name}')"


class OutcomesResult(OutcomeAnswers[Result]):
    """A result file of several outcomes: a mapping of their names to results, and what they say together.

    Attributes
    ----------
    document : dict
        All that the file holds; that of one outcome is ``result["sbp"].document``.
    privacy_ : dict
        The one privacy statement.
    """

    def __init__(self, document: Document) -> None:
        super().__init__({name: Result(each) for name, each in document["outcomes"].items()})
        self.document, self.privacy_ = document, document["privacy"]

    def __repr__(self) -> str:
        return f"OutcomesResult({', '.join(map(repr, self))})"


def load(path: str | Path) -> Any:
    """Read the JSON (or HTML report) that `dpfda fit` or `dpfda.save` wrote.

    Parameters
    ----------
    path : str or Path
        Of the file; one of version 0.1, or one that is damaged, is refused.

    Returns
    -------
    Result, or OutcomesResult for several outcomes
        Answers every question without data; nothing is spent.

    Examples
    --------
    >>> import dpfda
    >>> dpfda.load("nowhere.json")
    Traceback (most recent call last):
        ...
    dpfda.errors.InvalidInput: There is no file nowhere.json; name the JSON or HTML that `dpfda fit` wrote.
    """
    document = read_any_document(path)
    return _answer(path, document, OutcomesResult) if has_outcomes(document) else _answer(path, document, Result)


def load_one(path: str | Path, y: str | None = None) -> Result:
    """The result of one outcome, which `y` names if the file holds several."""
    return _answer(path, read_document(path, y), Result)


def _answer(path: str | Path, document: Document, kind: Callable[[Document], _Kind]) -> _Kind:
    try:
        return kind(document)
    except (InvalidInput, ValueError, TypeError, KeyError) as error:
        raise InvalidInput(f"{Path(path).name} is damaged: {error}") from None


def save(
    fitted: Any, path: str | Path, *, x: str | None = None, y: str | None = None, title: str = "", **labels: Any
) -> Path:
    """Write a fitted estimator as a result file.

    Parameters
    ----------
    fitted : PrivateMean, PrivateVaryingCoefficients or FittedOutcomes
        After `fit`.
    path : str or Path
        Of the JSON file; an existing one is replaced, and missing folders are made.
    x, y, title : str
        The names of the variables, by default those of the table that was fitted, and of the study.
    labels : optional
        Further fields of `dpfda.report.document.StudyDescription`, such as source, x_label, y_label and level.

    Returns
    -------
    Path
        Of the file.

    Examples
    --------
    >>> import json, tempfile, dpfda
    >>> from dpfda.curves.simulated import simulate_mean
    >>> fit = dpfda.PrivateMean(4, 1e-5, domain=(0, 1), y_bounds=(-4, 4), random_state=1).fit(simulate_mean(500, 6, rng=1))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     json.loads(dpfda.save(fit, f"{folder}/result.json").read_text())["schema"]
    'dpfda-result/2'
    """
    path = Path(path)
    document = (
        _describe_outcomes(fitted, x, y, title, labels)
        if isinstance(fitted, OutcomeAnswers)
        else make_result_document(fitted, _describe(fitted, x, y, title, labels))
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(to_json(document), encoding="utf-8")
    return path


def _describe(fitted: Any, x: str | None, y: str | None, title: str, labels: dict[str, Any]) -> StudyDescription:
    x, y = x or fitted.x_name, y or fitted.y_name
    names = {"title": title or f"{y} over {x}", "x_label": x, "y_label": y, "source": "Python", **labels}
    return StudyDescription(x=str(x), y=str(y), functions=fitted.names_, **names)


def _describe_outcomes(fitted: Any, x: str | None, y: str | None, title: str, labels: dict[str, Any]) -> Document:
    if y is not None:
        raise InvalidInput("y must be left out for several outcomes: they have their names.")
    studies = {name: _describe(each, x, None, "", labels) for name, each in fitted.items()}
    return make_outcomes_document(fitted, studies, title=title)
