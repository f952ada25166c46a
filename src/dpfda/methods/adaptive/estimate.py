"""The estimate from all rounds of all silos, and what it rests on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpfda._typing import Floats
from dpfda.methods.adaptive.error_parts import SiloCovariances
from dpfda.methods.adaptive.evidence import Evidence, Stack
from dpfda.methods.adaptive.geometry import Geometry
from dpfda.methods.adaptive.matrices import inverse
from dpfda.methods.adaptive.posterior import Posterior, Prior, solve

_REFINEMENTS = 4
_TYPICAL_SIZE = 0.2


@dataclass(frozen=True)
class Estimate:
    """A posterior, the measurement of A b* behind it with its covariance, and the silos' parts in that.

    `known` is the covariance if A b* itself, as far as it has been guessed, were right; `doubt` what is beyond the silos'.
    """

    posterior: Posterior
    value: Floats
    known: Floats
    doubt: Floats
    silos: SiloCovariances


@dataclass(frozen=True)
class Measured:
    """What the silos have released about A b*: gradients, sampling covariances, and geometries of their own or none."""

    evidence: Sequence[Sequence[Evidence]]
    sampling: Floats
    own: Sequence[Geometry | None]


def estimate(measured: Measured, geometry: Geometry, prior: Prior) -> Estimate:
    """Combine all rounds of all silos; later passes know how far each round was from the end."""
    information, sampling = geometry.information, measured.sampling
    alike = not any(measured.own)
    own = [each or geometry for each in measured.own]
    seen = information if alike else np.stack([each.information for each in own])
    turned = None if alike else np.asarray(np.linalg.solve(information, seen), dtype=np.float64).swapaxes(-1, -2)
    stack = Stack(measured.evidence, seen, geometry.errors if alike else _padded([each.errors for each in own]))
    root = prior.root(_TYPICAL_SIZE)
    away = root @ root.T
    centre = noise = None
    for _ in range(_REFINEMENTS):
        joint = stack.joint(centre, noise)
        noise = inverse(joint.precision)
        if alike:
            silos = SiloCovariances(noise, sampling)
            precision, weighted = joint.blurred(sampling).total().marginal()
            known = inverse(precision)
            value, covariance = known @ weighted, known + geometry.doubt(away)
        else:
            precision, weighted = joint.marginal()
            told = inverse(precision)
            silos = SiloCovariances(told + np.stack([each.doubt(away) for each in own]), sampling, turned)
            value, known = silos.mean((told @ weighted[..., None])[..., 0]), silos.pooled
            covariance = known
        posterior = solve(value, covariance, information, prior)
        centre, away = posterior.mean, posterior.covariance
    return Estimate(posterior, value, known, covariance - silos.pooled, silos)


def _padded(errors: Sequence[Floats]) -> Floats:
    """A stack of one list of matrices for each silo, zeros after the last."""
    most = max(len(each) for each in errors)
    return np.stack([np.concatenate([each, np.zeros((most - len(each), *each.shape[1:]))]) for each in errors])
