"""How far a Gaussian function strays from its mean, by a rule that Python, R and JavaScript share: no random draws.

Let Z be a standardised Gaussian function, Z(u) = v(u)' g with unit vectors v and g standard normal. As u runs through the
nodes, v draws a path on the sphere; joined by arcs of great circles it has a length, kappa. A function that exceeds c
somewhere does so at the first node or crosses +-c on the way, and the expected number of crossings is kappa exp(-c^2/2) / pi
(Rice; Hotelling's tube). Hence, for every c and every law,

    P(max |Z| > c) <= erfc(c / sqrt 2) + kappa exp(-c^2 / 2) / pi,

nearly with equality where the right side is small. Critical values solve "right side = 1 - level"; p-values are the right
side. A band is never too narrow for its law, at any level. `docs/questions.md` states every constant.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import erfc, erfcinv

from dpfda._typing import Floats

STEPS = 512  # of the angle, between the nodes
KNOWN = 1e-20  # share of the largest variance below which a value counts as known exactly
_HALVINGS = 100  # of the bisection: more than the bits of a float


def nodes() -> Floats:
    """u_k = {1 - cos(pi k / 512)} / 2, k = 0..512: dense at the ends, where polynomials turn fastest."""
    return np.asarray((1 - np.cos(np.arange(STEPS + 1) * (math.pi / STEPS))) / 2)


def standardise(features: Floats, covariance: Floats) -> tuple[Floats, Floats]:
    """Standard deviations of `features @ coefficients`, and the features divided by them, zero where it is known exactly."""
    variance = np.maximum(np.einsum("xa,ab,xb->x", features, covariance, features), 0.0)
    doubtful = variance > KNOWN * variance.max(initial=0.0)
    sd = np.where(doubtful, np.sqrt(variance), 0.0)
    return sd, features / np.where(doubtful, sd, np.inf)[:, None]


def path_length(features: Floats, covariance: Floats) -> float:
    """Kappa: the sum of angles between neighbouring standardised values, opposite ones being the same."""
    _, unit = standardise(features, covariance)
    known = np.asarray(~np.any(unit, axis=1))
    steps, sums = (
        np.einsum("xa,ab,xb->x", each, covariance, each) for each in (unit[1:] - unit[:-1], unit[1:] + unit[:-1])
    )
    chords = np.sqrt(np.clip(np.minimum(steps, sums), 0.0, 2.0))
    angles = np.where(known[1:] | known[:-1], 0.0, 2 * np.arcsin(chords / 2))
    return float(angles.sum())


def exceedance(c: float, kappas: Floats) -> float:
    """The bound above, added up over several functions, and at most 1."""
    total = len(kappas) * float(erfc(c / math.sqrt(2))) + float(kappas.sum()) / math.pi * math.exp(-c * c / 2)
    return min(1.0, total)


def solve_critical(level: float, kappas: Floats) -> float:
    """The c at which several functions together stay within +-c with probability `level`, by bisection."""
    low, high = 0.0, 40.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if exceedance(middle, kappas) > 1 - level else (low, middle)
    return (low + high) / 2


def solve_one_sided(alpha: float, starts: Floats, kappas: Floats) -> Floats:
    """The c at which starts erfc(c / sqrt 2) / 2 + kappa exp(-c^2 / 2) / (2 pi) = alpha, for each entry."""
    low, high = np.zeros_like(kappas), np.full_like(kappas, 40.0)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        beyond = starts * erfc(middle / math.sqrt(2)) / 2 + kappas * np.exp(-(middle**2) / 2) / (2 * math.pi)
        low, high = np.where(beyond > alpha, middle, low), np.where(beyond > alpha, high, middle)
    return np.asarray((low + high) / 2)


def pointwise_critical(level: float) -> float:
    """The c within which one normal value stays with probability `level`."""
    return math.sqrt(2) * float(erfcinv(1 - level))
