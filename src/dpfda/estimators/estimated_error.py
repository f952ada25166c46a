"""The error estimated AFTER a fit from what was released: post-processing, so it costs no privacy."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from dpfda._typing import Floats
from dpfda.basis.basis import Basis
from dpfda.methods.adaptive.error_parts import ErrorParts
from dpfda.planning.expected_error import ExpectedError
from dpfda.protocol.scaling import Scaling
from dpfda.protocol.transforms import name_transformed


def estimate_error(basis: Basis, scaling: Scaling, coefficients: Floats, parts: ErrorParts) -> ExpectedError:
    """Squared L2 error by source in units of (transformed) y; `coefficients` are the scaled ones.

    The yardstick `signal` is how much the functions vary, including the uncertainty of that, or how much the curves'
    levels vary if that is more: a flat mean that is known well is no failure.
    """
    total = _size(basis, scaling, parts.total)
    sampling, privacy = _size(basis, scaling, parts.sampling), _size(basis, scaling, parts.privacy)
    shape = coefficients.copy()
    shape[0, 0] = 0.0
    moments = np.outer(shape, shape)
    signal = total + _size(basis, scaling, moments)
    bias = max(total - sampling - privacy, 0.0)
    signal = max(signal, (scaling.y_scale * parts.sd_of_means) ** 2)
    return ExpectedError(bias, sampling, privacy, signal, name_transformed(scaling.transform))


def _size(basis: Basis, scaling: Scaling, moments: Floats) -> float:
    """Expected squared L2 length, in the user's units, of functions whose scaled coefficients have these moments."""
    metric = _metric(basis, scaling, len(moments))
    return float((metric * moments).sum())


@lru_cache(maxsize=64)
def _metric(basis: Basis, scaling: Scaling, size: int) -> Floats:
    """The squared L2 length, in the user's units, as a quadratic form in `size` scaled coefficients."""
    mixing = scaling.mixing()
    gram = basis.resize(size // len(mixing)).gram()
    return np.asarray(np.kron(mixing.T @ mixing, gram), dtype=np.float64)
