"""The non-private reference against least squares written down point by point."""

from __future__ import annotations

import numpy as np
import pytest

from dpfda import Curves
from dpfda.basis import BSpline, Cosine, Fourier, FourierExtension, FreeEnds
from dpfda.estimators.least_squares import least_squares
from dpfda.protocol.scaling import Scaling

BASES = [Fourier(1), Fourier(2), Fourier(15), Fourier(40), Cosine(1), Cosine(9), FourierExtension(5), FreeEnds(1)]
BASES += [FreeEnds(2), FreeEnds(8), BSpline(7)]


def some_curves(columns: int) -> Curves:
    rng = np.random.default_rng(columns)
    offsets = np.append(0, np.cumsum(rng.integers(0, 40, 500)))
    x = rng.random(offsets[-1]) * 1.1  # some outside the domain
    design = np.column_stack([np.ones(500), rng.uniform(-1, 1, (500, columns - 1))])
    y = np.sin(5 * x) + np.repeat(design.sum(axis=1), np.diff(offsets)) * x + rng.normal(size=x.size) / 3
    return Curves(x, y, offsets, design)


@pytest.mark.parametrize("basis", BASES, ids=str)
@pytest.mark.parametrize("columns", [1, 3])
def test_the_reference_is_least_squares_of_all_points(basis, columns) -> None:
    curves = some_curves(columns)
    scaling = Scaling((-3.0, 3.0), ((1.0, 1.0), *((-1.0, 1.0),) * (columns - 1)))
    rows, values = [], []
    for i in range(curves.n):
        x, y = (part[curves.offsets[i] : curves.offsets[i + 1]] for part in (curves.x, curves.y))
        inside = x <= 1
        weight = 1 / np.sqrt(max(inside.sum(), 1))
        design = (curves.design[i] - scaling.design_shift) / scaling.design_scale
        for u, value in zip(x[inside], np.clip(y[inside], -3, 3), strict=True):
            rows.append(weight * np.kron(design, basis.evaluate_unit(np.array([u]))[0]))
            values.append(weight * (value - scaling.y_shift) / scaling.y_scale)
    expected = np.linalg.lstsq(np.array(rows), np.array(values), rcond=None)[0].reshape(columns, -1)
    found = least_squares(curves, basis, scaling)
    np.testing.assert_allclose(found, expected, atol=1e-8 * np.abs(expected).max())


def test_curves_without_points_change_nothing() -> None:
    curves = some_curves(1)
    more = Curves(curves.x, curves.y, np.append(curves.offsets, curves.offsets[-1]), np.ones((curves.n + 1, 1)))
    scaling = Scaling((-3.0, 3.0), ((1.0, 1.0),))
    np.testing.assert_array_equal(least_squares(curves, Cosine(5), scaling), least_squares(more, Cosine(5), scaling))
