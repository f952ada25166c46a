"""The estimate from all rounds of all silos, and what it rests on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpfda._typing import Floats
from dpfda.methods.adaptive.constants import ESTIMATE_PASSES, FIRST_PASS_SIZE
from dpfda.methods.adaptive.error_parts import SiloCovariances
from dpfda.methods.adaptive.evidence import Evidence, Stack
from dpfda.methods.adaptive.geometry import Geometry
from dpfda.methods.adaptive.matrices import inverse
from dpfda.methods.adaptive.posterior import Posterior, Prior, solve


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
class Measurements:
    """What the silos have released about A b*: gradients, sampling covariances, and a silo's geometry where it differs."""

    evidence: Sequence[Sequence[Evidence]]
    sampling: Floats
    silo_geometries: Sequence[Geometry | None]


def estimate(measurements: Measurements, geometry: Geometry, prior: Prior) -> Estimate:
    """Combine all rounds of all silos; later passes know how far each round was from the end."""
    combine = _combine_different if any(measurements.silo_geometries) else _combine_alike
    return combine(measurements, geometry, prior)


def _first_guess(prior: Prior) -> Floats:
    """Second moments of b* around the prior mean, before anything is combined."""
    root = prior.root(FIRST_PASS_SIZE)
    result: Floats = root @ root.T
    return result


def _combine_alike(measurements: Measurements, geometry: Geometry, prior: Prior) -> Estimate:
    """All silos have the information matrix A."""
    information, sampling = geometry.information, measurements.sampling
    stack = Stack(measurements.evidence, information, geometry.errors)
    away, centre, noise = _first_guess(prior), None, None
    for _ in range(ESTIMATE_PASSES):
        joint = stack.joint(centre, noise)
        noise = inverse(joint.precision)
        silos = SiloCovariances(noise, sampling)
        precision, score = joint.blurred(sampling).total().marginal()
        known = inverse(precision)
        value, covariance = known @ score, known + geometry.doubt(away)
        posterior = solve(value, covariance, information, prior)
        centre, away = posterior.mean, posterior.covariance
    return Estimate(posterior, value, known, covariance - silos.pooled, silos)


def _combine_different(measurements: Measurements, geometry: Geometry, prior: Prior) -> Estimate:
    """Silo s has the information matrix A_s: what it measures, A_s b*, is A_s A^-1 times A b*."""
    information, sampling = geometry.information, measurements.sampling
    geometries = [each or geometry for each in measurements.silo_geometries]
    informed = np.stack([each.information for each in geometries])
    relative = np.asarray(np.linalg.solve(information, informed), dtype=np.float64).swapaxes(-1, -2)
    stack = Stack(measurements.evidence, informed, _pad([each.errors for each in geometries]))
    away, centre, noise = _first_guess(prior), None, None
    for _ in range(ESTIMATE_PASSES):
        joint = stack.joint(centre, noise)
        noise = inverse(joint.precision)
        precisions, scores = joint.marginal()
        measured = inverse(precisions)
        doubts = np.stack([each.doubt(away) for each in geometries])
        silos = SiloCovariances(measured + doubts, sampling, relative)
        value, known = silos.mean((measured @ scores[..., None])[..., 0]), silos.pooled
        posterior = solve(value, known, information, prior)
        centre, away = posterior.mean, posterior.covariance
    return Estimate(posterior, value, known, np.zeros_like(known), silos)


def _pad(errors: Sequence[Floats]) -> Floats:
    """A stack of one list of matrices for each silo, zeros after the last."""
    most = max(len(each) for each in errors)
    return np.stack([np.concatenate([each, np.zeros((most - len(each), *each.shape[1:]))]) for each in errors])
