"""x on the command line: numbers, and dates both ways."""

from __future__ import annotations

import pytest

from dpfda import InvalidInput
from dpfda.cli.axis import Axis

DATES, NUMBERS = Axis("2019-01-01"), Axis(None)


def test_numbers_are_numbers() -> None:
    assert NUMBERS.parse("--x", " 3.5") == 3.5
    assert NUMBERS.parse_interval("--average", "50:60", (20, 90)) == (50.0, 60.0)
    assert (NUMBERS.write(1 / 3), NUMBERS.write_exactly(0.1)) == ("0.3333", "0.1")


def test_dates_are_dates() -> None:
    assert DATES.parse("--x", "2019-01-31") == DATES.parse("--x", "31.01.2019") == 30.0
    assert DATES.parse_interval("--average", "2019-01-01:2019-12-31", (0, 364)) == (0.0, 364.0)
    assert DATES.write(30.2) == "2019-01-31"
    assert DATES.write_exactly(30.0) == "2019-01-31"
    assert DATES.write_exactly(30.25) == "2019-01-31T06:00:00"
    assert DATES.write_exactly(30.9999999) == "2019-02-01T00:00:00"


def test_mistakes_are_one_sentence() -> None:
    with pytest.raises(InvalidInput, match="--x must hold dates such as 2019-01-01, got '30'"):
        DATES.parse("--x", "30")
    with pytest.raises(InvalidInput, match="--average"):
        DATES.parse_interval("--average", "2019-02-01:2019-01-01", (0, 364))
    with pytest.raises(InvalidInput, match="--x must hold numbers"):
        NUMBERS.parse("--x", "2019-01-01")
    with pytest.raises(InvalidInput, match=r"--average must lie in the domain, 20 to 90, got '50:95'\."):
        NUMBERS.parse_interval("--average", "50:95", (20, 90))
    with pytest.raises(InvalidInput, match="--integral must lie in the domain, 2019-01-01 to 2019-12-31"):
        DATES.parse_interval("--integral", "2018-12-31:2019-02-01", (0, 364))
