"""Several outcomes in settings: what is typed once is for one outcome, and what is typed more than once has names."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpfda import InvalidInput
from dpfda.cli.fit.outcomes import choose_visits, join_loaded, list_warnings, split_settings, take_single
from dpfda.cli.settings import DEFAULTS
from dpfda.curves.curves import Curves
from dpfda.curves.outcomes import Outcomes
from dpfda.curves.tables import outcome_copies
from dpfda.curves.tables.loading import Loaded
from dpfda.curves.tables.outcome_copies import find_copied_visits, settle_copies
from dpfda.curves.tables.reading import Domain, Reading

READING = Reading(id="pid", x="age", y="sbp", domain=Domain(0.0, 1.0), y_bounds=(0.0, 9.0))
CURVES = Curves.from_long([1, 1, 2], [0.1, 0.5, 0.7], [1.0, 2.0, 3.0])


def settings(**given):
    return {**DEFAULTS, "y": ["sbp", "dbp"], **{name.replace("_", "-"): value for name, value in given.items()}}


def test_an_option_that_was_typed_once_is_one_value() -> None:
    typed = {"y": ["hdl"], "y_bounds": ["0:150"], "outcome": [], "transform": None, "bounds": ["bmi=10:70"]}
    assert take_single(typed) == {**typed, "y": "hdl", "y_bounds": "0:150"}
    assert take_single({"y": ["sbp", "dbp"]}) == {"y": ["sbp", "dbp"]}


def test_each_outcome_has_its_own_facts_or_those_of_all() -> None:
    split = split_settings(
        settings(y_bounds=["sbp=60:250", "dbp=30:150"], transform="log", outcome={"dbp": "positive"})
    )
    assert [split[name]["y"] for name in split] == ["sbp", "dbp"]
    assert [split[name]["y-bounds"] for name in split] == ["60:250", "30:150"]
    assert [split[name]["transform"] for name in split] == ["log", "log"]
    assert [split[name]["outcome"] for name in split] == [None, "positive"]


def test_visits_are_complete_unless_they_are_said_to_be_own() -> None:
    assert choose_visits(settings()) == "complete"
    assert choose_visits(settings(visits="own")) == "own"
    with pytest.raises(InvalidInput, match="--visits must be one of"):
        choose_visits(settings(visits="both"))
    assert split_settings(settings(visits="own", duplicates="drop", y_bounds="0:1"))["sbp"]["visits"] is None


def test_notes_that_are_the_same_for_all_outcomes_are_said_once() -> None:
    notes = {"sbp": ("3 rows have no id", "5 rows have no y"), "dbp": ("3 rows have no id", "9 rows have no y")}
    loaded = join_loaded(tuple(notes), lambda name: Loaded(CURVES, ("mean",), notes[name]), "complete", READING)
    assert loaded.owner_notes == ("3 rows have no id", "sbp: 5 rows have no y", "dbp: 9 rows have no y")
    assert loaded.curves.outcomes == ("sbp", "dbp")


class Said:
    """As much of a result as has warnings."""

    warnings_ = ("few data",)


def test_warnings_of_several_outcomes_have_their_names() -> None:
    assert list_warnings(Said()) == {"few data"}
    assert list_warnings({"sbp": Said()}) == {"sbp: few data"}


def test_copied_visits_agree_in_outcomes_and_covariates() -> None:
    ids, x, sbp, dbp = (
        [1, 1, 1, 2, 2],
        [0.1, 0.1, 0.1, 0.1, 0.1],
        [120.0, 120.0, 120.0, 120.0, 120.0],
        [80, 80, 81, 80, 80],
    )
    dose = [[1.0], [1.0], [1.0], [1.0], [2.0]]
    both = Outcomes({"sbp": Curves.from_long(ids, x, sbp, dose), "dbp": Curves.from_long(ids, x, dbp, dose)})
    assert find_copied_visits(both).tolist() == [1]
    kept, notes = settle_copies(both, replace(READING, duplicates="drop"))
    assert notes == ["1 row is an exact copy of another row and was dropped"]
    assert [each.counts.tolist() for each in kept] == [[2, 2], [2, 2]]
    assert kept["dbp"].y.tolist() == [80, 81, 80, 80]
    assert settle_copies(both, replace(READING, duplicates="keep")) == (both, [])
    with pytest.raises(InvalidInput, match="1 row is an exact copy"):
        settle_copies(both, READING)


def test_copied_visits_are_found_block_by_block(monkeypatch) -> None:
    rng = np.random.default_rng(3)
    ids, x = rng.integers(0, 40, 400), rng.integers(0, 3, 400) / 2.0
    sbp, dbp = rng.integers(0, 2, (2, 400)).astype(float)
    both = Outcomes({"sbp": Curves.from_long(ids, x, sbp), "dbp": Curves.from_long(ids, x, dbp)})
    first = both["sbp"]
    rows = list(zip(first.owners.tolist(), first.x, first.y, both["dbp"].y, strict=True))
    expected = [place for place, row in enumerate(rows) if row in rows[:place]]
    assert len(expected) > 50
    for at_once in (1, 7, 100, 1 << 20):
        monkeypatch.setattr(outcome_copies, "_AT_ONCE", at_once)
        assert find_copied_visits(both).tolist() == expected
    kept, _ = settle_copies(both, replace(READING, duplicates="drop"))
    assert kept.n == both.n
    assert find_copied_visits(kept).size == 0
    left = [row for place, row in enumerate(rows) if place not in expected]
    assert list(zip(kept["sbp"].owners.tolist(), kept["sbp"].x, kept["sbp"].y, kept["dbp"].y, strict=True)) == left
