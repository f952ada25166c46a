"""Released curves for scikit-fda, derivatives kept: waves and splines as they are, polynomials as fine splines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dpfda._typing import Floats
from dpfda.basis.fdata import DEGREE, choose_breaks, find_spline_coefficients, make_spline_basis

if TYPE_CHECKING:
    from dpfda.inference.curve import ReleasedCurve

_CUBIC, _FINE = 3, 48


def curve_to_fdata(curve: ReleasedCurve) -> Any:
    """An `FDataBasis` of B-splines that interpolates the curve."""
    from skfda import FDataBasis

    breaks, degree = _choose_pieces(curve)
    basis = make_spline_basis(curve.domain, breaks, degree)
    coefficients = find_spline_coefficients(curve.at_unit, breaks, degree)
    return FDataBasis(basis, coefficients, argument_names=(curve.x_name,), coordinate_names=(curve.y_name,))


def _choose_pieces(curve: ReleasedCurve) -> tuple[Floats, int]:
    """The breaks of cubic splines, if the curve is one; else pieces that are shorter at the ends, where polynomials turn."""
    orders = {order for form in curve.forms for order in form.weights}
    functions = [form.law.functions for form in curve.forms]
    breaks = [getattr(each, "breaks", None) for each in functions]
    if len(breaks) == 1 and breaks[0] is not None and len(breaks[0]) > 2 and len(orders) == 1:
        return np.asarray(breaks[0]), max(_CUBIC - orders.pop(), 1)
    return choose_breaks(_FINE), DEGREE
