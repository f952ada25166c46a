"""What is thought of a coefficient function before anything is released: a mixture over sizes and shapes.

A function has a level, a slope and bends. Sizes of slope and bends are in units of how much curves differ in level, which
is released first. Bends come in several shapes: rough everywhere (order 2, as a smoothing spline has it), smoother (order
3), or concentrated near one place or an end (peaks, steep starts). Sizes and shapes are averaged by evidence.

All of this is about the functions of a basis with free ends; other bases keep the prior of their kind, with one size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dpfda._blas import one_blas_thread
from dpfda._typing import Floats, Integers
from dpfda.basis.basis import Basis, make_basis
from dpfda.basis.free_ends import FreeEnds
from dpfda.methods.adaptive import constants


@dataclass(frozen=True)
class Mixture:
    """Components: variances of level and slope, of a shape, and log odds. Sizes are in units of `unit`."""

    shapes: Floats  # (shapes, size, size), each of trace 1, without level
    shape: Integers  # of every component: which shape
    slope: Floats  # ... sd of the slope
    bend: Floats  # ... sd of all bends together
    log_odds: Floats

    def scaled(self, unit: float, level_sd: float, level_in_sizes: float = 0.0) -> ScaledMixture:
        """In the units of y; the level has sd `level_sd`, plus so many times the sizes of slope and bends."""
        slope, bend = unit * self.slope, unit * self.bend
        level = np.hypot(level_sd, level_in_sizes * np.hypot(slope, bend))
        return ScaledMixture(self, level**2, slope**2, bend**2)


@dataclass(frozen=True)
class ScaledMixture:
    """Variances of every component."""

    mixture: Mixture
    level: Floats
    slope: Floats
    bend: Floats

    @property
    def log_odds(self) -> Floats:
        return self.mixture.log_odds

    def project(self, rows: Floats) -> Floats:
        """rows @ covariance @ rows.T for every component."""
        shapes = rows @ self.mixture.shapes @ rows.T
        found: Floats = self.bend[:, None, None] * shapes[self.mixture.shape]
        found += self.level[:, None, None] * np.outer(rows[:, 0], rows[:, 0])
        if rows.shape[1] > 1:
            found += self.slope[:, None, None] * np.outer(rows[:, 1], rows[:, 1])
        return found

    def covariances(self, which: Integers) -> Floats:
        """The covariance matrices of some components."""
        found: Floats = self.bend[which, None, None] * self.mixture.shapes[self.mixture.shape[which]]
        found[:, 0, 0] += self.level[which]
        if found.shape[1] > 1:
            found[:, 1, 1] += self.slope[which]
        return found

    def average(self, weights: Floats) -> Floats:
        """The mean of the covariances under these weights."""
        shapes = self.mixture.shapes
        by_shape = np.bincount(self.mixture.shape, weights=weights * self.bend, minlength=len(shapes))
        found: Floats = np.tensordot(by_shape, shapes, 1)
        found[0, 0] += weights @ self.level
        if len(found) > 1:
            found[1, 1] += weights @ self.slope
        return found

    def keep(self, which: Integers) -> ScaledMixture:
        """Some components only."""
        own = self.mixture
        kept = Mixture(own.shapes, own.shape[which], own.slope[which], own.bend[which], own.log_odds[which])
        return ScaledMixture(kept, self.level[which], self.slope[which], self.bend[which])

    def odds(self, temper: float = 1.0) -> Floats:
        """Prior weights, adding up to 1."""
        return normalise(temper * self.log_odds)


def normalise(logs: Floats) -> Floats:
    """Weights in proportion to these exponentials."""
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())


@lru_cache(maxsize=32)
def make_mixture(basis: Basis, alpha: float) -> Mixture:
    """The components for the functions of this basis (the longer one that estimates live in)."""
    if isinstance(basis, FreeEnds) and basis.size > constants.STRAIGHT + 1:
        return _free_ends_mixture(basis.size)
    covariance = basis.prior_covariance(alpha, constants.COHERENT_SHARE)
    shapes = (covariance / max(float(np.trace(covariance)), constants.TINY))[None]
    bends = np.array(constants.BEND_SIZES)
    odds = -0.5 * (np.log(bends / constants.TYPICAL_VARIATION) / constants.BEND_SPREAD) ** 2
    return Mixture(shapes, np.zeros(bends.size, int), np.zeros(bends.size), bends, odds)


@lru_cache(maxsize=8)
@one_blas_thread()
def _free_ends_mixture(size: int) -> Mixture:
    everywhere, local = _list_shapes(size)
    shapes, found = [*everywhere, *local], []
    for number in range(len(shapes)):
        is_local = number >= len(everywhere)
        slopes = constants.SLOPE_SIZES[1::2] if is_local else constants.SLOPE_SIZES
        bends = [each for each in constants.BEND_SIZES if not is_local or each > constants.LEAST_LOCAL_BEND]
        bonus = -math.log(len(local)) if is_local else -math.log(len(everywhere) - 1) if number else 0.0
        found += [(number, slope, bend, bonus) for slope in slopes for bend in bends]
    shape, slope, bend, extra = (np.array(each) for each in zip(*found, strict=True))
    odds = extra - 0.5 * (np.log(bend / constants.TYPICAL_BEND) / constants.BEND_SPREAD) ** 2
    odds = odds - 0.5 * (np.log(slope / constants.TYPICAL_SLOPE) / constants.SLOPE_SPREAD) ** 2
    return Mixture(np.stack(shapes), shape.astype(int), slope, bend, odds)


def _list_shapes(size: int) -> tuple[list[Floats], list[Floats]]:
    """Covariances of bends: everywhere (orders 2 and 3), and concentrated near an end or a place."""
    order_2 = _integrate_noise(size, 2)
    smooth = _integrate_noise(size, 3)
    parabola = np.zeros((size, size))
    parabola[2, 2] = 1.0
    order_3 = [parabola + part**2 * smooth for part in constants.THIRD_ORDER_PARTS]
    layer, width = constants.LAYER_RATE, constants.PEAK_WIDTH

    def near(centre: float, u: Floats) -> Floats:
        return np.asarray(np.exp(-0.5 * ((u - centre) / width) ** 2))

    u, _ = _quadrature()
    intensities = [np.exp(-layer * u), np.exp(-layer * (1 - u)), *(near(centre, u) for centre in constants.PEAK_PLACES)]
    return [order_2, *order_3], [_integrate_noise(size, 2, intensity) for intensity in intensities]


@lru_cache(maxsize=1)
def _quadrature() -> tuple[Floats, Floats]:
    nodes, weights = np.polynomial.legendre.leggauss(constants.PRIOR_NODES)
    return (nodes + 1) / 2, weights / 2


def _integrate_noise(size: int, order: int, intensity: Floats | None = None) -> Floats:
    """Covariance, of trace 1, of white noise of this intensity integrated `order` times, without level and slope.

    In the functions of the basis: coefficients of the integral of white noise are inner products of the noise with the
    functions' own integrals, `order` times, from the right: double integration is its own adjoint up to polynomials.
    """
    u, weights = _quadrature()
    basis = make_basis("free-ends", size, (0.0, 1.0))
    kernel = _green(order)  # (nodes, nodes): the integrated response at u to noise at s
    response = (basis.evaluate_unit(u) * weights[:, None]).T @ kernel
    response[: max(order, constants.STRAIGHT)] = 0.0
    variance = weights if intensity is None else weights * intensity
    covariance = (response * variance) @ response.T
    return np.asarray(covariance / np.trace(covariance))


@lru_cache(maxsize=2)
def _green(order: int) -> Floats:
    """(u - s)_+^(order - 1) / (order - 1)!, on the nodes of the quadrature."""
    u, _ = _quadrature()
    return np.asarray(np.maximum(np.subtract.outer(u, u), 0.0) ** (order - 1) / math.factorial(order - 1))
