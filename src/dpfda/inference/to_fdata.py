"""Released curves for scikit-fda, derivatives kept: the curve's own splines, else splines of degree 7 on many pieces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dpfda._typing import Floats

if TYPE_CHECKING:
    from dpfda.inference.curve import ReleasedCurve

_DEGREE, _PIECES, _CUBIC = 7, 96, 3


def curve_to_fdata(curve: ReleasedCurve) -> Any:
    """An `FDataBasis` of B-splines that interpolates the curve."""
    from scipy.interpolate import make_lsq_spline
    from skfda import FDataBasis
    from skfda.representation.basis import BSplineBasis

    low, high = curve.domain
    places, degree = _choose_pieces(curve)
    breaks = low + (high - low) * places
    nodes, _ = np.polynomial.legendre.leggauss(2 * _DEGREE)
    points = (breaks[:-1, None] + np.diff(breaks)[:, None] * (nodes + 1) / 2).ravel()
    knots = np.concatenate([np.full(degree, low), breaks, np.full(degree, high)])
    spline = make_lsq_spline(points, curve.at_unit(curve.unit(points)), knots, degree)
    basis = BSplineBasis((low, high), order=degree + 1, knots=breaks.tolist())
    return FDataBasis(basis, np.atleast_2d(spline.c), argument_names=(curve.x_name,), coordinate_names=(curve.y_name,))


def _choose_pieces(curve: ReleasedCurve) -> tuple[Floats, int]:
    """The breaks of cubic splines, if the curve is one; else pieces that are shorter at the ends, where polynomials turn."""
    orders = {order for form in curve.forms for order in form.weights}
    functions = [form.law.functions for form in curve.forms]
    breaks = [getattr(each, "breaks", None) for each in functions]
    if len(breaks) == 1 and breaks[0] is not None and len(breaks[0]) > 2 and len(orders) == 1:
        return np.asarray(breaks[0]), max(_CUBIC - orders.pop(), 1)
    return np.asarray((1 - np.cos(np.pi * np.arange(_PIECES + 1) / _PIECES)) / 2), _DEGREE
