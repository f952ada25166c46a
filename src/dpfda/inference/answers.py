"""What fitted estimators and loaded results have in common: they answer questions by names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpfda import _validate
from dpfda._typing import Floats, Interval
from dpfda.inference.coding import INTERCEPT, Coding
from dpfda.inference.curve import ANYTHING, ReleasedCurve, simultaneous_bands
from dpfda.inference.curve_scale import MEANS, CurveScale, limit_means
from dpfda.inference.form import Form
from dpfda.inference.law import Law
from dpfda.inference.places import read_places, show_places
from dpfda.inference.showing import curve_columns, draw_curve, draw_panels, make_frame
from dpfda.protocol.transforms import NO_TRANSFORM


class Answers:
    """Curves by name, from one law. `law_`, `coding_`, `limits_` and the two labels are given by whoever inherits.

    `limits_` are in the units of y; the law is that of transformed y, if there is a `transform_`.
    """

    law_: Law
    coding_: Coding
    limits_: Interval = ANYTHING
    transform_: str = NO_TRANSFORM
    x_name: str = "x"
    y_name: str = "y"
    x_origin: str | None = None  # the date from which x is counted in days, if it is a date
    estimand_: str = ""
    warnings_: tuple[str, ...] = ()

    def describe_privacy(self) -> list[str]:
        """Sentences about who is protected and what was spent."""
        return []

    def describe_sites(self) -> list[str]:
        """A sentence about sites that differ, if there are any."""
        return []

    def check_answers(self) -> None:
        """Raise if there is nothing to answer from yet."""

    @property
    def names_(self) -> tuple[str, ...]:
        """The names of the coefficient functions, or "mean"."""
        self.check_answers()
        return self.coding_.columns

    @property
    def curve_(self) -> ReleasedCurve:
        """The mean function (of transformed y, transformed back); with covariates, the mean of the reference profile."""
        return self.curve_at()

    def curve_at(self, **profile: Any) -> ReleasedCurve:
        """The mean curve of a profile, by names: ``curve_at(male=1, bmi=25)``.

        What is left out has its reference value, see `coding_`; the intercept may be left out.
        """
        self.check_answers()
        row = self.coding_.row(profile)
        return self._make(row, 1.0, self._name_profile(profile))

    def effect(self, name: str, level: str | None = None, *, per: float = 1.0) -> ReleasedCurve:
        """A coefficient function by its covariate's name: the change of the mean for `per` more units.

        With transform="log" it is the ratio of geometric means.
        Of a category: ``effect("arm", "B")`` or ``effect("arm: B")``, level B instead of the first one; with two levels
        ``effect("arm")`` is enough.
        """
        self.check_answers()
        column = f"{name}: {level}" if level is not None else self.coding_.name_effect(str(name))
        place = self.coding_.column(column)
        row = np.zeros(self.law_.columns)
        row[place] = _validate.real("per", per)
        label = column if per == 1 else f"{per:g} more of {column}"
        return self._make(row, row[place] if column in ("mean", INTERCEPT) else 0.0, label, column == "mean")

    def predict_coefficients(self, x: ArrayLike) -> Floats:
        """All coefficient functions (of transformed y) at x: shape (len(x), number of columns), one for each of `names_`."""
        self.check_answers()
        points = _validate.vector("x", read_places(x, self.x_origin))
        features = self.law_.features(self.law_.functions.unit(points), 0)
        return np.asarray(features @ self.law_.mean.T)

    def list_curves(self) -> list[ReleasedCurve]:
        """The curves that a summary shows: the mean, or the reference profile and every effect."""
        self.check_answers()
        effects = [name for name in self.coding_.columns if name not in ("mean", INTERCEPT)]
        first = [self.curve_] if self.coding_.intercept else []
        return [*first, *(self.effect(name) for name in effects)]

    def simultaneous_bands(
        self, curves: Sequence[ReleasedCurve] | None = None, level: float = 0.95, x: ArrayLike | None = None
    ) -> list[tuple[Floats, Floats]]:
        """Bands that hold all these curves (by default those of the summary) at once with probability `level`."""
        return simultaneous_bands(self.list_curves() if curves is None else curves, level, x)

    def to_frame(self, x: ArrayLike | None = None, level: float = 0.95) -> Any:
        """All curves in one long table: curve, x, estimate, standard error and the limits of each simultaneous band."""
        parts = [(curve.name, curve_columns(curve, curve.grid(x), level)) for curve in self.list_curves()]
        columns: dict[str, Any] = {"curve": [name for name, part in parts for _ in part["x"]]}
        for key in parts[0][1]:
            columns[key] = np.concatenate([part[key] for _, part in parts])
        columns["x"] = show_places(columns["x"], self.x_origin)
        return make_frame(columns)

    def tidy(self, x: ArrayLike | None = None, level: float = 0.95) -> Any:
        """The same as `to_frame`, under the name that users of broom look for."""
        return self.to_frame(x, level)

    def summary(self, level: float = 0.95) -> str:
        """A text to print: what was estimated, from whom, how precisely, which effects are there, at what price."""
        from dpfda.inference.summary import write_summary

        self.check_answers()
        return write_summary(self, _validate.fraction("level", level))

    def plot(self, ax: Any = None, *, level: float = 0.95) -> Any:
        """Draw all curves with matplotlib, a small panel each; onto `ax`, the first alone. Returns the axes."""
        curves = self.list_curves()
        if ax is not None or len(curves) == 1:
            return draw_curve(curves[0], ax, level)
        return draw_panels(curves, level)

    def _make(self, row: Floats, means: float, name: str, has_limits: bool = True) -> ReleasedCurve:
        limits = limit_means(self.transform_, self.limits_) if has_limits else ANYTHING
        scale = CurveScale(self.transform_).times(float(means))
        forms = (Form(self.law_, {0: row}),)
        return ReleasedCurve(forms, 0.0, limits, name, self.x_name, self.y_name, self.x_origin, scale)

    def _name_profile(self, profile: dict[str, Any]) -> str:
        values = self.coding_.complete(profile)
        written = [
            f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}" for name, value in values.items()
        ]
        mean = MEANS[self.transform_]
        return f"{mean} at {', '.join(written)}" if written else mean
