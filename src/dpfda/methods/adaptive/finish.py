"""The end of a study: the estimate, and what a band believes."""

from __future__ import annotations

import numpy as np

from dpfda._typing import Floats
from dpfda.methods.adaptive import constants
from dpfda.methods.adaptive.evidence import pool_silos
from dpfda.methods.adaptive.measurements import measure_all
from dpfda.methods.adaptive.posterior import fit_wider
from dpfda.methods.adaptive.state import Result, State
from dpfda.protocol.plan import Plan


def finish(plan: Plan, state: State) -> Result:
    """A band leans on the prior less than the estimate, and believes in a larger bias of clipping.

    Its law is the posterior under priors WIDER times as wide; what the estimate would move by counts as a deviation.
    """
    posterior = state.posterior
    assert posterior is not None
    data, _ = pool_silos(measure_all(plan, state, for_band=True), state.informations, state.oddness.trust)
    factors = [constants.WIDER] + [constants.EFFECT_WIDER] * (len(posterior.priors) - 1)
    wider = [widen(prior, state.unit, factor) for prior, factor in zip(posterior.priors, factors, strict=True)]
    mean, covariance = fit_wider(data, state.start, wider)
    shift = mean - posterior.mean
    size = plan.basis.size
    dropped = posterior.mean.reshape(plan.n_coefficients, -1).copy()
    dropped[:, :size] = 0.0
    beyond = dropped.ravel()
    total = constants.DISTRUST * covariance + np.outer(shift, shift) + np.outer(beyond, beyond)
    if state.filled < constants.HARDLY_FILLED:
        total[0, 0] += 1.0  # half of what the bounds allow
    return Result(posterior, total)


def widen(prior: Floats, unit: float, factor: float) -> Floats:
    """A prior this many times as wide, and at least a little open in slope and first bend."""
    wider = prior * factor**2
    few = np.arange(1, min(3, len(prior)))
    wider[few, few] += (constants.LEAST_WIDE * unit) ** 2
    return wider
