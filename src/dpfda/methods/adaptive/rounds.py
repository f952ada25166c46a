"""What a round asks, and what is known after it. Pure functions: a plan, a state and releases in, a new state out."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from dpfda._typing import Floats
from dpfda.basis.basis import Basis
from dpfda.methods.adaptive.constants import BOUND_POINTS, MIN_DEVIATION
from dpfda.methods.adaptive.coordinates import Coordinates, expect_squared_length
from dpfda.methods.adaptive.estimate import Estimate, Measurements, estimate
from dpfda.methods.adaptive.evidence import Evidence, MeasuredRemainder
from dpfda.methods.adaptive.finish import finish
from dpfda.methods.adaptive.geometry import choose_shape, fit_covariate_matrix
from dpfda.methods.adaptive.gradient_covariance import fit_mean_square, pool_scaled, shrink_covariance, trace_sd
from dpfda.methods.adaptive.pooling import pool
from dpfda.methods.adaptive.skewness import find_level_direction, share_within_reach
from dpfda.methods.adaptive.start import assume_geometries, start
from dpfda.methods.adaptive.state import SiloState, State
from dpfda.privacy.cones import from_triangle
from dpfda.protocol.clip_radius import clip_rule, released_count, track_lengths
from dpfda.protocol.messages import Release
from dpfda.protocol.plan import Plan
from dpfda.protocol.statistics import ClippedRemainder, CovariateProducts, GradientOuterProducts, WhitenedGradient


def question(plan: Plan, state: State | None, index: int) -> dict[str, Floats]:
    """The arrays of round `index`: none for round 0, before which nothing is known."""
    if state is None:
        return {}
    known = {
        "iterate": state.iterate,
        "whitener": state.coordinates.whitener.ravel(),
        "length_prior": np.array(state.length_prior),
        "displacements": np.array(state.displacements),
        "covariate_scale": state.covariate_sizes,
        "remainder_direction": find_level_direction(state.geometry.information, state.coordinates.whitener),
    }
    return {name: known[name] for name in plan.query_sizes(index)}


def learn(plan: Plan, state: State | None, index: int, releases: Mapping[str, Release]) -> State:
    """What is known after the answers of round `index`, which were asked for with `question(plan, state, index)`."""
    if state is None:
        return start(plan, releases)
    state = record_gradients(plan, state, index, releases)
    if plan.slice_of(index, CovariateProducts) is not None:
        state = learn_covariates(plan, state, index, releases)
    if plan.slice_of(index, GradientOuterProducts) is not None:
        state = learn_gradient_covariance(plan, state, index, releases)
    last = estimate_coefficients(plan, state)
    if index == len(plan.rounds) - 1:
        return dataclasses.replace(state, estimate=last, result=finish(state, last))
    return advance(plan, state, last)


def record_gradients(plan: Plan, state: State, index: int, releases: Mapping[str, Release]) -> State:
    """Keep every silo's gradient, with the shrinkage that its count makes likely."""
    silos = dict(state.silos)
    for name, release in releases.items():
        silos[name] = _record_gradient(plan, state, index, name, release)
    return dataclasses.replace(state, silos=silos)


def _record_gradient(plan: Plan, state: State, index: int, name: str, release: Release) -> SiloState:
    terms, silo = plan.silo(name), state.silos[name]
    radius = clip_rule(silo.lengths, terms.clip_factor).radius
    counts = (*silo.counts, released_count(plan, index, release, terms.n))
    lengths = track_lengths(state.length_prior, state.displacements, counts)
    shrinkage, clipped, uncertainty = lengths.attenuation(math.log(radius))
    place = plan.slice_of(index, WhitenedGradient)
    evidence = Evidence(
        value=release.values[place],
        noise_sd=float(release.noise_sd[place][0]),
        iterate=state.iterate,
        coordinates=state.coordinates,
        shrinkage=shrinkage,
        clipped=clipped,
        uncertainty=uncertainty,
        squared_length=math.exp(2 * lengths.log_median),
        radius=radius,
        round=index,
        remainder=_read_remainder(plan, state, index, release, terms.clip_factor),
        filled=state.filled,
    )
    return SiloState(lengths, counts, (*silo.evidence, evidence))


def _read_remainder(
    plan: Plan, state: State, index: int, release: Release, clip_factor: float
) -> MeasuredRemainder | None:
    place = plan.slice_of(index, ClippedRemainder)
    if place is None:
        return None
    reach = next(kind.reach for kind in plan.rounds[index].statistics if isinstance(kind, ClippedRemainder))
    value, sd = float(release.values[place][0]), float(release.noise_sd[place][0])
    direction = find_level_direction(state.geometry.information, state.coordinates.whitener)
    return MeasuredRemainder(value, sd, direction, share_within_reach(reach, clip_factor))


