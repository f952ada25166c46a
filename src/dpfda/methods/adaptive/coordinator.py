"""The default method, seen from the coordinator: it holds the plan and what is known, see `rounds.py` for what it does."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from dpfda._blas import one_blas_thread
from dpfda._typing import Floats
from dpfda.methods.adaptive import rounds
from dpfda.methods.adaptive.error_parts import ErrorParts, split_error
from dpfda.methods.adaptive.matrices import kron
from dpfda.methods.adaptive.notices import write_notices
from dpfda.methods.adaptive.sites import SiteLaw, learn_sites
from dpfda.methods.adaptive.start import join_blocks
from dpfda.methods.adaptive.state import Result, State, Visits
from dpfda.methods.adaptive.unusable import learn_from_usable
from dpfda.protocol.messages import Release
from dpfda.protocol.plan import Plan


class AdaptiveCoordinator:
    """Learns from one round after the other; every number it holds is released or public.

    `visits` come from another outcome of the same subjects, where the plan does not ask for them. Without a band there is
    no `covariance`; the estimate is the same.
    """

    def __init__(self, plan: Plan, visits: Visits | None = None, *, with_band: bool = True) -> None:
        self.plan = plan
        self.state: State | None = None
        self._visits = visits
        self._with_band = with_band

    def question(self, index: int) -> dict[str, Floats]:
        """The arrays of round `index`."""
        with one_blas_thread():  # the bits of tables that are kept must not depend on threads
            return rounds.question(self.plan, self.state, index)

    def learn(self, index: int, releases: Mapping[str, Release]) -> None:
        """Take in the answers of round `index`."""
        with one_blas_thread():
            learnt = learn_from_usable(self.plan, self.state, index, releases, self._visits)
        self.state = learnt if self._with_band else dataclasses.replace(learnt, with_band=False)

    def coefficients(self) -> Floats:
        """The estimate, of shape (d+1, r)."""
        state, result = self._finished()
        centred = result.estimate.copy()
        centred[0] = rounds.keep_within_bounds(self.plan.basis, centred[0])
        return state.law.units.restore(centred)

    @property
    def covariance(self) -> Floats | None:
        """Covariance of the coefficients, those beyond the basis included: sampling, noise, bias and truncation."""
        state, result = self._finished()
        return None if result.band_covariance is None else self._restore(state, result.band_covariance)

    @property
    def error_parts(self) -> ErrorParts | None:
        """The error to expect, by source."""
        state, result = self._finished()
        return split_error(state, result.posterior, lambda moments: self._restore(state, moments))

    @property
    def sites(self) -> SiteLaw | None:
        """What is known of every silo's own functions; None for one silo."""
        state, result = self._finished()
        if len(state.measured) == 1:
            return None
        law = learn_sites(self.plan, state, join_blocks(list(result.posterior.priors)))
        return law.restored(np.asarray(kron(state.law.units.back, np.eye(state.longer.size))))

    @property
    def contributing(self) -> tuple[float, float] | None:
        """The share of subjects who have points in the domain, as the released histogram of levels has it, and its sd."""
        return None if self.state is None else (self.state.filled, self.state.filled_sd)

    @property
    def notices(self) -> tuple[str, ...]:
        """Sentences that a reader of the result must see."""
        return write_notices(self.plan, self._finished()[0])

    def _restore(self, state: State, moments: Floats) -> Floats:
        back = kron(state.law.units.back, np.eye(state.longer.size))
        return np.asarray(back @ moments @ back.T)

    def _finished(self) -> tuple[State, Result]:
        state = self.state
        if state is None or state.result is None:
            raise RuntimeError("the coordinator has not learnt the last round of its plan")
        return state, state.result
