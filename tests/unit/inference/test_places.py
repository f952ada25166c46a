"""Places on the axis of x: numbers, or dates where days are counted from one."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import pytest

from dpfda import InvalidInput
from dpfda.inference.places import read_places, show_places, write_place

ORIGIN = "2019-01-01"


def test_numbers_stay_numbers() -> None:
    np.testing.assert_array_equal(read_places([1, 2.5], None), [1.0, 2.5])
    np.testing.assert_array_equal(read_places(3, ORIGIN), [3.0])
    assert write_place(0.123456) == "0.1235"
    assert show_places(np.array([1.5]), None).tolist() == [1.5]


@pytest.mark.parametrize(
    "when", [["2019-01-02"], [dt.date(2019, 1, 2)], [np.datetime64("2019-01-02")], [pd.Timestamp("2019-01-02")]]
)
def test_dates_of_every_kind_are_days_from_the_origin(when) -> None:
    assert read_places(when, ORIGIN).tolist() == [1.0]


def test_dates_come_back_to_the_second() -> None:
    days = np.array([0.0, 0.5, 400.25])
    shown = show_places(days, ORIGIN)
    assert [str(moment) for moment in shown] == ["2019-01-01T00:00:00", "2019-01-01T12:00:00", "2020-02-05T06:00:00"]
    np.testing.assert_allclose(read_places(shown, ORIGIN), days)
    assert write_place(400.25, ORIGIN) == "2020-02-05"


@pytest.mark.parametrize(("x", "origin"), [(["soon"], ORIGIN), (["2019-01-01"], None), ([np.datetime64("2019")], None)])
def test_what_is_no_place_is_refused(x, origin) -> None:
    with pytest.raises(InvalidInput, match="x"):
        read_places(x, origin)
