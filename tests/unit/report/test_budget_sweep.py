"""The figure of the error over the budget."""

from __future__ import annotations

import math

import pytest

pytest.importorskip("matplotlib")

from dpfda.planning.planned_study import PlannedStudy
from dpfda.report.budget_sweep import draw_budget_sweep


def test_lines_are_the_forecasts_and_the_study_lies_on_its_own() -> None:
    study = PlannedStudy(200, 6, 4, 1.0, 1e-5, 2.0, 0, (-4.0, 5.0))
    (axes,) = draw_budget_sweep(study, target=0.1, units="mg").axes
    lines = {line.get_label(): line for line in axes.lines}
    assert {"central: all data pooled", "federated: 4 sites", "local: every subject alone", "your target"} <= set(lines)
    x, y = (lines["federated: 4 sites"].get_data()[k] for k in (0, 1))
    middle = len(x) // 2
    assert x[middle] == pytest.approx(1.0)
    assert y[middle] == pytest.approx(math.sqrt(study.expected().total))
    assert lines["your study"].get_data()[1][0] == pytest.approx(y[middle])
    assert "mg" in axes.get_ylabel()
