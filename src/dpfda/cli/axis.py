"""The x of a result on the command line: numbers, or dates where the study counts days from one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta

from dpfda import _validate
from dpfda._typing import Interval
from dpfda.cli.parsing import parse_ends
from dpfda.curves.tables.dates import parse_day
from dpfda.curves.tables.reading import parse_number
from dpfda.errors import InvalidInput
from dpfda.report.chart import x_name


@dataclass(frozen=True)
class Axis:
    """How x is read and written; `origin` is the date from which days are counted, if x is a date."""

    origin: str | None

    def parse(self, option: str, text: str) -> float:
        """A number, or a date in days from the origin."""
        if self.origin is None:
            return parse_number(option, text)
        day = parse_day(text)
        if day is None:
            raise InvalidInput(f"{option} must hold dates such as {self.origin}, got {text.strip()!r}.")
        return float((day - date.fromisoformat(self.origin)).days)

    def parse_interval(self, option: str, text: str, domain: Interval) -> Interval:
        """Two places within the domain, the lower first."""
        low, high = (self.parse(option, end) for end in parse_ends(option.lstrip("-"), text))
        low, high = _validate.interval(option, (low, high))
        if low < domain[0] or high > domain[1]:
            raise InvalidInput(
                f"{option} must lie in the domain, {self.write(domain[0])} to {self.write(domain[1])}, got {text!r}."
            )
        return low, high

    def write(self, x: float) -> str:
        """To read: a few digits, or a date."""
        return x_name(float(x), self.origin)

    def write_exactly(self, x: float) -> str:
        """For files: all digits, or a date and, between days, its time."""
        if self.origin is None:
            return repr(float(x))
        moment = date.fromisoformat(self.origin) + timedelta(days=int(x // 1))
        seconds = round((float(x) % 1) * 86_400)
        if seconds == 0:
            return moment.isoformat()
        moment, seconds = (moment + timedelta(days=1), 0) if seconds == 86_400 else (moment, seconds)
        return f"{moment.isoformat()}T{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
