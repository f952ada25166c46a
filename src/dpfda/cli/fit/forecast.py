"""The error to expect before anything is spent, from public numbers and typical guesses only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpfda.planning.expected_error import TYPICAL_POINTS
from dpfda.report.document import ERROR_PARTS

if TYPE_CHECKING:
    from dpfda.cli.fit.request import FitRequest


def forecast(request: FitRequest, *, n: int) -> dict[str, float] | None:
    """Squared L2 error by source in the user's units, summed over functions; None for methods without a forecast.

    The number of points comes from --points-per-curve or is the typical one; it is never taken from the data.
    """
    if request.options["method"] != "adaptive":
        return None
    parts = request.estimator().forecast(n=n, m=max(1.0, guess_points_per_curve(request)))
    return {name: float(getattr(parts, name)) for name in ERROR_PARTS}


def forecast_outcomes(request: FitRequest, *, n: int) -> dict[str, dict[str, float]]:
    """The same for each of several outcomes, in one budget."""
    found = request.estimator().forecast_outcomes(n=n, m=max(1.0, guess_points_per_curve(request)))
    return {name: {part: float(getattr(each, part)) for part in ERROR_PARTS} for name, each in found.items()}


def guess_points_per_curve(request: FitRequest) -> float:
    """The public number of points of a subject that a forecast assumes."""
    return float(request.options.get("points_per_curve", TYPICAL_POINTS))
