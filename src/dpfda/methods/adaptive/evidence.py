"""All rounds of a silo as one measurement of B theta, and all silos as one likelihood of theta.

A clipped mean gradient is J v + T + noise: v what it would be without clipping, J = kept - clipped Q the mean derivative
of the clip (Q: how directions of gradients are distributed), T what clipping takes from a law that is not symmetric. T is
at most E(L - C)+ long, and a part of that in fact; it points mostly along the level, and alike in all rounds and silos.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpfda._typing import Floats
from dpfda.methods.adaptive import constants
from dpfda.methods.adaptive.information import Information
from dpfda.methods.adaptive.matrices import inverse, raise_eigenvalues
from dpfda.methods.adaptive.posterior import Data
from dpfda.methods.adaptive.shape import Coordinates


@dataclass(frozen=True)
class Asked:
    """A gradient round, as it was asked for: iterate (centred, longer), coordinates, radius, and how clipping acted."""

    iterate: Floats
    coordinates: Coordinates
    radius: float
    jacobian: Floats
    excess: float  # E(L - C)+ that the choice believes in
    band_excess: float  # ... and that a band believes in


@dataclass(frozen=True)
class Answer:
    """What a silo released: the mean of clipped gradients, and the sd of its noise."""

    round: int
    value: Floats
    noise_sd: float


@dataclass(frozen=True)
class Measured:
    """A silo's measurement of B theta: value; covariances of noise, of doubt about B, of bias and of sampling."""

    value: Floats
    noise: Floats
    doubt: Floats
    bias: Floats
    sampling: Floats

    @property
    def covariance(self) -> Floats:
        return self.noise + self.doubt + self.bias + self.sampling

    def find_gain(self, posterior: Floats, information: Information) -> Floats:
        """What an error of this measurement is multiplied by in the estimate; `posterior` is the estimate's covariance."""
        return np.asarray(posterior @ information.matrix.T @ inverse(self.covariance))


def measure_silo(
    asked: Sequence[Asked],
    answers: Sequence[Answer],
    information: Information,
    sampling: Floats,
    open_now: tuple[Floats, Floats],
    shares: Floats,
    bias_factor: float,
    *,
    for_band: bool = False,
) -> Measured:
    """Weigh the rounds by their own variances; errors that rounds share stay as large as they are."""
    mean, covariance = open_now
    size = len(information.matrix)
    weights, values, backs, excesses, doubts = [], [], [], [], []
    for answer in answers:
        ask = asked[answer.round]
        back = ask.coordinates.inverse @ inverse(raise_eigenvalues(ask.jacobian, constants.MIN_JACOBIAN))
        excess = bias_factor * (ask.band_excess if for_band else ask.excess)
        displacement = mean - ask.iterate
        doubt = information.doubt(covariance + np.outer(displacement, displacement))
        biased = excess**2 * back @ _bias_shape(ask.coordinates, shares) @ back.T
        total = answer.noise_sd**2 * back @ back.T + doubt + biased
        weights.append(inverse(total + constants.LEAST_NOISE * np.trace(total) / size * np.eye(size)))
        values.append(back @ answer.value + information.matrix @ ask.iterate)
        backs.append(back)
        excesses.append(excess)
        doubts.append(doubt)
    pooled = inverse(np.sum(weights, axis=0))
    gains = [pooled @ weight for weight in weights]
    value = np.sum([gain @ each for gain, each in zip(gains, values, strict=True)], axis=0)
    noise, doubt, apart = np.zeros((size, size)), np.zeros((size, size)), np.zeros((size, size))
    together = np.zeros((size, size))
    for answer, gain, back, excess, own in zip(answers, gains, backs, excesses, doubts, strict=True):
        carried = gain @ back
        noise += answer.noise_sd**2 * carried @ carried.T
        doubt += gain @ own @ gain.T
        root = carried @ _bias_root(asked[answer.round].coordinates, shares) * excess
        apart += root @ root.T
        together += root
    common = constants.COMMON_BIAS
    bias = (1 - common) * apart + common * together @ together.T
    return Measured(value, noise, doubt, bias, sampling)


def _bias_shape(coordinates: Coordinates, shares: Floats) -> Floats:
    root = _bias_root(coordinates, shares)
    return np.asarray(root @ root.T)


def _bias_root(coordinates: Coordinates, shares: Floats) -> Floats:
    """How the bias is spread over directions, of trace 1 in the coordinates; `shares` are variances of centred gradients."""
    root = coordinates.whitener @ shares
    return np.asarray(root / np.sqrt((root**2).sum()))


def pool_silos(
    measured: Mapping[str, Measured], informations: Mapping[str, Information], trust: Mapping[str, float] | None = None
) -> tuple[Data, Floats]:
    """One likelihood of theta from all silos; doubt and bias, which they share, do not average out. And its precision."""
    trusted = {name: (trust or {}).get(name, 1.0) for name in measured}
    plain = {name: each.covariance for name, each in measured.items()}
    sizes = np.array([trusted[name] / np.trace(each) for name, each in plain.items()])
    alike = float(sizes.sum() ** 2 / (sizes**2).sum())
    size = next(iter(informations.values())).matrix.shape[1]
    precision, score = np.zeros((size, size)), np.zeros(size)
    for name, each in measured.items():
        matrix = informations[name].matrix
        weight = trusted[name] * inverse(each.noise + each.sampling + alike * (each.doubt + each.bias))
        precision += matrix.T @ weight @ matrix
        score += matrix.T @ weight @ each.value
    return Data.of_information(precision, score), precision
