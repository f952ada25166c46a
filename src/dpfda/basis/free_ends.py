"""Free ends: smooth functions that nothing holds at the ends of the domain.

The functions are 1, the line, and then, one after the other, the smoothest polynomial (least integral of f''^2 at norm 1)
among those that are orthogonal to all before it and of degree below K(k) = ceil(1.5 k) + 2, k counting functions from 1.
With all functions in place of polynomials these would be the eigenfunctions of the penalty f''^2 with free ends (Demmler
and Reinsch; "free-free beam"), which they follow closely: sup below 2.4 (2), leverage below 4 r. They are

* orthonormal to rounding, for they are found in orthonormal Legendre polynomials;
* nested: function k does not depend on how many are asked for;
* even or odd about the middle of the domain;
* cosines in another coordinate: T_j(1 - 2u) = cos(j angle) where cos(angle) = 1 - 2u, so that the kernels of the cosine
  basis serve them, followed by one fixed matrix (`mixture`); the moments of a design are means of T_j, j = 1..2(K - 1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.polynomial import chebyshev, legendre
from numpy.typing import ArrayLike

from dpfda import _validate
from dpfda._typing import Floats
from dpfda.basis.basis import Basis
from dpfda.basis.fdata import choose_breaks, find_spline_coefficients, make_spline_basis
from dpfda.basis.moments import uniform_moments

_GRID = 64  # points per polynomial on which largest values are looked for


@dataclass(frozen=True)
class FreeEnds(Basis):
    """1, the line, and ever rougher polynomials with free ends: right slopes at the ends of the domain."""

    name: ClassVar[str] = "free-ends"
    largest: ClassVar[int | None] = 64

    @property
    def harmonics(self) -> int:
        """The highest degree: K - 1."""
        return polynomials_below(self.size) - 1

    def mixture(self) -> Floats:
        """M (r x K): the functions are M (T_0, ..., T_(K-1)) at 1 - 2u."""
        return _stack(self.size, _chebyshev_coefficients)

    def evaluate_unit(self, u: Floats, order: int = 0) -> Floats:
        """Phi at points that are already in [0, 1]; its derivatives, or, if `order` is negative, integrals from 0."""
        columns = self.mixture().T
        if order > 0:
            columns = np.asarray(chebyshev.chebder(columns, order, scl=-2.0), dtype=np.float64)
        elif order < 0:
            columns = np.asarray(chebyshev.chebint(columns, -order, lbnd=1.0, scl=-0.5), dtype=np.float64)
        # Clenshaw's sum, entry by entry: the bits of a row do not depend on the others
        values = chebyshev.chebval(1 - 2 * np.asarray(u, dtype=np.float64), columns)
        return np.ascontiguousarray(np.moveaxis(values, 0, -1))

    @property
    def moment_count(self) -> int:
        """2(K - 1): products have twice the degree."""
        return 2 * self.harmonics

    def moment_features(self, u: Floats) -> Floats:
        """T_j(1 - 2u), j = 1..2(K - 1)."""
        return np.ascontiguousarray(chebyshev.chebvander(1 - 2 * np.asarray(u), self.moment_count)[..., 1:])

    @property
    def moment_cycles(self) -> Floats:
        """Half a wave for every degree."""
        return np.arange(1, self.moment_count + 1) / 2

    def moment_bounds(self) -> tuple[Floats, float]:
        """Weights w_j = j and a radius, as for cosines: the largest length on a fine grid of angles, and its slope."""
        weights = np.arange(1, self.moment_count + 1, dtype=np.float64)
        if weights.size == 0:
            return np.ones(0), 1.0
        angles = np.linspace(0.0, math.pi, 2001)
        features = np.cos(np.multiply.outer(angles, weights))
        lengths = np.sqrt(((features - uniform_moments(self)) ** 2 / weights).sum(axis=1))
        slope = np.sqrt(weights.sum())
        return weights, float(lengths.max() + slope * (angles[1] - angles[0]) / 2)

    def gram_from_moments(self, moments: ArrayLike) -> Floats:
        """E[Phi Phi^T] by T_i T_j = {T_(i+j) + T_|i-j|} / 2."""
        array, mixture = self._check_moments(moments), self.mixture()
        means = np.concatenate([np.ones((*array.shape[:-1], 1)), array], axis=-1)
        degree = np.arange(self.harmonics + 1)
        products = means[..., np.add.outer(degree, degree)] + means[..., np.abs(np.subtract.outer(degree, degree))]
        return np.asarray(mixture @ (products / 2) @ mixture.T)

    def quadrature(self) -> tuple[Floats, Floats]:
        """Gauss's rule: exact for these polynomials."""
        nodes, weights = legendre.leggauss(self.harmonics + 2)
        return (nodes + 1) / 2, weights / 2

    def roughness(self, order: int = 2) -> Floats:
        """The exact matrix of integrals of D^order phi_i D^order phi_j over u in [0, 1]."""
        order = _validate.integer("order", order, minimum=0)
        coefficients = _stack(self.size, _legendre_coefficients)
        norms = np.sqrt(2 * np.arange(coefficients.shape[1]) + 1.0)
        if order:
            derived = legendre.legder(coefficients.T * norms[:, None], order, scl=2.0)
            coefficients = (derived / norms[: len(derived), None]).T
        return np.asarray(coefficients @ coefficients.T)

    def sup(self) -> Floats:
        """Ehlich and Zeller (1964): a wave of degree N is at most 1 / cos(N h / 2) times its largest value at steps h."""
        values, step = self._over_angles()
        return np.asarray(np.abs(values).max(axis=0) / math.cos(self.harmonics * step / 2))

    def leverage(self) -> float:
        """The same bound for the sum of squares, a wave of degree 2(K - 1)."""
        values, step = self._over_angles()
        return float((values**2).sum(axis=1).max() / math.cos(self.harmonics * step))

    def to_skfda(self) -> Any:
        """A `BSplineBasis` that is fine enough: scikit-fda has no polynomials that bear high degrees."""
        return make_spline_basis(self.domain, choose_breaks(self.harmonics))

    def coefficients_to_skfda(self, coefficients: ArrayLike) -> Floats:
        """Coefficients with respect to `to_skfda()`, for one function or for one function in each row."""
        mixed = find_spline_coefficients(self.evaluate_unit, choose_breaks(self.harmonics))
        return self._check_coefficients(coefficients) @ mixed

    def _over_angles(self) -> tuple[Floats, float]:
        steps = _GRID * (self.harmonics + 1)
        return self.evaluate_unit((1 - np.cos(np.arange(steps + 1) * (math.pi / steps))) / 2), math.pi / steps


