"""Tenth review: what is accepted ends with numbers. A fit that fails after its rounds is lost, and its budget with it."""

from __future__ import annotations

import numpy as np
import pytest

from dpfda import Curves, PrivateMean, PrivateVaryingCoefficients, Silo
from dpfda.inference import curve_scale
from dpfda.protocol.transforms import undo_transform

SUBJECTS, VISITS, LEVEL, EFFECT = 600, 5, 1.5, 2.0


def make_silo(covariates: int) -> Silo:
    rng = np.random.default_rng(5)
    ids = np.repeat(np.arange(SUBJECTS), VISITS)
    given = rng.integers(0, 2, (SUBJECTS, covariates)).astype(float)
    y = LEVEL + rng.normal(size=SUBJECTS)[ids] + 0.5 * rng.normal(size=ids.size) + EFFECT * given.sum(axis=1)[ids]
    design = np.column_stack([np.ones(SUBJECTS), given])[ids] if covariates else None
    curves = Curves.from_long(ids, rng.random(ids.size), y, design)
    return Silo(curves, epsilon=4, delta=1e-5, name="s")


@pytest.mark.parametrize("basis", ["free-ends", "cosine", "fourier", "fourier-extension", "bspline"])
@pytest.mark.parametrize("covariates", [0, 1, 2])
def test_a_basis_of_one_function_ends_with_numbers(basis, covariates) -> None:
    """R10-2: every mean of one function was lost after six of its seven rounds, every effect in the forecast or there."""
    silo, public = make_silo(covariates), {"domain": (0, 1), "y_bounds": (-10, 10), "basis": basis, "n_basis": 1}
    kind = PrivateVaryingCoefficients(design_bounds=[(0, 1)] * covariates, **public) if covariates else None
    fit = (kind or PrivateMean(**public)).fit(silo)
    assert len(silo.ledger.log()) == len(fit.plan_.rounds)
    low, high = (np.asarray(side) for side in fit.band(0.95, x=[0.1, 0.5, 0.9]))
    assert np.isfinite(low).all()
    assert (low < high).all()
    found = np.asarray(fit.coef_, dtype=float).ravel()
    assert np.abs(found - [LEVEL, *[EFFECT] * covariates]).max() < 1


@pytest.mark.parametrize(
    ("transform", "bounds"),
    [
        ("log1p", (0.0, 1e-9)),
        ("log1p", (1e-6, 50.0)),
        ("log1p", (1e-20, 1e30)),
        ("log", (1.000001, 2.0)),
        ("log", (1e-30, 1e30)),
        ("sqrt", (1e-30, 1e30)),
    ],
)
def test_limits_of_transformed_means_are_found_in_few_steps(monkeypatch, transform, bounds) -> None:
    """R10-3: they were looked for one number after the other, so that `predict` and the report of a fit never ended."""
    steps = []

    def undo(transform: str, value: float) -> np.ndarray:
        steps.append(value)
        assert len(steps) < 5000
        return undo_transform(transform, value)

    monkeypatch.setattr(curve_scale, "undo_transform", undo)
    low, high = curve_scale.limit_means(transform, bounds)
    assert bounds[0] <= undo_transform(transform, low) < undo_transform(transform, high) <= bounds[1]
    assert float(undo_transform(transform, low)) == pytest.approx(bounds[0], rel=1e-7)
    assert float(undo_transform(transform, high)) == pytest.approx(bounds[1], rel=1e-7)
