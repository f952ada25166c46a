"""Silos whose designs differ: each has an information matrix of its own.

With one pooled matrix for all, a silo that saw only the left half would speak for the right half, too: two silos on
[0, 0.6] and [0.4, 1] with eps 2 and 0.3 had 13 times the error of least squares.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from dpfda.basis.basis import Basis
from dpfda.methods.adaptive.design import DesignDensity, fit_density
from dpfda.methods.adaptive.pooling import SAMPLING, Pooled

_CLEAR = 3.0  # standard deviations of the noise by which designs must differ


def own_densities(basis: Basis, pooled: Pooled, own: Mapping[str, Pooled]) -> dict[str, DesignDensity]:
    """A density for every silo, its moments shrunk towards the pooled ones; none where all may well have one design."""
    variance = {name: moments.sd**2 + SAMPLING / moments.n for name, moments in own.items()}
    apart = {name: (moments.values - pooled.values) ** 2 for name, moments in own.items()}
    freedom = (len(own) - 1) * pooled.values.size
    chi_square = sum(float((apart[name] / variance[name]).sum()) for name in own)
    if freedom == 0 or chi_square < freedom + _CLEAR * math.sqrt(2 * freedom):
        return {}
    found = {}
    for name, moments in own.items():
        noise = float(variance[name].mean())
        real = max(float(apart[name].mean()) - noise, 0.0)
        weight = real / (real + noise)
        values = pooled.values + weight * (moments.values - pooled.values)
        sd = np.sqrt((1 - weight) ** 2 * pooled.sd**2 + weight * moments.sd**2)
        found[name] = fit_density(basis, Pooled(values, sd, moments.n))
    return found
