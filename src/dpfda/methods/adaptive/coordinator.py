"""The default method, seen from the coordinator: it holds the plan and what is known, see `rounds.py` for what it does."""

from __future__ import annotations

from collections.abc import Mapping

from dpfda._typing import Floats
from dpfda.methods.adaptive import rounds
from dpfda.methods.adaptive.band import extend_covariance
from dpfda.methods.adaptive.error_parts import ErrorParts, split_error
from dpfda.methods.adaptive.estimate import Estimate
from dpfda.methods.adaptive.state import Result, State
from dpfda.protocol.messages import Release
from dpfda.protocol.plan import Plan


class AdaptiveCoordinator:
    """Learns from one round after the other; every number it holds is released or public."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.state: State | None = None

    def question(self, index: int) -> dict[str, Floats]:
        """The arrays of round `index`."""
        return rounds.question(self.plan, self.state, index)

    def learn(self, index: int, releases: Mapping[str, Release]) -> None:
        """Take in the answers of round `index`."""
        self.state = rounds.learn(self.plan, self.state, index, releases)

    def coefficients(self) -> Floats:
        """The estimate, of shape (d+1, r)."""
        return self._finished()[2].posterior.mean.reshape(self.plan.shape)

    @property
    def covariance(self) -> Floats | None:
        """Covariance of the coefficients, those beyond the basis included: sampling, privacy noise and truncation."""
        return extend_covariance(self._finished()[2].band_posterior, self.plan.basis, self.plan.alpha)

    @property
    def error_parts(self) -> ErrorParts | None:
        """The error to expect, by source."""
        state, last, result = self._finished()
        total = extend_covariance(result.posterior, self.plan.basis, self.plan.alpha)
        information, sd_of_means = state.geometry.information, state.level.sd_of_means
        return split_error(result.posterior, total, information, last.doubt, last.silos, sd_of_means)

    def _finished(self) -> tuple[State, Estimate, Result]:
        state = self.state
        if state is None or state.estimate is None or state.result is None:
            raise RuntimeError("the coordinator has not learnt the last round of its plan")
        return state, state.estimate, state.result
