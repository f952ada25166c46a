"""Checks of arguments: what is refused, and in which words."""

from __future__ import annotations

import numpy as np
import pytest

from dpfda import _typing, _validate
from dpfda.errors import InvalidInput


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "3", None, True])
def test_only_finite_numbers_are_real(value: object) -> None:
    with pytest.raises(InvalidInput, match="size must be a finite number"):
        _validate.real("size", value)


def test_limits_belong_to_within_but_not_to_a_fraction() -> None:
    assert _validate.within("level", 1, 0, 1) == 1.0
    for end in (0, 1):
        with pytest.raises(InvalidInput, match="strictly between 0 and 1"):
            _validate.fraction("level", end)


@pytest.mark.parametrize("value", [(2, 1), (1, 1), (0, float("inf")), 3, (1, 2, 3)])
def test_an_interval_is_a_low_and_a_high_number(value: object) -> None:
    with pytest.raises(InvalidInput, match="domain"):
        _validate.interval("domain", value)


@pytest.mark.parametrize("pair", [(0, 1e-5), (1, 0), (1, 1), (float("nan"), 1e-5)])
def test_a_budget_without_a_meaning_is_refused(pair: tuple[float, float]) -> None:
    with pytest.raises(InvalidInput):
        _validate.privacy_pair(*pair)


def test_a_vector_becomes_floats_and_text_is_not_guessed() -> None:
    found: _typing.Floats = _validate.vector("x", [1, 2], length=2)
    assert found.dtype == np.float64
    with pytest.raises(InvalidInput, match="x"):
        _validate.vector("x", ["1", "2"])
