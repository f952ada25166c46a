"""All rounds of a silo as one measurement of B theta, and all silos as one likelihood of theta.

A clipped mean gradient is J v + T + noise: v what it would be without clipping, J = kept - clipped Q the mean derivative
of the clip (Q: how directions of gradients are distributed), T what clipping takes from a law that is not symmetric. T is
at most E(L - C)+ long, and a part of that in fact; it points mostly along the level, and alike in all rounds and silos.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpfda._typing import Floats
from dpfda.methods.adaptive import constants
from dpfda.methods.adaptive.asymmetry import Bias
from dpfda.methods.adaptive.information import Information
from dpfda.methods.adaptive.matrices import inverse
from dpfda.methods.adaptive.posterior import Data
from dpfda.methods.adaptive.shape import Coordinates


@dataclass(frozen=True)
class Asked:
    """A gradient round, as it was asked for: iterate (centred, longer), coordinates, radius, and how clipping acted."""

    iterate: Floats
    coordinates: Coordinates
    radius: float
    jacobian: Floats
    bias: Bias  # of clipping, as the choice believes in it
    band_bias: Bias  # ... and as a band does


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


@dataclass(frozen=True)
class ReadRounds:
    """What the rounds so far are read with, one row each; it does not depend on the silo.

    `backs` take a clipped mean to the mean gradient in the functions of the basis; `pulls` are means of the bias, in the
    coordinates of a round, and `spreads` roots of its covariance, in the functions of the basis.
    """

    iterates: Floats
    backs: Floats
    pulls: Floats
    spreads: Floats

    @classmethod
    def of(cls, asked: Sequence[Asked], shares: Floats, *, for_band: bool = False) -> ReadRounds:
        """`shares` as in `spread_bias`; a band believes in another bias."""
        found = [(ask.band_bias if for_band else ask.bias).root(spread_bias(ask.coordinates, shares)) for ask in asked]
        means, roots = (np.array(each) for each in zip(*found, strict=True))
        jacobians = np.array([ask.jacobian for ask in asked])
        values, vectors = np.linalg.eigh((jacobians + jacobians.swapaxes(1, 2)) / 2)
        inverses = (vectors / np.maximum(values, constants.MIN_JACOBIAN)[:, None, :]) @ vectors.swapaxes(1, 2)
        backs = np.array([ask.coordinates.inverse for ask in asked]) @ inverses
        return cls(np.array([ask.iterate for ask in asked]), backs, means, backs @ roots)

    def keep(self, which: Sequence[int]) -> ReadRounds:
        """Some rounds only."""
        if list(which) == list(range(len(self.backs))):
            return self
        rows = list(which)
        return ReadRounds(self.iterates[rows], self.backs[rows], self.pulls[rows], self.spreads[rows])

    @cached_property
    def squares(self) -> tuple[Floats, Floats]:
        """Covariances of noise of sd 1, and of the bias, in the functions of the basis."""
        return self.backs @ self.backs.swapaxes(1, 2), self.spreads @ self.spreads.swapaxes(1, 2)


def measure_silo(
    rounds: ReadRounds,
    answers: Sequence[Answer],
    information: Information,
    sampling: Floats,
    open_now: tuple[Floats, Floats],
) -> Measured:
    """Weigh the rounds by their own variances; errors that rounds share stay as large as they are."""
    mean, covariance = open_now
    rounds, size = rounds.keep([answer.round for answer in answers]), len(information.matrix)
    variances = np.array([answer.noise_sd**2 for answer in answers])[:, None, None]
    noises, biases = rounds.squares
    doubts = information.doubt_displaced(covariance, mean - rounds.iterates)
    totals = variances * noises + doubts + biases
    least = constants.LEAST_NOISE * np.trace(totals, axis1=1, axis2=2) / size
    weights = inverse(totals + least[:, None, None] * np.eye(size))
    gains = inverse(weights.sum(axis=0)) @ weights
    values = (rounds.backs @ (np.array([answer.value for answer in answers]) + rounds.pulls)[:, :, None])[:, :, 0]
    value = (gains @ (values + rounds.iterates @ information.matrix.T)[:, :, None]).sum(axis=0)[:, 0]
    noise = (gains @ (variances * noises) @ gains.swapaxes(1, 2)).sum(axis=0)
    doubt = (gains @ doubts @ gains.swapaxes(1, 2)).sum(axis=0)
    together, common = (gains @ rounds.spreads).sum(axis=0), constants.COMMON_BIAS
    bias = (1 - common) * (gains @ biases @ gains.swapaxes(1, 2)).sum(axis=0) + common * together @ together.T
    return Measured(value, noise, doubt, bias, sampling)


def spread_bias(coordinates: Coordinates, shares: Floats) -> Floats:
    """How the bias is spread over the coordinates: a root of trace 1; `shares` is a root for centred gradients."""
    root = coordinates.whitener @ shares
    return np.asarray(root / math.sqrt(float((root**2).sum())))


def pool_silos(
    measured: Mapping[str, Measured], informations: Mapping[str, Information], trust: Mapping[str, float] | None = None
) -> Data:
    """One likelihood of theta from all silos; doubt and bias, which they share, do not average out."""
    weights, _ = weigh_measurements(measured, trust)
    alike: dict[int, list[str]] = {}
    for name in measured:
        alike.setdefault(id(informations[name]), []).append(name)
    parts = []
    for names in alike.values():
        weight = sum(weights[name] for name in names)
        score = sum(weights[name] @ measured[name].value for name in names)
        part = Data.of_information(np.asarray(weight), np.asarray(score))  # of B theta
        parts.append((part.y, part.rows @ informations[names[0]].matrix))
    y, rows = (np.concatenate(each) for each in zip(*parts, strict=True))
    return Data.condense(y, rows)


def weigh_measurements(
    measured: Mapping[str, Measured], trust: Mapping[str, float] | None = None
) -> tuple[dict[str, Floats], float]:
    """What each silo's measurement counts for, and the effective number of silos, by which shared errors are enlarged."""
    trusted = {name: (trust or {}).get(name, 1.0) for name in measured}
    sizes = np.array([trusted[name] / np.trace(each.covariance) for name, each in measured.items()])
    alike = float(sizes.sum() ** 2 / (sizes**2).sum())
    weights = {
        name: np.asarray(trusted[name] * inverse(each.noise + each.sampling + alike * (each.doubt + each.bias)))
        for name, each in measured.items()
    }
    return weights, alike
