"""Private quantiles by noisy bisection: the coordinator's side. One more plan for the one loop.

A round asks for the average over curves of each curve's own share of values at or below a threshold. Every curve weighs
the same, however many points it has, and replacing one moves the average by at most 1/n. The thresholds depend on
earlier releases only, so everything here is post-processing.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dpfda._typing import Floats
from dpfda.protocol.messages import Release
from dpfda.protocol.plan import Plan, Round
from dpfda.protocol.statistics import ShareBelow


class QuantileCoordinator:
    """Bisects [-1, 1] for every level in turn; a round's measure says which level it serves."""

    covariance: Floats | None = None
    error_parts = None

    def __init__(self, plan: Plan) -> None:
        self._level_of = [_level(planned) for planned in plan.rounds]
        self._brackets = {level: np.array([-1.0, 1.0]) for level in self._level_of}

    def question(self, index: int) -> dict[str, Floats]:
        """The middle of the bracket of the level whose turn it is."""
        return {"iterate": np.array([self._brackets[self._level_of[index]].mean()])}

    def learn(self, index: int, releases: Mapping[str, Release]) -> None:
        """Keep the half that holds the level."""
        (release,) = releases.values()
        level = self._level_of[index]
        is_above = float(release.values[0]) + 0.5 < level
        self._brackets[level][0 if is_above else 1] = self._brackets[level].mean()

    def coefficients(self) -> Floats:
        """The middles of the last brackets, level by level, in the searched range mapped to [-1, 1]."""
        return np.array([bracket.mean() for bracket in self._brackets.values()])


def _level(planned: Round) -> float:
    (measure,) = planned.statistics
    assert isinstance(measure, ShareBelow)
    return measure.level
