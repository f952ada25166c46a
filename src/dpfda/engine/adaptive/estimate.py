"""The estimate from all rounds of all silos, and what it rests on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpfda.engine.adaptive.error_parts import SiloCovariances
from dpfda.engine.adaptive.evidence import Evidence, Stack
from dpfda.engine.adaptive.geometry import Geometry
from dpfda.engine.adaptive.posterior import Posterior, Prior, solve

Floats = NDArray[np.float64]

_REFINEMENTS = 4
_TYPICAL_SIZE = 0.2


@dataclass(frozen=True)
class Estimate:
    """A posterior, the measurement of A b* behind it with its covariance, the part of it that is doubt, and the silos'."""

    posterior: Posterior
    value: Floats
    covariance: Floats
    doubt: Floats
    silos: SiloCovariances


@dataclass(frozen=True)
class Measured:
    """What the silos have released about A b*: gradients, sampling covariances, and geometries of their own or none."""

    evidence: Sequence[Sequence[Evidence]]
    sampling: Floats
    own: Sequence[Geometry | None]


def estimate(measured: Measured, geometry: Geometry, prior: Prior, iterate: Floats) -> Estimate:
    """Combine all rounds of all silos; later passes know how far each round was from the end."""
    information, own = geometry.information, measured.own
    alike = not any(own)
    seen = information if alike else np.stack([(each or geometry).information for each in own])
    turned = None if alike else np.asarray(np.linalg.solve(information, seen), dtype=np.float64).swapaxes(-1, -2)
    stack = Stack(measured.evidence, seen, geometry.misfit)
    root = prior.root(_TYPICAL_SIZE)
    away = root @ root.T
    centre = noise = None
    for _ in range(_REFINEMENTS):
        values, noise = stack.combined(centre, noise)
        silos = SiloCovariances(noise if alike else noise + _doubts(own, away), measured.sampling, turned)
        doubt = geometry.doubt(away) if alike else np.zeros_like(information)
        value, covariance = silos.mean(values), silos.pooled + doubt
        posterior = solve(value, covariance, information, prior)
        centre = posterior.mean
        step = centre - iterate
        away = step[:, None] * step + posterior.covariance
    return Estimate(posterior, value, covariance, doubt, silos)


def _doubts(own: Sequence[Geometry | None], away: Floats) -> Floats:
    return np.stack([np.zeros_like(away) if each is None else each.doubt(away) for each in own])
