"""The JSON Schema of result files, and a check against it: the few keywords that it uses."""

from __future__ import annotations

import importlib.resources
import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from dpfda.errors import InvalidInput
from dpfda.inference.places import is_date

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "null": (type(None),),
}
_TEXT = {"type": "string"}
_OUTCOMES: dict[str, Any] = {
    "type": "object",
    "required": ["schema", "created", "study", "privacy", "budget", "repeat", "joint", "outcomes"],
    "properties": {
        "created": _TEXT,
        "study": {
            "type": "object",
            "required": ["title", "source", "x", "x_label", "x_origin", "level", "visits"],
            "properties": {
                **dict.fromkeys(("title", "source", "x", "x_label"), _TEXT),
                "x_origin": {"anyOf": [{"type": "null"}, {"type": "string", "format": "date"}]},
                "level": {"type": "number"},
                "visits": {"enum": ["complete", "own"]},
            },
        },
        "privacy": {"type": "object"},
        "budget": {"type": ["object", "null"]},
        "repeat": {"type": "object"},
        "joint": {"type": "object"},
        "outcomes": {"type": "object"},
    },
}


@lru_cache(maxsize=1)
def result_schema() -> dict[str, Any]:
    """The schema that is shipped with the package."""
    place = importlib.resources.files("dpfda.report") / "assets" / "result-2.schema.json"
    schema: dict[str, Any] = json.loads(place.read_text(encoding="utf-8"))
    return schema


def check_document(document: Any, file: str) -> None:
    """Raise one sentence that names the first place at which a document is not as the schema says."""
    found = find_mistake(document, result_schema(), "the document")
    if found is not None:
        raise InvalidInput(f"{file} is damaged: {found}; use the file that `dpfda fit` wrote.")


def check_outcomes_document(document: Any, file: str) -> None:
    """The same for a document of several outcomes: its own fields, then those of each outcome."""
    found = find_mistake(document, _OUTCOMES, "the document")
    if found is None and len(document["outcomes"]) < 2:
        found = "the document has fewer than two outcomes"
    if found is not None:
        raise InvalidInput(f"{file} is damaged: {found}; use the file that `dpfda fit` wrote.")
    for name, each in document["outcomes"].items():
        check_document(each, f"{file} (outcome {name})")


def find_mistake(value: Any, schema: Mapping[str, Any], place: str) -> str | None:
    """What is wrong, and where; None if nothing is."""
    if "$ref" in schema:
        schema = result_schema()["$defs"][schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        wrong = [find_mistake(value, each, place) for each in schema["anyOf"]]
        return wrong[0] if all(wrong) else None
    found = _find_in_value(value, schema, place)
    if found is not None or not isinstance(value, dict | list):
        return found
    return (_find_in_object if isinstance(value, dict) else _find_in_array)(value, schema, place)


def _find_in_value(value: Any, schema: Mapping[str, Any], place: str) -> str | None:
    if "const" in schema and value != schema["const"]:
        return f"{place} must be {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{place} must be one of {', '.join(map(repr, schema['enum']))}"
    if "type" in schema and not _has_type(value, schema["type"]):
        return f"{place} must be of type {schema['type']}"
    if "minimum" in schema and not value >= schema["minimum"]:
        return f"{place} must be at least {schema['minimum']}"
    return _find_in_text(value, schema, place) if isinstance(value, str) else None


def _find_in_text(text: str, schema: Mapping[str, Any], place: str) -> str | None:
    if "pattern" in schema and re.fullmatch(schema["pattern"], text) is None:
        return f"{place} must have the form {schema['pattern']}"
    if schema.get("format") == "date" and not is_date(text):
        return f"{place} must be a date such as 2020-01-31"
    return None


def _has_type(value: Any, names: str | list[str]) -> bool:
    wanted = [names] if isinstance(names, str) else names
    if isinstance(value, bool):
        return "boolean" in wanted
    return any(isinstance(value, _TYPES[name]) for name in wanted)


def _find_in_object(value: Any, schema: Mapping[str, Any], place: str) -> str | None:
    for name in schema.get("required", ()):
        if name not in value:
            return f"{place} has no {name!r}"
    if schema.get("additionalProperties") is False:
        for name in value.keys() - schema["properties"].keys():
            return f"{place} must not have {name!r}"
    for name, inner in schema.get("properties", {}).items():
        found = find_mistake(value[name], inner, f"{place}.{name}") if name in value else None
        if found:
            return found
    return None


def _find_in_array(value: Any, schema: Mapping[str, Any], place: str) -> str | None:
    if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
        return f"{place} has a wrong number of entries"
    if "items" in schema:
        for number, entry in enumerate(value):
            found = find_mistake(entry, schema["items"], f"{place}[{number}]")
            if found:
                return found
    return None
