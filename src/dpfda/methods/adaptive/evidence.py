"""Every released gradient is a noisy linear measurement of the same coefficients; here they are combined.

At the iterate b a silo's mean gradient is A (b - b*) plus sampling error. Clipping shrinks it by a Jacobian J that
follows from the released counts, so h = A b - W^{1/2} J^{-1} z estimates A b* with known noise, and rounds far from the
end, where J is less certain, count less.

J has the eigenvectors Q of the shape of whitened gradients. So in the coordinates C = Q^T W^{-1/2} of a round both J and
the covariance of h are diagonal: all rounds of all silos are weighted by vectors, and no matrix of one round is inverted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpfda._typing import Floats
from dpfda.methods.adaptive.constants import JACOBIAN_ERROR, MIN_JACOBIAN
from dpfda.methods.adaptive.coordinates import Coordinates
from dpfda.methods.adaptive.matrices import inverse


@dataclass(frozen=True)
class MeasuredRemainder:
    """The mean of what clipping took along a direction, the sd of its noise, and how much of it was within reach."""

    value: float
    sd: float
    direction: Floats
    within_reach: float


@dataclass(frozen=True)
class Evidence:
    """One silo's gradient of one round, with what its count says about clipping.

    The gradient is a mean over all curves; lengths are those of the share `filled` that have points.
    """

    value: Floats
    noise_sd: float
    iterate: Floats
    coordinates: Coordinates
    shrinkage: float
    clipped: float
    uncertainty: float
    squared_length: float
    radius: float
    round: int
    remainder: MeasuredRemainder | None = None
    filled: float = 1.0

    @cached_property
    def slopes(self) -> Floats:
        """Eigenvalues of J at the centre."""
        return np.maximum(self.shrinkage - self.clipped * self.coordinates.shares, MIN_JACOBIAN)

    def jacobian(self) -> Floats:
        """J, how clipping changes the mean gradient near the centre: directions with much variance lose more."""
        vectors = self.coordinates.vectors
        result: Floats = (vectors * self.slopes) @ vectors.T
        return result

    def restoration(self) -> Floats:
        """The inverse of J."""
        vectors = self.coordinates.vectors
        result: Floats = (vectors / self.slopes) @ vectors.T
        return result


@dataclass(frozen=True)
class Joint:
    """What is known from each silo of A b* and of the errors z of A: a Gaussian's precision, and precision times mean.

    `precision` and `score` are those of A b*, `error_precision` and `error_score` those of z, `cross` is between them.
    """

    precision: Floats
    cross: Floats
    error_precision: Floats
    score: Floats
    error_score: Floats

    def blurred(self, sampling: Floats) -> Joint:
        """The same where the mean of a silo's curves is off by an error with this covariance."""
        gain = inverse(self.precision + inverse(sampling))
        kept = np.eye(gain.shape[-1]) - self.precision @ gain
        lost = self.cross.swapaxes(-1, -2) @ gain
        return Joint(
            kept @ self.precision,
            kept @ self.cross,
            self.error_precision - lost @ self.cross,
            (kept @ self.score[..., None])[..., 0],
            self.error_score - (lost @ self.score[..., None])[..., 0],
        )

    def total(self) -> Joint:
        """All silos together; the errors of A are the same for all."""
        parts = self.precision, self.cross, self.error_precision, self.score, self.error_score
        return Joint(*(part.sum(axis=0) for part in parts))

    def marginal(self) -> tuple[Floats, Floats]:
        """Precision of A b*, and precision times mean, whatever z is: standard normal before anything was measured."""
        cross = self.cross.swapaxes(-1, -2)
        errors = np.eye(self.error_precision.shape[-1]) + self.error_precision
        lost = np.linalg.solve(errors, cross).swapaxes(-1, -2)
        return self.precision - lost @ cross, self.score - (lost @ self.error_score[..., None])[..., 0]


