"""The one loop: ask, aggregate, step, project. Mean and VCM, central and federated, published and default.

The coordinator runs it. It sees releases only; all it does is post-processing, so it costs no privacy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpfda.engine.aggregate import weighted_mean
from dpfda.engine.plan import Plan, Projection
from dpfda.messages import Query, Release
from dpfda.sobolev import Ellipsoid, SobolevCone
from dpfda.transport.base import Transport

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Outcome:
    """What a study ends with: the coefficients and whether every release was private."""

    coefficients: Floats
    rounds: int
    private: bool


def run_study(
    plan: Plan, transport: Transport, run: str, on_round: Callable[[int, int], None] | None = None
) -> Outcome:
    """Drive a plan to its end (Algorithms 1-4 when the plan is a published one)."""
    transport.open(plan, run)
    iterate, private = plan.start(), True
    for index in range(len(plan.rounds)):
        releases = transport.gather(Query(run, index, {"iterate": iterate.ravel()}))
        iterate = descend(plan, iterate, releases)
        private = private and all(release.private for release in releases.values())
        if on_round is not None:
            on_round(index + 1, len(plan.rounds))
    return Outcome(iterate, len(plan.rounds), private)


def descend(plan: Plan, iterate: Floats, releases: Mapping[str, Release]) -> Floats:
    """B^{t+1} = Pi{B^t - rho sum_s nu_s M_s^t}; the noise is inside the step (slip 1 of docs/notation.md)."""
    gradient = weighted_mean(plan, releases).reshape(plan.shape)
    return project(plan, iterate - plan.step * gradient)


def project(plan: Plan, iterate: Floats) -> Floats:
    """Project on the plan's data-free set."""
    rule: Projection = plan.projection
    if rule.kind == "none":
        return iterate
    weights = tuple(plan.basis.sobolev_weights(rule.alpha))
    if rule.kind == "ellipsoid":
        return Ellipsoid(weights, rule.radius).project(iterate)
    bounds = tuple(max(abs(low), abs(high)) for low, high in plan.scaling.design_bounds)
    return SobolevCone(weights, bounds, rule.radius).project(iterate)
