"""What is thought of a coefficient function before anything is released: a mixture over sizes and shapes.

A function has a level, a slope and bends. Sizes of slope and bends are in units of how much curves differ in level, which
is released first. Bends come in several shapes: rough everywhere (order 2, as a smoothing spline has it), smoother (order
3), or concentrated near one place or an end (peaks, steep starts). Sizes and shapes are averaged by evidence.

All of this is about the functions of a basis with free ends; other bases keep the prior of their kind, with one size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

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
    doubt: Floats  # ... by which factor a band takes its sds to be larger

    @cached_property
    def runs(self) -> tuple[Integers, Integers]:
        """The shapes that occur, and the first component of each: components stand in the order of shapes."""
        begins = np.flatnonzero(np.diff(self.shape, prepend=-1))
        return self.shape[begins], begins

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

    def widen(self, least: float) -> ScaledMixture:
        """As a band believes it: sds are larger, and slope and bends have this variance more."""
        level, slope, bend = (self.mixture.doubt**2 * each for each in (self.level, self.slope, self.bend))
        return ScaledMixture(self.mixture, level, slope + least, bend + least)

    def keep(self, which: Integers) -> ScaledMixture:
        """Some components only."""
        own = self.mixture
        slope, bend, log_odds, doubt = (each[which] for each in (own.slope, own.bend, own.log_odds, own.doubt))
        kept = Mixture(own.shapes, own.shape[which], slope, bend, log_odds, doubt)
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
    doubt = np.full(bends.size, constants.WIDER)
    return Mixture(shapes, np.zeros(bends.size, int), np.zeros(bends.size), bends, odds, doubt)


@lru_cache(maxsize=8)
@one_blas_thread()
def _free_ends_mixture(size: int) -> Mixture:
    found, shapes = [], list[Floats]()
    for family in _list_families(size):
        for shape in family.shapes:
            sizes = [(slope, bend) for slope in family.slopes for bend in family.bends]
            found += [(len(shapes), *each, family.bonus, family.doubt) for each in sizes]
            shapes.append(shape)
    shape, slope, bend, bonus, doubt = (np.array(each) for each in zip(*found, strict=True))
    odds = bonus - 0.5 * (np.log(bend / constants.TYPICAL_BEND) / constants.BEND_SPREAD) ** 2
    odds = odds - 0.5 * (np.log(slope / constants.TYPICAL_SLOPE) / constants.SLOPE_SPREAD) ** 2
    return Mixture(np.stack(shapes), shape.astype(int), slope, bend, odds, doubt)


@dataclass(frozen=True)
class _Family:
    """Shapes of one kind, all with the same sizes of slope and bend; `weight` is that of all of them, order 2 having 1."""

    shapes: list[Floats]
    weight: float
    doubt: float
    least: float = 0.0
    every: int = 1

    @property
    def bonus(self) -> float:
        return math.log(self.weight / len(self.shapes))

    @property
    def slopes(self) -> tuple[float, ...]:
        return constants.SLOPE_SIZES[self.every - 1 :: self.every]

    @property
    def bends(self) -> tuple[float, ...]:
        return tuple(each for each in constants.BEND_SIZES if each > self.least)


def _list_families(size: int) -> list[_Family]:
    """Covariances of bends: everywhere (orders 2 and 3), concentrated near an end, and near a place, round or rough."""
    order_2, smooth = _integrate_noise(size, 2), _integrate_noise(size, 3)
    bend = _list_polynomials(size, 3)[:, -1]
    bend[: constants.STRAIGHT] = 0.0
    order_3 = [np.outer(bend, bend) + part**2 * smooth for part in constants.THIRD_ORDER_PARTS]
    u, _ = _quadrature()
    at_ends = [_integrate_noise(size, 2, np.exp(-constants.LAYER_RATE * away)) for away in (u, 1 - u)]
    near = [np.exp(-0.5 * ((u - place) / constants.PEAK_WIDTH) ** 2) for place in constants.PEAK_PLACES]
    rough = [_integrate_noise(size, 2, intensity) for intensity in near]
    round_ = [_integrate_noise(size, 2, intensity, smoothly=True) for intensity in near]
    wider, least = constants.WIDER, constants.LEAST_LOCAL_BEND
    return [
        _Family([order_2], 1.0, wider),
        _Family(order_3, 1.0, wider),
        _Family(at_ends, constants.ENDS_WEIGHT, wider, constants.LEAST_END_BEND, 2),
        _Family(round_, constants.ROUND_SHARE, 1.0, least, 2),
        _Family(rough, 1 - constants.ROUND_SHARE, 1.0, least, 2),
    ]


@lru_cache(maxsize=1)
def _quadrature() -> tuple[Floats, Floats]:
    nodes, weights = np.polynomial.legendre.leggauss(constants.PRIOR_NODES)
    return (nodes + 1) / 2, weights / 2


def _integrate_noise(size: int, order: int, intensity: Floats | None = None, *, smoothly: bool = False) -> Floats:
    """Covariance, of trace 1, of white noise of this intensity integrated `order` times, without polynomials below that.

    `smoothly`: of noise that is alike within PEAK_REACH, so that a peak may be round.

    From which end it is integrated makes a difference of such a polynomial: without them, both ends are alike. Functions of
    the basis are nearly straight at the ends, so that all of a polynomial's coefficients have to go, not the first few.
    """
    u, weights = _quadrature()
    kernel = _green(order)  # (nodes, nodes): the integrated response at u to noise at s
    response = (_evaluate_at_nodes(size) * weights[:, None]).T @ kernel
    known = _list_polynomials(size, order)
    response -= known @ (known.T @ response)
    response[: constants.STRAIGHT] = 0.0  # not up to rounding
    response *= np.sqrt(weights if intensity is None else weights * intensity)
    if smoothly:
        alike = np.exp(-0.5 * (np.subtract.outer(u, u) / constants.PEAK_REACH) ** 2)
        response = response @ (alike * np.sqrt(np.outer(weights, weights)))
    covariance = response @ response.T
    return np.asarray(covariance / np.trace(covariance))


def _list_polynomials(size: int, count: int) -> Floats:
    """Level, slope, parabola, ...: orthonormal, in the functions of the basis, a column for each."""
    u, weights = _quadrature()
    powers = np.polynomial.legendre.legvander(2 * u - 1, count - 1)
    found, _ = np.linalg.qr((_evaluate_at_nodes(size) * weights[:, None]).T @ powers)
    return np.asarray(found)


@lru_cache(maxsize=2)
def _evaluate_at_nodes(size: int) -> Floats:
    """The functions of the basis on the nodes of the quadrature."""
    return make_basis("free-ends", size, (0.0, 1.0)).evaluate_unit(_quadrature()[0])


@lru_cache(maxsize=2)
def _green(order: int) -> Floats:
    """(u - s)_+^(order - 1) / (order - 1)!, on the nodes of the quadrature."""
    u, _ = _quadrature()
    return np.asarray(np.maximum(np.subtract.outer(u, u), 0.0) ** (order - 1) / math.factorial(order - 1))
