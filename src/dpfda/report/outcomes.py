"""The result of a fit of several outcomes as one document: that of each outcome, and what they have in common."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from dpfda.report.document import OUTCOMES_SCHEMA, Document, StudyDescription, make_result_document

SHARED = ("privacy", "budget", "repeat", "created")  # the same in the documents of all outcomes


def make_outcomes_document(
    fitted: Any,
    studies: Mapping[str, StudyDescription],
    *,
    title: str = "",
    forecasts: Mapping[str, Mapping[str, float] | None] | None = None,
    **circumstances: Any,
) -> Document:
    """Collect fitted outcomes into JSON values; `circumstances` are those of `make_result_document`.

    The document of each outcome is that of a fit of its own, with the one privacy statement, so that all that reads a result
    reads it as well.
    """
    first = studies[next(iter(fitted))]
    expected = forecasts or {}
    each = {
        name: make_result_document(one, studies[name], forecast=expected.get(name), **circumstances)
        for name, one in fitted.items()
    }
    now = datetime.now(UTC).isoformat(timespec="seconds")
    for one in each.values():
        one["created"], one["repeat"]["terms_digest"] = now, fitted.terms_.digest()
    common = next(iter(each.values()))
    bands = fitted.simultaneous_bands(first.level, common["grid"]) if has_bands(each) else {}
    return {
        "schema": OUTCOMES_SCHEMA,
        "study": {
            "title": title or f"{', '.join(fitted)} over {first.x_label or first.x}",
            "source": first.source,
            "x": first.x,
            "x_label": first.x_label,
            "x_origin": first.x_origin,
            "level": first.level,
            "visits": "own" if fitted.terms_.own_visits else "complete",
        },
        **{name: common[name] for name in SHARED},
        "joint": {name: [[side.tolist() for side in band] for band in found] for name, found in bands.items()},
        "outcomes": each,
    }


def has_bands(each: Mapping[str, Document]) -> bool:
    """Whether every curve of every outcome has a band."""
    return all(function["low"] is not None for one in each.values() for function in one["functions"])