def learn_covariates(plan: Plan, state: State, index: int, releases: Mapping[str, Release]) -> State:
    """E[G G^T], and the geometry with it."""
    covariates = fit_covariate_matrix(pool(plan, index, CovariateProducts, releases), state.covariate_sizes)
    geometry, by_silo = assume_geometries(plan, state.density, state.silo_densities, covariates)
    return dataclasses.replace(state, geometry=geometry, silo_geometries=by_silo)


def learn_gradient_covariance(plan: Plan, state: State, index: int, releases: Mapping[str, Release]) -> State:
    """The covariance of whitened gradients: measured, freed of clipping, shrunk towards the assumed one."""
    scaled, restored, cuts = {}, [], []
    place = plan.slice_of(index, GradientOuterProducts)
    for name, release in releases.items():
        last = state.silos[name].evidence[-1]
        unit = last.radius**2 / last.squared_length
        scaled[name] = (release.values[place] * unit, release.noise_sd[place] * unit)
        restored.append(last.restoration())
        cuts.append(math.sqrt(unit))
    values, noise = pool_scaled(plan, scaled)
    clipped, restore, size = from_triangle(values), np.mean(restored, axis=0), len(state.iterate)
    square, sd = float(np.trace(clipped)) / state.filled, trace_sd(noise, size) / state.filled
    trace = state.filled * fit_mean_square(square, sd, sum(cuts) / len(cuts))
    noise *= float(np.trace(restore @ restore)) / size
    whitener, root = state.coordinates.whitener, state.coordinates.root
    assumed = whitener @ state.geometry.gradient_covariance @ whitener
    whitened = shrink_covariance(restore @ clipped @ restore.T, noise, assumed / np.trace(assumed), trace)
    return dataclasses.replace(state, gradient_covariance=root @ whitened @ root)


def estimate_coefficients(plan: Plan, state: State) -> Estimate:
    """From all silos that have answered a gradient round."""
    answered = {name: silo for name, silo in state.silos.items() if silo.evidence}
    per_curve = [math.exp(2 * silo.lengths.log_median) / plan.silo(name).n for name, silo in answered.items()]
    measurements = Measurements(
        evidence=[silo.evidence for silo in answered.values()],
        sampling=state.covariance_of_gradients() * np.array(per_curve)[:, None, None],
        silo_geometries=[state.silo_geometries.get(name) for name in answered],
    )
    return estimate(measurements, state.geometry, state.prior)


def advance(plan: Plan, state: State, last: Estimate) -> State:
    """Move to the estimate, kept within the bounds of y, and choose the next coordinates.

    Lengths fall by what the move explains, but not below what the doubt about the estimate makes likely: radii that fell
    on the strength of noise alone would make a walk of it.
    """
    target = last.posterior.mean
    step = target - state.iterate
    known = state.coordinates.whitener, state.geometry.information, state.filled
    surest = min((silo.lengths for silo in state.silos.values()), key=lambda lengths: lengths.sd)
    room = math.exp(2 * surest.log_median) - expect_squared_length(*known, last.posterior.covariance)
    displacement = min(expect_squared_length(*known, step[:, None] * step), max(room, 0.0))
    displacements = (*state.displacements, displacement)
    silos = {name: _displace(silo, state.length_prior, displacements) for name, silo in state.silos.items()}
    iterate = keep_within_bounds(plan.basis, target, state.level.value)
    shape, coordinates = choose_coordinates(state)
    return dataclasses.replace(
        state,
        silos=silos,
        displacements=displacements,
        iterate=iterate,
        shape=shape,
        coordinates=coordinates,
        estimate=last,
    )


def _displace(silo: SiloState, length_prior: tuple[float, float, float], displacements: tuple[float, ...]) -> SiloState:
    """The silo's lengths after the iterate's move; a silo that did not answer has no count."""
    counts = silo.counts if len(silo.counts) == len(displacements) else (*silo.counts, None)
    return SiloState(track_lengths(length_prior, displacements, counts), counts, silo.evidence)


def choose_coordinates(state: State) -> tuple[Floats, Coordinates]:
    """W and the coordinates of the next round; those of the last one where W is the same."""
    covariance, shape = state.gradient_covariance, state.geometry.assumed_shape
    if covariance is not None:
        shape = choose_shape(state.geometry, covariance, state.shape)
    if shape is state.shape:
        return shape, state.coordinates
    return shape, Coordinates.of(shape, state.covariance_of_gradients())


def keep_within_bounds(basis: Basis, coefficients: Floats, level: float) -> Floats:
    """Shrink towards the level until the first coefficient function stays in [-1, 1]."""
    curve = _evaluate_over_domain(basis) @ coefficients[: basis.size] - level
    above, below = max(curve.max(), MIN_DEVIATION), max(-curve.min(), MIN_DEVIATION)
    factor = min(1.0, (1 - level) / above, (1 + level) / below)
    kept: Floats = coefficients * factor
    kept[0] += (1 - factor) * level
    return kept


@lru_cache(maxsize=64)
def _evaluate_over_domain(basis: Basis) -> Floats:
    """The basis functions on a grid of the domain."""
    return basis.evaluate_unit(np.linspace(0, 1, BOUND_POINTS))
