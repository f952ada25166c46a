"""What a round asks, and what is known after it. Pure functions: a plan, a state and releases in, a new state out."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from dpfda._typing import Floats
from dpfda.basis.basis import Basis
from dpfda.methods.adaptive import constants
from dpfda.methods.adaptive.asymmetry import Asymmetry, Bias, Sides, split_signs
from dpfda.methods.adaptive.covariates import CovariateLaw, fit_products
from dpfda.methods.adaptive.evidence import Answer, Asked, pool_silos
from dpfda.methods.adaptive.far_curves import Room
from dpfda.methods.adaptive.finish import finish
from dpfda.methods.adaptive.gradient_covariance import Companions, learn_covariance, learn_products, learn_unit
from dpfda.methods.adaptive.information import build_information
from dpfda.methods.adaptive.judging import count_clipped, count_long, judge
from dpfda.methods.adaptive.lengths import AtBounds, LengthLaw, carry_weights, first_weights, free_counts
from dpfda.methods.adaptive.matrices import fit_two
from dpfda.methods.adaptive.measurements import bias_shares, find_asymmetry, measure_all, read_rounds
from dpfda.methods.adaptive.pooling import find_shares, pool
from dpfda.methods.adaptive.posterior import fit_posterior
from dpfda.methods.adaptive.radius import choose_radius, find_octave_at_bounds, spare_two_valued, weigh_errors
from dpfda.methods.adaptive.shape import Coordinates, Spread, choose_column_scales, choose_function_shape
from dpfda.methods.adaptive.start import assume_covariance, covariance_parts, scale_mixtures, spread_information, start
from dpfda.methods.adaptive.state import Question, State, Visits
from dpfda.protocol.messages import Release
from dpfda.protocol.plan import Plan
from dpfda.protocol.statistics import LENGTH_CELLS, ClippedGradient, CovariateMoments, LengthHistogram


def question(plan: Plan, state: State | None, index: int) -> dict[str, Floats]:
    """The arrays of round `index`: none for round 0, before which nothing is known."""
    if state is None:
        return {}
    asked = state.question
    assert asked is not None
    size, units = plan.basis.size, state.law.units
    centred = state.iterate.reshape(plan.n_coefficients, -1)[:, :size]
    known = {
        "iterate": units.restore(centred).ravel(),
        "whitener": (asked.coordinates.whitener @ units.standardise_gradients(size)).ravel(),
        "radius": np.array([asked.radius or 0.0]),
        "covariate_centre": units.centre,
        "covariate_scale": state.law.query_scale,
    }
    return {name: known[name] for name in plan.query_sizes(index)}


def learn(
    plan: Plan, state: State | None, index: int, releases: Mapping[str, Release], known: Visits | None = None
) -> State:
    """What is known after the answers of round `index`, which were asked for with `question(plan, state, index)`.

    `known` are the visits, where another outcome that shares them has learnt of them before.
    """
    if state is None:
        return prepare_question(plan, start(plan, releases, known), 0)
    if plan.slice_of(index, CovariateMoments) is not None:
        state = learn_covariates(plan, state, index, releases)
    if plan.slice_of(index, LengthHistogram) is not None:
        return learn_lengths(plan, state, index, releases)
    state = learn_gradients(plan, state, index, releases)
    if index == len(plan.rounds) - 1:
        return dataclasses.replace(state, result=finish(plan, state))
    return prepare_question(plan, move(plan, state), index)


def prepare_question(plan: Plan, state: State, index: int) -> State:
    """Choose the coordinates of the next gradient round, and say what is thought of lengths in them."""
    size = plan.basis.size
    precision, n = pooled_precision(plan, next_gradient_round(plan, index)), float(sum(silo.n for silo in plan.silos))
    mixtures = scale_mixtures(plan, state.longer, state.level, state.law, state.unit)
    weights = mixtures[0].odds() if state.posterior is None else state.posterior.weights[0]
    tempered = np.maximum(weights, constants.LEAST_WEIGHT) ** constants.TEMPER
    expected = mixtures[0].average(tempered / tempered.sum())[:size, :size]
    spread = even_spread(state, size)
    functions = choose_function_shape(spread, expected, n, precision)
    columns = choose_column_scales(state.law)
    coordinates = Coordinates.of(columns, functions, second_moments(state))
    bias = np.diag(bias_shares(size))
    level, away = state.pooled.gram()[:, 0], (abs(state.level.value) + 1) / state.filled
    found = weigh_errors(functions, spread, expected, bias, n, precision, state.law.columns, level[:size])
    at_bounds = AtBounds(find_octave_at_bounds(coordinates.whitener, level, away), state.two_valued)
    longest = find_longest(plan.basis, state, coordinates)
    room = find_room(plan, state, coordinates)
    return dataclasses.replace(state, question=Question(coordinates, found, at_bounds, longest, room), lengths=None)


def find_room(plan: Plan, state: State, coordinates: Coordinates) -> Room:
    """What the bounds of y leave for curves far from the iterate."""
    curve = _evaluate_over_domain(plan.basis) @ state.iterate[: plan.basis.size]
    centre = float(np.clip(curve.mean(), -1.0, 1.0))
    gram, whitener, points = state.pooled.gram() / state.filled, coordinates.whitener, constants.POINTS_GUESS
    together, alone = float(((whitener @ gram[:, 0]) ** 2).sum()), float(np.trace(whitener @ gram @ whitener.T))
    unit = math.sqrt((1 - 1 / points) * together + alone / points)
    at_lower = state.at_lower[0]
    at_bound = at_lower if centre < 0 else 1 - state.inside[0] - at_lower
    doubt = math.sqrt(float(state.open_now[1][0, 0]))
    part = constants.SYMMETRIC if plan.assumptions.symmetric else 1.0
    return Room(unit, 1 - abs(centre), doubt, min(max(at_bound, 0.0), 1.0), part)


def even_spread(state: State, size: int) -> Floats:
    """The spread of a curve's gradient for a uniform design, of the form that was found."""
    alone, smooth = covariance_parts(state.pooled)
    block = slice(0, size)
    found = fit_two(state.covariance[block, block], alone[block, block], smooth[block, block])
    return Spread(*found).matrix(size)


