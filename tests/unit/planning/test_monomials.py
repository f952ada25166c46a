"""Products of powers, and the settings that give them values."""

from __future__ import annotations

import math

import pytest

from dpfda.errors import InvalidInput
from dpfda.planning.theory.monomials import ONE, S, epsilon, m, n
from dpfda.planning.theory.setting import Setting, check_alpha, check_dimension


def test_products_quotients_and_powers_are_those_of_numbers() -> None:
    values = {"n": 100.0, "m": 5.0, "S": 3.0, "epsilon": 0.5}
    assert ((n * m) ** 2 / S).at(values) == pytest.approx((100 * 5) ** 2 / 3)
    assert ONE.at({}) == 1.0
    assert (n**400).at({"n": 1e9}) == math.inf


def test_a_crossing_is_where_the_monomial_is_one() -> None:
    crossing = (n**2 * epsilon**2 / m).solve_for("m")
    assert crossing.at({"n": 10.0, "epsilon": 0.5}) == pytest.approx(25.0)
    with pytest.raises(InvalidInput, match="S does not"):
        n.solve_for("S")
    with pytest.raises(InvalidInput, match="m is needed"):
        m.at({"n": 1.0})


def test_a_setting_refuses_what_the_theorems_do_not_cover() -> None:
    assert Setting("mean", "none", 100, 5, 2.0).values == {"n": 100, "m": 5, "S": 1, "d": 1}
    with pytest.raises(InvalidInput, match="epsilon is needed"):
        Setting("mean", "cdp", 100, 5, 2.0)
    with pytest.raises(InvalidInput, match="greater than 1"):
        check_alpha(1.0)
    with pytest.raises(InvalidInput, match="must be 1 for the mean"):
        check_dimension("mean", 2)
