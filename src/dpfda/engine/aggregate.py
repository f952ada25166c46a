"""From the silos' releases to one: weights and weighted means. Everything here is post-processing."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from dpfda.engine.plan import Plan
from dpfda.errors import TransportError
from dpfda.messages import Release


def weighted_mean(plan: Plan, releases: Mapping[str, Release]) -> NDArray[np.float64]:
    """sum_s nu_s M_s^t with the plan's public weights, renormalised over the silos that answered."""
    if not releases:
        raise TransportError("No silo answered the query.")
    weights = {name: plan.terms(name).weight for name in releases}
    total = sum(weights.values())
    mean = np.zeros_like(next(iter(releases.values())).values)
    for name, release in releases.items():
        mean += (weights[name] / total) * release.values
    return mean


def inverse_variance_weights(variances: Mapping[str, float]) -> dict[str, float]:
    """Weights nu_s = u_s / sum u_s with u_s = 1 / variance_s."""
    precisions = {name: 1.0 / variance for name, variance in variances.items()}
    total = sum(precisions.values())
    return {name: precision / total for name, precision in precisions.items()}