def find_longest(basis: Basis, state: State, coordinates: Coordinates) -> float:
    """The length of the longest gradient that bounds allow, on a grid of x: it only limits what is looked for."""
    features, size = _evaluate_over_domain(basis), basis.size
    curve = features @ state.iterate[:size]
    away = np.maximum(1 - curve, 1 + curve)
    d = state.law.columns
    whitener = coordinates.whitener.reshape(d, size, d, size)
    reach = (1 + np.abs(state.law.units.centre)) / state.law.units.scale  # of |g|, columns within [-1, 1]
    reach[0] = 1.0 if state.law.units.intercept else reach[0]
    lengths = np.zeros(len(features))
    for k in range(d):
        block = whitener[:, :, k, :].reshape(d * size, size)
        lengths += reach[k] * np.sqrt(((features @ block.T) ** 2).sum(axis=1))
    return float((lengths * away).max())


def next_gradient_round(plan: Plan, index: int) -> int:
    """The first gradient round after this one."""
    return next(later for later in range(index + 1, len(plan.rounds)) if plan.slice_of(later, ClippedGradient))


def count_gradient_rounds(plan: Plan) -> int:
    """How often a plan asks for gradients."""
    return sum(plan.slice_of(index, ClippedGradient) is not None for index in range(len(plan.rounds)))


def pooled_precision(plan: Plan, index: int) -> float:
    """n mu of a round, of all silos together."""
    return math.hypot(*(silo.n * plan.event(silo.name, index).mu for silo in plan.silos))


def learn_covariates(plan: Plan, state: State, index: int, releases: Mapping[str, Release]) -> State:
    """How covariates go together and change along x, and the information with it."""
    trust = state.oddness.trust
    weight = state.weights.blend(find_shares(plan, index, CovariateMoments, releases, trust))
    law = fit_products(state.law, pool(plan, index, CovariateMoments, releases, trust), weight, state.design)
    state = change_law(plan, state, law)
    visits = dataclasses.replace(state.visits, law=law)
    return dataclasses.replace(state, covariance=assume_covariance(state.pooled, state.unit), visits=visits)


def change_law(plan: Plan, state: State, law: CovariateLaw) -> State:
    """With another law of the covariates, and the information that follows from it."""
    pooled = build_information(plan.basis, state.longer, state.design, law, state.weights.pooled)
    informations = spread_information(plan, state.longer, pooled, state.design, state.own_designs, state.weights)
    return dataclasses.replace(state, law=law, pooled=pooled, informations=informations)


def learn_lengths(plan: Plan, state: State, index: int, releases: Mapping[str, Release]) -> State:
    """The law of lengths, and the radius that it suggests; twice if the lengths show that a site is odd."""
    found = find_radius(plan, state, index, releases)
    if state.first_traits is None:  # too few sites to compare
        return found
    asked = found.question
    assert asked is not None
    assert asked.radius is not None
    state = dataclasses.replace(state, long=count_long(plan, state.long, index, releases, asked))
    judged = dataclasses.replace(state, oddness=judge(plan, state))
    if judged.oddness.trust == state.oddness.trust:
        return dataclasses.replace(found, long=state.long)
    return find_radius(plan, judged, index, releases)


