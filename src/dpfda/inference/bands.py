"""Confidence bands for functions, from the covariance of their coefficients. Post-processing of released numbers."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from dpfda._typing import Floats
from dpfda.basis.basis import Basis
from dpfda.inference.critical import nodes, path_length, solve_critical

_MIN_VARIANCE = 1e-300  # keeps a function that is known exactly from dividing by zero


def half_widths(basis: Basis, covariance: Floats, u: Floats, level: float, *, simultaneous: bool) -> Floats:
    """Half widths at points u of a band for the function with this coefficient covariance.

    The covariance may be for more functions than the basis has: the first ones of the same kind.
    Simultaneous: c times the pointwise sd, c such that the largest standardised deviation over the whole domain stays below
    it with probability `level` (`inference/critical.py`).
    """
    basis = basis.resize(len(covariance))
    sd = _pointwise_sd(basis, covariance, u)
    if not simultaneous:
        return sd * float(ndtri((1 + level) / 2))
    return sd * critical_value(basis, covariance, level)


def critical_value(basis: Basis, covariance: Floats, level: float) -> float:
    """The `level` quantile of sup |f - f_hat| / sd over the domain, or a little more, see `inference/critical.py`."""
    features = basis.resize(len(covariance)).evaluate_unit(nodes())
    return solve_critical(level, np.array([path_length(features, covariance)]))


def _pointwise_sd(basis: Basis, covariance: Floats, u: Floats) -> Floats:
    features = basis.evaluate_unit(u)
    variance = np.einsum("xa,ab,xb->x", features, covariance, features)
    return np.asarray(np.sqrt(np.maximum(variance, _MIN_VARIANCE)), dtype=np.float64)
