"""What the owner says about a table: which column means what, and the public facts that go with it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from dpfda import _validate
from dpfda._typing import Interval
from dpfda.curves.tables.covariates import Covariate
from dpfda.errors import InvalidInput

DUPLICATES = ("refuse", "keep", "drop")
DECIMALS = ("point", "comma")
ROWS = ("refuse", "never refuse")


@dataclass(frozen=True)
class Domain:
    """The PUBLIC range of x. With `origin`, x are dates, counted in days from that day."""

    low: float
    high: float
    origin: date | None = None

    @classmethod
    def between(cls, low: str | float, high: str | float) -> Domain:
        """From two numbers or two ISO dates."""
        days = [_parse_date(end) for end in (low, high)]
        if days[0] is not None and days[1] is not None:
            span = (days[1] - days[0]).days
            if span <= 0:
                raise InvalidInput(f"domain must have its first day before its last, got {low} and {high}; swap them.")
            return cls(0.0, float(span), days[0])
        numbers = _validate.interval("domain", (parse_number("domain", low), parse_number("domain", high)))
        return cls(*numbers)

    @property
    def interval(self) -> Interval:
        """The range in the numbers that the curves hold."""
        return self.low, self.high


@dataclass(frozen=True)
class Reading:
    """How to read one table.

    In long format `id`, `x` and `y` name columns. With `wide`, either `id` names the subject and every other column
    (those starting with `y`, if given) holds the value at the number in its name; or `x` names the column of
    points and every other column is one subject.

    A covariate may change within a subject, and a row without one is left out, unless `fill_down` names it: then a row takes
    the value of the subject's last row before it, in the order of x, that has one. With `one_design`, for the published
    method, a subject must have one value.

    `rows` says what happens to rows that cannot be right (text in a number column, an infinite number, exact copies that
    `duplicates` refuses, with `one_design` a covariate that changes). "refuse": the table is refused with a sentence, which
    helps an owner at work. "never refuse", for silos that strangers ask: the subject becomes an empty curve, and its owner
    gets a note; nothing that stands in rows makes an error.
    """

    domain: Domain
    y_bounds: Interval
    id: str | None = None
    x: str | None = None
    y: str | None = None
    covariates: tuple[Covariate, ...] = ()
    wide: bool = False
    separator: str | None = None
    decimal: str = "point"
    duplicates: str = "refuse"
    rows: str = "refuse"
    fill_down: tuple[str, ...] = ()
    one_design: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "y_bounds", _validate.interval("y-bounds", self.y_bounds))
        _validate.choice("decimal", self.decimal, DECIMALS)
        _validate.choice("duplicates", self.duplicates, DUPLICATES)
        _validate.choice("rows", self.rows, ROWS)
        names = (self.fill_down,) if isinstance(self.fill_down, str) else tuple(self.fill_down)
        object.__setattr__(self, "fill_down", names)
        unknown = sorted(set(self.fill_down) - {covariate.name for covariate in self.covariates})
        if unknown:
            raise InvalidInput(f"--fill-down names {unknown[0]!r}, which is not among the covariates of --design.")
        if self.wide:
            self._check_wide()
        else:
            self._check_long()

    @property
    def never_refuses(self) -> bool:
        """Whether nothing in rows may make an error."""
        return self.rows == "never refuse"

    def _check_long(self) -> None:
        missing = [f"--{role}" for role in ("id", "x", "y") if not getattr(self, role)]
        if missing:
            raise InvalidInput(
                f"{' and '.join(missing)} must name a column of the table (or use --wide for one row per subject)."
            )
        used = [self.id, self.x, self.y, *(covariate.name for covariate in self.covariates)]
        twice = {column for column in used if used.count(column) > 1}
        if twice:
            raise InvalidInput(f"The column {sorted(map(str, twice))[0]!r} is named for two roles; give each its own.")

    def _check_wide(self) -> None:
        if self.never_refuses:
            raise InvalidInput("--wide tables cannot be read without refusals; reshape the table to the long format.")
        if (self.id is None) == (self.x is None):
            raise InvalidInput(
                "--wide needs either --id (one row per subject, columns named by x) or --x (one column per subject)."
            )
        if self.fill_down:
            raise InvalidInput("--fill-down needs one row per visit: use the long format, or leave it out with --wide.")
        if self.x is not None and self.covariates:
            raise InvalidInput("--design needs one row per subject: use --wide with --id, or the long format.")


def parse_number(name: str, value: str | float) -> float:
    """A number from the command line or from TOML."""
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InvalidInput(f"{name} must hold numbers (or dates such as 2019-01-31), got {value!r}.") from None


def _parse_date(value: str | float) -> date | None:
    if isinstance(value, date):
        return value
    try:
        return date.fromisoformat(str(value).strip()) if "-" in str(value)[1:] else None
    except ValueError:
        return None
