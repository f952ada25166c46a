"""One self-contained HTML file: no network, light and dark, fit for print, with the result as JSON inside."""

from __future__ import annotations

import importlib.resources
import json
import math
from datetime import datetime
from typing import Any

from dpfda.inference.curve_scale import MEANS
from dpfda.inference.result_model import read_transform
from dpfda.report.chart import draw_chart, find_sparse, is_effect, leaves_the_picture, name_change, x_name
from dpfda.report.document import Document, has_outcomes
from dpfda.report.forest import draw_forest
from dpfda.report.formatting import (
    SOURCES,
    count_subjects,
    describe_contributing,
    describe_error,
    format_number,
    format_small,
    name_error_unit,
    typical_half_width,
)
from dpfda.report.privacy_card import write_privacy_card

_TABLE_ROWS = 21
_LEVELS = (0.8, 0.9, 0.95, 0.99)  # that the page offers
_SURPRISE = 4.0  # twice the distance


def render_report(document: Document) -> str:
    """The report of a result, of one outcome or of several."""
    if has_outcomes(document):
        return _render_outcomes(document)
    return _render(
        "report.html.j2",
        document,
        form=_describe_form(document),
        subjects=count_subjects(document),
        contributing=describe_contributing(document),
        charts=_charts(document),
        forest=_trusted(draw_forest(document)) if "sites" in document else None,
        table=_table(document),
        card=write_privacy_card(document),
        accuracy=_accuracy(document),
    )


def _describe_form(document: Document) -> dict[str, Any]:
    """What may be asked of a result."""
    model = document["model"]
    return {
        "covariates": model["covariates"],
        "mean": MEANS[read_transform(model)],
        "effects": [name for name in model["columns"] if name not in ("mean", "intercept")],
        "levels": sorted({*_LEVELS, document["study"]["level"]}),
        "has_band": document["functions"][0]["low"] is not None,
    }


def _render_outcomes(document: Document) -> str:
    """All outcomes on one page, under one promise."""
    first = next(iter(document["outcomes"].values()))
    parts = [
        {
            "name": name,
            "document": each,
            "charts": _charts(each, document["joint"].get(name, [])),
            "table": _table(each),
            "form": _describe_form(each),
            "contributing": describe_contributing(each),
        }
        for name, each in document["outcomes"].items()
    ]
    return _render(
        "outcomes.html.j2",
        document,
        parts=parts,
        visits=_VISITS[document["study"]["visits"]],
        subjects=count_subjects(first),
        card=write_privacy_card(first),
    )


_VISITS = {
    "complete": "A visit counts if all outcomes were measured at it; the distribution of visits was estimated once for all.",
    "own": "Each outcome is taken at all visits at which it was measured; their distribution was estimated for each.",
}


def _render(template: str, document: Document, **values: Any) -> str:
    """A template of this package with a document, and what every page shows of it."""
    import jinja2

    strict = jinja2.StrictUndefined
    loader = jinja2.FunctionLoader(_read_asset)
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=strict, loader=loader
    )
    environment.filters.update(number=format_number, tiny=format_small)
    return environment.get_template(template).render(
        style=_trusted(_read_asset("report.css")),
        script=_trusted(_read_asset("report.js")),
        questions=_trusted(_read_asset("questions.js")),
        ask=_trusted(_read_asset("ask.js")),
        data=_trusted(embedded_json(document)),
        document=document,
        study=document["study"],
        privacy=document["privacy"],
        made=datetime.fromisoformat(document["created"]).strftime("%d %B %Y, %H:%M UTC"),
        budget=_budget(document["budget"]),
        **values,
    )


def _read_asset(name: str) -> str:
    return (importlib.resources.files("dpfda.report") / "assets" / name).read_text(encoding="utf-8")


