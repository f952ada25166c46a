"""Every released gradient is a noisy linear measurement of the same coefficients; here they are combined.

At the iterate b a silo's mean gradient is A (b - b*) plus sampling error. Clipping shrinks it by a Jacobian J that the
released counts tell, so h = A b - W^{1/2} J^{-1} z estimates A b* with known noise, and rounds far from the end, where J
is less certain, count less.

J has the eigenvectors Q of the shape of whitened gradients. So in the coordinates C = Q^T W^{-1/2} of a round both J and
the covariance of h are diagonal: all rounds of all silos are weighted by vectors, and no matrix of one round is inverted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpfda._typing import Floats
from dpfda.methods.adaptive.matrices import inverse, powers

_MODEL_ERROR = 0.1  # squared relative error of J, beyond what the counts leave open
_LEAST_SLOPE = 0.1


@dataclass(frozen=True)
class Coordinates:
    """The public coordinates of a round: W^{1/2}, W^{-1/2}, and the shape of the whitened gradients (trace 1)."""

    root: Floats
    whitener: Floats
    directions: Floats

    @classmethod
    def of(cls, shape: Floats, spread: Floats) -> Coordinates:
        """W = `shape`, for gradients whose covariance is in proportion to `spread`."""
        root, whitener = powers(shape, 0.5, -0.5)
        directions = whitener @ spread @ whitener
        return cls(root, whitener, directions / directions.trace())

    @cached_property
    def _axes(self) -> tuple[Floats, Floats]:
        values, vectors = np.linalg.eigh((self.directions + self.directions.T) / 2)
        return values, vectors

    @property
    def shares(self) -> Floats:
        """Eigenvalues of `directions`."""
        return self._axes[0]

    @property
    def vectors(self) -> Floats:
        """Q, the eigenvectors of `directions`."""
        return self._axes[1]

    @cached_property
    def turned(self) -> Floats:
        """C = Q^T W^{-1/2}."""
        result: Floats = self.vectors.T @ self.whitener
        return result


@dataclass(frozen=True)
class Rest:
    """The mean of what clipping took along a direction, the sd of its noise, and how much of it was within reach."""

    value: float
    sd: float
    direction: Floats
    kept: float


@dataclass(frozen=True)
class Evidence:
    """One silo's gradient of one round, with what its count told about clipping.

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
    rest: Rest | None = None
    filled: float = 1.0

    @cached_property
    def slopes(self) -> Floats:
        """Eigenvalues of J at the centre."""
        return np.maximum(self.shrinkage - self.clipped * self.coordinates.shares, _LEAST_SLOPE)

    def jacobian(self) -> Floats:
        """J, how clipping changes the mean gradient near the centre: directions with much spread lose more."""
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
    """What each silo tells about A b* and the errors z of A: a Gaussian's precision, and precision times mean."""

    precision: Floats
    cross: Floats
    inner: Floats
    weighted: Floats
    inner_weighted: Floats

    def blurred(self, sampling: Floats) -> Joint:
        """The same where a silo's own curves have a mean that is off by an error with this covariance."""
        turned = self.cross.swapaxes(-1, -2)
        gain = inverse(self.precision + inverse(sampling))
        kept = np.eye(gain.shape[-1]) - self.precision @ gain
        taken = turned @ gain
        return Joint(
            kept @ self.precision,
            kept @ self.cross,
            self.inner - taken @ self.cross,
            (kept @ self.weighted[..., None])[..., 0],
            self.inner_weighted - (taken @ self.weighted[..., None])[..., 0],
        )

    def total(self) -> Joint:
        """All silos together; the errors of A are the same for all."""
        parts = self.precision, self.cross, self.inner, self.weighted, self.inner_weighted
        return Joint(*(part.sum(axis=0) for part in parts))

    def marginal(self) -> tuple[Floats, Floats]:
        """Precision of A b*, and precision times mean, whatever z is: standard normal before anything was measured."""
        turned = self.cross.swapaxes(-1, -2)
        taken = np.linalg.solve(np.eye(self.inner.shape[-1]) + self.inner, turned).swapaxes(-1, -2)
        return self.precision - taken @ turned, self.weighted - (taken @ self.inner_weighted[..., None])[..., 0]


