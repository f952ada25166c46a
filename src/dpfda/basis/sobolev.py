"""Sobolev sets of coefficients and the exact Euclidean projections onto them.

A projection is post-processing only as long as it sees nothing but released numbers and public constants, so
both sets are described by public constants alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfda import _validate
from dpfda._typing import Floats
from dpfda.errors import InvalidInput

_SLACK = 1e-12  # relative slack of membership, so that a projected point counts as inside
_SMALLEST = 1e-140  # keeps squares of a radius that is tiny relative to the point above underflow
_NEWTON_STEPS = 100


@dataclass(frozen=True)
class Ellipsoid:
    """{a : sum_l w_l a_l^2 <= radius^2}.

    The paper's parameter space is `Ellipsoid.sobolev(r, alpha, C_alpha)`. `project` takes one vector or one
    vector in each row (the blocks b_k of a varying-coefficient model are projected one by one).
    """

    weights: tuple[float, ...]
    radius: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", _positive_tuple("weights", self.weights))
        object.__setattr__(self, "radius", _validate.positive("radius", self.radius))

    @classmethod
    def sobolev(cls, size: int, alpha: float, constant: float) -> Ellipsoid:
        """Weights l^(2 alpha) and radius C_alpha / pi^alpha: the set A of the paper's Section 3."""
        return cls(_sobolev_weights(size, alpha), _sobolev_radius(alpha, constant))

    def contains(self, a: ArrayLike) -> NDArray[np.bool_] | bool:
        """Whether each row lies in the set, up to rounding."""
        inside = self._norm(_blocks("a", a, len(self.weights))) <= self.radius * (1 + _SLACK)
        return inside if inside.ndim else bool(inside)

    def project(self, a: ArrayLike) -> Floats:
        """The nearest point of the set, row by row: a / (1 + lambda w) with lambda at the boundary."""
        point = _blocks("a", a, len(self.weights))
        weights = np.asarray(self.weights)
        multiplier = _boundary_multiplier(point, weights, np.full(point.shape[:-1], self.radius))
        nearest = point / (1 + multiplier[..., None] * weights)
        return _pull_inside(nearest, self._norm(nearest)[..., None], self.radius)

    def _norm(self, a: Floats) -> Floats:
        return _weighted_norm(a, np.asarray(self.weights))


@dataclass(frozen=True)
class SobolevCone:
    """{B = (b_0, ..., b_d) : sum_k bounds_k ||b_k||_w <= radius} with ||b||_w^2 = sum_l w_l b_l^2.

    Every design vector with |G_k| <= bounds_k gives, by the triangle inequality, a function G^T B Phi within
    the ellipsoid of the given radius. The set needs the public bounds only. The paper's own set for growing d
    (the remark on Pi_B) asks the same of the observed G and X of the silos: that projection reads raw data
    that no noise has covered, is therefore not post-processing and would break the guarantee: not offered.
    """

    weights: tuple[float, ...]
    bounds: tuple[float, ...]
    radius: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", _positive_tuple("weights", self.weights))
        object.__setattr__(self, "bounds", _positive_tuple("bounds", self.bounds))
        object.__setattr__(self, "radius", _validate.positive("radius", self.radius))

    @classmethod
    def sobolev(cls, size: int, alpha: float, constant: float, bounds: Sequence[float]) -> SobolevCone:
        """Weights l^(2 alpha) and radius C_alpha / pi^alpha, as for the mean."""
        return cls(_sobolev_weights(size, alpha), tuple(bounds), _sobolev_radius(alpha, constant))

    def contains(self, B: ArrayLike) -> bool:
        """Whether B, one row for each block, lies in the set, up to rounding."""
        return bool(self._size(self._checked(B)) <= self.radius * (1 + _SLACK))

    def project(self, B: ArrayLike) -> Floats:
        """The nearest point of the set.

        With a multiplier t on the constraint, block k solves min |b - v|^2 / 2 + t c_k ||b||_w. By Moreau's
        decomposition b is v minus its projection on the dual ellipsoid of radius t c_k, which is one search
        for a root; t itself is a second one, because the size of the solution falls in t.
        """
        point = self._checked(B)
        if self._size(point) <= self.radius * (1 + _SLACK):
            return point
        from scipy.optimize import brentq

        largest = float(np.max(_weighted_norm(point, 1 / np.asarray(self.weights)) / np.asarray(self.bounds)))
        multiplier = brentq(
            lambda t: self._size(self._shrink(point, t)) - self.radius,
            0.0,
            largest,
            xtol=1e-16 * largest,
            rtol=4 * np.finfo(float).eps,
        )
        nearest = self._shrink(point, float(multiplier))
        return _pull_inside(nearest, np.asarray(self._size(nearest)), self.radius)

    def _shrink(self, point: Floats, multiplier: float) -> Floats:
        if multiplier == 0.0:
            return point
        dual = 1 / np.asarray(self.weights)
        inner = _boundary_multiplier(point, dual, multiplier * np.asarray(self.bounds))[..., None] * dual
        return np.asarray(point * (inner / (1 + inner)))  # v - v / (1 + inner), without cancellation

    def _size(self, point: Floats) -> float:
        return float(np.asarray(self.bounds) @ _weighted_norm(point, np.asarray(self.weights)))

    def _checked(self, B: ArrayLike) -> Floats:
        point = _blocks("B", B, len(self.weights))
        if point.shape != (len(self.bounds), len(self.weights)):
            raise InvalidInput(
                f"B must have shape ({len(self.bounds)}, {len(self.weights)}), one row for each coefficient "
                f"function, got {point.shape}."
            )
        return point