def embedded_json(document: Document) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(document, ensure_ascii=False, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _trusted(text: str) -> Any:
    from markupsafe import Markup

    return Markup(text)  # our own files, and JSON escaped above


def _charts(document: Document, joint: list[Any] | None = None) -> list[dict[str, Any]]:
    """The pictures of a result; of one of several outcomes, which are small, with its joint bands, where there are any."""
    functions = document["functions"]
    alone = len(functions) == 1 and joint is None
    size = {"width": 880, "height": 400} if alone else {"width": 520, "height": 330}
    outer = joint or [None] * len(functions)
    return [
        {
            "svg": _trusted(draw_chart(document, index, **size, joint=outer[index])),
            "caption": _caption(index, document),
            "half_width": typical_half_width(function),
            "is_cut": leaves_the_picture(function),
            "is_sparse": bool(find_sparse(document["grid"], function)),
        }
        for index, function in enumerate(functions)
    ]


def _caption(index: int, document: Document) -> str:
    study, name = document["study"], document["functions"][index]["name"]
    if study["model"] == "mean":
        return ""
    if not is_effect(document, index):
        mean, at, profile = name.partition(" at ")
        return f"{study['y_label']}{at}{profile}" if mean == "mean" else f"{study['y_label']}, {name}"
    return _caption_effect(name, document)


def _caption_effect(name: str, document: Document) -> str:
    """What a coefficient curve means: a change of one covariate by itself only where no product has it."""
    covariates, terms = document["model"]["covariates"], document["model"]["terms"]
    if any(len(term) > 1 and any(factor["name"] == name.partition(": ")[0] for factor in term) for term in terms):
        return f"Coefficient of {name}, its products apart"
    category, _, level = name.partition(": ")
    levels = {each["name"]: each["levels"] for each in covariates if each["levels"]}
    if category in levels:
        return f"{category}: {level} instead of {levels[category][0]}"
    if any(each["name"] == name and list(each["bounds"] or ()) == [0, 1] for each in covariates):
        return f"{name}: 1 instead of 0"
    if all(each["name"] != name for each in covariates):
        return f"Coefficient of {name}"  # of a product or a spline
    return f"{name_change(document).capitalize()} {document['study']['y_label']} for one more unit of {name}"


def _table(document: Document) -> dict[str, Any]:
    """Values at a few places, for those who read numbers and for print."""
    last = len(document["grid"]) - 1
    places = sorted({round(step * last / (_TABLE_ROWS - 1)) for step in range(_TABLE_ROWS)})
    has_band = document["functions"][0]["low"] is not None
    rows = []
    for place in places:
        cells = []
        for function in document["functions"]:
            cells.append(format_number(function["values"][place]))
            if has_band:
                cells.append(f"{format_number(function['low'][place])} to {format_number(function['high'][place])}")
        rows.append((x_name(document["grid"][place], document["study"]["x_origin"]), cells))
    return {"rows": rows, "has_band": has_band, "names": [function["name"] for function in document["functions"]]}


def _budget(budget: dict[str, Any] | None) -> dict[str, Any] | None:
    if budget is None:
        return None
    total = budget["total_mu_squared"]
    before, after = budget["mu_squared_before"] / total, budget["mu_squared_after"] / total
    return {
        **budget,
        "before_share": 100 * before,
        "this_share": 100 * (after - before),
        "room": budget.get("epsilon_left"),
    }


def _accuracy(document: Document) -> dict[str, Any] | None:
    """Root-mean-square errors and the share of every source: forecast and estimated."""
    error = document["error"]
    named = {
        "forecast, before spending": error["expected"],
        "estimated, from what was released": error["achieved"],
    }
    rows = [_error_row(name, parts) for name, parts in named.items() if parts is not None]
    if not rows:
        return None
    best, functions = error["achieved"] or error["expected"], len(document["functions"])
    sentences = [describe_error(best, name_error_unit(document), functions)]
    if error["achieved"] and error["expected"] and error["achieved"]["total"] > _SURPRISE * error["expected"]["total"]:
        sentences.append(
            "That is more than was forecast: the forecast assumed that points lie evenly over the domain and that "
            "curves vary as is typical."
        )
    if document["functions"][0]["low"] is not None:
        sentences.append(
            "This estimate assumes that curves are as smooth where few were observed as elsewhere. The band does not: in "
            "such places it is much wider, and it is the band that has the stated probability."
        )
    return {
        "rows": rows,
        "largest": max(float(row["rms"]) for row in rows) or 1.0,
        "sentence": " ".join(sentences),
        "legend": SOURCES,
    }


def _error_row(name: str, parts: dict[str, float]) -> dict[str, Any]:
    total = max(parts["total"], 0.0)
    shares = [(part, 100 * parts[part] / total) for part in SOURCES] if total > 0 else []
    return {"name": name, "rms": math.sqrt(total), "shares": shares}
