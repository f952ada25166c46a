"""Every silo's measurement of B theta, from all rounds so far."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dpfda._typing import Floats
from dpfda.methods.adaptive import constants
from dpfda.methods.adaptive.evidence import Measured, measure_silo
from dpfda.methods.adaptive.matrices import power
from dpfda.methods.adaptive.state import State
from dpfda.protocol.plan import Plan


def measure_all(
    plan: Plan,
    state: State,
    *,
    for_band: bool = False,
    own: Mapping[str, tuple[Floats, Floats]] | None = None,
) -> dict[str, Measured]:
    """Every silo's measurement of B theta; `own` is what is thought of each silo's coefficients, if not the same of all."""
    size = plan.basis.size
    factor = find_asymmetry(plan) * (constants.BAND_ASYMMETRY / constants.ASYMMETRY if for_band else 1.0)
    root = np.kron(power(state.law.average, 0.5), np.diag(np.sqrt(bias_shares(size))))
    return {
        name: measure_silo(
            state.asked,
            answers,
            state.informations[name],
            state.covariance / plan.silo(name).n,
            state.open_now if own is None else own[name],
            root,
            factor,
            for_band=for_band,
        )
        for name, answers in state.answers.items()
    }


def find_asymmetry(plan: Plan) -> float:
    """How large the bias of clipping is taken to be, as a part of its bound."""
    return constants.SYMMETRIC if plan.assumptions.symmetric else constants.ASYMMETRY


def bias_shares(size: int) -> Floats:
    """How the bias of clipping is spread over functions: level, slope, the rest."""
    k = np.maximum(np.arange(size) - 1.0, 1.0)
    shares = constants.BIAS_REST / k
    shares[0] = 1.0
    if size > 1:
        shares[1] = constants.BIAS_SLOPE
    return np.asarray(shares / shares.sum())
