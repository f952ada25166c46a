"""Every silo's measurement of B theta, from all rounds so far."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from dpfda._typing import Floats
from dpfda.methods.adaptive import constants
from dpfda.methods.adaptive.asymmetry import Asymmetry, Sides
from dpfda.methods.adaptive.covariates import CovariateLaw
from dpfda.methods.adaptive.evidence import Measured, ReadRounds, measure_silo, spread_bias
from dpfda.methods.adaptive.lengths import LengthLaw
from dpfda.methods.adaptive.matrices import kron, power
from dpfda.methods.adaptive.shape import Coordinates
from dpfda.methods.adaptive.state import State
from dpfda.protocol.plan import Plan


def measure_all(
    plan: Plan, state: State, rounds: ReadRounds, own: Mapping[str, tuple[Floats, Floats]] | None = None
) -> dict[str, Measured]:
    """Every silo's measurement of B theta; `own` is what is thought of each silo's coefficients, if not the same of all."""
    return {
        name: measure_silo(
            rounds,
            answers,
            state.informations[name],
            _find_covariance(state, name) / plan.silo(name).n,
            state.open_now if own is None else own[name],
        )
        for name, answers in state.answers.items()
    }


def read_rounds(plan: Plan, state: State, *, for_band: bool = False) -> ReadRounds:
    """What answers of the rounds so far are read with."""
    parts = column_parts(state.law, for_band=for_band)
    return ReadRounds.of(state.asked, find_bias_root(state.law, parts, plan.basis.size), for_band=for_band)


def _find_covariance(state: State, silo: str) -> Floats:
    """Of one curve's gradient at a silo: longer where curves weigh more."""
    return np.asarray(state.covariance * (state.weights.of(silo).square / state.weights.pooled.square))


def find_asymmetry(
    plan: Plan,
    columns: CovariateLaw,
    coordinates: Coordinates,
    pointing: Floats,
    seen: tuple[LengthLaw, Sides | None],
    reach: float,
    *,
    hidden: float = constants.HIDDEN,
    for_band: bool = False,
) -> Asymmetry:
    """What lengths and sides tell of the bias of clipping; `pointing` is how directions of gradients are distributed.

    Sides are those of the first column's first functions: of a basis of one function there is one, although a histogram
    tells the sign of the second coordinate, too (of a mean the same one, else that of another column).
    """
    parts = column_parts(columns, for_band=for_band)
    directions = spread_bias(coordinates, find_bias_root(columns, parts, plan.basis.size))
    known = slice(0, min(constants.SIDES, plan.basis.size))
    shares, typical = (directions[known] ** 2).sum(axis=1), np.sqrt(np.diag(pointing)[known])
    law, sides = seen
    part = math.sqrt(min(float(parts.mean()), 1.0))
    if plan.assumptions.symmetric:
        return Asymmetry(law, None, shares, typical, part * constants.SYMMETRIC, reach, hidden)
    of_known = None if sides is None else replace(sides, excess=sides.excess[known])
    return Asymmetry(law, of_known, shares, typical, part, reach, hidden)


def find_bias_root(law: CovariateLaw, parts: Floats, size: int) -> Floats:
    """Where the bias of clipping points, over columns and functions; its length does not matter."""
    columns = power(law.average, 0.5) * np.sqrt(parts)
    return kron(columns, np.diag(np.sqrt(bias_shares(size))))


def column_parts(law: CovariateLaw, *, for_band: bool = False) -> Floats:
    """Variance of the bias along every column, as a part of what its bound allows one of d columns.

    A skewed outcome pulls the first function. For an effect, curves with positive and negative g would have to be clipped
    differently: so are those of a small group, which are longer than others. A band allows for all of it, since groups may
    differ in how skewed they are; and if the smaller of two groups alone is clipped, its effect has more than the level.
    """
    if not law.units.intercept:
        return np.ones(law.columns)
    squares = np.maximum(law.longest, 1.0) ** 2
    parts = np.minimum(squares, constants.BAND_EFFECT) if for_band else np.minimum(constants.BIAS_EFFECT * squares, 1.0)
    parts[0] = 1.0
    return np.asarray(parts)


def bias_shares(size: int) -> Floats:
    """How the bias of clipping is spread over functions: level, slope, the rest."""
    k = np.maximum(np.arange(size) - 1.0, 1.0)
    shares = constants.BIAS_REST / k
    shares[0] = 1.0
    if size > 1:
        shares[1] = constants.BIAS_SLOPE
    return np.asarray(shares / shares.sum())
