"""The end of a study: the estimate, and what a band believes."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from dpfda._blas import one_blas_thread
from dpfda._typing import Floats
from dpfda.basis.basis import Basis
from dpfda.methods.adaptive import constants
from dpfda.methods.adaptive.evidence import pool_silos
from dpfda.methods.adaptive.measurements import measure_all, read_rounds
from dpfda.methods.adaptive.posterior import Data, Posterior, fit_weighted, fit_wider
from dpfda.methods.adaptive.start import scale_mixtures
from dpfda.methods.adaptive.state import Result, State
from dpfda.protocol.plan import Plan


def finish(plan: Plan, state: State) -> Result:
    """A band leans on the prior less than the estimate, and believes in a larger bias of clipping.

    Its law is the posterior under priors WIDER times as wide; what the estimate would move by counts as a deviation.
    """
    posterior = state.posterior
    assert posterior is not None
    estimate = shorten(plan.basis, state.longer, posterior.mean.reshape(plan.n_coefficients, -1))
    if not state.with_band:
        return Result(posterior, estimate, None)
    measured = measure_all(plan, state, read_rounds(plan, state, for_band=True))
    data = pool_silos(measured, state.informations, state.oddness.trust)
    mean, covariance = doubt_prior(plan, state, data, posterior)
    shift = mean - posterior.mean
    padded = np.pad(estimate, ((0, 0), (0, state.longer.size - plan.basis.size)))
    beyond = posterior.mean - padded.ravel()
    total = constants.DISTRUST * covariance + np.outer(shift, shift) + np.outer(beyond, beyond)
    if state.hardly_filled:
        levels = np.arange(plan.n_coefficients) * state.longer.size
        total[levels, levels] += 1.0  # half of what the bounds allow
    return Result(posterior, estimate, total)


def shorten(basis: Basis, longer: Basis, coefficients: Floats) -> Floats:
    """The functions in the basis that are nearest to these of the longer list, slopes at both ends counted as well.

    Functions of the basis are nearly straight at the ends, so that a bend there is spread over many of them: without those
    after the basis the slope at the end would be that of a curve that straightens.
    """
    return np.asarray(coefficients @ _tabulate_nearest(basis, longer))


@lru_cache(maxsize=16)
@one_blas_thread()
def _tabulate_nearest(basis: Basis, longer: Basis) -> Floats:
    slopes = longer.evaluate_unit(np.array([0.0, 1.0]), 1)
    own = slopes[:, : basis.size]
    moved = np.linalg.solve(own @ own.T + np.eye(2) / constants.SLOPE_WORTH, slopes[:, basis.size :]).T @ own
    return np.vstack([np.eye(basis.size), moved])


def doubt_prior(plan: Plan, state: State, data: Data, posterior: Posterior) -> tuple[Floats, Floats]:
    """Mean and covariance of the coefficients under wider priors. Of a mean every component is widened, and has its weight.

    With covariates one Gaussian prior of each function stands for its mixture, which is wider still.
    """
    least = (constants.LEAST_WIDE * state.unit) ** 2
    if len(posterior.priors) == 1:
        mixture = scale_mixtures(plan, state.longer, state.level, state.law, state.unit)[0]
        return fit_weighted(data, state.start, mixture.widen(least), posterior.weights[0])
    factors = [constants.WIDER] + [constants.EFFECT_WIDER] * (len(posterior.priors) - 1)
    wider = [widen(prior, state.unit, factor) for prior, factor in zip(posterior.priors, factors, strict=True)]
    return fit_wider(data, state.start, wider)


def widen(prior: Floats, unit: float, factor: float) -> Floats:
    """A prior this many times as wide, and at least a little open in slope and first bend."""
    wider = prior * factor**2
    few = np.arange(1, min(3, len(prior)))
    wider[few, few] += (constants.LEAST_WIDE * unit) ** 2
    return wider
