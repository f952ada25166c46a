"""What the owner says about a table: which column means what, and the public facts that go with it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from functools import cached_property

from dpfda import _validate
from dpfda._typing import Interval
from dpfda.curves.tables.cells import Cells
from dpfda.curves.tables.covariates import INDICATOR, Covariate
from dpfda.curves.tables.dates import parse_day
from dpfda.curves.tables.design import Design
from dpfda.errors import InvalidInput

DUPLICATES = ("refuse", "keep", "drop")
OUTSIDE = ("drop", "refuse")
ROWS = ("refuse", "never refuse")


@dataclass(frozen=True)
class Domain:
    """The PUBLIC range of x. With `origin`, x are dates, counted in days from that day."""

    low: float
    high: float
    origin: date | None = None

    @classmethod
    def between(cls, low: str | float, high: str | float, date_format: str | None = None) -> Domain:
        """From two numbers or two dates (2019-01-31, 31.1.2019, or as `date_format` has them)."""
        days = [parse_day(end, date_format) for end in (low, high)]
        if days[0] is not None and days[1] is not None:
            span = (days[1] - days[0]).days
            if span <= 0:
                raise InvalidInput(f"domain must have its first day before its last, got {low} and {high}; swap them.")
            return cls(0.0, float(span), days[0])
        ends = [
            parse_number("domain", end, "numbers or dates such as 2019-01-31 (for others give --date-format)")
            for end in (low, high)
        ]
        return cls(*_validate.interval("domain", ends))

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

    `decimal`, `missing`, `strip_units` and `date_format` say how cells are written (see `Cells`). With `y_levels`, y is one
    of two texts, and 0 or 1. `formula` is a design of these covariates with products or splines, or without an intercept;
    left out, each stands by itself behind an intercept. It never comes from terms. `outside` says what becomes of points
    with x outside the domain. `measured` are columns of other outcomes: a row without a number in one of them has no y.
    """

    domain: Domain
    y_bounds: Interval
    id: str | None = None
    x: str | None = None
    y: str | None = None
    covariates: tuple[Covariate, ...] = ()
    formula: str | None = None
    wide: bool = False
    separator: str | None = None
    decimal: str = "point"
    duplicates: str = "refuse"
    rows: str = "refuse"
    fill_down: tuple[str, ...] = ()
    one_design: bool = False
    missing: tuple[str, ...] = ()
    strip_units: bool = False
    date_format: str | None = None
    y_levels: tuple[str, ...] = ()
    outside: str = "drop"
    measured: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "y_bounds", _validate.interval("y-bounds", self.y_bounds))
        for name in ("missing", "y_levels"):
            object.__setattr__(self, name, tuple(map(str, getattr(self, name))))
        _validate.choice("outside", self.outside, OUTSIDE)
        self._check_y_levels()
        _ = self.design  # which checks itself
        _ = self.cells  # which checks itself
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

    @cached_property
    def design(self) -> Design | None:
        """The design of `formula`; None if each covariate stands by itself."""
        if self.formula is None:
            return None
        return Design(self.formula, {each.name: each.bounds or each.levels for each in self.covariates})

    @property
    def functions(self) -> tuple[str, ...]:
        """What the estimated functions are called: the design columns, or the mean."""
        if self.design is not None:
            return self.design.names
        names = [name for covariate in self.covariates for name in covariate.columns]
        return ("intercept", *names) if names else ("mean",)

    @property
    def cells(self) -> Cells:
        """How cells are written."""
        return Cells(self.decimal, self.missing, self.strip_units, self.date_format)

    def _check_y_levels(self) -> None:
        if self.y_levels and (len(self.y_levels) != 2 or self.y_levels[0] == self.y_levels[1]):
            raise InvalidInput("--y-levels must list two different values, that of 0 first, as in --y-levels no,yes.")
        if self.y_levels and self.y_bounds != INDICATOR:
            raise InvalidInput("--y-bounds must be 0:1 with --y-levels, or be left out.")

    @property
    def never_refuses(self) -> bool:
        """Whether nothing in rows may make an error."""
        return self.rows == "never refuse"

    def _check_long(self) -> None:
        missing = [f"--{role}" for role in ("id", "x", "y") if not getattr(self, role)]
        if missing:
            what = "a column" if len(missing) == 1 else "columns"
            raise InvalidInput(
                f"{', '.join(missing)} must name {what} of the table (or use --wide for one row per subject)."
            )
        used = [self.id, self.x, self.y, *self.measured, *(covariate.name for covariate in self.covariates)]
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


def parse_number(name: str, value: str | float, what: str = "numbers") -> float:
    """A number from the command line or from TOML."""
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InvalidInput(f"{name} must hold {what}, got {value!r}.") from None