class Stack:
    """The gradients of several silos as arrays over (silo, round, entry); a round that a silo missed has no weight.

    `information` has one matrix for all silos, or one for each, and so has `errors`. If the true matrix is
    A + sum_j z_j errors[j], a round at b is off by sum_j z_j errors[j] (b* - b), with the same z in every round: it is
    estimated along. Rounds that began far away then say little about b* where A is uncertain and, next to those that ended
    near, much about A. Without, rounds crept towards the truth where A was too large, and were taken for there.
    """

    def __init__(self, evidence: Sequence[Sequence[Evidence]], information: Floats, errors: Floats) -> None:
        rounds = {item.round: item for items in evidence for item in items}
        place = {number: position for position, number in enumerate(sorted(rounds))}
        chosen = [rounds[number] for number in place]
        turned = np.stack([item.coordinates.turned for item in chosen])
        self._shape = len(evidence), *turned.shape[:2]
        self._rows = turned.reshape(-1, turned.shape[-1])
        self._shares = np.stack([item.coordinates.shares for item in chosen])
        self._is_first = np.array([float(number == 1) for number in place])
        self._seen = self._rows @ information
        self._turned, self._errors = turned, errors
        self._iterates = np.stack([item.iterate for item in chosen])
        self._here = (self._seen.reshape(-1, *turned.shape) @ self._iterates[..., None])[..., 0]
        self._value = np.zeros(self._shape)
        facts = np.zeros((6, *self._shape[:2]))
        facts[:2] = 1.0  # noise and length of a missed round: anything but zero
        for silo, items in enumerate(evidence):
            for item in items:
                at = silo, place[item.round]
                self._value[at] = item.value @ item.coordinates.vectors
                facts[(slice(None), *at)] = (
                    item.noise_sd**2, item.filled**2 * item.squared_length, item.shrinkage, item.clipped,
                    (_MODEL_ERROR + item.uncertainty) / len(item.value), 1.0,
                )  # fmt: skip
        self._noise, self._length, self._shrinkage, self._clipped, self._doubt, self._present = facts[..., None]

    def joint(self, centre: Floats | None, extra: Floats | None) -> Joint:
        """All rounds as one measurement for each silo.

        `centre` is the present guess of the coefficients and `extra` how far off it may be, both from an earlier call.
        """
        off: Floats = self._rows[:, :0]
        if centre is None or extra is None:
            far, doubt = self._is_first[:, None], 0.0
        else:
            off = self._off(centre)
            ahead = (self._seen @ centre).reshape(self._here.shape) - self._here
            around = ((self._rows @ extra) * self._rows).reshape(self._shape[0], self._shape[1], -1)
            away = (ahead**2).sum(axis=-1, keepdims=True) + around.sum(axis=-1, keepdims=True)
            far, doubt = np.minimum(1.0, 2 * away / self._length), self._doubt * away
        slopes = np.maximum(self._shrinkage - (1 - far) * self._clipped * self._shares, _LEAST_SLOPE)
        weights = self._present / (self._noise / slopes**2 + doubt)
        values = (weights * (self._here - self._value / slopes)).reshape(len(weights), -1)
        rows = self._rows.T * weights.reshape(len(weights), 1, -1)
        turned = off.swapaxes(-1, -2)
        return Joint(
            rows @ self._rows,
            rows @ off,
            (turned * weights.reshape(len(weights), 1, -1)) @ off,
            values @ self._rows,
            (turned @ values[..., None])[..., 0],
        )

    def _off(self, centre: Floats) -> Floats:
        """What one unit of each error of A changes in every entry of every round."""
        moved = self._errors @ (centre - self._iterates).T
        changed = self._turned @ np.moveaxis(moved, -1, -3).swapaxes(-1, -2)
        return np.asarray(changed.reshape(*changed.shape[:-3], len(self._rows), -1))
