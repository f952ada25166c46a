"""Several outcomes of the same subjects: which visits count, and what cannot be one set of outcomes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpfda import Curves, InvalidInput, Outcomes
from dpfda.curves.outcomes import check_outcome_names, have_same_points

VISITS = pd.DataFrame(
    {
        "pid": ["b", "a", "a", "c", "c"],
        "age": [45.0, 40.0, 50.0, 60.0, 70.0],
        "sbp": [110.0, 120.0, 130.0, 140.0, np.inf],
        "dbp": [70.0, 80.0, np.nan, np.nan, 90.0],
        "ill": ["no", "yes", None, "no", "no"],
        "dose": [1.0, 2.0, 3.0, 4.0, 4.0],
    }
)
COLUMNS = {"id": "pid", "x": "age", "y": ["sbp", "dbp"]}


def test_a_visit_counts_if_every_outcome_was_measured_at_it() -> None:
    both = Outcomes.from_frame(VISITS, **COLUMNS)
    assert both.n == 3
    for curves in both:
        assert curves.counts.tolist() == [1, 1, 0]
    assert both["sbp"].y.tolist() == [120, 110]
    assert both["dbp"].y.tolist() == [80, 70]


def test_own_visits_lose_nothing() -> None:
    both = Outcomes.from_frame(VISITS, **COLUMNS, visits="own")
    assert both["sbp"].counts.tolist() == [2, 1, 1]
    assert both["dbp"].counts.tolist() == [1, 1, 1]


def test_outcomes_with_covariates_that_change_share_their_design() -> None:
    both = Outcomes.from_frame(VISITS, **COLUMNS, covariates={"dose": (0, 5)})
    assert both.names == ("intercept", "dose")
    assert have_same_points(*both)
    own = Outcomes.from_frame(VISITS, **COLUMNS, covariates={"dose": (0, 5)}, visits="own")
    assert own.design_changes
    assert not have_same_points(*own)


def test_a_yes_no_column_is_an_outcome_and_is_missing_where_it_is_empty() -> None:
    both = Outcomes.from_frame(VISITS, id="pid", x="age", y=["sbp", "ill"], y_levels={"ill": ("no", "yes")})
    assert both["ill"].y.tolist() == [1, 0, 0]
    assert both["sbp"].y.tolist() == [120, 110, 140]


def test_a_row_decides_by_itself_whether_it_counts() -> None:
    """Locality: another subject's rows change no curve of this one."""
    before = Outcomes.from_frame(VISITS, **COLUMNS)
    changed = VISITS.assign(dbp=[np.nan, 80.0, np.nan, 60.0, 60.0])
    after = Outcomes.from_frame(changed, **COLUMNS)
    for name in before.outcomes:
        assert before[name][0] == after[name][0]


def test_subjects_are_taken_with_all_their_curves() -> None:
    part = Outcomes.from_frame(VISITS, **COLUMNS).take(slice(1, 3))
    assert (part.n, len(part), part.visits) == (2, 2, "complete")
    assert part["dbp"].y.tolist() == [70]


def test_the_fingerprint_changes_with_every_outcome_and_name() -> None:
    key, both = b"k" * 32, Outcomes.from_frame(VISITS, **COLUMNS)
    other = Outcomes.from_frame(VISITS.assign(dbp=VISITS["dbp"] + 1), **COLUMNS)
    renamed = Outcomes({"sbp": both["sbp"], "pulse": both["dbp"]})
    swapped = Outcomes({"sbp": both["dbp"], "dbp": both["sbp"]})
    prints = {each.fingerprint(key) for each in (both, other, renamed, swapped)}
    assert len(prints) == 4
    assert both.fingerprint(key) == Outcomes.from_frame(VISITS, **COLUMNS).fingerprint(key)


def curves(n=3, points=2, shift=0.0, columns=None):
    x = np.tile(np.linspace(0, 1, points), n) + shift
    design = None if columns is None else np.ones((n * points, columns))
    return Curves.from_long(np.repeat(np.arange(n), points), x, np.zeros(x.size), design)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"a": curves()}, "2 to 16 names"),
        ({str(number): curves() for number in range(17)}, "2 to 16 names"),
        ([curves(), curves()], "2 to 16 names"),
        ({"a": curves(), "b": 3}, "names of outcomes to Curves"),
        ({"a": curves(), 7: curves()}, "names of outcomes to Curves"),
        ({"a": curves(), "b": curves(4)}, "the same subjects"),
        ({"a": curves(), "b": curves(columns=2)}, "the same design columns"),
        ({"a": curves(), "b": curves(shift=0.1)}, "different points"),
        ({"a": curves(), "b": curves(points=3)}, "different points"),
    ],
)
def test_what_does_not_belong_together_is_refused(given, sentence) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        Outcomes(given)


def test_ids_must_agree_where_tables_gave_them() -> None:
    labels = [np.arange(6, dtype=np.uint64).reshape(3, 2) + step for step in (0, 1)]
    made = [Curves(curves().x, curves().y, curves().offsets, curves().design, own) for own in labels]
    with pytest.raises(InvalidInput, match="same ids"):
        Outcomes({"a": made[0], "b": made[1]}, visits="own")


@pytest.mark.parametrize("y", ["sbp", ["sbp"], ["sbp", "sbp"], ["sbp", 3], None])
def test_names_of_outcomes_are_several_different_columns(y) -> None:
    with pytest.raises(InvalidInput, match="y must list"):
        check_outcome_names(y)


def test_wrong_names_are_refused() -> None:
    both = Outcomes.from_frame(VISITS, **COLUMNS)
    with pytest.raises(InvalidInput, match="no outcome 'hdl'"):
        both["hdl"]
    with pytest.raises(InvalidInput, match="y_levels names 'ill'"):
        Outcomes.from_frame(VISITS, **COLUMNS, y_levels={"ill": ("no", "yes")})
    with pytest.raises(InvalidInput, match="'hdl', which is not among"):
        Outcomes.from_frame(VISITS, id="pid", x="age", y=["sbp", "hdl"])
    with pytest.raises(InvalidInput, match="visits must be"):
        Outcomes.from_frame(VISITS, **COLUMNS, visits="some")
