"""Sites that differ: a random-effects model over the silos' separate releases. Post-processing, so it costs nothing.

Silo s measures B_s theta_s with a known covariance, and theta_s = theta + N(0, Omega): levels, slopes and bends of sites
differ by tau_0, tau_1 and tau_2. These sizes are averaged by evidence under half-Cauchy priors; a plug-in would make bands
of few sites too narrow. From the same law follow three curves: the mean over subjects (every site as it is, weighted by its
number of subjects), the mean over sites (theta), and the curve of a new site (theta with Omega in its band).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpfda._typing import Floats
from dpfda.methods.adaptive import constants
from dpfda.methods.adaptive.evidence import Measured
from dpfda.methods.adaptive.information import Information
from dpfda.methods.adaptive.matrices import inverse
from dpfda.methods.adaptive.prior import normalise


@dataclass(frozen=True)
class Gaussian:
    """Mean and covariance of coefficients."""

    mean: Floats
    covariance: Floats

    def restored(self, matrix: Floats) -> Gaussian:
        """In other coefficients, `matrix` times these."""
        return Gaussian(np.asarray(matrix @ self.mean), np.asarray(matrix @ self.covariance @ matrix.T))


@dataclass(frozen=True)
class SiteLaw:
    """What is known of sites and of what they have in common, in the coefficients of the method."""

    names: tuple[str, ...]
    subjects: Gaussian
    sites: Gaussian
    new_site: Gaussian
    each: Mapping[str, Gaussian]
    level_sd: tuple[float, float]  # between-site sd of the level: posterior mean and sd
    different: float  # probability that sites differ at all
    shrinkage: Mapping[str, float]  # how much of its own deviation a site keeps

    def restored(self, matrix: Floats) -> SiteLaw:
        """In other coefficients, `matrix` times these."""
        each = {name: law.restored(matrix) for name, law in self.each.items()}
        subjects, sites, new_site = (law.restored(matrix) for law in (self.subjects, self.sites, self.new_site))
        return replace(self, subjects=subjects, sites=sites, new_site=new_site, each=each)


def fit_sites(
    measured: Mapping[str, Measured],
    informations: Mapping[str, Information],
    n: Mapping[str, int],
    start: Floats,
    prior: Floats,
    unit: float,
) -> SiteLaw:
    """The posterior over all sites, averaged over the sizes of their differences."""
    names = tuple(measured)
    columns = next(iter(informations.values())).law.columns
    shapes = _list_shapes(len(start) // columns, columns)
    sizes = np.array(
        list(itertools.product(constants.SITE_SIZES, constants.SITE_SIZES[::2], constants.SITE_SIZES[::3]))
    )
    matrices = [informations[name].matrix for name in names]
    values = [measured[name].value - matrix @ start for name, matrix in zip(names, matrices, strict=True)]
    noises = [measured[name].covariance for name in names]
    shares = np.array([n[name] for name in names], dtype=np.float64)
    shares /= shares.sum()
    parts = [_fit(unit * size, shapes, matrices, values, noises, prior, shares) for size in sizes]
    odds = -np.log1p((sizes / constants.SITE_SCALE) ** 2).sum(axis=1)
    same = (sizes == 0).all(axis=1)
    weights = normalise(
        np.array([part.log_evidence for part in parts]) + odds + np.where(same, constants.ALIKE_ODDS, 0.0)
    )
    keep = np.flatnonzero(weights > constants.NEGLIGIBLE_PART * weights.max())
    kept = weights[keep] / weights[keep].sum()
    chosen = [parts[index] for index in keep]
    level = unit * sizes[keep, 0]
    mean_level = float(kept @ level)
    each = {name: _mix(kept, [part.each[s] for part in chosen], start) for s, name in enumerate(names)}
    shrinkage = {name: float(kept @ [part.kept[s] for part in chosen]) for s, name in enumerate(names)}
    return SiteLaw(
        names,
        _mix(kept, [part.subjects for part in chosen], start),
        _mix(kept, [part.sites for part in chosen], start),
        _mix(kept, [part.new_site for part in chosen], start),
        each,
        (mean_level, math.sqrt(max(float(kept @ level**2) - mean_level**2, 0.0))),
        float(1 - weights[same].sum()),
        shrinkage,
    )


@dataclass(frozen=True)
class _Part:
    """The posterior for one size of the sites' differences."""

    log_evidence: float
    subjects: Gaussian
    sites: Gaussian
    new_site: Gaussian
    each: Sequence[Gaussian]
    kept: Sequence[float]


def _list_shapes(size: int, columns: int) -> Floats:
    """Covariances of sites' deviations of size 1: in level, in slope, in bends; alike in all coefficient functions."""
    shapes = np.zeros((3, size, size))
    shapes[0, 0, 0] = 1.0
    if size > 1:
        shapes[1, 1, 1] = 1.0
    bends = np.arange(constants.STRAIGHT, size)
    if bends.size:
        falling = (bends - 1.0) ** -4.0
        shapes[2, bends, bends] = falling / falling.sum()
    return np.stack([np.kron(np.eye(columns), shape) for shape in shapes])


def _fit(
    size: Floats,
    shapes: Floats,
    matrices: Sequence[Floats],
    values: Sequence[Floats],
    noises: Sequence[Floats],
    prior: Floats,
    shares: Floats,
) -> _Part:
    between = np.tensordot(size**2, shapes, 1)
    precision, score, log_evidence = np.zeros_like(prior), np.zeros(len(prior)), 0.0
    gains, weights = [], []
    for matrix, value, noise in zip(matrices, values, noises, strict=True):
        total = noise + matrix @ between @ matrix.T
        weight = inverse(total)
        precision += matrix.T @ weight @ matrix
        score += matrix.T @ weight @ value
        log_evidence -= 0.5 * float(np.linalg.slogdet(total)[1]) + 0.5 * float(value @ weight @ value)
        gains.append(between @ matrix.T @ weight)
        weights.append(weight)
    inner = np.eye(len(prior)) + prior @ precision
    covariance = np.linalg.solve(inner, prior)
    covariance = (covariance + covariance.T) / 2
    mean = covariance @ score
    log_evidence += 0.5 * float(score @ mean) - 0.5 * float(np.linalg.slogdet(inner)[1])
    each, kept = [], []
    common, own = np.zeros_like(prior), np.zeros_like(prior)
    total_mean = np.zeros(len(prior))
    for share, matrix, value, gain in zip(shares, matrices, values, gains, strict=True):
        rest = np.eye(len(prior)) - gain @ matrix  # what a site takes from the others
        site = between - gain @ matrix @ between
        mean_s = mean + gain @ (value - matrix @ mean)
        each.append(Gaussian(mean_s, rest @ covariance @ rest.T + (site + site.T) / 2))
        kept.append(float((gain @ matrix)[0, 0]))
        common += share * rest
        own += share**2 * (site + site.T) / 2
        total_mean += share * mean_s
    subjects = Gaussian(total_mean, common @ covariance @ common.T + own)
    return _Part(log_evidence, subjects, Gaussian(mean, covariance), Gaussian(mean, covariance + between), each, kept)


def _mix(weights: Floats, parts: Sequence[Gaussian], start: Floats) -> Gaussian:
    means = np.array([part.mean for part in parts])
    mean = weights @ means
    apart = means - mean
    covariance = np.tensordot(weights, np.array([part.covariance for part in parts]), 1) + (apart.T * weights) @ apart
    return Gaussian(start + mean, np.asarray(covariance))
