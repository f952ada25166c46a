"""Every released gradient is a noisy linear measurement of the same coefficients; here they are combined.

At the iterate b a silo's mean gradient is A (b - b*) plus sampling error. Clipping shrinks it by a Jacobian J that the
released counts tell, so h = A b - W^{1/2} J^{-1} z estimates A b* with known noise, and rounds far from the end, where J
is less certain, count less.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpfda.engine.adaptive.matrices import with_floor

Floats = NDArray[np.float64]

_MODEL_ERROR = 0.1  # squared relative error of J, beyond what the counts leave open
_LEAST_SLOPE = 0.1


@dataclass(frozen=True)
class Coordinates:
    """The public coordinates of a round: W, its root and inverse, and the shape of the whitened gradients (trace 1)."""

    shape: Floats
    root: Floats
    inverse: Floats
    directions: Floats


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
    is_first: bool
    rest: Rest | None = None
    filled: float = 1.0

    def measurement(self, information: Floats, centre: Floats | None, extra: Floats | None) -> tuple[Floats, Floats]:
        """h and the inverse of its noise covariance, given the present guess `centre` of the coefficients."""
        away = 0.0
        if centre is not None and extra is not None:
            step = information @ (centre - self.iterate)
            away = float(step @ self.coordinates.inverse @ step + np.trace(self.coordinates.inverse @ extra))
        far = (
            min(1.0, 2 * away / (self.filled**2 * self.squared_length)) if centre is not None else float(self.is_first)
        )
        restore = self.coordinates.root @ np.linalg.inv(self.jacobian(far))
        doubt = (_MODEL_ERROR + self.uncertainty) * away / len(self.value)
        covariance = self.noise_sd**2 * restore @ restore.T + doubt * self.coordinates.shape
        return information @ self.iterate - restore @ self.value, np.asarray(
            np.linalg.inv(covariance), dtype=np.float64
        )

    def jacobian(self, far: float) -> Floats:
        """How clipping changes the mean gradient: by E s far away; near, directions with much spread lose more."""
        size = len(self.value)
        return with_floor(
            self.shrinkage * np.eye(size) - (1 - far) * self.clipped * self.coordinates.directions, _LEAST_SLOPE
        )


def combine_rounds(
    evidence: Sequence[Evidence], information: Floats, misfit: Floats, centre: Floats | None, extra: Floats | None
) -> tuple[Floats, Floats]:
    """All rounds of one silo as one measurement of A b*: its value and noise covariance.

    If the true matrix is A + sum_j N(0, 1) misfit[j], a round at b is off by sum_j N(0, 1) misfit[j] (b* - b), with the same
    numbers in every round: they are estimated along. Without, rounds crept towards the truth where A was too large, and
    the covariance took them for there.
    """
    size = len(information)
    precision, weighted = np.zeros((size, size)), np.zeros(size)
    cross, inner, seen = np.zeros((size, len(misfit))), np.eye(len(misfit)), np.zeros(len(misfit))
    for item in evidence:
        value, inverse = item.measurement(information, centre, extra)
        precision += inverse
        weighted += inverse @ value
        if centre is not None:
            off = (misfit @ (centre - item.iterate)).T
            cross += inverse @ off
            inner += off.T @ inverse @ off
            seen += off.T @ (inverse @ value)
    taken = np.linalg.solve(inner, cross.T).T
    precision -= taken @ cross.T
    weighted -= taken @ seen
    covariance = np.asarray(np.linalg.inv(precision), dtype=np.float64)
    return covariance @ weighted, covariance
