"""Closed ranges as data: what a field of terms may hold, how it is checked, written and read.

Each public value of a study is a field of a frozen dataclass and names its range in the field's metadata. The constructor
checks it, the decoder checks it, and the hostile generator of the audit takes its values from it: there is one place
that says what is possible. A range canonicalises as well, so that equal terms have one encoding.
"""

from __future__ import annotations

import dataclasses
import math
import numbers
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from dpfda.errors import InvalidInput

MOST_SILOS, MOST_COEFFICIENTS, MOST_ROUNDS = 1000, 1000, 1000
LETTERS = "A-Za-z0-9\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u00ff"  # with the letters of Latin-1: column names of real tables
NARROW = r"[A-Za-z0-9][A-Za-z0-9_-]*"  # may become part of a file's name or of a run's
WIDE = r"[A-Za-z0-9][A-Za-z0-9 ,._-]*"
COLUMN = rf"[{LETTERS}_][{LETTERS} ._-]*"
LEVEL = rf"[{LETTERS}<>][{LETTERS} <>+%._-]*"


class Range(ABC):
    """What a field may hold. None of the texts can act as a terminal command, a path, SQL or a formula."""

    @abstractmethod
    def check(self, name: str, value: Any) -> Any:
        """The value in its canonical type, or `InvalidInput`."""

    def write(self, value: Any) -> Any:
        """The value as JSON."""
        return value

    def read(self, name: str, value: Any) -> Any:
        """A value from JSON, checked."""
        return self.check(name, value)


@dataclass(frozen=True)
class Whole(Range):
    """A whole number; True is none."""

    low: int
    high: int

    def check(self, name: str, value: Any) -> int:
        if (
            isinstance(value, bool)
            or not isinstance(value, int | numbers.Integral)
            or not self.low <= int(value) <= self.high
        ):
            raise InvalidInput(
                f"{name} must be a whole number between {self.low} and {self.high}, got {_shown(value)}."
            )
        return int(value)


@dataclass(frozen=True)
class Real(Range):
    """A finite number; -0.0 becomes 0.0. Without its ends if `open`."""

    low: float
    high: float
    open: bool = False

    def check(self, name: str, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, float | numbers.Real) or not self._holds(value):
            ends = "strictly between" if self.open else "between"
            raise InvalidInput(f"{name} must be a number {ends} {self.low:g} and {self.high:g}, got {_shown(value)}.")
        return float(value) + 0.0

    def _holds(self, value: Any) -> bool:
        inside = self.low < value < self.high if self.open else self.low <= value <= self.high
        return bool(inside) and self.low <= float(value) <= self.high


@dataclass(frozen=True)
class Flag(Range):
    """True or False, not 0 or 1."""

    def check(self, name: str, value: Any) -> bool:
        if not isinstance(value, bool):
            raise InvalidInput(f"{name} must be True or False, got {_shown(value)}.")
        return value


@dataclass(frozen=True)
class Text(Range):
    """A name: a closed set of characters, and a length."""

    pattern: str
    most: int

    def check(self, name: str, value: Any) -> str:
        if not isinstance(value, str) or len(value) > self.most or not re.fullmatch(self.pattern, value):
            raise InvalidInput(
                f"{name} must be a name of 1 to {self.most} plain characters ({self.pattern}), got {_shown(value)}."
            )
        return str(value)


@dataclass(frozen=True)
class Word(Range):
    """One of a list."""

    words: tuple[str, ...]

    def check(self, name: str, value: Any) -> str:
        if not isinstance(value, str) or value not in self.words:
            raise InvalidInput(f"{name} must be one of {', '.join(map(repr, self.words))}, got {_shown(value)}.")
        return str(value)