def find_radius(plan: Plan, state: State, index: int, releases: Mapping[str, Release]) -> State:
    """The law of lengths from a histogram, and the radius."""
    asked, histogram = state.question, pool(plan, index, LengthHistogram, releases, state.oddness.trust)
    assert asked is not None
    at = asked.at_bounds
    weights = first_weights(at) if state.carried is None else carry_weights(*state.carried, at)
    shares, sd, sides = split_signs(histogram, state.filled)
    law = LengthLaw.start(weights, histogram.n, asked.longest).observe(shares, sd)
    precision, n = pooled_precision(plan, index + 1), float(sum(silo.n for silo in plan.silos))
    dims, asymmetry = effective_dims(state, asked.coordinates), see_asymmetry(plan, state, law, sides, for_band=False)
    far = asked.room.observe(shares, sd, law)
    radius = choose_radius(law, precision * state.filled, n, asked.weights, dims, asymmetry, far)
    radius = spare_two_valued(radius, asked.at_bounds, asked.longest)
    asked = dataclasses.replace(asked, radius=radius)
    return dataclasses.replace(state, lengths=law, sides=sides, far=far, question=asked)


def see_asymmetry(plan: Plan, state: State, law: LengthLaw, sides: Sides | None, *, for_band: bool) -> Asymmetry:
    """What the sides tell of the bias of clipping in the coordinates of the question."""
    assert state.question is not None
    coordinates = state.question.coordinates
    pointing = direction_shares(state, coordinates)
    reach = state.asked[-1].radius if state.asked else math.inf
    hidden = constants.HIDDEN * (1 - state.question.room.suspect(law))  # the rest is among the far curves
    return find_asymmetry(plan, state.law, coordinates, pointing, (law, sides), reach, hidden=hidden, for_band=for_band)


def second_moments(state: State) -> Floats:
    """Of one curve's gradient at the iterate: its covariance, and what is not known of the iterate's own error."""
    matrix = state.pooled.matrix
    return np.asarray(state.covariance + matrix @ state.open_now[1] @ matrix.T)


def direction_shares(state: State, coordinates: Coordinates) -> Floats:
    """How gradients' directions are distributed in the coordinates: a matrix of trace 1."""
    whitened = coordinates.whitener @ second_moments(state) @ coordinates.whitener.T
    return np.asarray(whitened / np.trace(whitened))


def effective_dims(state: State, coordinates: Coordinates) -> float:
    """In how many directions gradients point, about."""
    shares = direction_shares(state, coordinates)
    return float(1 / (shares**2).sum())


def learn_gradients(plan: Plan, state: State, index: int, releases: Mapping[str, Release]) -> State:
    """Take in the gradients and their companions, and estimate."""
    asked = state.question
    assert asked is not None
    assert asked.radius is not None
    if state.first_traits is not None:
        state = dataclasses.replace(state, clipped=count_clipped(plan, state.clipped, index, releases, asked.radius))
        state = dataclasses.replace(state, oddness=judge(plan, state))
    assert state.lengths is not None
    companions = read_companions(plan, index, releases, asked.radius, state)
    law = state.lengths.observe(companions.counts, companions.counts_sd, free_counts(asked.radius))
    found = law.attenuation(np.array([asked.radius]))
    shares = direction_shares(state, asked.coordinates)
    kept, clipped = float(found.kept[0]), float(found.clipped[0])
    jacobian = kept * np.eye(len(shares)) - clipped * shares
    nothing = Bias(np.zeros(0), np.zeros(0), 0.0)
    asked_now = Asked(state.iterate, asked.coordinates, asked.radius, jacobian, nothing, nothing)
    answers = dict(state.answers)
    place = plan.slice_of(index, ClippedGradient)
    assert place is not None
    vector = slice(place.start, place.start + len(shares))
    for name, release in choose_readable(state, releases).items():
        answer = Answer(len(state.asked), -release.values[vector], float(release.noise_sd[place.start]))
        answers[name] = (*answers.get(name, ()), answer)
    covariance = learn_covariance(state, companions, asked.coordinates, found)
    covariance = covariance + assume_covariance(state.pooled, constants.LEAST_UNIT)
    unit = learn_unit(state, covariance, found)
    state = dataclasses.replace(
        state,
        lengths=law,
        covariance=covariance,
        unit=unit,
        asked=recall_biases(plan, state, covariance, law, (*state.asked, asked_now)),
        answers=answers,
        carried=(law.all_weights(), -0.5 * math.log2(max(found.full_square, constants.LEAST_LENGTH_SQUARE))),
    )
    if state.law.columns > 1:
        state = change_law(plan, state, learn_products(state, companions, asked.coordinates))
    return estimate(plan, state)


