"""Sites that differ: a random-effects model over the silos' separate releases. Post-processing, so it costs nothing.

Silo s measures B_s theta_s with a known covariance, and theta_s = theta + N(0, Omega): levels, slopes and bends of sites
differ by tau_0, tau_1 and tau_2. These sizes are averaged by evidence under half-Cauchy priors; a plug-in would make bands
of few sites too narrow. From the same law follow three curves: the mean over subjects (every site as it is, weighted by its
number of subjects, or of visits where those weigh the same), the mean over sites (theta), and the curve of a new site
(theta with Omega in its band).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpfda._typing import Floats, Integers
from dpfda.methods.adaptive import constants
from dpfda.methods.adaptive.components import Components
from dpfda.methods.adaptive.evidence import Measured
from dpfda.methods.adaptive.matrices import inverse
from dpfda.methods.adaptive.measurements import measure_all, read_rounds
from dpfda.methods.adaptive.odd_sites import Oddness
from dpfda.methods.adaptive.posterior import Data
from dpfda.methods.adaptive.prior import ScaledMixture, normalise
from dpfda.methods.adaptive.start import scale_mixtures
from dpfda.methods.adaptive.state import State
from dpfda.protocol.plan import Plan


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
    heterogeneity: tuple[float, float, float]  # I^2 of the level, and its interval
    oddness: Oddness  # how likely a site is unlike all others, and what it counts for if so

    def restored(self, matrix: Floats) -> SiteLaw:
        """In other coefficients, `matrix` times these."""
        each = {name: law.restored(matrix) for name, law in self.each.items()}
        subjects, sites, new_site = (law.restored(matrix) for law in (self.subjects, self.sites, self.new_site))
        return replace(self, subjects=subjects, sites=sites, new_site=new_site, each=each)


@dataclass(frozen=True)
class Releases:
    """Every site's measurement around the prior mean, what it counts for, and where it may be."""

    names: tuple[str, ...]
    matrices: Sequence[Floats]
    values: Sequence[Floats]
    noises: Sequence[Floats]
    shares: Floats  # of subjects, or of what they weigh; add up to 1
    anywhere: Sequence[float]  # variance of an odd site's deviations, besides those of all sites
    shared: Floats  # covariance of errors that all sites have alike

    @classmethod
    def of(cls, measured: Mapping[str, Measured], state: State, n: Mapping[str, int], shared: float) -> Releases:
        """Odd sites count for less among subjects, and may be anywhere."""
        names, trust = tuple(measured), state.oddness.trust
        matrices = [state.informations[name].matrix for name in names]
        counted = [n[name] * state.weights.relative(name) * trust.get(name, 1.0) for name in names]
        shares = np.array(counted, dtype=np.float64)
        shares /= shares.sum()
        common = np.tensordot(shares, [state.measured[name].doubt + state.measured[name].bias for name in names], 1)
        return cls(
            names,
            matrices,
            [measured[name].value - matrix @ state.start for name, matrix in zip(names, matrices, strict=True)],
            [measured[name].covariance for name in names],
            shares,
            [(constants.ANYWHERE * state.unit) ** 2 if name in trust else 0.0 for name in names],
            shared * common,
        )


def learn_sites(plan: Plan, state: State, prior: Floats) -> SiteLaw:
    """The law of all sites, twice: what B's errors do to a site depends on how far it is from the iterates."""
    n = {silo.name: silo.n for silo in plan.silos}
    step = constants.ROUGH_STEP
    rough = fit_sites(Releases.of(state.measured, state, n, 0.0), state, prior, step)
    own = {name: (each.mean, each.covariance) for name, each in rough.each.items()}
    measured = measure_all(plan, state, read_rounds(plan, state), own)
    releases = Releases.of(measured, state, n, constants.SHARED_ERROR)
    return fit_sites(releases, state, prior, mixture=choose_mixture(plan, state))


def choose_mixture(plan: Plan, state: State) -> ScaledMixture | None:
    """The prior of a mean as the estimate has it, without components that hardly weigh; none with covariates."""
    posterior = state.posterior
    if posterior is None or state.law.columns > 1:
        return None
    weights = posterior.weights[0]
    mixture = scale_mixtures(plan, state.longer, state.level, state.law, state.unit)[0]
    return mixture.keep(np.flatnonzero(weights > constants.NEGLIGIBLE_PART * weights.max()))


