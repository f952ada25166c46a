"""Cubic splines on equidistant public knots, turned so that they begin with 1 and the line and then grow rougher.

B-splines themselves have no level and are far from orthonormal. The functions here span the same splines: they are
orthonormal, and so are their second derivatives up to factors (the eigenfunctions, among splines, of the penalty f''^2).
With other knots all functions change: a smaller basis is not the beginning of a larger one.

Products are splines of twice the degree, with as few continuous derivatives: the B-splines of those, which are positive and
add up to 1, are the functions whose means are the moments of a design.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpfda import _validate
from dpfda._typing import Floats
from dpfda.basis.basis import Basis
from dpfda.basis.moments import uniform_moments

if TYPE_CHECKING:
    from scipy.interpolate import BSpline as Spline

_DEGREE = 3
_BUMP_CYCLES = 0.2  # waves that a positive function of mean 1 counts for: its moments then vary by their own size


@dataclass(frozen=True)
class BSpline(Basis):
    """Cubic splines (of lower degree below four functions), smoothest first."""

    name: ClassVar[str] = "bspline"
    largest: ClassVar[int | None] = 64
    has_tail: ClassVar[bool] = False

    @property
    def degree(self) -> int:
        """3, or as much as `size` functions allow."""
        return min(_DEGREE, self.size - 1)

    @property
    def breaks(self) -> Floats:
        """The knots in [0, 1], each once."""
        return np.linspace(0.0, 1.0, self.size - self.degree + 1)

    def evaluate_unit(self, u: Floats, order: int = 0) -> Floats:
        """Phi at points that are already in [0, 1]; its derivatives, or, if `order` is negative, integrals from 0.

        Point by point: the bits of a row do not depend on the others.
        """
        spline, points = _spline(self.size), np.clip(np.asarray(u, dtype=np.float64), 0.0, 1.0)
        if order > self.degree:
            return np.zeros((*points.shape, self.size))
        if order:
            spline = spline.derivative(order) if order > 0 else spline.antiderivative(-order)
        return np.ascontiguousarray(spline(points))

    @property
    def moment_count(self) -> int:
        """The dimension of the products' space, less 1 for the constant."""
        return 2 * self.degree + (self.degree + 1) * (len(self.breaks) - 2)

    def moment_features(self, u: Floats) -> Floats:
        """B-splines of twice the degree, all but the last."""
        points = np.clip(np.asarray(u, dtype=np.float64), 0.0, 1.0)
        return np.ascontiguousarray(_product_spline(self.size)(points)[..., :-1])

    @property
    def moment_cycles(self) -> Floats:
        """What makes the moments of designs vary by their own size."""
        return np.asarray(_BUMP_CYCLES / uniform_moments(self))

    def moment_bounds(self) -> tuple[Floats, float]:
        """Weights 1. The features are positive and add up to at most 1: |f - c|^2 <= |f|^2 + |c|^2 <= 1 + |c|^2."""
        centre = uniform_moments(self)
        return np.ones(self.moment_count), math.sqrt(1.0 + float(centre @ centre))

    def gram_from_moments(self, moments: ArrayLike) -> Floats:
        """E[Phi Phi^T], linear in the moments and in the one that makes them add up to 1."""
        array = self._check_moments(moments)
        everything = np.concatenate([array, 1 - array.sum(axis=-1, keepdims=True)], axis=-1)
        return (everything @ _products(self.size)).reshape(*array.shape[:-1], self.size, self.size)

    def quadrature(self) -> tuple[Floats, Floats]:
        """Gauss's rule between every two knots: exact."""
        return _quadrature(self.size)

    def roughness(self, order: int = 2) -> Floats:
        """The exact matrix of integrals of D^order phi_i D^order phi_j over u in [0, 1]."""
        points, weights = self.quadrature()
        values = self.evaluate_unit(points, _validate.integer("order", order, minimum=0))
        return np.asarray(values.T @ (values * weights[:, None]))

    def sup(self) -> Floats:
        """A spline lies between its smallest and its largest coefficient."""
        return np.asarray(np.abs(_spline(self.size).c).max(axis=0))

    def leverage(self) -> float:
        """A sum of squares is convex in the B-splines, which are positive and add up to 1."""
        return float((_spline(self.size).c ** 2).sum(axis=1).max())

    def to_skfda(self) -> Any:
        """The scikit-fda `BSplineBasis` with the same knots."""
        from skfda.representation.basis import BSplineBasis

        return BSplineBasis(self.domain, n_basis=self.size, order=self.degree + 1)

    def coefficients_to_skfda(self, coefficients: ArrayLike) -> Floats:
        """Coefficients with respect to `to_skfda()`, for one function or for one function in each row."""
        return self._check_coefficients(coefficients) @ _spline(self.size).c.T


