"""A line of the table of docs/performance.md."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """A line of the table; `reach` is the aim, None for what is only told."""

    what: str
    measured: float
    reach: float | None = None
    at_most: bool = False
    unit: str = "x"

    def __str__(self) -> str:
        aim, verdict = "", ""
        if self.reach is not None:
            aim = f"{'<=' if self.at_most else '>='} {self.reach:g} {self.unit}"
            met = self.measured <= self.reach if self.at_most else self.measured >= self.reach
            verdict = "yes" if met else "**no**"
        return f"| {self.what} | {aim} | {self.measured:.3g} {self.unit} | {verdict} |"
