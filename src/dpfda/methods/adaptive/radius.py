"""The radius of a round: noise grows with it, what clipping takes falls with it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpfda._typing import Floats, Integers
from dpfda.methods.adaptive import constants
from dpfda.methods.adaptive.asymmetry import Asymmetry, Bias
from dpfda.methods.adaptive.far_curves import FarCurves
from dpfda.methods.adaptive.lengths import AtBounds, LengthLaw
from dpfda.methods.adaptive.matrices import power


@dataclass(frozen=True)
class Weights:
    """How much a unit of variance, spread as noise, bias or curves are, adds to the risk of the estimate.

    `along` is that of bias along the coordinates whose sides are counted, with all that goes with it; `shares` is which
    part of the bias lies along them, if nothing is known of it. `level` is that of a curve's level.
    """

    noise: float
    bias: float
    sampling: float
    along: Floats
    shares: Floats
    level: float = 0.0

    def weigh_bias(self, bias: Bias) -> float:
        """What this bias, its mean taken off, adds to the risk."""
        rest = max(self.bias - float(self.along @ self.shares), 0.0)
        return bias.size**2 * rest + float(self.along @ bias.sd**2)


def choose_radius(
    law: LengthLaw,
    precision: float,
    n: float,
    weights: Weights,
    dims: float,
    asymmetry: Asymmetry,
    far: FarCurves | None = None,
) -> float:
    """The radius of least risk; `precision` is n mu of the round."""
    step = constants.RADIUS_STEP
    radii = 2.0 ** np.arange(constants.LOWEST_RADIUS, constants.HIGHEST_RADIUS + step, step)
    radii = np.unique(np.minimum(radii, law.longest))
    found = law.attenuation(radii)
    slope = np.maximum(found.kept - found.clipped / dims, constants.MIN_JACOBIAN)
    noise = (2 * radii / precision) ** 2 * weights.noise
    sampling = found.square / n * weights.sampling

    def find_bias(which: Integers) -> Floats:
        bias = np.array([weights.weigh_bias(each) for each in asymmetry.find_biases(radii[which], constants.SURE)])
        return bias if far is None else bias + weights.level * far.take(radii[which]) ** 2

    def risk(which: Integers, bias: Floats) -> Floats:
        return np.asarray((noise[which] + bias + sampling[which]) / slope[which] ** 2)

    coarse = np.unique(np.append(np.arange(0, radii.size, constants.COARSE_RADII), radii.size - 1))
    bias = find_bias(coarse)
    every = np.arange(radii.size)
    least = risk(every, bias[np.searchsorted(coarse, every)])  # what is taken at a larger radius is less
    near = np.flatnonzero(least <= risk(coarse, bias).min() * (1 + constants.ROUNDING))
    return float(radii[near[np.argmin(risk(near, find_bias(near)))]])


def find_octave_at_bounds(whitener: Floats, level: Floats, away: float) -> float:
    """log2 of the length of a curve whose values are all `away` from the iterate; `level` is a constant's gradient."""
    return math.log2(max(float(np.linalg.norm(whitener @ level)) * away, constants.LEAST_LENGTH))


def spare_two_valued(radius: float, at_bounds: AtBounds, longest: float) -> float:
    """Where all values are at the bounds nobody is far from all others by chance: do not clip curves at a bound."""
    if at_bounds.two_valued <= constants.TWO_VALUED:
        return radius
    return float(max(radius, min(longest, constants.LONGER_CURVES * 2.0**at_bounds.octave)))


def weigh_errors(
    shape: Floats,
    spread: Floats,
    expected: Floats,
    bias: Floats,
    n: float,
    precision: float,
    columns: int,
    level: Floats | None = None,
) -> Weights:
    """How much variance in the clipped coordinates (trace 1 of noise, of bias, of curves) adds to the posterior risk."""
    size = len(shape)
    lengths = float(np.trace(np.linalg.solve(shape, spread)))
    unit = (2 * constants.TYPICAL_RADIUS / precision) ** 2 * lengths
    noise = np.linalg.inv(spread / n + unit * shape)
    posterior = np.linalg.inv(np.linalg.inv(expected + constants.RIDGE * np.trace(expected) * np.eye(size)) + noise)
    slope = noise @ posterior @ posterior @ noise  # of the risk, in the covariance of the noise
    along_bias = bias * lengths / float(np.trace(np.linalg.solve(shape, bias)))
    root = power(shape, 0.5) * math.sqrt(lengths)
    directions = np.linalg.solve(root, along_bias @ np.linalg.inv(root))
    known = slice(0, min(constants.SIDES, size))
    along = root @ np.linalg.solve(directions[known, known], directions[known]).T
    return Weights(
        float((slope * shape).sum()) * lengths * columns,  # every column has its own noise, all have one length
        float((slope * along_bias).sum()),
        float((slope * spread).sum()),
        np.einsum("ik,ij,jk->k", along, slope, along),
        np.diag(directions)[known] / columns,
        0.0 if level is None else float(level @ slope @ level),
    )
