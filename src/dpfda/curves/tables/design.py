"""A design by names: columns, their public bounds and the row of a profile, from a formula and public facts alone.

No level, knot, bound or mean comes from data.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpfda import _validate
from dpfda._typing import Floats, Interval
from dpfda.curves.tables.formula import MOST_COLUMNS, Factor, Formula, parse_formula, refuse_width
from dpfda.errors import InvalidInput

_UNIT: Interval = (0.0, 1.0)
_ONES: Interval = (1.0, 1.0)


@dataclass(frozen=True)
class Facts:
    """What is public of one covariate: bounds of a number, or levels of a category, the reference first."""

    bounds: Interval | None = None
    levels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Design:
    """The columns of a design.

    Parameters
    ----------
    formula : str
        Such as ``"1 + male + bmi + C(arm) + male:bmi + spline(age, 30, 50)"``; see `dpfda.curves.tables.formula`.
    covariates : mapping
        PUBLIC facts by name: ``(low, high)`` of a number, a list of levels of a category, or a mapping with "bounds" or
        "levels".

    Examples
    --------
    >>> from dpfda.curves.tables.design import Design
    >>> facts = {"male": (0, 1), "bmi": (10, 70), "arm": ["A", "B", "C"]}
    >>> design = Design("male + C(arm) + male:bmi", facts)
    >>> design.names
    ('intercept', 'male', 'arm: B', 'arm: C', 'male:bmi')
    >>> design.bounds
    ((1.0, 1.0), (0.0, 1.0), (0.0, 1.0), (0.0, 1.0), (0.0, 70.0))
    >>> design.row(male=1, arm="C", bmi=25)
    array([ 1.,  1.,  0.,  1., 25.])
    """

    formula: str
    covariates: Mapping[str, Any]
    parsed: Formula = field(init=False, repr=False, compare=False)
    facts: Mapping[str, Facts] = field(init=False, repr=False, compare=False)
    names: tuple[str, ...] = field(init=False, repr=False, compare=False)
    bounds: tuple[Interval, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        parsed, facts = parse_formula(self.formula), read_facts(self.covariates)
        object.__setattr__(self, "parsed", parsed)
        object.__setattr__(self, "facts", facts)
        for factor in itertools.chain.from_iterable(parsed.terms):
            self._check(factor)
        names, bounds = (["intercept"], [_ONES]) if parsed.intercept else ([], [])
        for term in parsed.terms:
            parts = [self._columns(factor) for factor in term]
            if len(names) + math.prod(map(len, parts)) > MOST_COLUMNS:
                raise refuse_width()
            for combination in itertools.product(*parts):
                names.append(":".join(name for name, _ in combination))
                bounds.append(_multiply([pair for _, pair in combination]))
        if len(set(names)) != len(names):
            raise refuse_width()
        object.__setattr__(self, "names", tuple(names))
        object.__setattr__(self, "bounds", tuple(bounds))

    def matrix(self, columns: Mapping[str, Any]) -> Floats:
        """One row for each entry of the columns, which are numbers or texts by name; NaN where something is not known."""
        rows = len(next(iter(columns.values())))
        return self._multiply_out(rows, {name: self._read(name, columns[name]) for name in self.parsed.names})

    def expand(self, plain: Floats) -> Floats:
        """From the columns of the covariates one after the other: of a number itself, of a category its indicators."""
        widths = [len(facts.levels) - 1 if facts.levels else 1 for facts in self.facts.values()]
        parts = np.split(plain, np.cumsum(widths)[:-1], axis=1)
        return self._multiply_out(len(plain), dict(zip(self.facts, parts, strict=True)))

    def _multiply_out(self, rows: int, plain: Mapping[str, Floats]) -> Floats:
        """The columns of the design; in a product every number counts as the nearer of its bounds if it lies outside."""
        made = [np.ones((rows, 1))] if self.parsed.intercept else []
        for term in self.parsed.terms:
            product = np.ones((rows, 1))
            for factor in term:
                values = self._bend(factor, plain[factor.name], clamp=len(term) > 1)
                product = (product[:, :, None] * values[:, None, :]).reshape(rows, -1)
            made.append(product)
        return np.hstack(made)

    def row(self, **profile: Any) -> Floats:
        """The row of a profile by names; every covariate of the design is needed."""
        missing = [name for name in self.parsed.names if name not in profile]
        unknown = [name for name in profile if name not in self.parsed.names]
        if missing or unknown:
            what = f"lacks {missing[0]!r}" if missing else f"names {unknown[0]!r}, which is not in the design"
            raise InvalidInput(f"the profile {what}; the design has {', '.join(self.parsed.names)}.")
        single = {name: np.array([value], dtype=object) for name, value in profile.items()}
        made: Floats = self.matrix(single)[0]
        if not np.isfinite(made).all():
            raise InvalidInput(f"the profile {profile!r} has a value that is missing or not a public level.")
        return made

    def _check(self, factor: Factor) -> None:
        facts = self.facts.get(factor.name)
        if facts is None:
            raise InvalidInput(
                f"design names {factor.name!r}, which covariates does not mention; give its public bounds (low, high) or "
                "its list of levels."
            )
        if factor.kind == "C" and not facts.levels:
            raise InvalidInput(f"C({factor.name}) needs the public levels of {factor.name!r} in covariates, as a list.")
        if factor.kind == "spline":
            if facts.bounds is None:
                raise InvalidInput(f"spline({factor.name}) needs the public bounds of {factor.name!r} in covariates.")
            low, high = facts.bounds
            if any(not low < knot < high for knot in factor.knots):
                raise InvalidInput(f"spline({factor.name}) must have its knots between {low:g} and {high:g}.")

    def _columns(self, factor: Factor) -> list[tuple[str, Interval]]:
        facts = self.facts[factor.name]
        if factor.kind == "spline":
            count = len(factor.knots) + factor.degree  # the first B-spline is left to the intercept
            return [(f"spline({factor.name}) {number}", _UNIT) for number in range(1, count + 1)]
        if facts.bounds is not None:
            return [(factor.name, facts.bounds)]
        return [(f"{factor.name}: {level}", _UNIT) for level in facts.levels[1:]]

    def _read(self, name: str, column: Any) -> Floats:
        """The plain columns of a covariate, which is numbers or texts."""
        levels = self.facts[name].levels
        if levels:
            return _indicate(write_texts(column), levels)
        return _validate.numeric(name, np.asarray(column))[:, None]

    def _bend(self, factor: Factor, values: Floats, *, clamp: bool) -> Floats:
        """The columns of a covariate as it stands in a term."""
        bounds = self.facts[factor.name].bounds
        if bounds is None:
            return values
        if factor.kind == "spline":
            return _evaluate_spline(values[:, 0], factor, bounds)
        return np.clip(values, *bounds) if clamp else values


def read_facts(covariates: Mapping[str, Any]) -> dict[str, Facts]:
    """Public facts by name, checked."""
    if not isinstance(covariates, Mapping) or not covariates:
        raise InvalidInput("covariates must map names to (low, high) or to a list of levels.")
    return {str(name): _read_fact(str(name), given) for name, given in covariates.items()}


def _read_fact(name: str, given: Any) -> Facts:
    if isinstance(given, Mapping):
        given = given["bounds"] if given.get("bounds") is not None else given.get("levels", ())
    if isinstance(given, str) or not isinstance(given, Sequence | np.ndarray) or not len(given):
        raise InvalidInput(f"covariate {name!r} needs (low, high) if it is a number, a list of levels if a category.")
    if not all(isinstance(entry, str) for entry in given):
        return Facts(_validate.interval(f"bounds of {name!r}", given))
    levels = tuple(given)
    if len(levels) < 2 or len(set(levels)) != len(levels):
        raise InvalidInput(f"levels of {name!r} must be at least two different ones, the reference first.")
    return Facts(levels=levels)


def write_texts(column: Any) -> list[str | None]:
    """Categories as texts; 1.0 is 1, and what is missing is None."""
    return [_write_text(value) for value in (column.tolist() if hasattr(column, "tolist") else list(column))]


def _write_text(value: Any) -> str | None:
    if (
        value is None
        or type(value).__name__ in ("NAType", "NaTType")
        or (isinstance(value, float) and math.isnan(value))
    ):
        return None
    text = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()
    return text or None


def _indicate(texts: list[str | None], levels: tuple[str, ...]) -> Floats:
    design = np.full((len(texts), len(levels) - 1), np.nan)
    places = {level: place for place, level in enumerate(levels)}
    for row, text in enumerate(texts):
        place = None if text is None else places.get(text)
        if place is not None:
            design[row] = 0.0
            if place:
                design[row, place - 1] = 1.0
    return design


def _evaluate_spline(numbers: Floats, factor: Factor, bounds: Interval) -> Floats:
    from scipy.interpolate import BSpline

    low, high = bounds
    knots = np.concatenate([[low] * (factor.degree + 1), factor.knots, [high] * (factor.degree + 1)])
    finite = np.isfinite(numbers)
    values = np.full((numbers.size, len(factor.knots) + factor.degree), np.nan)
    inside = np.clip(numbers[finite], low, high)
    if inside.size:
        values[finite] = BSpline.design_matrix(inside, knots, factor.degree).toarray()[:, 1:]
    within: Floats = np.clip(values, 0.0, 1.0)  # B-splines are; this undoes rounding
    return within


def _multiply(pairs: list[Interval]) -> Interval:
    """The bounds of a product of numbers within these bounds."""
    low, high = 1.0, 1.0
    for a, b in pairs:
        ends = (low * a, low * b, high * a, high * b)
        low, high = min(ends), max(ends)
    return low, high
