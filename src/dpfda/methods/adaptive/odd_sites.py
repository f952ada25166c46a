"""Sites that are unlike all others: garbage, another unit, shuffled columns. From releases only, so it costs nothing.

A site is compared with what the other sites predict of it. Sites may differ, by as much as the others do among themselves;
a site is odd if it is far more likely to come from anywhere. Odd ones are taken out one after the other, the oddest first,
so that one does not hide another. With three sites it can be said who is odd, but not with confidence enough to act on it;
with two not even that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import expit

from dpfda._typing import Floats
from dpfda.methods.adaptive import constants
from dpfda.methods.adaptive.evidence import Measured
from dpfda.methods.adaptive.information import Information
from dpfda.methods.adaptive.level import Level
from dpfda.methods.adaptive.matrices import inverse, raise_eigenvalues
from dpfda.methods.adaptive.pooling import Pooled
from dpfda.methods.adaptive.prior import normalise
from dpfda.protocol.statistics import LENGTH_CELLS, SHORTEST_OCTAVE


@dataclass(frozen=True)
class Traits:
    """What releases say of every site in a few numbers: values (sites, q) with covariances (sites, q, q).

    `scale` is by how much sites that measure the same thing might differ in each number. `most` bounds the log ratio of
    evidence, for traits that do not convict alone: honest differences between sites have long tails in them. `usual` is how
    often a site that is odd in one trait only is odd in this one, in relation to others.
    """

    values: Floats
    covariances: Floats
    scale: Floats
    most: float = math.inf
    usual: float = 1.0

    def keep(self, sites: Sequence[int]) -> Traits:
        """Of these sites only."""
        return replace(self, values=self.values[sites], covariances=self.covariances[sites])

    def add_unknown(self) -> Traits:
        """With one more site, of which nothing is known: it may be anywhere, and tells nothing of the others."""
        anything = np.diag((constants.ANYWHERE * self.scale) ** 2)
        values = np.concatenate([self.values, self.values.mean(axis=0, keepdims=True)])
        return replace(self, values=values, covariances=np.concatenate([self.covariances, anything[None]]))

    def pick(self, column: int) -> Traits:
        """One of the numbers."""
        one = slice(column, column + 1)
        return Traits(self.values[:, one], self.covariances[:, one, one], self.scale[one], self.most, self.usual)


@dataclass(frozen=True)
class FirstTraits:
    """Those of round 0: level and log spread of curves' means, shares of values at the bounds."""

    names: tuple[str, ...]
    traits: tuple[Traits, ...]

    @property
    def unit(self) -> float:
        """By how much curves' means differ within a site."""
        return float(self.traits[0].scale[0])

    def keep(self, names: Sequence[str]) -> list[Traits]:
        """Of these sites, also of those that missed round 0."""
        places = {name: place for place, name in enumerate(self.names)}
        sites = [places.get(name, len(places)) for name in names]
        return [each.add_unknown().keep(sites) for each in self.traits]


@dataclass(frozen=True)
class Oddness:
    """How likely each site is odd; what odd ones count for, by the rule of the study, where it is less than 1."""

    probability: Mapping[str, float] = field(default_factory=dict)
    trust: Mapping[str, float] = field(default_factory=dict)

    @property
    def flagged(self) -> tuple[str, ...]:
        """Sites that are more likely odd than not."""
        return tuple(name for name, value in self.probability.items() if value > constants.LIKELY_ODD)


def read_levels(levels: Sequence[Level]) -> tuple[Traits, Traits]:
    """Level and log spread of every site's histogram, freed of the priors that they were fitted with."""
    found = np.array([(each.value, each.sd, math.log(each.sd_of_means), each.log_sd_of_means_sd) for each in levels])
    middle = math.log(constants.TYPICAL_SD_OF_MEANS)
    value, variance = _free(found[:, 0], found[:, 1] ** 2, 0.0, constants.TYPICAL_LEVEL**2)
    spread, spread_variance = _free(found[:, 2], found[:, 3] ** 2, middle, 1.0)
    unit = math.exp(_find_median(spread, 1 / (1 + spread_variance)))
    return (
        Traits(value[:, None], variance[:, None, None], np.array([unit]), usual=constants.ODD_LEVELS),
        Traits(spread[:, None], spread_variance[:, None, None], np.array([constants.SPREADS_DIFFER])),
    )


def _find_median(values: Floats, weights: Floats) -> float:
    order = values.argsort()
    total = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(total, total[-1] / 2)])


