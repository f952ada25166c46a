"""The covariance of one curve's gradient, from the companions of a clipped gradient."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpfda._typing import Floats
from dpfda.methods.adaptive import constants
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