@dataclass(frozen=True)
class Fixed(Range):
    """One whole number: a version."""

    number: int

    def check(self, name: str, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value != self.number:
            raise InvalidInput(f"{name} must be {self.number} for this version of dpfda, got {_shown(value)}.")
        return int(value)


@dataclass(frozen=True)
class Ends(Range):
    """A pair low < high that floating point tells apart well, at most `most` in size."""

    most: float = 1e30
    least_width: float = 1e-30
    least_share: float = 1e-9  # of the larger end: what an interval must be wide at least

    def check(self, name: str, value: Any) -> tuple[float, float]:
        try:
            low, high = value
        except (TypeError, ValueError):
            raise InvalidInput(f"{name} must be a pair (low, high), got {_shown(value)}.") from None
        end = Real(-self.most, self.most)
        low, high = end.check(f"{name}[0]", low), end.check(f"{name}[1]", high)
        if not low < high:
            raise InvalidInput(f"{name} must have low < high, got ({low:g}, {high:g}); swap or widen the two.")
        if not high - low >= max(self.least_width, self.least_share * max(abs(low), abs(high))):
            raise InvalidInput(f"{name} is too narrow for floating point, got ({low!r}, {high!r}).")
        return low, high

    def write(self, value: Any) -> Any:
        return list(value)

    def read(self, name: str, value: Any) -> Any:
        return self.check(name, _list(name, value))


@dataclass(frozen=True)
class Maybe(Range):
    """None, or a value of another range."""

    inner: Range

    def check(self, name: str, value: Any) -> Any:
        return None if value is None else self.inner.check(name, value)

    def write(self, value: Any) -> Any:
        return None if value is None else self.inner.write(value)

    def read(self, name: str, value: Any) -> Any:
        return None if value is None else self.inner.read(name, value)


@dataclass(frozen=True)
class Several(Range):
    """A tuple of values of one range, so many at least and at most."""

    inner: Range
    least: int
    most: int

    def check(self, name: str, value: Any) -> tuple[Any, ...]:
        if not isinstance(value, Sequence) or isinstance(value, str | bytes):
            raise InvalidInput(f"{name} must be a list, got {_shown(value)}.")
        if not self.least <= len(value) <= self.most:
            raise InvalidInput(f"{name} must hold {self.least} to {self.most} entries, got {len(value)}.")
        return tuple(self.inner.check(f"{name}[{index}]", entry) for index, entry in enumerate(value))

    def write(self, value: Any) -> Any:
        return [self.inner.write(entry) for entry in value]

    def read(self, name: str, value: Any) -> Any:
        if len(_list(name, value)) > self.most:
            raise InvalidInput(f"{name} must hold at most {self.most} entries, got {len(value)}.")
        return self.check(name, [self.inner.read(f"{name}[{index}]", entry) for index, entry in enumerate(value)])


@dataclass(frozen=True)
class Part(Range):
    """An instance of one frozen dataclass whose fields have ranges."""

    kind: type[Any]

    def check(self, name: str, value: Any) -> Any:
        if type(value) is not self.kind:
            raise InvalidInput(f"{name} must be {self.kind.__name__}, got {type(value).__name__}.")
        return value

    def write(self, value: Any) -> Any:
        return write_fields(value)

    def read(self, name: str, value: Any) -> Any:
        return read_fields(self.kind, name, value)


def limit(allowed: Range, *, omitted: bool = False, **options: Any) -> Any:
    """A dataclass field with its range; one that is `omitted` is written only where it is not its default."""
    return dataclasses.field(metadata={"range": allowed, "omitted": omitted}, **options)


_RANGES: dict[type[Any], Mapping[str, Range]] = {}  # studies of hundreds of sites ask a hundred thousand times


def ranges_of(kind: type[Any]) -> Mapping[str, Range]:
    """The range of every field; a field without one is an error in the program."""
    if kind not in _RANGES:
        _RANGES[kind] = MappingProxyType({field.name: field.metadata["range"] for field in dataclasses.fields(kind)})
    return _RANGES[kind]


def _omitted(kind: type[Any]) -> dict[str, Any]:
    """The fields that are not written where they have their default, with it."""
    return {field.name: field.default for field in dataclasses.fields(kind) if field.metadata.get("omitted")}


def check_fields(instance: Any) -> None:
    """Check and canonicalise every field of a frozen dataclass: the whole of its `__post_init__`, or the first line."""
    for name, allowed in ranges_of(type(instance)).items():
        object.__setattr__(instance, name, allowed.check(name, getattr(instance, name)))


def write_fields(instance: Any) -> dict[str, Any]:
    """All fields as JSON values, without those that are omitted as defaults."""
    kind = type(instance)
    values = {name: getattr(instance, name) for name in ranges_of(kind)}
    left_out = {name for name, default in _omitted(kind).items() if values[name] == default}
    return {name: allowed.write(values[name]) for name, allowed in ranges_of(kind).items() if name not in left_out}


def read_fields(kind: type[Any], name: str, value: Any) -> Any:
    """An instance from JSON values: every field that is not omitted as a default, and no other."""
    allowed, omitted = ranges_of(kind), _omitted(kind)
    if not isinstance(value, dict) or (value.keys() | omitted.keys()) != allowed.keys():
        raise InvalidInput(f"{name} must hold exactly {', '.join(each for each in allowed if each not in omitted)}.")
    found = {field: each for field, each in allowed.items() if field in value}
    return kind(**{field: each.read(f"{name}.{field}", value[field]) for field, each in found.items()})


def _list(name: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise InvalidInput(f"{name} must be a list, got {_shown(value)}.")
    return value


def _shown(value: Any) -> str:
    """A short description that cannot act on a terminal, whatever the value is."""
    if value is None or type(value) in (bool, float) or (type(value) is int and abs(value) < 10**30):
        return repr(value)
    if isinstance(value, str):
        return ascii(value[:60])
    if isinstance(value, float | numbers.Real) and not isinstance(value, int):
        return f"{float(value)!r}" if math.isfinite(value) else "a number that is not finite"
    return f"a value of type {type(value).__name__}"
