"""Silos whose designs differ: each has moments of its own, shrunk towards those of all."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from dpfda.methods.adaptive.constants import CLEARLY_DIFFERENT, SAMPLING_VARIANCE
from dpfda.methods.adaptive.pooling import Pooled


def shrink_moments(pooled: Pooled, by_silo: Mapping[str, Pooled]) -> dict[str, Pooled]:
    """Moments of every silo, shrunk towards the pooled ones; none where all may well have one design."""
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
        sd = np.sqrt((1 - weight) ** 2 * (pooled.sd**2 + real) + weight * moments.sd**2)
        found[name] = Pooled(values, sd, moments.n)
    return found
