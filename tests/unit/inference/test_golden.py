"""Python against the golden results that R and JavaScript are held against, too."""

from __future__ import annotations

import json

import golden
import numpy as np
import pytest
from golden_differences import list_differences

from dpfda.report.schema import find_mistake, result_schema

CASES = golden.load_cases()


def test_there_are_thirty_two() -> None:
    assert len(CASES) == 32


@pytest.mark.parametrize(("name", "result", "expected"), CASES, ids=[case[0] for case in CASES])
def test_answers_are_those_on_record(name, result, expected) -> None:
    assert find_mistake(expected["result"], result_schema(), "it") is None
    found = json.loads(json.dumps(golden.answer_all(result, expected["questions"])))
    scale = max(1e-300, float(np.abs(expected["answers"][0]["estimate"]).max()))
    wanted = {key: expected[key] for key in ("answers", "joint") if key in expected}
    assert list_differences(found, wanted, min(scale, 1.0)) == []
