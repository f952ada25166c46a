"""Silos whose designs differ: each has an information matrix of its own.

With one pooled matrix for all, a silo that saw only the left half would speak for the right half, too: two silos on
[0, 0.6] and [0.4, 1] with eps 2 and 0.3 had 13 times the error of least squares.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from dpfda.basis.basis import Basis
from dpfda.methods.adaptive.constants import CLEARLY_DIFFERENT, SAMPLING_VARIANCE
from dpfda.methods.adaptive.design import DesignDensity, fit_density
from dpfda.methods.adaptive.pooling import Pooled


def fit_silo_densities(basis: Basis, pooled: Pooled, by_silo: Mapping[str, Pooled]) -> dict[str, DesignDensity]:
    """A density for every silo, its moments shrunk towards the pooled ones; none where all may well have one design."""
    variance = {name: moments.sd**2 + SAMPLING_VARIANCE / moments.n for name, moments in by_silo.items()}
    apart = {name: (moments.values - pooled.values) ** 2 for name, moments in by_silo.items()}
    freedom = (len(by_silo) - 1) * pooled.values.size
    chi_square = sum(float((apart[name] / variance[name]).sum()) for name in by_silo)
    if freedom == 0 or chi_square < freedom + CLEARLY_DIFFERENT * math.sqrt(2 * freedom):
        return {}
    found = {}
    for name, moments in by_silo.items():
        noise = float(variance[name].mean())
        real = max(float(apart[name].mean()) - noise, 0.0)
        weight = real / (real + noise)
        values = pooled.values + weight * (moments.values - pooled.values)
        sd = np.sqrt((1 - weight) ** 2 * pooled.sd**2 + weight * moments.sd**2)
        found[name] = fit_density(basis, Pooled(values, sd, moments.n))
    return found
