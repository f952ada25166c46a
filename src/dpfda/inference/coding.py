"""Names for design columns: covariates with their public bounds or levels, reference values, and the row of a profile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpfda import _validate
from dpfda._typing import Floats, Interval
from dpfda.errors import InvalidInput
from dpfda.inference.terms import Factor, Term, multiply_entries, multiply_names, read_terms

INTERCEPT = "intercept"
INDICATOR: Interval = (0.0, 1.0)
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Covariate:
    """A number with PUBLIC bounds, or a category with PUBLIC levels.

    `reference` is what a profile assumes if it does not name the covariate: for a number the middle of its bounds (0 if
    these are 0 and 1), for a category its first level, unless given.
    """

    name: str
    bounds: Interval | None = None
    levels: tuple[str, ...] = ()
    reference: float | str | None = None

    def __post_init__(self) -> None:
        _validate.name("name of a covariate", self.name)
        if (self.bounds is None) == (not self.levels):
            raise InvalidInput(f"covariate {self.name!r} needs bounds if it is a number, levels if it is a category.")
        if self.bounds is not None:
            object.__setattr__(self, "bounds", _validate.interval(f"bounds of {self.name!r}", self.bounds))
        elif len(self.levels) < 2 or len(set(self.levels)) != len(self.levels):
            raise InvalidInput(f"levels of {self.name!r} must be at least two different ones, the reference first.")
        object.__setattr__(self, "reference", self._check_reference())

    def _check_reference(self) -> float | str:
        if self.bounds is None:
            return self.levels[0] if self.reference is None else self.check(self.reference)
        if self.reference is None:
            return 0.0 if self.bounds == INDICATOR else sum(self.bounds) / 2
        return self.check(self.reference)

    def check(self, value: Any) -> float | str:
        """A value of this covariate; one that is impossible is refused."""
        if self.bounds is None:
            text = str(value)
            if text not in self.levels:
                raise InvalidInput(f"{self.name} must be one of {', '.join(self.levels)}, got {value!r}.")
            return text
        number, (low, high) = _validate.real(self.name, float(value) if isinstance(value, bool) else value), self.bounds
        room = _ROUNDING * (high - low)
        if not low - room <= number <= high + room:
            raise InvalidInput(f"{self.name} must lie within its public bounds {low:g} to {high:g}, got {number:g}.")
        return number

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its design columns: itself, or one for each level but the first."""
        return (self.name,) if self.bounds is not None else tuple(f"{self.name}: {level}" for level in self.levels[1:])

    @property
    def column_bounds(self) -> tuple[Interval, ...]:
        """The public bounds of its design columns."""
        return (self.bounds,) if self.bounds is not None else (INDICATOR,) * (len(self.levels) - 1)

    def entries(self, value: Any) -> list[float]:
        """The entries of its design columns for a value."""
        known = self.check(self.reference if value is None else value)
        return [float(known)] if self.bounds is not None else [float(known == level) for level in self.levels[1:]]

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        bounds = None if self.bounds is None else list(self.bounds)
        return {"name": self.name, "bounds": bounds, "levels": list(self.levels), "reference": self.reference}


