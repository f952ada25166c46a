"""Coordinates for clipping: in which directions a gradient counts as long.

One ball is the cheapest bound, so directions are scaled first: those that the noise would hurt most are stretched. Along
the functions of the basis the scales minimise the posterior risk (a direction that the prior has settled needs no
precision, so more functions cost nothing). Along the covariates every column has about one size, but a small group is never
stretched until its curves are far longer than all others: they would be clipped first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpfda._typing import Floats
from dpfda.methods.adaptive import constants
from dpfda.methods.adaptive.covariates import CovariateLaw
from dpfda.methods.adaptive.matrices import inverse, kron, power


@dataclass(frozen=True)
class Spread:
    """Covariance of one curve's gradient at a uniform design: `alone` times I, plus `smooth` times a smooth curve's."""

    alone: float
    smooth: float

    def matrix(self, size: int) -> Floats:
        """In `size` functions."""
        return np.asarray(self.alone * np.eye(size) + self.smooth * np.diag(smooth_variances(size)))


def smooth_variances(size: int) -> Floats:
    """How a random curve's variance falls with the function's number: 1, then k^-2 / 4."""
    k = np.maximum(np.arange(size), 1.0)
    return np.where(np.arange(size) == 0, 1.0, constants.HARMONIC_VARIANCE / k**2)


def choose_function_shape(spread: Floats, expected: Floats, n: float, precision: float) -> Floats:
    """W for the ball |W^-1/2 g| <= C that minimises the posterior risk when coefficients have the `expected` covariance.

    The release is b + noise with covariance N = spread / n + tr(W^-1 spread) W (2 c / precision)^2, c the radius in root
    mean squares. With Lambda the posterior covariance, the risk tr Lambda has the derivative M = N^-1 Lambda^2 N^-1 in N,
    and is least where W = M^-1 # spread, a geometric mean; one step is half the way there. Without a prior W
    would be the root of the spread. W is kept within a factor of that, above the least ratio: every direction stays
    measurable if the prior is wrong.
    """
    base = power(spread, 0.5)
    root, identity = power(base, 0.5), np.eye(len(spread))
    unit = (2 * constants.TYPICAL_RADIUS / precision) ** 2
    prior = inverse(expected + constants.RIDGE * np.trace(expected) * identity)
    ratios, directions, shape = np.ones(len(spread)), identity, base  # root^-1 W root^-1, by eigenvalues
    outward, sampling = root, spread / n
    for _ in range(constants.SHAPE_PASSES):
        length = float(((base @ directions) * directions).sum(axis=0) @ (1 / ratios))  # tr W^-1 spread
        kept = np.linalg.inv(identity + (sampling + unit * length * shape) @ prior)  # Lambda N^-1
        slope = kept.T @ kept
        slope += constants.SLOPE_RIDGE * np.trace(slope) / len(slope) * identity
        scales = np.sqrt(ratios)
        along = outward / scales
        wanted = along.T @ power(base @ slope @ base, -0.5) @ along  # M^-1 # spread, in coordinates in which W is I
        ratios, turned = np.linalg.eigh(scales[:, None] * power(wanted, 0.5) * scales)
        logs = np.log(np.maximum(ratios, constants.TINY))
        ratios = np.exp(np.minimum(logs - logs.min(), constants.SHAPE_RANGE))
        directions = directions @ turned
        outward = root @ directions
        shape = (outward * ratios) @ outward.T
    return np.asarray(shape)


def choose_column_scales(law: CovariateLaw) -> Floats:
    """The matrix that takes columns of G* to about one size; columns with two values within a limit."""
    scales = power(law.average, -constants.COLUMN_POWER)
    scales /= scales[0, 0]
    longest = np.abs(np.diag(scales)) * law.longest
    limit = constants.MOST_LEVERAGE / np.maximum(longest, constants.MOST_LEVERAGE)
    return np.asarray(limit[:, None] * scales)


@dataclass(frozen=True)
class Coordinates:
    """v = whitener g: gradients of the centred coefficients in the coordinates that are clipped."""

    whitener: Floats
    inverse: Floats

    @classmethod
    def of(cls, columns: Floats, functions: Floats, covariance: Floats) -> Coordinates:
        """From both scales, in units in which gradients of this covariance have a root mean square length of 1."""
        values, vectors = np.linalg.eigh((functions + functions.T) / 2)
        roots = np.sqrt(np.maximum(values, constants.MIN_EIGENVALUE_RATIO * values[-1]))
        whitener = kron(columns, (vectors / roots) @ vectors.T)
        back = kron(np.asarray(np.linalg.inv(columns)), (vectors * roots) @ vectors.T)
        size = float(np.sqrt(np.trace(whitener @ covariance @ whitener.T)))
        return cls(np.asarray(whitener / size), np.asarray(back * size))
