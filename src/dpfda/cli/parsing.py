"""Small values from the command line or TOML: intervals, lists, named pairs. Each mistake is one sentence."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from typing import Any

from dpfda import _validate
from dpfda._typing import Interval
from dpfda.curves.tables import Covariate, Domain
from dpfda.curves.tables.dates import parse_day
from dpfda.curves.tables.formula import Factor, Formula, parse_formula
from dpfda.curves.tables.reading import parse_number
from dpfda.errors import InvalidInput
from dpfda.protocol.terms import MOST_VISITS


def parse_ends(name: str, value: Any) -> tuple[Any, Any]:
    """The two ends of `46:63` or `[46, 63]`."""
    parts = value.split(":") if isinstance(value, str) else list(value) if isinstance(value, list | tuple) else []
    if len(parts) != 2:
        written = name if name.endswith("=") else f"{name} "  # --bounds bmi=10:70, --domain 46:63
        raise InvalidInput(
            f"--{name.rstrip('=')} must be two ends with a colon, as in --{written}46:63, got {value!r}."
        )
    return parts[0], parts[1]


def parse_interval(name: str, value: Any) -> Interval:
    """Two numbers, the lower first."""
    low, high = parse_ends(name, value)
    option = f"--{name.rstrip('=')}"
    return _validate.interval(option, (parse_number(option, low), parse_number(option, high)))


def parse_domain(value: Any, date_format: str | None = None) -> Domain:
    """Two numbers or two dates, written as those of the table."""
    return Domain.between(*parse_ends("domain", value), date_format)


def parse_visit_times(value: Any, domain: Domain, date_format: str | None = None) -> tuple[float, ...]:
    """Times within the domain, numbers or dates as its ends are, in the numbers that the curves hold."""
    entries = parse_names(value if isinstance(value, str | list | tuple) else [value])
    if domain.origin is None:
        times = [parse_number("--visit-times", entry) for entry in entries]
    else:
        days = [parse_day(entry, date_format) for entry in entries]
        if None in days:
            raise InvalidInput(f"--visit-times must hold dates, as --domain does, got {value!r}.")
        times = [float((day - domain.origin).days) for day in days if day is not None]
    low, high = domain.interval
    if not all(low <= time <= high for time in times):
        raise InvalidInput("--visit-times must lie in --domain; leave out those beyond it, or widen the domain.")
    if not times or len(set(times)) != len(times) or len(times) > MOST_VISITS:
        raise InvalidInput(f"--visit-times must be 1 to {MOST_VISITS} different times, as in 0,6,12,24, got {value!r}.")
    return tuple(times)


def parse_names(value: Any) -> list[str]:
    """`a,b,c` or a list; a name with a comma stands between double quotes, as in a CSV file."""
    parts = next(csv.reader([value], skipinitialspace=True), []) if isinstance(value, str) else list(value)
    return [str(part).strip() for part in parts if str(part).strip()]


def parse_named(option: str, value: Any) -> dict[str, Any]:
    """`name=value` pairs from a repeated option, or a TOML table."""
    if isinstance(value, Mapping):
        return dict(value)
    pairs = {}
    for entry in [value] if isinstance(value, str) else value or []:
        name, equals, rest = str(entry).partition("=")
        if not equals or not name.strip() or not rest.strip():
            example = {"reference": "bmi=25"}.get(option, "bmi=10:70")
            raise InvalidInput(f"--{option} must be written NAME=..., as in --{option} {example}, got {entry!r}.")
        pairs[name.strip()] = rest.strip()
    return pairs


def parse_design(value: Any) -> Formula | None:
    """The formula of `a,b,c`, of a list, or of a text such as `1 + a + C(b) + a:b`; None if nothing is named."""
    if not isinstance(value, str) or not set("+:*(`") & set(value):
        names = parse_names(value or [])
        return Formula(True, tuple((Factor(name),) for name in names)) if names else None
    return parse_formula(value)


def parse_covariates(formula: Formula | None, bounds: Any, levels: Any) -> tuple[Covariate, ...]:
    """The covariates of --design with their public facts."""
    numeric, categories = parse_named("bounds", bounds), parse_named("levels", levels)
    wanted = () if formula is None else formula.names
    for option, given in (("bounds", numeric), ("levels", categories)):
        stray = next((name for name in given if name not in wanted), None)
        if stray is not None:
            raise InvalidInput(f"--{option} names {stray!r}, which is not in --design; add it there or leave it out.")
    for factor in () if formula is None else (each for term in formula.terms for each in term):
        if factor.kind == "C" and factor.name not in categories:
            raise InvalidInput(f"C({factor.name}) in --design needs --levels {factor.name}=first,second,...")
        if factor.kind == "spline" and factor.name not in numeric:
            raise InvalidInput(f"spline({factor.name}) in --design needs --bounds {factor.name}=LOW:HIGH.")
    return tuple(
        Covariate(
            name,
            bounds=parse_interval(f"bounds {name}=", numeric[name]) if name in numeric else None,
            levels=tuple(parse_names(categories[name])) if name in categories else (),
        )
        for name in wanted
    )


def parse_references(covariates: Sequence[Covariate], value: Any) -> dict[str, float | str]:
    """What a profile assumes of covariates that it does not name: a number within the bounds, or one of the levels."""
    known, found = {each.name: each for each in covariates}, {}
    for name, given in parse_named("reference", value).items():
        if name not in known:
            raise InvalidInput(f"--reference names {name!r}, which is not in --design; add it there or leave it out.")
        found[name] = _parse_reference(known[name], given)
    return found


def _parse_reference(covariate: Covariate, given: Any) -> float | str:
    option = f"--reference {covariate.name}="
    if covariate.bounds is None:
        return _validate.choice(option, str(given), covariate.levels)
    low, high = covariate.bounds
    number = parse_number(option, given)
    if not low <= number <= high:
        raise InvalidInput(f"{option} must lie within its public bounds {low:g} to {high:g}, got {given!r}.")
    return number
