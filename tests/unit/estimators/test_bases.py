"""Every basis serves every method, model and output."""

from __future__ import annotations

import numpy as np
import pytest

from dpfda.basis.basis import basis_names
from dpfda.curves.curves import Curves
from dpfda.errors import NotPrivateWarning
from dpfda.estimators import PrivateMean, PrivateVaryingCoefficients

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
GRID = np.linspace(2, 5, 41)


def some_visits(n, p=1):
    rng = np.random.default_rng(p)
    x, design = rng.uniform(2, 5, (n, 4)), np.hstack([np.ones((n, 1)), rng.uniform(-1, 1, (n, p - 1))])
    y = (x - 3.5) * design.sum(axis=1, keepdims=True) / 2 + rng.normal(0, 0.3, x.shape)
    return Curves(x.ravel(), y.ravel(), np.arange(0, 4 * n + 1, 4), design)


def options(basis, method):
    return {"domain": (2, 5), "y_bounds": (-2, 2), "basis": basis, "method": method, "random_state": 1}


@pytest.mark.parametrize("basis", basis_names())
@pytest.mark.parametrize("method", ["adaptive", "published"])
def test_a_mean(basis: str, method: str) -> None:
    fitted = PrivateMean(3.0, 1e-3, points_per_curve=4, **options(basis, method)).fit(some_visits(800))
    assert fitted.basis_.name == basis
    assert np.isfinite(fitted.predict(GRID)).all()
    assert fitted.privacy_.public_inputs["basis"] == f"{basis} ({fitted.n_basis_})"
    if method == "adaptive":
        lower, upper = fitted.band(x=GRID)
        assert (lower < upper).all()
        assert np.sqrt(((fitted.predict(GRID) - (GRID - 3.5) / 2) ** 2).mean()) < (0.4 if basis == "fourier" else 0.1)


@pytest.mark.parametrize("basis", basis_names())
def test_varying_coefficients(basis: str) -> None:
    fitted = PrivateVaryingCoefficients(3.0, 1e-3, design_bounds=[(-1, 1)], **options(basis, "adaptive")).fit(
        some_visits(1500, 2)
    )
    assert fitted.coef_.shape == (2, fitted.n_basis_)
    assert np.isfinite(fitted.coef_).all()


@pytest.mark.parametrize("basis", ["cosine", "free-ends", "bspline", "fourier-extension"])
def test_least_squares(basis: str) -> None:
    with pytest.warns(NotPrivateWarning):
        fitted = PrivateMean(n_basis=5, **options(basis, "nonprivate")).fit(some_visits(500))
    assert np.sqrt(((fitted.predict(GRID) - (GRID - 3.5) / 2) ** 2).mean()) < 0.05


@pytest.mark.parametrize("basis", basis_names())
def test_a_forecast(basis: str) -> None:
    expected = PrivateMean(1.0, 1e-5, **options(basis, "adaptive")).forecast(n=2000, m=5)
    assert 0 < expected.total < 1
