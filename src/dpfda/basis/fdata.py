"""Functions to and from scikit-fda, derivatives kept: waves and splines exactly, polynomials as splines of degree 9.

Splines on 8 d breaks that are dense at the ends of the domain follow a polynomial of degree d to about 1e-13 of its size,
its first derivatives to about 1e-10, and its second ones to about 1e-6.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from dpfda import _validate
from dpfda._typing import Floats, Interval
from dpfda.errors import InvalidInput

if TYPE_CHECKING:
    from dpfda.basis.basis import Basis

DEGREE = 9
_PER_DEGREE, _FEWEST = 8, 8
_SAME = 1e-6  # share of a function's size by which it may miss the span


def choose_breaks(degree: int) -> Floats:
    """Breaks in [0, 1] for polynomials of this degree: equidistant as angles, like the polynomials' waves."""
    pieces = max(_FEWEST, _PER_DEGREE * degree)
    return np.asarray((1 - np.cos(np.pi * np.arange(pieces + 1) / pieces)) / 2)


def make_spline_basis(domain: Interval, breaks: Floats, degree: int = DEGREE) -> Any:
    """scikit-fda's B-splines on breaks of [0, 1]."""
    from skfda.representation.basis import BSplineBasis

    low, high = domain
    return BSplineBasis(domain, order=degree + 1, knots=[low, *(low + (high - low) * breaks[1:-1]), high])


def find_spline_coefficients(evaluate: Callable[[Floats], Floats], breaks: Floats, degree: int = DEGREE) -> Floats:
    """The B-spline coefficients, in rows, of functions of u in [0, 1] that return one column each."""
    from scipy.interpolate import make_interp_spline

    knots = np.concatenate([np.zeros(degree), breaks, np.ones(degree)])
    count = len(knots) - degree - 1
    points = np.clip([knots[place + 1 : place + degree + 1].mean() for place in range(count)], 0.0, 1.0)  # Greville's
    return np.asarray(np.atleast_2d(make_interp_spline(points, evaluate(points), degree, knots).c.T))


def read_fdata(basis: Basis, functions: Any, *, nearest: bool = False) -> Floats:
    """The coefficients, in rows, of scikit-fda's functions in a basis; see `Basis.from_fdata`."""
    if not callable(functions) or getattr(functions, "dim_domain", 0) != 1 or functions.dim_codomain != 1:
        raise InvalidInput("functions must be scikit-fda's FDataBasis or FDataGrid, of one variable with one value.")
    low, high = (float(end) for end in functions.domain_range[0])
    if not np.allclose((low, high), basis.domain, rtol=1e-12, atol=1e-9 * (basis.domain[1] - basis.domain[0])):
        raise InvalidInput(f"functions must have the domain {basis.domain} of the basis, got ({low:g}, {high:g}).")
    u, weights = basis.quadrature()
    values = _validate.numeric("functions", functions(low + (high - low) * u)[..., 0])
    features, root = basis.evaluate_unit(u), np.sqrt(weights)
    found = np.linalg.lstsq(root[:, None] * features, root[:, None] * values.T, rcond=None)[0].T
    missed = np.abs(found @ features.T - values).max(initial=0.0)
    if not nearest and missed > _SAME * max(np.abs(values).max(initial=0.0), np.finfo(float).tiny):
        raise InvalidInput(
            f"functions do not lie in the span of this basis (they differ by {missed:.2g}); set nearest=True for the "
            "nearest ones that do."
        )
    return np.asarray(found)


def basis_from_skfda(basis: Any) -> Basis:
    """The basis that spans a `FourierBasis` of scikit-fda, or a `BSplineBasis` of cubic splines on equidistant knots."""
    from skfda.representation.basis import BSplineBasis, FourierBasis

    from dpfda.basis.splines import BSpline
    from dpfda.basis.trigonometric import Fourier, FourierExtension

    if isinstance(basis, FourierBasis):
        low, high = map(float, basis.domain_range[0])
        factor = float(basis.period) / (high - low)
        if math.isclose(factor, 1.0, rel_tol=1e-12):
            return Fourier(basis.n_basis, (low, high))
        return FourierExtension(basis.n_basis, (low, high), factor)
    if isinstance(basis, BSplineBasis):
        low, high = map(float, basis.domain_range[0])
        ours = BSpline(basis.n_basis, (low, high))
        knots = (np.asarray(basis.knots, dtype=np.float64) - low) / (high - low)
        if basis.order == ours.degree + 1 and knots.shape == ours.breaks.shape and np.allclose(knots, ours.breaks):
            return ours
    raise InvalidInput(
        f"basis must be scikit-fda's FourierBasis, or its BSplineBasis of order 4 on equidistant knots, got "
        f"{type(basis).__name__}; convert its functions with make_basis(...).from_fdata(functions, nearest=True)."
    )
