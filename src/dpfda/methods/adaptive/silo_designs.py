"""Silos whose designs differ: each has moments of its own, shrunk towards those of all."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

import numpy as np

from dpfda._typing import Floats
from dpfda.methods.adaptive.constants import CLEARLY_DIFFERENT, DESIGN_SURE, SAMPLING_VARIANCE
from dpfda.methods.adaptive.pooling import Pooled


def shrink_moments(pooled: Pooled, by_silo: Mapping[str, Pooled]) -> dict[str, Pooled]:
    """Moments of every silo, shrunk towards the pooled ones; none where all may well have one design.

    Every octave of moments is judged by itself: designs differ in a few low moments, which the noise of fifty would hide.
    """
    variance = {name: moments.sd**2 + SAMPLING_VARIANCE / moments.n for name, moments in by_silo.items()}
    apart = {name: (moments.values - pooled.values) ** 2 for name, moments in by_silo.items()}
    every, noises = np.array(list(apart.values())), np.array(list(variance.values()))
    blocks = [block for block in _list_octaves(pooled.values.size) if _differ(every[:, block], noises[:, block])]
    if not blocks:
        return {}
    of_all = _find_real(blocks, every, noises)
    found = {}
    for name, moments in by_silo.items():
        noise = variance[name]
        own = _find_real(blocks, apart[name][None], noise[None], DESIGN_SURE)
        real = np.maximum(of_all, own)
        weight = real / (real + noise)
        values = pooled.values + weight * (moments.values - pooled.values)
        sd = np.sqrt((1 - weight) ** 2 * (pooled.sd**2 + real) + weight * moments.sd**2)
        found[name] = Pooled(values, sd, moments.n)
    return found


def _differ(apart: Floats, noise: Floats) -> bool:
    """Whether an octave of moments differs between silos by clearly more than its noise."""
    freedom = (len(apart) - 1) * apart.shape[1]
    chi_square = float((apart / noise).sum())
    return bool(freedom > 0 and chi_square > freedom + CLEARLY_DIFFERENT * math.sqrt(2 * freedom))


def _list_octaves(size: int) -> list[slice]:
    """The first moment, the second, then twice as many each time: designs differ in low moments more than in high ones."""
    edges = [0, 1]
    while edges[-1] < size:
        edges.append(2 * edges[-1])
    return [slice(low, min(high, size)) for low, high in itertools.pairwise(edges)]


def _find_real(blocks: list[slice], apart: Floats, noise: Floats, sure: float = 0.0) -> Floats:
    """By how much designs differ (variance of each moment), from squared deviations of some silos, `sure` sds less."""
    real = np.zeros(apart.shape[1])
    for block in blocks:
        weight = 1 / noise[:, block] ** 2
        found = float(((apart[:, block] - noise[:, block]) * weight).sum() / weight.sum())
        real[block] = max(found - sure * math.sqrt(2 / float(weight.sum())), 0.0)
    return real
