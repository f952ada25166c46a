"""The covariance of one curve's gradient, from the companions of a clipped gradient."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpfda._typing import Floats
from dpfda.methods.adaptive import constants
from dpfda.methods.adaptive.covariates import CovariateLaw
from dpfda.methods.adaptive.lengths import Attenuation
from dpfda.methods.adaptive.matrices import fit_two, raise_eigenvalues
from dpfda.methods.adaptive.shape import Coordinates
from dpfda.methods.adaptive.start import covariance_parts
from dpfda.methods.adaptive.state import State
from dpfda.privacy.cones import from_triangle


@dataclass(frozen=True)
class Companions:
    """Second moments of clipped gradients (a triangle) and the sd of its noise, their mean, and counts by length."""

    second: Floats
    second_sd: float
    mean: Floats
    counts: Floats
    counts_sd: float


def learn_covariance(state: State, companions: Companions, coordinates: Coordinates, found: Attenuation) -> Floats:
    """Measured second moments, weighed against two parts of known form, freed of clipping, in centred gradients.

    Directions survive clipping, sizes do not: the law of lengths says by how much the second moments shrank. Where counts
    are mostly noise, so is that size, and the one before this round stands.
    """
    measured = from_triangle(companions.second) - np.outer(companions.mean, companions.mean)
    whitener = coordinates.whitener
    alone, smooth = (whitener @ part @ whitener.T for part in covariance_parts(state.pooled))
    square = state.filled * float(found.square[0])
    model = _fit_two(measured, alone, smooth, square, companions.second_sd)
    size, trace = len(model), float(np.trace(model))
    prior = (constants.MODEL_ERROR * trace / size) ** 2
    weight = prior / (prior + companions.second_sd**2)
    mixed = model + weight * (measured - model)
    mixed = raise_eigenvalues(mixed, constants.MIN_GRADIENT_EIGENVALUE * trace / size)
    grown = max(found.full_square / float(found.square[0]), 1.0)
    before = float(np.trace(whitener @ state.covariance @ whitener.T) / np.trace(mixed))
    seen = 1 / (1 + (companions.counts_sd / constants.SEEN_COUNTS) ** 2)
    back = coordinates.inverse
    return np.asarray(grown**seen * before ** (1 - seen) * back @ mixed @ back.T)


def _fit_two(measured: Floats, alone: Floats, smooth: Floats, square: float, sd: float) -> Floats:
    """a alone + b smooth nearest to the measured matrix; its trace weighed against that of the law of lengths."""
    a, b = fit_two(measured, alone, smooth)
    model = a * alone + b * smooth
    own, other = len(model) * sd**2, (constants.TRACE_ERROR * square) ** 2
    trace = (float(np.trace(measured)) * other + square * own) / (own + other)
    return np.asarray(model * (max(trace, constants.LEAST_TRACE * square) / float(np.trace(model))))


def learn_products(state: State, companions: Companions, coordinates: Coordinates) -> CovariateLaw:
    """How covariates go together, as second moments of gradients show it: E[g g^T] times the spread of a curve.

    In principal directions of what is known, so that an error is relative: products were released to the same error in all
    directions, and hardly say anything of one in which covariates hardly vary. Whether the spread depends on the covariates
    is not known, hence UNEVEN_SPREAD.
    """
    law, d = state.law, state.law.columns
    found = from_triangle(companions.second) - np.outer(companions.mean, companions.mean)
    whitener = coordinates.whitener
    alone, smooth = (whitener @ part @ whitener.T for part in covariance_parts(state.pooled))
    a, b = fit_two(found, alone, smooth)
    size = len(found) // d
    turn = np.linalg.solve(law.find_root(), _trace_blocks(coordinates.inverse, d))
    thought = turn @ _trace_blocks(a * alone + b * smooth, d) @ turn.T
    measured = turn @ _trace_blocks(found, d) @ turn.T
    unit = float(np.trace(thought)) / d
    reach = (turn**2).sum(axis=1)
    noise = np.outer(reach, reach) * size * (companions.second_sd / unit) ** 2 + constants.UNEVEN_SPREAD**2
    error = law.loose**2 + noise
    weights = 1 / np.diag(error)
    factor = float(weights @ np.diag(measured)) / float(weights @ np.diag(thought))
    gain = law.loose**2 / error
    change = gain * (measured / max(factor, constants.LEAST_FACTOR) - thought) / unit
    values, vectors = np.linalg.eigh(np.eye(d) + (change + change.T) / 2)
    root, most = law.find_root() @ vectors, constants.MOST_CHANGE
    average = (root * np.clip(values, 1 / most, most)) @ root.T
    moved = average - law.average
    first = int(law.units.intercept)
    moved[:first] = moved[:, :first] = 0.0
    within = law.within.copy()
    within[0] += moved
    loose = np.maximum(law.loose * np.sqrt(1 - gain), np.minimum(law.loose, constants.UNEVEN_SPREAD))
    return replace(law, within=within, average=law.average + moved, loose=loose)


def learn_unit(state: State, covariance: Floats, found: Attenuation) -> float:
    """The sd of curves' levels: what gradients say, weighed against the histogram of round 0.

    Much of the covariance may be what clipping is thought to have taken: then it is hardly known.
    """
    unit = math.sqrt(float(covariance[0, 0]) / state.weights.pooled.square)
    if state.law.columns == 1:
        return unit
    taken = math.log(max(found.full_square / float(found.square[0]), 1.0))
    own = constants.TRACE_ERROR**2 / 4 + (taken / 2) ** 2
    first = state.level.log_sd_of_means_sd**2 + constants.UNIT_ERROR**2
    at_first = math.hypot(state.level.sd_of_means, constants.LEAST_UNIT)
    return float(at_first * (unit / at_first) ** (first / (own + first)))


def _trace_blocks(matrix: Floats, columns: int) -> Floats:
    """Traces of the blocks of a matrix, one block for each pair of columns."""
    size = len(matrix) // columns
    return np.asarray(np.einsum("jaka->jk", matrix.reshape(columns, size, columns, size)))
