"""Python against the golden results that R and JavaScript are held against, too."""

from __future__ import annotations

import json
from typing import Any

import golden
import numpy as np
import pytest

from dpfda.report.schema import find_mistake, result_schema

CASES = golden.load_cases()


def list_differences(found: Any, expected: Any, scale: float, place: str = "") -> list[str]:
    """Where two answers differ by more than 1e-10 of the size of the answers."""
    if isinstance(expected, dict):
        return [
            line for key in expected for line in list_differences(found[key], expected[key], scale, f"{place}.{key}")
        ]
    if isinstance(expected, list):
        if len(found) != len(expected):
            return [f"{place}: {len(found)} entries in place of {len(expected)}"]
        pairs = enumerate(zip(found, expected, strict=True))
        return [line for k, (one, other) in pairs for line in list_differences(one, other, scale, f"{place}[{k}]")]
    return [] if abs(found - expected) <= 1e-10 * max(scale, abs(expected)) else [f"{place}: {found} and {expected}"]


def test_there_are_twenty() -> None:
    assert len(CASES) == 20


@pytest.mark.parametrize(("name", "result", "expected"), CASES, ids=[case[0] for case in CASES])
def test_answers_are_those_on_record(name, result, expected) -> None:
    assert find_mistake(expected["result"], result_schema(), "it") is None
    found = json.loads(json.dumps(golden.answer_all(result, expected["questions"])))
    scale = max(1e-300, float(np.abs(expected["answers"][0]["estimate"]).max()))
    wanted = {key: expected[key] for key in ("answers", "joint") if key in expected}
    assert list_differences(found, wanted, min(scale, 1.0)) == []
