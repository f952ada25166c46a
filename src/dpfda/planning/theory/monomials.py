"""Products of powers of (n, m, S, d, epsilon).

Every term of every rate in the paper is such a product, with exponents that depend on alpha alone.
Writing the terms this way gives elasticities (the exponents) and crossings (a linear equation
in the logarithms) without a second formula that could disagree with the first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from dpfda.errors import InvalidInput

Variable = Literal["n", "m", "S", "d", "epsilon"]
VARIABLES: tuple[Variable, ...] = get_args(Variable)

_LARGEST_LOG = 709.0  # math.exp overflows just above
_ROUNDING = 1e-12  # exponents below this are cancellations such as 1/3 - 1/3, not dependence


@dataclass(frozen=True)
class Monomial:
    """``n^a * m^b * S^c * d^e * epsilon^f`` with the exponents in the order of `VARIABLES`."""

    exponents: tuple[float, ...] = (0.0,) * len(VARIABLES)

    def exponent(self, variable: Variable) -> float:
        return self.exponents[VARIABLES.index(variable)]

    def __mul__(self, other: Monomial) -> Monomial:
        return Monomial(tuple(a + b for a, b in zip(self.exponents, other.exponents, strict=True)))

    def __truediv__(self, other: Monomial) -> Monomial:
        return self * other**-1

    def __pow__(self, power: float) -> Monomial:
        return Monomial(tuple(a * power for a in self.exponents))

    def log_at(self, values: Mapping[Variable, float]) -> float:
        """Logarithm of the value; raises if a variable it depends on is missing."""
        total = 0.0
        for variable, exponent in zip(VARIABLES, self.exponents, strict=True):
            if abs(exponent) < _ROUNDING:
                continue
            if variable not in values:
                raise InvalidInput(f"{variable} is needed here but was not given.")
            total += exponent * math.log(values[variable])
        return total

    def at(self, values: Mapping[Variable, float]) -> float:
        log = self.log_at(values)
        return math.exp(log) if log < _LARGEST_LOG else math.inf

    def solve_for(self, variable: Variable) -> Monomial:
        """The `variable` at which the monomial equals one, as a monomial of the other variables."""
        power = self.exponent(variable)
        if abs(power) < _ROUNDING:
            raise InvalidInput(f"variable must occur in the terms compared, and {variable} does not.")
        others = tuple(
            0.0 if name == variable else exponent for name, exponent in zip(VARIABLES, self.exponents, strict=True)
        )
        return Monomial(others) ** (-1.0 / power)


def _symbol(variable: Variable) -> Monomial:
    return Monomial(tuple(float(name == variable) for name in VARIABLES))


n, m, S, d, epsilon = (_symbol(variable) for variable in VARIABLES)
ONE = Monomial()