def choose_readable(state: State, releases: Mapping[str, Release]) -> Mapping[str, Release]:
    """Without silos that are left out, unless there is nothing else to estimate from."""
    found = {name: release for name, release in releases.items() if name not in state.left_out}
    return found if found or state.answers else releases


def recall_biases(
    plan: Plan, state: State, covariance: Floats, law: LengthLaw, asked: tuple[Asked, ...]
) -> tuple[Asked, ...]:
    """What clipping took in every round so far, under the newest law of lengths; for a band, after the last round."""
    latest = asked[-1].coordinates.whitener
    now = math.sqrt(float(np.trace(latest @ covariance @ latest.T)))
    whiteners = [each.coordinates.whitener for each in asked]
    longer = np.array([now / math.sqrt(float(np.trace(each @ covariance @ each.T))) for each in whiteners])
    radii = np.array([each.radius for each in asked]) * longer
    usual = see_asymmetry(plan, state, law, state.sides, for_band=False)
    biases, units = usual.find_biases(radii, constants.SURE), longer / state.filled
    assert state.far is not None
    far, level = state.far.take(radii), state.pooled.gram()[:, 0]
    away = [far[k] * each.coordinates.whitener @ level for k, each in enumerate(asked)]
    asked = tuple(dataclasses.replace(each, bias=biases[k].divided(units[k], away[k])) for k, each in enumerate(asked))
    if not state.with_band or len(asked) < count_gradient_rounds(plan):
        return asked
    band = usual if state.law.columns == 1 else see_asymmetry(plan, state, law, state.sides, for_band=True)
    bands = band.find_biases(radii, constants.BAND_SURE, constants.BAND_ASYMMETRY)
    return tuple(
        dataclasses.replace(each, band_bias=bands[k].divided(units[k], away[k])) for k, each in enumerate(asked)
    )


def read_companions(plan: Plan, index: int, releases: Mapping[str, Release], radius: float, state: State) -> Companions:
    """Second moments and counts by length of all silos together."""
    pooled = pool(plan, index, ClippedGradient, releases, state.oddness.trust)
    size, filled = plan.n_coefficients * plan.basis.size, state.filled
    triangle = slice(size, pooled.values.size - LENGTH_CELLS)
    counts = pooled.values[triangle.stop :] / radius
    counts[0] -= 1 - filled
    return Companions(
        second=pooled.values[triangle] * radius * math.sqrt(2),
        second_sd=float(pooled.sd[size]) * radius * math.sqrt(2),
        mean=-pooled.values[:size],
        counts=counts / filled,
        counts_sd=float(pooled.sd[-1]) / radius / filled,
    )


def estimate(plan: Plan, state: State) -> State:
    """The posterior, twice: what B's errors do depends on how far the iterates were from it."""
    mixtures = scale_mixtures(plan, state.longer, state.level, state.law, state.unit)
    posterior, rounds = None, read_rounds(plan, state)
    for again in range(constants.ESTIMATE_PASSES):
        measured = measure_all(plan, state, rounds)
        if again:
            state = dataclasses.replace(state, oddness=judge(plan, state))
        data = pool_silos(measured, state.informations, state.oddness.trust)
        posterior = fit_posterior(data, state.start, mixtures, posterior)
        state = dataclasses.replace(
            state,
            measured=measured,
            posterior=posterior,
            open_now=(posterior.mean, posterior.covariance),
        )
    return state


def move(plan: Plan, state: State) -> State:
    """Go to the estimate, kept within the bounds of y, in the functions of the basis."""
    assert state.posterior is not None
    size, columns = plan.basis.size, plan.n_coefficients
    target = state.posterior.mean.reshape(columns, -1).copy()
    target[:, size:] = 0.0
    target[0, :size] = keep_within_bounds(plan.basis, target[0, :size])
    return dataclasses.replace(state, iterate=target.ravel())


def keep_within_bounds(basis: Basis, coefficients: Floats) -> Floats:
    """Shrink a function towards its own average over the domain until it stays in [-1, 1]."""
    curve = _evaluate_over_domain(basis) @ coefficients
    centre = float(np.clip(curve.mean(), -1.0, 1.0))
    above, below = (max(float(away), constants.MIN_DEVIATION) for away in (curve.max() - centre, centre - curve.min()))
    factor = min(1.0, (1 - centre) / above, (1 + centre) / below)
    kept: Floats = coefficients * factor
    kept[0] += (1 - factor) * centre
    return kept


@lru_cache(maxsize=64)
def _evaluate_over_domain(basis: Basis) -> Floats:
    """The basis functions on a grid of the domain."""
    return basis.evaluate_unit(np.linspace(0, 1, constants.BOUND_POINTS))