class Stack:
    """The gradients of several silos as arrays over (silo, round, entry); a round that a silo missed has no weight.

    `information` has one matrix for all silos, or one for each, and so has `errors`. If the true matrix is
    A + sum_j z_j errors[j], a round at b is off by sum_j z_j errors[j] (b* - b), with the same z in every round: z is
    estimated with b*. Rounds that began far away then say little about b* where A is uncertain and, next to those that ended
    near, much about A. Without, rounds crept towards the truth where A was too large, and were taken for there.
    """

    def __init__(self, evidence: Sequence[Sequence[Evidence]], information: Floats, errors: Floats) -> None:
        rounds = {item.round: item for items in evidence for item in items}
        place = {number: position for position, number in enumerate(sorted(rounds))}
        chosen = [rounds[number] for number in place]
        rotated = np.stack([item.coordinates.rotated for item in chosen])
        self._shape = len(evidence), *rotated.shape[:2]
        self._rows = rotated.reshape(-1, rotated.shape[-1])
        self._shares = np.stack([item.coordinates.shares for item in chosen])
        self._is_first = np.array([float(number == 1) for number in place])
        self._informed = self._rows @ information
        self._rotated, self._errors = rotated, errors
        self._iterates = np.stack([item.iterate for item in chosen])
        self._here = (self._informed.reshape(-1, *rotated.shape) @ self._iterates[..., None])[..., 0]
        self._value = np.zeros(self._shape)
        rounds_of_silos = *self._shape[:2], 1
        self._noise, self._length = np.ones((2, *rounds_of_silos))  # of a missed round: anything but zero
        self._shrinkage, self._clipped, self._doubt, self._present = np.zeros((4, *rounds_of_silos))
        for silo, items in enumerate(evidence):
            for item in items:
                at = silo, place[item.round]
                self._value[at] = item.value @ item.coordinates.vectors
                self._noise[at], self._length[at] = item.noise_sd**2, item.filled**2 * item.squared_length
                self._shrinkage[at], self._clipped[at], self._present[at] = item.shrinkage, item.clipped, 1.0
                self._doubt[at] = (JACOBIAN_ERROR + item.uncertainty) / len(item.value)

    def joint(self, centre: Floats | None, extra: Floats | None) -> Joint:
        """All rounds as one measurement for each silo.

        `centre` is the present guess of the coefficients and `extra` how far off it may be, both from an earlier call.
        """
        off: Floats = self._rows[:, :0]
        if centre is None or extra is None:
            far, doubt = self._is_first[:, None], 0.0
        else:
            off = self._off(centre)
            ahead = (self._informed @ centre).reshape(self._here.shape) - self._here
            around = ((self._rows @ extra) * self._rows).reshape(self._shape[0], self._shape[1], -1)
            away = (ahead**2).sum(axis=-1, keepdims=True) + around.sum(axis=-1, keepdims=True)
            far, doubt = np.minimum(1.0, 2 * away / self._length), self._doubt * away
        slopes = np.maximum(self._shrinkage - (1 - far) * self._clipped * self._shares, MIN_JACOBIAN)
        weights = self._present / (self._noise / slopes**2 + doubt)
        values = (weights * (self._here - self._value / slopes)).reshape(len(weights), -1)
        rows = self._rows.T * weights.reshape(len(weights), 1, -1)
        sloped = off.swapaxes(-1, -2)
        return Joint(
            rows @ self._rows,
            rows @ off,
            (sloped * weights.reshape(len(weights), 1, -1)) @ off,
            values @ self._rows,
            (sloped @ values[..., None])[..., 0],
        )

    def _off(self, centre: Floats) -> Floats:
        """What one unit of each error of A changes in every entry of every round."""
        moved = self._errors @ (centre - self._iterates).T
        changed = self._rotated @ np.moveaxis(moved, -1, -3).swapaxes(-1, -2)
        return np.asarray(changed.reshape(*changed.shape[:-3], len(self._rows), -1))
