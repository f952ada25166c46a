"""Several outcomes of the same subjects, reported together: each answers for itself, and bands can hold for all at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from dpfda import _validate
from dpfda._typing import Floats
from dpfda.errors import InvalidInput
from dpfda.inference.answers import Answers
from dpfda.inference.curve import ReleasedCurve, simultaneous_bands
from dpfda.inference.places import show_places
from dpfda.inference.showing import curve_columns, draw_outcomes, make_frame
from dpfda.inference.summary import write_outcomes_summary

_Each = TypeVar("_Each", bound=Answers)


class OneOutcomeOnly(InvalidInput, AttributeError):
    """Several outcomes together were asked what each of them answers alone."""


class OutcomeAnswers(Mapping[str, _Each], Generic[_Each]):
    """The outcomes by name: ``result["sbp"].curve_``; and what they say together."""

    def __init__(self, each: Mapping[str, _Each]) -> None:
        self._each = dict(each)

    def __getitem__(self, name: str) -> _Each:
        if name not in self._each:
            raise InvalidInput(f"There is no outcome {name!r}; there are {', '.join(map(repr, self._each))}.")
        return self._each[name]

    def __getattr__(self, name: str) -> Any:
        """Refuse a question that goes to one outcome, such as `predict`, and say to which."""
        each = self.__dict__.get("_each", {})
        if not name.startswith("_") and each and hasattr(next(iter(each.values())), name):
            choices = " or ".join(f"result[{outcome!r}].{name}" for outcome in each)
            raise OneOutcomeOnly(f"{name} is a question to one outcome: ask {choices}.")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __contains__(self, name: object) -> bool:
        return name in self._each

    def __iter__(self) -> Iterator[str]:
        return iter(self._each)

    def __len__(self) -> int:
        return len(self._each)

    def describe_privacy(self) -> list[str]:
        """Sentences about who is protected and what was spent, on all outcomes together."""
        return next(iter(self._each.values())).describe_privacy()

    def simultaneous_bands(
        self, level: float = 0.95, x: ArrayLike | None = None
    ) -> dict[str, list[tuple[Floats, Floats]]]:
        """Bands that hold all curves of ALL outcomes at once with probability `level`, in the order of `list_curves`.

        The bound adds up over curves, so that it holds however the errors of outcomes go together.
        """
        curves = self._list_curves()
        bands = iter(simultaneous_bands([curve for _, curve in curves], level, x))
        return {name: [next(bands) for _ in each.list_curves()] for name, each in self._each.items()}

    def to_frame(self, x: ArrayLike | None = None, level: float = 0.95) -> Any:
        """All curves of all outcomes in one long table.

        `lower` and `upper` are the sides of each curve's own simultaneous band; `joint_lower` and `joint_upper` those of
        bands that hold all curves of all outcomes at once.
        """
        joint = self.simultaneous_bands(level, x) if all(each.curve_.has_band for each in self._each.values()) else None
        tables = []
        for name, each in self._each.items():
            for number, curve in enumerate(each.list_curves()):
                table = curve_columns(curve, curve.grid(x), level)
                rows = len(table["x"])
                if joint is not None:
                    table["joint_lower"], table["joint_upper"] = joint[name][number]
                tables.append({"outcome": np.full(rows, name), "curve": np.full(rows, curve.name), **table})
        columns = {key: np.concatenate([table[key] for table in tables]) for key in tables[0]}
        columns["x"] = show_places(columns["x"], next(iter(self._each.values())).x_origin)
        return make_frame(columns)

    def tidy(self, x: ArrayLike | None = None, level: float = 0.95) -> Any:
        """The same as `to_frame`, under the name that users of broom look for."""
        return self.to_frame(x, level)

    def summary(self, level: float = 0.95) -> str:
        """A text to print: every outcome, how precisely it is known, and the one price of all."""
        return write_outcomes_summary(self._each, self.describe_privacy(), _validate.fraction("level", level))

    def plot(self, *, level: float = 0.95) -> Any:
        """Draw all curves of all outcomes with matplotlib, a small panel each; returns the axes."""
        return draw_outcomes(self._list_curves(), level)

    def _list_curves(self) -> list[tuple[str, ReleasedCurve]]:
        return [(name, curve) for name, each in self._each.items() for curve in each.list_curves()]

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"