@dataclass(frozen=True)
class Coding:
    """Which design column means what; without covariates there is one column, the mean.

    `terms` are products of covariates, as they are or through splines; each covariate by itself, if not given.
    """

    covariates: tuple[Covariate, ...] = ()
    intercept: bool = True
    terms: tuple[Term, ...] = ()
    _index: Mapping[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "terms", self.terms or tuple((Factor(each.name),) for each in self.covariates))
        for factor in (factor for term in self.terms for factor in term):
            covariate = self.covariate(factor.name)
            if factor.spline is not None:
                factor.spline.check(factor.name, covariate.bounds)
        index = {name: place for place, name in enumerate(self.columns)}
        if len(index) != len(self.columns) or len({each.name for each in self.covariates}) != len(self.covariates):
            raise InvalidInput("names of covariates must differ from each other and from 'intercept'.")
        object.__setattr__(self, "_index", index)

    @property
    def is_mean(self) -> bool:
        """Whether there are no covariates."""
        return not self.covariates

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the design columns."""
        free = tuple(name for term in self.terms for name in multiply_names([self._names(each) for each in term]))
        return ("mean",) if not free else (INTERCEPT, *free) if self.intercept else free

    def column(self, name: str) -> int:
        """The place of a column by its name."""
        if name not in self._index:
            raise InvalidInput(f"{name!r} is not a coefficient of this fit; choose from {', '.join(self.columns)}.")
        return self._index[name]

    def name_effect(self, name: str) -> str:
        """The column of an effect: as named, or of a category with two levels, which may be named alone, its second."""
        levels = next((each.levels for each in self.covariates if each.name == name), ())
        return f"{name}: {levels[1]}" if name not in self._index and len(levels) == 2 else name

    def covariate(self, name: str) -> Covariate:
        """A covariate by its name."""
        for covariate in self.covariates:
            if covariate.name == name:
                return covariate
        known = ", ".join(each.name for each in self.covariates)
        raise InvalidInput(f"{name!r} is not a covariate of this fit" + (f"; choose from {known}." if known else "."))

    def complete(self, profile: Mapping[str, Any]) -> dict[str, float | str]:
        """The profile with references for what it leaves out; an intercept in it must be 1."""
        given = dict(profile)
        if self.intercept and given.pop(INTERCEPT, 1) != 1:
            raise InvalidInput("intercept must be 1 in a profile; leave it out.")
        for name in given:
            self.covariate(name)
        return {each.name: each.check(given.get(each.name, each.reference)) for each in self.covariates}

    def row(self, profile: Mapping[str, Any]) -> Floats:
        """The design row of a profile."""
        values = self.complete(profile)
        entries = [
            entry
            for term in self.terms
            for entry in multiply_entries([self._entries(each, values[each.name]) for each in term])
        ]
        return np.array([1.0, *entries] if self.intercept else entries)

    def _names(self, factor: Factor) -> list[str]:
        if factor.spline is None:
            return list(self.covariate(factor.name).columns)
        return [f"spline({factor.name}) {number}" for number in range(1, factor.spline.size + 1)]

    def _entries(self, factor: Factor, value: float | str) -> list[float]:
        covariate = self.covariate(factor.name)
        if factor.spline is None or covariate.bounds is None:
            return covariate.entries(value)
        return factor.spline.evaluate(float(value), covariate.bounds)

    def to_dict(self) -> dict[str, Any]:
        """JSON values; `coding_from_dict` is its inverse."""
        return {
            "intercept": self.intercept,
            "covariates": [each.to_dict() for each in self.covariates],
            "terms": [[factor.to_dict() for factor in term] for term in self.terms],
        }


def coding_from_dict(fields: Mapping[str, Any]) -> Coding:
    """The inverse of `Coding.to_dict`."""
    covariates = tuple(
        Covariate(each["name"], each["bounds"] and tuple(each["bounds"]), tuple(each["levels"]), each["reference"])
        for each in fields["covariates"]
    )
    return Coding(covariates, fields["intercept"], read_terms(fields["terms"]))


def make_coding(covariates: Mapping[str, Any], *, intercept: bool = True) -> Coding:
    """From a mapping of names to (low, high), to a list of levels, or to a mapping with a reference as well.

    Examples
    --------
    >>> from dpfda.inference.coding import make_coding
    >>> coding = make_coding({"male": (0, 1), "bmi": {"bounds": (10, 70), "reference": 25}, "arm": ["A", "B", "C"]})
    >>> coding.columns
    ('intercept', 'male', 'bmi', 'arm: B', 'arm: C')
    >>> coding.row({"male": 1, "arm": "B"})
    array([ 1.,  1., 25.,  1.,  0.])
    """
    if not isinstance(covariates, Mapping) or not covariates:
        raise InvalidInput("covariates must map names to (low, high) or to a list of levels.")
    return Coding(tuple(_make_covariate(str(name), facts) for name, facts in covariates.items()), intercept)


def _make_covariate(name: str, facts: Any) -> Covariate:
    if isinstance(facts, Covariate):
        return facts
    reference = None
    if isinstance(facts, Mapping):
        if not set(facts) <= {"bounds", "levels", "reference"}:
            raise InvalidInput(f"covariate {name!r} may have bounds, levels and reference, got {sorted(facts)}.")
        reference = facts.get("reference")
        facts = facts["bounds"] if facts.get("bounds") is not None else facts.get("levels", ())
    if isinstance(facts, str) or not isinstance(facts, Sequence | np.ndarray) or not len(facts):
        raise InvalidInput(f"covariate {name!r} needs (low, high) if it is a number, a list of levels if a category.")
    if all(isinstance(entry, str) for entry in facts):
        return Covariate(name, None, tuple(facts), reference)
    return Covariate(name, tuple(facts), (), reference)


def default_coding(bounds: Sequence[Interval], names: Sequence[str] = ()) -> Coding:
    """For design columns with these bounds: their names where known, else column-1, column-2, ..."""
    intercept = tuple(bounds[0]) == (1.0, 1.0)
    free = list(bounds[1:] if intercept else bounds)
    given = list(names[len(names) - len(free) :]) if names else [f"column-{k}" for k in range(1, len(free) + 1)]
    return Coding(tuple(Covariate(name, pair) for name, pair in zip(given, free, strict=True)), intercept)