def _free(mean: Floats, variance: Floats, centre: float, prior: float) -> tuple[Floats, Floats]:
    """The likelihood behind a posterior under a normal prior."""
    kept = np.maximum(1 - variance / prior, constants.LEAST_LEARNT)
    return centre + (mean - centre) / kept, variance / kept


def read_shares(shares: Sequence[Pooled]) -> Traits:
    """Shares of every site that lie in (0, 1): of values at each bound, or of long gradients."""
    values = np.array([each.values for each in shares])
    noise = np.array([each.sd**2 + constants.MAX_SHARE_VARIANCE / each.n for each in shares])
    return Traits(
        values, noise[:, :, None] * np.eye(values.shape[1]), np.full(values.shape[1], constants.SHARES_DIFFER)
    )


@dataclass(frozen=True)
class LongShares:
    """The share of every site's gradients that are long, from all rounds that tell of it, around that of all sites."""

    weighted: Mapping[str, float] = field(default_factory=dict)  # sums of values over variances
    weights: Mapping[str, float] = field(default_factory=dict)  # ... and of their weights

    def add(self, names: Sequence[str], values: Floats, variances: Floats) -> LongShares:
        """With another round; what rounds call long may differ, so their common value is taken off."""
        apart = values - np.average(values, weights=1 / variances)
        weighted, weights = dict(self.weighted), dict(self.weights)
        for name, value, variance in zip(names, apart, variances, strict=True):
            weighted[name] = weighted.get(name, 0.0) + float(value / variance)
            weights[name] = weights.get(name, 0.0) + float(1 / variance)
        return LongShares(weighted, weights)

    def read(self, names: Sequence[str], away: Floats) -> Traits:
        """As a trait; a site of which nothing is known may have any share.

        `away` are squared distances of the sites' functions: whoever is far from the iterates has longer gradients, honest
        or not, so that far functions and long gradients are not evidence twice.
        """
        weights = np.array([self.weights.get(name, 1.0) for name in names])
        values = np.array([self.weighted.get(name, 0.0) for name in names]) / weights
        variances = 1 / weights + constants.ANY_SHARES_DIFFER**2 + (constants.LONGER_AWAY * np.log1p(away)) ** 2
        return Traits(
            values[:, None], variances[:, None, None], np.array([constants.SHARES_DIFFER]), constants.MOST_BY_LENGTHS
        )


def add_lengths(long: LongShares, by_silo: Mapping[str, Pooled], radius: float, longest: float) -> LongShares:
    """From histograms of lengths: the share of gradients that are longer than the radius, about."""
    lowest = SHORTEST_OCTAVE - 1 + np.arange(LENGTH_CELLS)
    cells = (lowest >= round(math.log2(radius))) & (lowest < math.log2(longest))
    if not cells.any():
        return long
    sides = next(iter(by_silo.values())).values.size // LENGTH_CELLS
    return _add_cells(long, by_silo, np.tile(cells, sides), 1.0)


def add_counts(long: LongShares, by_silo: Mapping[str, Pooled], radius: float) -> LongShares:
    """From the counts that come with clipped gradients: long ones are those that are not counted."""
    lowest = SHORTEST_OCTAVE - 1 + np.arange(LENGTH_CELLS)
    top = math.log2(radius)
    return _add_cells(long, by_silo, (lowest < top) & (lowest >= top - constants.OCTAVES_WITHIN), -1.0)


def _add_cells(long: LongShares, by_silo: Mapping[str, Pooled], cells: Any, sign: float) -> LongShares:
    values = np.array([sign * each.values[cells].sum() for each in by_silo.values()])
    variances = np.array(
        [(each.sd[cells] ** 2).sum() + constants.MAX_SHARE_VARIANCE / each.n for each in by_silo.values()]
    )
    return long.add(tuple(by_silo), values, variances)


def read_functions(
    measured: Mapping[str, Measured], informations: Mapping[str, Information], common: Floats, unit: float
) -> list[Traits]:
    """The first coefficients of every site's first function, and the level of the others, around the common estimate."""
    columns = next(iter(informations.values())).law.columns
    size = len(common) // columns
    few = np.r_[0 : min(constants.ODD_FUNCTIONS, size), [k * size for k in range(1, columns)]].astype(int)
    values, covariances = [], []
    for name, each in measured.items():
        matrix = informations[name].matrix
        weight = inverse(each.covariance)
        reach = matrix[:, few].T @ weight
        precision = raise_eigenvalues(reach @ matrix[:, few], (constants.ANYWHERE * unit) ** -2)
        covariance = inverse(precision)
        values.append(covariance @ reach @ (each.value - matrix @ common))
        covariances.append(covariance)
    together = Traits(np.array(values), np.array(covariances), np.full(len(few), unit))
    level, *others = (together.pick(column) for column in range(len(few)))
    return [replace(level, usual=constants.ODD_LEVELS), *others]