@lru_cache(maxsize=32)
def _spline(size: int) -> Spline:
    """All functions as one spline with a matrix of coefficients."""
    from scipy.interpolate import BSpline as Spline
    from scipy.linalg import eigh

    basis = BSpline(size)
    degree, breaks = basis.degree, basis.breaks
    knots = np.concatenate([np.zeros(degree), breaks, np.ones(degree)])
    raw = Spline(knots, np.eye(size), degree, extrapolate=True)
    points, weights = _quadrature(size)
    values = raw(points)
    gram = values.T @ (values * weights[:, None])
    greville = np.array([knots[j + 1 : j + degree + 1].mean() if degree else 0.5 for j in range(size)])
    known = np.column_stack([np.ones(size), math.sqrt(12) * (greville - 0.5)])[:, :size]  # 1 and the line
    if size <= 2:
        return Spline(knots, known, degree)
    bent = raw.derivative(2)(points)
    penalty = bent.T @ (bent * weights[:, None])
    root = np.linalg.cholesky(gram)  # gram = root root^T
    others = np.linalg.qr(root.T @ known, mode="complete")[0][:, 2:]
    inward = np.linalg.solve(
        root.T, others
    )  # coefficients of orthonormal splines that are orthogonal to 1 and the line
    _, vectors = eigh(inward.T @ penalty @ inward)
    found = inward @ vectors
    found *= np.where(found[-1] < 0, -1.0, 1.0)  # not negative at the right end
    return Spline(knots, np.hstack([known, found]), degree)


@lru_cache(maxsize=32)
def _product_spline(size: int) -> Spline:
    """The B-splines of twice the degree that products are made of."""
    from scipy.interpolate import BSpline as Spline

    basis = BSpline(size)
    degree, breaks = basis.degree, basis.breaks
    inner = np.repeat(breaks[1:-1], degree + 1)
    knots = np.concatenate([np.zeros(2 * degree + 1), inner, np.ones(2 * degree + 1)])
    return Spline(knots, np.eye(len(knots) - 2 * degree - 1), 2 * degree)


@lru_cache(maxsize=32)
def _products(size: int) -> Floats:
    """phi_i phi_j, one column each, in the splines of `_product_spline`: exact, for both are polynomials between knots."""
    points, _ = _quadrature(size)
    values = _spline(size)(points)
    products = (values[:, :, None] * values[:, None, :]).reshape(len(points), -1)
    return np.asarray(np.linalg.lstsq(_product_spline(size)(points), products, rcond=None)[0], dtype=np.float64)


@lru_cache(maxsize=32)
def _quadrature(size: int) -> tuple[Floats, Floats]:
    breaks = BSpline(size).breaks
    nodes, weights = np.polynomial.legendre.leggauss(2 * _DEGREE + 2)
    widths = np.diff(breaks)
    points = (breaks[:-1, None] + widths[:, None] * (nodes + 1) / 2).ravel()
    return points, (widths[:, None] * weights / 2).ravel()
