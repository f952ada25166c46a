"""Answers of `dpfda plan` as numbers and as sentences, and the summaries that other commands print."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dpfda import Curves
from dpfda.cli import example_fit
from dpfda.cli.plan.answers import answer, average_sites, check_delta
from dpfda.cli.plan.sentences import print_answers
from dpfda.cli.summary import print_summary
from dpfda.cli.terminal import Terminal
from dpfda.curves.datasets import get_dataset_info
from dpfda.curves.simulated import simulate_mean
from dpfda.estimators import PrivateMean
from dpfda.planning.planned_study import PlannedStudy
from dpfda.protocol.terms import SiloTerms
from dpfda.report.document import BudgetChange, StudyDescription, make_result_document

STUDY = PlannedStudy(n=1000, m=5, S=1, epsilon=1.0, delta=1e-5, alpha=2.0, d=0, y_bounds=(0.0, 150.0))


def test_doubling_anything_never_hurts_and_the_most_helpful_is_first() -> None:
    rows = answer(STUDY)["doubling"]
    times = [row["error_times"] for row in rows]
    assert times == sorted(times)
    assert max(times) <= 1.0 + 1e-9


def test_the_delta_of_the_lower_bound_is_that_of_the_study_s_theorem() -> None:
    assert not check_delta(replace(STUDY, delta=1e-9))["holds"], "epsilon must be below 1"
    small, large = (check_delta(replace(STUDY, epsilon=0.9, delta=delta)) for delta in (1e-9, 1e-3))
    assert (small["holds"], large["holds"], small["source"]) == (True, False, "Theorem 3")
    assert large["largest_delta"] == small["largest_delta"]
    assert check_delta(replace(STUDY, S=5))["source"] == "Theorem 5.2"
    assert check_delta(replace(STUDY, d=2))["source"] == "Corollary 1"


def test_the_subjects_that_a_target_needs_reach_it() -> None:
    wanted = 0.65
    target = answer(STUDY, error=wanted)["target"]
    assert target["typical_distance"] == wanted
    assert STUDY.expected(epsilon=target["epsilon"]).total <= wanted**2


def test_equal_sites_that_stand_for_unequal_ones_keep_their_sums() -> None:
    sites = [SiloTerms("a", 100, 1.0, 1e-5), SiloTerms("b", 300, 0.5, 1e-6)]
    found = average_sites(sites)
    assert (found["n"] * found["S"], found["delta"]) == (400, 1e-5)
    assert found["S"] * (found["n"] * found["epsilon"]) ** 2 == pytest.approx(100**2 + 150**2)


def test_answers_are_told_in_sentences(capsys: pytest.CaptureFixture[str]) -> None:
    print_answers(answer(STUDY, error=0.5), Terminal(), units="mg/dl")
    told = capsys.readouterr().out
    for words in (
        "1,000 subjects",
        "Of the squared error",
        "Which model, which budget",
        "For a typical distance of 0.5",
    ):
        assert words in told


def test_a_summary_says_who_is_protected_and_what_is_left(capsys: pytest.CaptureFixture[str]) -> None:
    fitted = PrivateMean(8.0, 1e-5, domain=(0, 1), y_bounds=(-4, 5)).fit(simulate_mean(500, 5, rng=1))
    described = StudyDescription(
        "visits.csv", "age", "hdl", ("mean",), title="HDL over age", x_label="age", y_label="hdl"
    )
    budget = BudgetChange("visits.ledger", 1e-5, 3.0, 0.5, 1.2, 0.6, 0.02, 0.1)
    print_summary(make_result_document(fitted, described, budget=budget), Terminal())
    told = capsys.readouterr().out
    assert "500 subjects, nearly all of whom contribute, each protected as a whole: epsilon = 8, delta = 1e-05." in told
    assert "HDL over age" in told


def test_the_example_draws_a_picture_and_a_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    info, rng = get_dataset_info(example_fit.DATASET), np.random.default_rng(1)
    ids, (low, high) = np.repeat(np.arange(800), 4), info.domain
    middle = sum(info.y_bounds) / 2
    data = Curves.from_long(ids, rng.uniform(low, high, ids.size), middle + rng.normal(size=ids.size))
    monkeypatch.setattr(example_fit, "load_dataset", lambda name: data)
    example_fit.show_example(tmp_path)
    assert "800 subjects" in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["demo.html", "demo.png"]
