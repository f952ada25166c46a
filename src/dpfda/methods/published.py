"""Algorithms 1-4 seen from the coordinator: aggregate, step, project."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from dpfda._typing import Floats
from dpfda.basis.sobolev import Ellipsoid, SobolevCone
from dpfda.errors import TransportError
from dpfda.protocol.messages import Release
from dpfda.protocol.plan import Plan


class PublishedCoordinator:
    """Projected gradient descent on noisy batch gradients."""

    covariance = None
    error_parts = None

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.iterate = plan.start()

    def question(self, index: int) -> dict[str, Floats]:
        """The present iterate B^t."""
        return {"iterate": self.iterate.ravel()}

    def learn(self, index: int, releases: Mapping[str, Release]) -> None:
        """B^{t+1} = Pi{B^t - rho sum_s nu_s M_s^t}; the noise is inside the step (slip 1 of docs/notation.md)."""
        gradient = weighted_mean(self.plan, releases).reshape(self.plan.shape)
        self.iterate = project(self.plan, self.iterate - self.plan.step * gradient)

    def coefficients(self) -> Floats:
        """B^T."""
        return self.iterate


def project(plan: Plan, iterate: Floats) -> Floats:
    """Project on the plan's data-free set."""
    rule = plan.projection
    if rule.kind == "none":
        return iterate
    weights = tuple(plan.basis.sobolev_weights(rule.alpha))
    if rule.kind == "ellipsoid":
        return Ellipsoid(weights, rule.radius).project(iterate)
    bounds = tuple(max(abs(low), abs(high)) for low, high in plan.scaling.design_bounds)
    return SobolevCone(weights, bounds, rule.radius).project(iterate)


def weighted_mean(plan: Plan, releases: Mapping[str, Release]) -> NDArray[np.float64]:
    """sum_s nu_s M_s^t with the plan's public weights, renormalised over the silos that answered."""
    if not releases:
        raise TransportError("No silo answered the query.")
    weights = {name: plan.silo(name).weight for name in releases}
    total = sum(weights.values())
    mean = np.zeros_like(next(iter(releases.values())).values)
    for name, release in releases.items():
        mean += (weights[name] / total) * release.values
    return mean
