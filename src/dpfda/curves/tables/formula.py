"""The grammar of a design, `1 + male + bmi + C(arm) + male:bmi + spline(age, 30, 50)`: parsed, never evaluated.

    design  = term { "+" term }
    term    = "1" | "0" | factor { ":" factor } | factor { "*" factor }
    factor  = name | "C(" name ")" | "spline(" name { "," knot } [ "," "degree" "=" digit ] ")"
    name    = a letter or _, then letters, digits, _ and .; or anything between back quotes

`a:b` is the product of a and b; `a*b` stands for `a + b + a:b`. An intercept is there unless `0` says otherwise.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from dpfda.errors import InvalidInput

LONGEST = 2_000
MOST_COLUMNS = 200  # of a design; a term has at least one
DEGREES = (1, 2, 3)
_TOKEN = re.compile(
    r"\s*(?:(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)|(?P<name>[^\W\d][\w.]*)|`(?P<quoted>[^`]+)`"
    r"|(?P<mark>[+:*(),=]))"
)
_HELP = "write it like 1 + male + C(arm) + male:bmi + spline(age, 30, 50), and other names between back quotes"


@dataclass(frozen=True)
class Factor:
    """A covariate in a term: as it is (""), as a category ("C"), or through a spline with public knots ("spline")."""

    name: str
    kind: str = ""
    knots: tuple[float, ...] = ()
    degree: int = 3


@dataclass(frozen=True)
class Formula:
    """A parsed design: whether there is an intercept, and the terms, each a product of factors."""

    intercept: bool
    terms: tuple[tuple[Factor, ...], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The covariates in the order in which they are named first."""
        return tuple(dict.fromkeys(factor.name for term in self.terms for factor in term))

    @property
    def is_plain(self) -> bool:
        """Whether every term is one covariate, as a number or a category."""
        return all(len(term) == 1 and term[0].kind != "spline" for term in self.terms)


def parse_formula(text: str) -> Formula:
    """A design as text; every mistake is one sentence."""
    if not isinstance(text, str) or not text.strip() or len(text) > LONGEST:
        raise InvalidInput(f"design must be a text of 1 to {LONGEST:,} characters; {_HELP}.")
    tokens = _Tokens(text)
    intercept, terms = True, []
    while True:
        if tokens.peek() in ("1", "0"):
            intercept = tokens.take() == "1"
        else:
            terms += _read_term(tokens)
            if len(terms) > MOST_COLUMNS:
                raise refuse_width()
        mark = tokens.take()
        if mark is None:
            break
        if mark != "+":
            raise tokens.refuse(mark)
    if len(set(terms)) != len(terms):
        raise InvalidInput("design holds the same term twice; name it once.")
    if not terms:
        raise InvalidInput("design names no covariate; leave it out for a mean.")
    return Formula(intercept, tuple(terms))


def refuse_width() -> InvalidInput:
    """Of a design with too many columns."""
    return InvalidInput(f"design must have at most {MOST_COLUMNS} columns, all with different names.")


class _Tokens:
    """The words of a design, one after the other."""

    def __init__(self, text: str) -> None:
        self._text, self._words = text, list(_split(text))
        self._place = 0

    def peek(self) -> str | None:
        return self._words[self._place][1] if self._place < len(self._words) else None

    def take(self, kind: str | None = None, word: str | None = None) -> str | None:
        """The next word; with `kind` or `word` it must be one of that kind, or that very word."""
        if self._place >= len(self._words):
            if kind is not None or word is not None:
                raise self.refuse(None)
            return None
        found, value = self._words[self._place]
        if (kind is not None and found != kind) or (word is not None and value != word):
            raise self.refuse(value)
        self._place += 1
        return value

    def refuse(self, word: str | None) -> InvalidInput:
        where = "ends too early" if word is None else f"cannot be read at {word!r}"
        return InvalidInput(f"design {self._text!r} {where}; {_HELP}.")


def _split(text: str) -> Iterator[tuple[str, str]]:
    place, text = 0, text.strip()
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None:
            raise InvalidInput(f"design {text!r} cannot be read at {text[place : place + 10].strip()!r}; {_HELP}.")
        kind = str(found.lastgroup)
        value = found.group(kind)
        if kind == "number" and value[0] in "+-" and not text[:place].rstrip().endswith((",", "=")):
            kind, value = "mark", value[0]  # the sign joins terms
            place = found.start("number") + 1
        else:
            place = found.end()
        yield ("name" if kind == "quoted" else kind), value


def _read_term(tokens: _Tokens) -> list[tuple[Factor, ...]]:
    factors, mark = [_read_factor(tokens)], tokens.peek()
    if mark not in (":", "*"):
        return [tuple(factors)]
    while tokens.peek() in (":", "*"):
        tokens.take(word=mark)  # a mixture of both is refused
        factors.append(_read_factor(tokens))
    if len({factor.name for factor in factors}) != len(factors):
        raise InvalidInput(f"design multiplies {factors[0].name!r} with itself; use spline({factors[0].name}, ...).")
    if mark == ":":
        return [tuple(factors)]
    if 2 ** len(factors) > MOST_COLUMNS:  # so many terms, and one: refused before they are made
        raise refuse_width()
    sizes = range(1, len(factors) + 1)
    return [part for size in sizes for part in itertools.combinations(factors, size)]


def _read_factor(tokens: _Tokens) -> Factor:
    name = str(tokens.take("name"))
    if name not in ("C", "spline") or tokens.peek() != "(":
        return Factor(name)
    tokens.take(word="(")
    inner = str(tokens.take("name"))
    if name == "C":
        tokens.take(word=")")
        return Factor(inner, "C")
    return _read_spline(tokens, inner)


def _read_spline(tokens: _Tokens, name: str) -> Factor:
    knots, degree = [], 3
    while tokens.peek() == ",":
        tokens.take(word=",")
        if tokens.peek() == "degree":
            tokens.take(word="degree")
            tokens.take(word="=")
            degree = _read_degree(tokens)
            break
        knots.append(float(str(tokens.take("number"))))
    tokens.take(word=")")
    if any(low >= high for low, high in itertools.pairwise(knots)):
        raise InvalidInput(f"spline({name}, ...) must have its knots in ascending order.")
    return Factor(name, "spline", tuple(knots), degree)


def _read_degree(tokens: _Tokens) -> int:
    written = str(tokens.take("number"))
    if written not in map(str, DEGREES):
        raise InvalidInput(f"degree of a spline must be 1, 2 or 3, got {written}.")
    return int(written)