def find_distances(functions: Sequence[Traits]) -> Floats:
    """Squared distances of the sites' functions from the common estimate, beyond what their errors explain."""
    found = np.zeros(len(functions[0].values))
    for each in functions:
        found += np.maximum(each.values[:, 0] ** 2 - each.covariances[:, 0, 0], 0.0) / each.scale[0] ** 2
    return found


def judge_sites(names: Sequence[str], traits: Sequence[Traits], *, robust: bool) -> Oddness:
    """Take out the oddest site while there is one that is likely odd, at most a third of them."""
    count = len(names)
    probability = np.zeros(count)
    left = list(range(count))
    log_prior = -math.log(constants.STUDIES_PER_ODD_SITE * count)
    for last in range(max((count - 1) // 3, 1), -1, -1):
        log_odds = log_prior + _join([_compare(each.keep(left)) for each in traits], [each.usual for each in traits])
        odd = expit(log_odds)
        probability[left] = odd
        worst = int(np.argmax(odd))
        if odd[worst] <= constants.LIKELY_ODD or last == 0:
            probability[left] = np.minimum(odd, constants.LIKELY_ODD)
            break
        left.pop(worst)
    found = Oddness(dict(zip(names, map(float, probability), strict=True)))
    if not robust or count < constants.FEWEST_TO_ACT:
        return found
    return replace(
        found, trust={name: (1 / found.probability[name] - 1) ** constants.TRUST_POWER for name in found.flagged}
    )


def _join(log_ratios: Sequence[Floats], usual: Sequence[float]) -> Floats:
    """A site may be odd in any of the traits or in several of them: the ratio of evidence, averaged over these ways."""
    total = np.sum([np.logaddexp(0.0, each) for each in log_ratios], axis=0)  # of all subsets, the empty one too
    several = total + np.log(-np.expm1(-np.maximum(total, constants.TINY))) - math.log(2.0 ** len(log_ratios) - 1)
    weighted = [each + math.log(often) for each, often in zip(log_ratios, usual, strict=True)]
    one = np.logaddexp.reduce(weighted, axis=0) - math.log(sum(usual))
    return np.asarray(np.logaddexp(one, several) - math.log(2))


def _compare(traits: Traits) -> Floats:
    """For every site the log ratio of evidence: from anywhere, against predicted by the others."""
    sizes = np.array(constants.ODD_BETWEEN)
    between = sizes[:, None, None] ** 2 * np.diag(traits.scale**2)  # (sizes, q, q)
    total = traits.covariances + between[:, None]
    weight = np.linalg.inv(total)
    score = np.einsum("zsij,sj->zsi", weight, traits.values)
    own = -0.5 * np.linalg.slogdet(total)[1] - 0.5 * (score * traits.values).sum(axis=2)  # (sizes, sites)
    precision = weight.sum(axis=1, keepdims=True) - weight  # of the others' common values
    others = np.linalg.inv(precision)
    mean = np.einsum("zsij,zsj->zsi", others, score.sum(axis=1, keepdims=True) - score)
    fit = 0.5 * np.einsum("zsi,zsij,zsj->zs", mean, precision, mean) - 0.5 * np.linalg.slogdet(precision)[1]
    log_sizes = own.sum(axis=1, keepdims=True) - own + fit - np.log1p((sizes / constants.SITE_SCALE) ** 2)[:, None]
    weights = np.stack([normalise(column) for column in log_sizes.T], axis=1)
    apart, spread = traits.values - mean, total + others
    alike = _log_mean(_log_normal(apart, spread), weights)
    wide = [spread + (size * traits.scale) ** 2 * np.eye(len(traits.scale)) for size in constants.ODD_SIZES]
    anywhere = np.array([_log_mean(_log_normal(apart, each), weights) for each in wide])
    found = np.logaddexp.reduce(anywhere, axis=0) - math.log(len(wide)) - alike
    return np.asarray(np.minimum(found, traits.most))


def _log_normal(apart: Floats, covariance: Floats) -> Floats:
    solved = np.linalg.solve(covariance, apart[..., None])[..., 0]
    return np.asarray(-0.5 * (apart * solved).sum(axis=-1) - 0.5 * np.linalg.slogdet(covariance)[1])


def _log_mean(logs: Floats, weights: Floats) -> Floats:
    """log of a weighted mean over the first axis."""
    most = logs.max(axis=0)
    return np.asarray(most + np.log(np.maximum((weights * np.exp(logs - most)).sum(axis=0), constants.TINY)))