def polynomials_below(k: int) -> int:
    """K(k): function k is of degree below it."""
    return k if k <= 2 else math.ceil(1.5 * k) + 2


@lru_cache(maxsize=64)
def _stack(size: int, coefficients: object) -> Floats:
    """The coefficients of the first `size` functions, one row each."""
    rows = np.zeros((size, polynomials_below(size)))
    for index in range(size):
        row = coefficients(index)  # type: ignore[operator]
        rows[index, : len(row)] = row
    rows.flags.writeable = False
    return rows


@lru_cache(maxsize=512)
def _legendre_coefficients(index: int) -> Floats:
    """Function `index`, from 0, in orthonormal Legendre polynomials of 2u - 1.

    f = S g with g = f'' and S double integration without the parts 1 and u, a matrix of three diagonals. The smoothest f is
    the leading left singular vector of S on those g whose f is orthogonal to the functions before: large singular values
    are found to full relative precision, where an eigendecomposition of the penalty (entries to 1e10) would lose digits.
    """
    count, parity = polynomials_below(index + 1), index % 2
    found = np.zeros(count)
    if index < 2:
        found[index] = 1.0
        return found
    rows = np.arange(parity, count, 2)
    integration = _double_integration(count)[np.ix_(rows, np.arange(parity, count - 2, 2))]
    before = np.zeros((index // 2, len(rows)))
    for place, earlier in enumerate(range(parity, index, 2)):
        row = _legendre_coefficients(earlier)[parity::2]
        before[place, : len(row)] = row
    free = np.eye(integration.shape[1])
    if len(before) > 1:  # 1 and the line are orthogonal to all S g
        free = np.linalg.qr((before[1:] @ integration).T, mode="complete")[0][:, len(before) - 1 :]
    smoothest = np.linalg.svd(integration @ free, full_matrices=False)[0][:, 0]
    for _ in range(2):  # takes off what rounding left
        smoothest = smoothest - before.T @ (before @ smoothest)
    found[rows] = smoothest / np.linalg.norm(smoothest)
    right_end = found @ np.sqrt(2 * np.arange(count) + 1.0)
    return found if right_end > 0 else -found


@lru_cache(maxsize=128)
def _double_integration(count: int) -> Floats:
    """Orthonormal Legendre polynomials of degree below count - 2, integrated twice over u, without 1 and u."""
    matrix = np.zeros((count, count - 2))
    for degree in range(count - 2):
        twice = _integrate_twice(degree)
        matrix[: len(twice), degree] = twice
    matrix[:2] = 0.0
    return matrix


@lru_cache(maxsize=128)
def _integrate_twice(degree: int) -> Floats:
    """One orthonormal Legendre polynomial, integrated twice over u: a few numbers, the same for every count."""
    norms = np.sqrt(2 * np.arange(degree + 3) + 1.0)
    unit = np.zeros(degree + 1)
    unit[degree] = norms[degree]
    return np.asarray(legendre.legint(unit, 2) / 4 / norms)  # 2u - 1 moves twice as fast as u


@lru_cache(maxsize=512)
def _chebyshev_coefficients(index: int) -> Floats:
    """Function `index` in T_j(1 - 2u): its values at Chebyshev's points, cosine transformed."""
    ours = _legendre_coefficients(index)
    count = len(ours)
    angles = (np.arange(2 * count) + 0.5) * (math.pi / (2 * count))
    values = legendre.legval(-np.cos(angles), ours * np.sqrt(2 * np.arange(count) + 1.0))
    coefficients = values @ np.cos(np.multiply.outer(angles, np.arange(count))) / count
    coefficients[0] /= 2
    coefficients[1 - index % 2 :: 2] = 0.0
    if index == 0:
        coefficients[0] = 1.0
    return np.asarray(coefficients)
