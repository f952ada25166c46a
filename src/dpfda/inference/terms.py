"""The terms of a design in a closed form that a result file can hold: products of numbers, categories and splines."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpfda._typing import Interval
from dpfda.errors import InvalidInput

MOST_DEGREE = 3


@dataclass(frozen=True)
class Spline:
    """B-splines of a number on PUBLIC knots within its bounds, all but the first, which is left to the intercept."""

    knots: tuple[float, ...]
    degree: int

    @property
    def size(self) -> int:
        """The number of columns."""
        return len(self.knots) + self.degree

    def check(self, name: str, bounds: Interval | None) -> None:
        """Raise unless these are knots within the bounds of a number."""
        places = None if bounds is None else [bounds[0], *self.knots, bounds[1]]
        if places is None or self.degree not in range(1, MOST_DEGREE + 1):
            raise InvalidInput(f"spline({name}) needs a number with bounds and a degree of 1 to {MOST_DEGREE}.")
        if any(not low < high for low, high in itertools.pairwise(places)):
            raise InvalidInput(f"spline({name}) must have its knots in ascending order within the bounds of {name!r}.")

    def evaluate(self, value: float, bounds: Interval) -> list[float]:
        """De Boor's recurrence at one value, as R and JavaScript have it; a value outside counts as the nearer bound."""
        low, high = bounds
        knots = [low] * (self.degree + 1) + list(self.knots) + [high] * (self.degree + 1)
        at = min(max(value, low), high)
        last = len(knots) - self.degree - 2  # the piece that ends at the upper bound
        piece = next((k for k in range(self.degree, last) if at < knots[k + 1]), last)
        found = [float(k == piece) for k in range(len(knots) - 1)]
        for degree in range(1, self.degree + 1):
            found = [_climb(found, knots, k, degree, at) for k in range(len(found) - 1)]
        return found[1:]


def _climb(before: list[float], knots: list[float], k: int, degree: int, at: float) -> float:
    rising, falling = knots[k + degree] - knots[k], knots[k + degree + 1] - knots[k + 1]
    left = (at - knots[k]) / rising * before[k] if rising > 0 else 0.0
    right = (knots[k + degree + 1] - at) / falling * before[k + 1] if falling > 0 else 0.0
    return left + right


@dataclass(frozen=True)
class Factor:
    """A covariate in a term: as it is, or through a spline."""

    name: str
    spline: Spline | None = None

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        spline = None if self.spline is None else {"knots": list(self.spline.knots), "degree": self.spline.degree}
        return {"name": self.name, "spline": spline}


Term = tuple[Factor, ...]


def read_terms(entries: list[list[Mapping[str, Any]]]) -> tuple[Term, ...]:
    """Terms from JSON values."""
    return tuple(tuple(Factor(each["name"], _read_spline(each["spline"])) for each in entry) for entry in entries)


def _read_spline(fields: Mapping[str, Any] | None) -> Spline | None:
    return None if fields is None else Spline(tuple(map(float, fields["knots"])), int(fields["degree"]))


def multiply_names(parts: list[list[str]]) -> list[str]:
    """The names of a term's columns, those of its first factor varying slowest."""
    return [":".join(names) for names in itertools.product(*parts)]


def multiply_entries(parts: list[list[float]]) -> list[float]:
    """The entries of a term's columns, in the same order."""
    return [float(np.prod(entries)) for entries in itertools.product(*parts)]
