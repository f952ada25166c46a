"""The best linear combination of a federated study's releases: what sites that differ are measured against.

It is not private and no method could compute it. For the estimates of B theta_s that a study has released it knows all that
weights depend on: the sds by which sites differ, the covariance of a curve's gradient, every site's design as it is, that
outcomes are symmetric (no bias of clipping is allowed for), and which size of the common curve's prior is best on average.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from benchmarks.utility_problems import GRID, Data, Floats, draw_process
from benchmarks.utility_references import sum_by, weigh
from dpfda.basis.basis import Basis
from dpfda.methods.adaptive.coordinator import AdaptiveCoordinator
from dpfda.methods.adaptive.covariates import CovariateLaw
from dpfda.methods.adaptive.evidence import Measured, ReadRounds, measure_silo
from dpfda.methods.adaptive.information import Information
from dpfda.methods.adaptive.sites import Releases, fit_part, list_shapes
from dpfda.methods.adaptive.start import join_blocks
from dpfda.methods.adaptive.state import State
from dpfda.methods.adaptive.weights import MeanWeight
from dpfda.protocol.plan import Plan
from dpfda.protocol.plans.registry import COORDINATORS

PRIOR_SIZES = (0.1, 0.3, 1.0, 3.0, 10.0, 100.0)  # times the variances that the study itself gave the common curve
_MANY = 20_000  # curves from which the covariance of a gradient is taken


@contextlib.contextmanager
def keep_coordinators() -> Iterator[list[AdaptiveCoordinator]]:
    """The coordinators of all studies that are run meanwhile."""
    kept: list[AdaptiveCoordinator] = []

    def make(plan: Plan) -> AdaptiveCoordinator:
        kept.append(AdaptiveCoordinator(plan))
        return kept[-1]

    usual = COORDINATORS["adaptive"]
    COORDINATORS["adaptive"] = make
    try:
        yield kept
    finally:
        COORDINATORS["adaptive"] = usual


def square_functions(basis: Basis, longer: Basis, data: Data) -> Floats:
    """The mean of Phi F' over a site's points, every subject weighing the same."""
    weights = weigh(data) / (int(data.ids.max()) + 1)
    return np.asarray((basis.evaluate(data.x) * weights[:, None]).T @ longer.evaluate(data.x))


@cache
def measure_gradients(basis: Basis, power: int, noise_sd: float) -> Floats:
    """The covariance of a curve's gradient at its site's own mean, six points to the given power, from many curves."""
    rng = np.random.default_rng([_MANY, power])
    x = rng.uniform(size=(_MANY, 6)) ** power
    residuals = noise_sd * draw_process(rng, x)
    ids = np.repeat(np.arange(_MANY), 6)
    gradients = sum_by(ids, basis.evaluate(x.ravel()) * residuals.reshape(-1, 1) / 6, _MANY)
    return np.asarray(gradients.T @ gradients / _MANY)


def combine(
    coordinator: AdaptiveCoordinator, sites: Sequence[Data], powers: Sequence[int], noise_sd: float, between: Floats,
    target: str = "subjects",
) -> Floats:  # fmt: skip
    """Curves on the grid, one row for each of PRIOR_SIZES: of the mean over subjects, or of one site by name.

    `noise_sd` and `between` (the sds of levels, slopes and bends between sites) are in the scaled units of y.
    """
    plan, state = coordinator.plan, coordinator.state
    assert state is not None
    assert state.posterior is not None
    releases = _measure(plan, state, sites, powers, noise_sd)
    size = state.longer.size
    prior = join_blocks(list(state.posterior.priors))
    curves = []
    for factor in PRIOR_SIZES:
        part = fit_part(between, list_shapes(size, 1), releases, factor * prior)
        found = part.subjects if target == "subjects" else part.each[releases.names.index(target)]
        curves.append(state.longer.evaluate(GRID) @ (state.start + found.mean))
    low, high = plan.scaling.y_bounds
    return np.asarray(np.array(curves) * (high - low) / 2 + (high + low) / 2)


def _measure(plan: Plan, state: State, sites: Sequence[Data], powers: Sequence[int], noise_sd: float) -> Releases:
    """Every site's releases as a measurement of B theta, B and the sampling error as they are."""
    names = tuple(state.answers)
    n = np.array([plan.silo(name).n for name in names], dtype=np.float64)
    matrices = [square_functions(plan.basis, state.longer, data) for data in sites]
    measured = [
        _measure_one(state, name, matrix, measure_gradients(plan.basis, power, noise_sd) / own)
        for name, matrix, power, own in zip(names, matrices, powers, n, strict=True)
    ]
    values = [each.value - matrix @ state.start for each, matrix in zip(measured, matrices, strict=True)]
    shared = np.zeros_like(measured[0].noise)
    return Releases(
        names, matrices, values, [each.covariance for each in measured], n / n.sum(), [0.0] * len(n), shared
    )


def _measure_one(state: State, name: str, matrix: Floats, sampling: Floats) -> Measured:
    law: CovariateLaw = state.law
    known = Information(matrix, matrix[None], np.zeros((1, *matrix.shape)), law, MeanWeight.of_share(1.0))
    certain = [replace(each, bias=replace(each.bias, sd=np.zeros_like(each.bias.sd), size=0.0)) for each in state.asked]
    rounds = ReadRounds.of(certain, np.eye(len(matrix)))
    return measure_silo(rounds, state.answers[name], known, sampling, state.open_now)