def _boundary_multiplier(point: Floats, weights: Floats, radius: Floats) -> Floats:
    """For each row the lambda >= 0 with || a / (1 + lambda w) ||_w = radius; 0 for rows inside.

    1 / || . ||_w is increasing and concave in lambda (the secular equation of trust-region methods), so
    Newton's method on it climbs from 0 to the root without overshooting.
    """
    rooted = np.sqrt(weights) * point
    scale = np.max(np.abs(rooted), axis=-1, initial=0.0)
    scale = np.where(scale > 0, scale, 1.0)
    squares = (rooted / scale[..., None]) ** 2
    with np.errstate(over="ignore"):  # an infinite target means far inside
        target = np.maximum(radius / scale, _SMALLEST)
    multiplier = np.zeros_like(target)
    for _ in range(_NEWTON_STEPS):
        damping = 1 + multiplier[..., None] * weights
        terms = squares / damping**2
        norm_squared = terms.sum(axis=-1)
        norm = np.sqrt(norm_squared)
        excess = norm / target - 1
        outside = excess > _SLACK / 100
        if not outside.any():
            break
        slope = (weights * terms / damping).sum(axis=-1)
        step = np.divide(excess * norm_squared, slope, out=np.zeros_like(slope), where=outside & (slope > 0))
        if not np.any(step > np.finfo(float).eps / 4 * multiplier):
            break
        multiplier = multiplier + step
    return multiplier


def _weighted_norm(a: Floats, weights: Floats) -> Floats:
    rooted = np.abs(np.sqrt(weights) * a)
    scale = np.max(rooted, axis=-1, initial=0.0)
    scale = np.where(scale > 0, scale, 1.0)
    return np.asarray(scale * np.sqrt(((rooted / scale[..., None]) ** 2).sum(axis=-1)))


def _pull_inside(point: Floats, size: Floats, radius: float) -> Floats:
    """Remove the last rounding error, so that the point is a member and projecting again changes nothing."""
    over = size > radius * (1 + _SLACK)
    return np.asarray(point * np.where(over, radius / np.where(over, size, 1.0), 1.0))


def _blocks(name: str, value: ArrayLike, width: int) -> Floats:
    array = _validate.numeric(name, value)
    if array.ndim not in (1, 2) or array.shape[-1] != width:
        raise InvalidInput(f"{name} must have {width} entries in each row, got shape {array.shape}.")
    if not np.isfinite(array).all():
        raise InvalidInput(f"{name} must hold finite numbers only; remove NaN and infinite entries.")
    return array


def _positive_tuple(name: str, value: ArrayLike) -> tuple[float, ...]:
    array = _validate.vector(name, value)
    if not (array.size and np.all(array > 0)):
        raise InvalidInput(f"{name} must hold at least one number and only numbers greater than 0.")
    return tuple(array.tolist())


def _sobolev_weights(size: int, alpha: float) -> tuple[float, ...]:
    orders = np.arange(1, _validate.integer("size", size) + 1, dtype=np.float64)
    return tuple((orders ** (2 * _validate.positive("alpha", alpha))).tolist())


def _sobolev_radius(alpha: float, constant: float) -> float:
    return float(_validate.positive("constant", constant) / math.pi ** _validate.positive("alpha", alpha))