def fit_sites(
    releases: Releases, state: State, prior: Floats, step: int = 1, mixture: ScaledMixture | None = None
) -> SiteLaw:
    """The posterior over all sites, averaged over the sizes of their differences, or over every `step`th of these.

    With a mixture the common curve has it as its prior, for sizes that `prior`, one Gaussian, leaves likely.
    """
    columns, unit = state.law.columns, state.unit
    shapes = list_shapes(len(prior) // columns, columns)
    grid = [constants.SITE_SIZES[:: step * every] for every in (1, 2, 3)]
    sizes = np.array(list(itertools.product(*grid)))
    odds = _weigh_sizes(sizes)
    parts = [fit_part(unit * size, shapes, releases, prior) for size in sizes]
    keep, weights = _choose_parts(parts, odds)
    if mixture is not None:
        parts = [fit_part(unit * sizes[index], shapes, releases, prior, mixture) for index in keep]
        odds, sizes = odds[keep], sizes[keep]
        keep, weights = _choose_parts(parts, odds)
    chosen, sizes = [parts[index] for index in keep], sizes[keep]
    level = unit * sizes[:, 0]
    mean_level = float(weights @ level)
    names, start = releases.names, state.start
    return SiteLaw(
        names,
        _mix(weights, [part.subjects for part in chosen], start),
        _mix(weights, [part.sites for part in chosen], start),
        _mix(weights, [part.new_site for part in chosen], start),
        {name: _mix(weights, [part.each[s] for part in chosen], start) for s, name in enumerate(names)},
        (mean_level, math.sqrt(max(float(weights @ level**2) - mean_level**2, 0.0))),
        float(weights @ (sizes > 0).any(axis=1)),
        {name: float(weights @ [part.kept[s] for part in chosen]) for s, name in enumerate(names)},
        _find_heterogeneity(weights, level, releases),
        state.oddness,
    )


def _weigh_sizes(sizes: Floats) -> Floats:
    """Log odds of sizes between sites before any evidence: half-Cauchy, and more for sites that are all alike."""
    odds = -np.log1p((sizes / constants.SITE_SCALE) ** 2).sum(axis=1)
    return np.asarray(odds + np.where((sizes == 0).all(axis=1), constants.ALIKE_ODDS, 0.0))


def _choose_parts(parts: Sequence[_Part], odds: Floats) -> tuple[Integers, Floats]:
    """Those that are likely, and their weights."""
    weights = normalise(np.array([part.log_evidence for part in parts]) + odds)
    keep = np.flatnonzero(weights > constants.NEGLIGIBLE_PART * weights.max())
    return keep, np.asarray(weights[keep] / weights[keep].sum())


def _find_heterogeneity(weights: Floats, level: Floats, releases: Releases) -> tuple[float, float, float]:
    """I^2 of the level: median and 95% interval of tau^2 / (tau^2 + typical variance of a site's own level)."""
    used = [s for s, extra in enumerate(releases.anywhere) if extra == 0.0]
    own = 1 / np.array([_find_precision(releases.matrices[s], releases.noises[s]) for s in used])
    precision = 1 / own
    count = len(used)
    typical = (count - 1) * precision.sum() / (precision.sum() ** 2 - (precision**2).sum()) if count > 1 else own[0]
    shares = level**2 / (level**2 + typical)
    order = shares.argsort()
    total = np.cumsum(weights[order])
    places = [min(int(np.searchsorted(total, q)), len(order) - 1) for q in constants.LOW_MIDDLE_HIGH]
    low, middle, high = (float(shares[order][place]) for place in places)
    return middle, low, high


def _find_precision(matrix: Floats, noise: Floats) -> float:
    """Of the level of the first function, the other coefficients given."""
    return float(matrix[:, 0] @ np.linalg.solve(noise, matrix[:, 0]))


@dataclass(frozen=True)
class _Part:
    """The posterior for one size of the sites' differences."""

    log_evidence: float
    subjects: Gaussian
    sites: Gaussian
    new_site: Gaussian
    each: Sequence[Gaussian]
    kept: Sequence[float]


def list_shapes(size: int, columns: int) -> Floats:
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


def fit_part(
    size: Floats, shapes: Floats, releases: Releases, prior: Floats, mixture: ScaledMixture | None = None
) -> _Part:
    """The posterior if levels, slopes and bends of sites differ by these sds."""
    between, loose = np.tensordot(size**2, shapes, 1), shapes.sum(axis=0)
    precision, score, log_evidence = np.zeros_like(prior), np.zeros(len(prior)), 0.0
    apart = [between + extra * loose for extra in releases.anywhere]
    weighted = []
    for matrix, value, noise, own in zip(releases.matrices, releases.values, releases.noises, apart, strict=True):
        total = noise + matrix @ own @ matrix.T
        weight = inverse(total)
        reach = matrix.T @ weight
        precision += reach @ matrix
        score += reach @ value
        log_evidence -= 0.5 * float(np.linalg.slogdet(total)[1]) + 0.5 * float(value @ weight @ value)
        weighted.append(reach)
    mean, covariance, gained = (
        _fit_common(precision, score, prior) if mixture is None else _average_common(precision, score, mixture)
    )
    log_evidence += gained
    response = covariance @ np.sum(weighted, axis=0)
    common = Gaussian(mean, covariance)
    subjects, each, kept = _follow_sites(releases, common, response, apart, weighted)
    wider = covariance + response @ releases.shared @ response.T
    return _Part(log_evidence, subjects, Gaussian(mean, wider), Gaussian(mean, wider + between), each, kept)


def _fit_common(precision: Floats, score: Floats, prior: Floats) -> tuple[Floats, Floats, float]:
    """Mean and covariance of what sites have in common under one Gaussian prior, and what it adds to the log evidence."""
    inner = np.eye(len(prior)) + prior @ precision
    covariance = np.linalg.solve(inner, prior)
    covariance = (covariance + covariance.T) / 2
    mean = covariance @ score
    return mean, covariance, 0.5 * float(score @ mean) - 0.5 * float(np.linalg.slogdet(inner)[1])


def _average_common(precision: Floats, score: Floats, mixture: ScaledMixture) -> tuple[Floats, Floats, float]:
    """The same, averaged over the components of a mixture."""
    data = Data.of_information(precision, score)
    found = Components.measure(data.y, data.rows, mixture)
    logs = mixture.log_odds + found.log_evidence
    weights = normalise(logs)
    keep = np.flatnonzero(weights > constants.NEGLIGIBLE_PART * weights.max())
    mean, covariance, _ = found.average(keep, weights[keep] / weights[keep].sum())
    return mean, covariance, float(np.logaddexp.reduce(logs) + data.y @ data.y / 2)


def _follow_sites(
    releases: Releases, common: Gaussian, response: Floats, apart: Sequence[Floats], weighted: Sequence[Floats]
) -> tuple[Gaussian, list[Gaussian], list[float]]:
    """From what sites have in common to each of them, and to the mean over their subjects.

    `response` is what an error that all sites share moves the common mean by.
    """
    size, shared = len(common.mean), releases.shared
    each, kept = [], []
    total, own = np.zeros(size), np.zeros((size, size))
    from_common, moved = np.zeros((size, size)), np.zeros_like(response)
    for share, matrix, value, between, reach in zip(
        releases.shares, releases.matrices, releases.values, apart, weighted, strict=True
    ):
        gain = between @ reach
        rest = np.eye(size) - gain @ matrix  # what a site takes from the others
        site = between - gain @ matrix @ between
        site = (site + site.T) / 2
        mean = common.mean + gain @ (value - matrix @ common.mean)
        along = gain + rest @ response
        each.append(Gaussian(mean, rest @ common.covariance @ rest.T + site + along @ shared @ along.T))
        kept.append(float((gain @ matrix)[0, 0]))
        from_common += share * rest
        moved += share * along
        own += share**2 * site
        total += share * mean
    covariance = from_common @ common.covariance @ from_common.T + own + moved @ shared @ moved.T
    return Gaussian(total, covariance), each, kept


def _mix(weights: Floats, parts: Sequence[Gaussian], start: Floats) -> Gaussian:
    means = np.array([part.mean for part in parts])
    mean = weights @ means
    apart = means - mean
    covariance = np.tensordot(weights, np.array([part.covariance for part in parts]), 1) + (apart.T * weights) @ apart
    return Gaussian(start + mean, np.asarray(covariance))
