"""Confidence bands for functions, from the covariance of their coefficients. Post-processing of released numbers."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from dpfda._typing import Floats
from dpfda.basis.basis import Basis

_GRID = 201  # points of the domain at which the largest deviation is looked for
_DRAWS = 20_000  # of the simulation: the level of a critical value then errs by 0.2%, one sd
_MIN_VARIANCE = 1e-300  # keeps a function that is known exactly from dividing by zero
_SEED = 20_240_915  # the simulation of the critical value is deterministic: a band is a function of the release


def half_widths(basis: Basis, covariance: Floats, u: Floats, level: float, *, simultaneous: bool) -> Floats:
    """Half widths at points u of a band for the function with this coefficient covariance.

    The covariance may be for more functions than the basis has: the first ones of the same kind.
    Simultaneous: c times the pointwise sd, c being the `level` quantile of the largest standardised deviation over the
    whole domain, by simulation from the normal law of the coefficients.
    """
    basis = basis.resize(len(covariance))
    sd = _pointwise_sd(basis, covariance, u)
    if not simultaneous:
        return sd * float(ndtri((1 + level) / 2))
    return sd * critical_value(basis, covariance, level)


def critical_value(basis: Basis, covariance: Floats, level: float) -> float:
    """The `level` quantile of sup |f - f_hat| / sd over a grid of the domain."""
    grid = np.linspace(0.0, 1.0, _GRID)
    features = basis.evaluate_unit(grid)
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T  # no sign of an eigenvector in it
    standardised = (features @ root) / _pointwise_sd(basis, covariance, grid)[:, None]
    draws = np.random.Generator(np.random.PCG64(_SEED)).standard_normal((len(root), _DRAWS))
    return float(np.quantile(np.abs(standardised @ draws).max(axis=0), level))


def _pointwise_sd(basis: Basis, covariance: Floats, u: Floats) -> Floats:
    features = basis.evaluate_unit(u)
    variance = np.einsum("xa,ab,xb->x", features, covariance, features)
    return np.asarray(np.sqrt(np.maximum(variance, _MIN_VARIANCE)), dtype=np.float64)
