"""The law of the gradients' lengths, from noisy histograms of octaves: what clipping at a radius would take.

Lengths are in units of what was expected of their root mean square. A law is a bulk (a median and a shape) and perhaps a
second group of longer gradients: those who have the event, the outliers, the treated. All laws together are a grid with
weights; a histogram multiplies the weights by its likelihood, and corrects every law's own masses by what it leaves open.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainc, gammaincinv, ndtr

from dpfda._typing import Floats, Integers
from dpfda.methods.adaptive import constants
from dpfda.protocol.statistics import LENGTH_CELLS, LONGEST_OCTAVE, SHORTEST_OCTAVE

_SUB = constants.LENGTH_SUBCELLS
_MEDIANS = np.arange(constants.LOWEST_MEDIAN, constants.HIGHEST_MEDIAN + 0.5, 0.5)
_SHARES = np.array(constants.SECOND_SHARES)
_PLACES = np.arange(SHORTEST_OCTAVE, LONGEST_OCTAVE, dtype=np.float64) + 0.5
_FINE = SHORTEST_OCTAVE - 1 + (np.arange(LENGTH_CELLS * _SUB) + 0.5) / _SUB
LENGTH_POINTS = 2.0**_FINE
_BULKS = len(constants.CHI_BULKS) + len(constants.LOGNORMAL_BULKS) + 2


@dataclass(frozen=True)
class Laws:
    """All laws of the grid, one row each; `second` is none (-1) or the octave of the second group."""

    cells: Floats  # (laws, cells, subcells): probabilities
    mass: Floats  # (laws, cells)
    median: Floats
    second: Floats
    share: Floats
    size: Floats  # prior weight of the size of its bulk
    prior: Floats  # ... of the law
    heavy: NDArray[np.bool_]  # whether many gradients are far longer than most, none of them further still
    index: Integers  # where a law stands in the dense grid (median, bulk, place or none, share)


@lru_cache(maxsize=1)
def list_laws() -> Laws:
    """Every bulk alone, and with a second group of each share more than half an octave further out."""
    edges = np.arange(SHORTEST_OCTAVE - 1, LONGEST_OCTAVE + 1 + 1 / _SUB, 1 / _SUB)
    bulks = _list_bulks(edges)
    groups = np.diff(_normal_cdf(edges, _PLACES[:, None], constants.SECOND_SPREAD), axis=-1)
    median, place = _MEDIANS[:, None], _PLACES[None, :]
    further = place > median + 0.5
    odds = further[..., None] / (1 + _SHARES * 2.0 ** (place - median)[..., None])
    odds /= odds.sum(axis=(1, 2), keepdims=True)
    base = _weigh_sizes(bulks)
    alone = 1 - constants.SECOND_ODDS - constants.AT_BOUND_ODDS
    i, b = (each.ravel() for each in np.meshgrid(np.arange(_MEDIANS.size), np.arange(_BULKS), indexing="ij"))
    rows, parts = [bulks[i, b]], [(i, b, np.full(i.size, -1), np.zeros(i.size, int), base[i, b] + math.log(alone))]
    i, b, k, j = (
        each.ravel()
        for each in np.meshgrid(
            np.arange(_MEDIANS.size), np.arange(_BULKS), np.arange(_PLACES.size), np.arange(_SHARES.size), indexing="ij"
        )
    )
    keep = further[i, k]
    i, b, k, j = i[keep], b[keep], k[keep], j[keep]
    pi = _SHARES[j][:, None]
    rows.append((1 - pi) * bulks[i, b] + pi * groups[k])
    parts.append((i, b, k, j, base[i, b] + np.log(constants.SECOND_ODDS * odds[i, k, j])))
    i, b, k, j, log_prior = (np.concatenate(part) for part in zip(*parts, strict=True))
    fine = np.concatenate(rows).astype(np.float64)
    second = np.where(k < 0, -np.inf, _PLACES[np.maximum(k, 0)])
    return Laws(
        fine.reshape(len(fine), LENGTH_CELLS, _SUB),
        fine.reshape(len(fine), LENGTH_CELLS, _SUB).sum(axis=2),
        _MEDIANS[i],
        second,
        np.where(k < 0, 0.0, _SHARES[j]),
        np.exp(base[i, b]),
        np.exp(log_prior),
        _judge_heavy(fine, _MEDIANS[i], second),
        np.stack([i, b, k + 1, j]),
    )


def _judge_heavy(fine: Floats, median: Floats, second: Floats) -> NDArray[np.bool_]:
    """Whether many gradients are longer than most by octaves, and none is in a second group further still."""
    beyond = (fine * (median[:, None] + constants.HEAVY_FROM < _FINE)).sum(axis=1)
    return np.asarray((beyond >= constants.HEAVY) & (second <= median + constants.HEAVY_TO))


def _weigh_sizes(bulks: Floats) -> Floats:
    """Log prior weights (medians, bulks): lengths are in units of their expected root mean square, so that it is about 1."""
    octaves = 0.5 * np.log2(bulks @ LENGTH_POINTS**2)
    return np.asarray(-0.5 * (octaves / constants.SIZE_SPREAD) ** 2)


def _normal_cdf(edges: Floats, centre: Floats, spread: float) -> Floats:
    cdf = ndtr((edges - centre) / spread)
    cdf[..., 0], cdf[..., -1] = 0.0, 1.0
    return np.asarray(cdf)


def _list_bulks(edges: Floats) -> Floats:
    """(medians, bulks, fine cells)."""
    median = _MEDIANS[:, None]
    cdfs = []
    for freedom in constants.CHI_BULKS:
        cdf = gammainc(freedom / 2, gammaincinv(freedom / 2, 0.5) * 4.0 ** (edges - median))
        cdf[:, 0], cdf[:, -1] = 0.0, 1.0
        cdfs.append(cdf)
    cdfs += [_normal_cdf(edges, median, spread / math.log(2)) for spread in constants.LOGNORMAL_BULKS]
    share, further, spread = constants.TAIL
    tail = _normal_cdf(edges, median + further, spread / math.log(2))
    cdfs += [(1 - share) * cdfs[1] + share * tail, (1 - share) * cdfs[len(constants.CHI_BULKS) + 1] + share * tail]
    return np.diff(np.stack(cdfs, axis=1), axis=-1)


@dataclass(frozen=True)
class AtBounds:
    """What is known of curves whose values are all at a bound: log2 of their length, and how likely all values are."""

    octave: float
    two_valued: float


def find_octaves(gradients: Floats) -> Integers:
    """In which cell of a histogram of lengths each gradient (a row) is."""
    octaves = np.log2(np.maximum(np.sqrt((gradients**2).sum(axis=1)), constants.LEAST_LENGTH))
    return np.asarray(np.clip(np.floor(octaves).astype(np.int64) - SHORTEST_OCTAVE + 1, 0, LENGTH_CELLS - 1))


def first_weights(at: AtBounds) -> Floats:
    """Prior weights of all laws, with more for a second group where curves at a bound would be."""
    laws = list_laws()
    near = np.flatnonzero((laws.second > at.octave - constants.BOUND_OCTAVES) & (laws.second <= at.octave + 0.5))
    distance = 2.0 ** (laws.second[near] - laws.median[near])
    extra = constants.AT_BOUND_ODDS / (1 + distance / constants.BOUND_REACH)
    extra = extra + constants.TWO_VALUED_ODDS * at.two_valued**4 * (laws.share[near] > constants.CLEAR_SHARE)
    weights = laws.prior.copy()
    weights[near] += laws.size[near] * extra / (constants.BOUND_OCTAVES * _SHARES.size)
    return np.asarray(weights / weights.sum())


def carry_weights(weights: Floats, octaves: float, at: AtBounds) -> Floats:
    """The next round's prior: what is known, moved by so many octaves and blurred; partly the first prior again."""
    laws, shape = list_laws(), (_MEDIANS.size, _BULKS, _PLACES.size + 1, _SHARES.size)
    moved = np.zeros(shape)
    seen = np.flatnonzero(weights)  # few laws are left after a histogram
    i, b, k, j = laws.index[:, seen]
    for blur, part in constants.LENGTH_BLUR:
        steps = round((octaves + blur) * 2)
        at_median = np.clip(i + steps, 0, _MEDIANS.size - 1)
        at_place = np.where(k == 0, 0, np.clip(k + math.floor(steps / 2 + 0.5), 1, _PLACES.size))
        np.add.at(moved, (at_median, b, at_place, j), part * weights[seen])
    carried = moved[tuple(laws.index)]
    fresh = constants.FORGOTTEN
    return np.asarray((1 - fresh) * carried / max(carried.sum(), constants.TINY) + fresh * first_weights(at))


def _find_possible(longest: float) -> Floats:
    """Which subcells hold lengths of at most `longest`: 1 or 0."""
    lowest = 2.0 ** (_FINE - 0.5 / _SUB)
    return np.asarray((lowest < longest).reshape(LENGTH_CELLS, _SUB), dtype=np.float64)


@lru_cache(maxsize=8)
def _tabulate_mass(possible: int) -> Floats:
    """The laws' masses when gradients reach into the first so many cells only."""
    mass = list_laws().mass.copy()
    mass[:, possible:] = 0.0
    return np.asarray(mass / mass.sum(axis=1, keepdims=True))


def _add_subcells(values: Floats) -> Floats:
    """From (laws, cells, subcells) to (laws, cells)."""
    return np.asarray(values @ np.ones(_SUB))


def _log_likelihood(shares: Floats, sd: float, mass: Floats, variance: Floats, used: Floats) -> Floats:
    """Of noisy shares of the cells under every law, but for a constant."""
    wide = sd**2 + variance
    misfit = shares - mass
    misfit *= misfit
    misfit /= wide
    if not used.all():
        wide[:, used == 0] = 1.0
    logs = np.log(wide[:, ::2] * wide[:, 1::2])  # there is an even number of cells
    return np.asarray(-0.5 * (misfit @ used + logs @ np.ones(LENGTH_CELLS // 2)))


def _find_heaviest(log_weights: Floats) -> Integers:
    """Laws that weigh, heaviest first, at most so many."""
    order = np.flatnonzero(log_weights > log_weights.max() + math.log(constants.NEGLIGIBLE_LAW))
    return order[np.argsort(-log_weights[order], kind="stable")[: constants.MOST_LAWS]]


@dataclass(frozen=True)
class LengthLaw:
    """Laws with weights, each with its own masses of the octaves (mean and variance), corrected by histograms."""

    laws: Integers  # rows of the grid
    log_weights: Floats
    mass: Floats
    variance: Floats
    longest: float

    @classmethod
    def start(cls, weights: Floats, n: float, longest: float) -> LengthLaw:
        """Before any histogram of n curves; nothing is longer than `longest`."""
        keep = np.flatnonzero(weights > constants.NEGLIGIBLE_LAW * weights.max())
        mass = _tabulate_mass(int(_find_possible(longest)[:, 0].sum())).take(keep, axis=0)
        variance = (mass + constants.LEAST_MASS) * (constants.LAW_ERROR + 1 / n)
        return cls(keep, np.log(weights[keep]), mass, variance, longest)

    @cached_property
    def cells(self) -> Floats:
        """Probabilities of the subcells (laws, cells, subcells) before any histogram; they keep proportions in a cell."""
        cells = list_laws().cells.take(self.laws, axis=0) * _find_possible(self.longest)
        return np.asarray(cells / (cells.reshape(len(cells), -1) @ np.ones(LENGTH_CELLS * _SUB))[:, None, None])

    @cached_property
    def _of_cells(self) -> Floats:
        return _add_subcells(self.cells)

    def observe(self, shares: Floats, sd: float, counted: Floats | None = None) -> LengthLaw:
        """With noisy shares of the cells; a gradient of each subcell counts as `counted`, or as one."""
        factor, used = None, np.ones(LENGTH_CELLS)
        if counted is not None:
            by_cell = counted.reshape(LENGTH_CELLS, _SUB)
            factor = _add_subcells(self.cells * by_cell) / np.maximum(self._of_cells, constants.LEAST_CELL)
            used = (by_cell.max(axis=1) > 0).astype(np.float64)
        log_weights = self.log_weights.copy()
        for begin in range(0, len(self.laws), constants.LAWS_AT_ONCE):
            block = slice(begin, begin + constants.LAWS_AT_ONCE)
            mass, variance = self.mass[block], self.variance[block]
            if factor is not None:
                mass, variance = factor[block] * mass, factor[block] ** 2 * variance
            log_weights[block] += _log_likelihood(shares, sd, mass, variance, used)
        order = _find_heaviest(log_weights)
        mass, open_yet = self.mass[order], self.variance[order]
        factor = np.ones((order.size, 1)) if factor is None else factor[order]
        gain = used * factor * open_yet / (sd**2 + factor**2 * open_yet)
        return LengthLaw(
            self.laws[order],
            log_weights[order],
            mass + gain * (shares - factor * mass),
            open_yet * (1 - factor * gain),
            self.longest,
        )

    @cached_property
    def weights(self) -> Floats:
        """Weights of the laws that are left."""
        weights = np.exp(self.log_weights - self.log_weights.max())
        return np.asarray(weights / weights.sum())

    @property
    def second(self) -> Floats:
        """The octave of each law's second group; -inf if there is none."""
        return list_laws().second[self.laws]

    @property
    def median(self) -> Floats:
        """log2 of the median length of each law's bulk."""
        return list_laws().median[self.laws]

    @property
    def mass_before(self) -> Floats:
        """Masses of the octaves under each law before any histogram."""
        return self._of_cells

    @property
    def heavy(self) -> NDArray[np.bool_]:
        """Whether a law's bulk has many long gradients: more than those of normal curves, whose spread is the same."""
        return list_laws().heavy[self.laws]

    def all_weights(self) -> Floats:
        """Weights of all laws of the grid."""
        weights = np.zeros(len(list_laws().median))
        weights[self.laws] = self.weights
        return weights

    def _densities(self) -> tuple[Floats, Floats, Floats]:
        """Weights, probabilities of the subcells under each law, and their lengths."""
        return self.weights, self._by_subcell, np.minimum(LENGTH_POINTS, self.longest)

    @cached_property
    def _by_subcell(self) -> Floats:
        mass = np.maximum(self.mass, 0.0)
        total = mass.sum(axis=1, keepdims=True)
        if not total.all():  # a histogram without anything in it, as a hostile silo may send, says nothing
            mass, total = np.where(total > 0, mass, self._of_cells), np.where(total > 0, total, 1.0)
        mass = mass / total
        scale = mass / np.maximum(self._of_cells, constants.LEAST_CELL)
        return np.asarray((self.cells * scale[..., None]).reshape(len(mass), -1))

    def excess(self, radii: Floats, sure: float) -> Floats:
        """E(L - C)+ for each radius C: root mean square over those laws, `sure` of the weight, where it is least."""
        return np.sqrt(take_least(self.excess_by_law(radii) ** 2, self.weights, sure))

    def excess_by_law(self, radii: Floats) -> Floats:
        """E(L - C)+ under each law and for each radius C, what is not known of a law's masses included."""
        _, densities, points = self._densities()
        beyond = np.maximum(points[:, None] - radii, 0.0)
        return np.asarray(np.sqrt((densities @ beyond) ** 2 + self.variance @ square_beyond(radii, self.longest)))

    @cached_property
    def _within_octaves(self) -> Floats:
        """Proportions of the subcells in their octave, (octaves, laws, subcells)."""
        within = self.cells / np.maximum(self._of_cells, constants.LEAST_CELL)[..., None]
        return np.ascontiguousarray(within.transpose(1, 0, 2))

    def excess_by_octave(self, radii: Floats) -> Floats:
        """E[(L - C)+ | octave], (laws, octaves, radii), of the last octaves: lengths of those before are below all radii."""
        beyond = np.maximum(np.minimum(LENGTH_POINTS, self.longest)[:, None] - radii, 0.0).reshape(
            LENGTH_CELLS, _SUB, -1
        )
        first = int(np.argmax(beyond.any(axis=(1, 2))))  # all of them if nothing is longer than a radius
        return np.ascontiguousarray((self._within_octaves[first:] @ beyond[first:]).transpose(1, 0, 2))

    def attenuation(self, radii: Floats) -> Attenuation:
        """What clipping at each radius leaves of the gradients."""
        weights, densities, points = self._densities()
        density = weights @ densities
        kept = np.minimum(1.0, radii / points[:, None])
        clipped = np.where(kept < 1, kept, 0.0)
        squares = density @ points**2
        return Attenuation(
            density @ kept,
            density @ clipped,
            density @ np.minimum(points[:, None], radii) ** 2,
            float(_weighted_median(densities @ points**2, weights)),
            float(squares),
            float(density @ points),
        )


@dataclass(frozen=True)
class Attenuation:
    """E min(1, C/L), the part of it from clipped gradients, E min(L, C)^2; E L^2 (median over laws, mean) and E L."""

    kept: Floats
    clipped: Floats
    square: Floats
    full_square: float
    mean_full_square: float
    mean: float


def square_beyond(radii: Floats, longest: float) -> Floats:
    """Mean square of what lengths of each octave have beyond each radius, (octaves, radii)."""
    beyond = np.maximum(np.minimum(LENGTH_POINTS, longest)[:, None] - radii, 0.0)
    return np.asarray((beyond**2).reshape(LENGTH_CELLS, _SUB, -1).mean(axis=1))


def take_least(values: Floats, weights: Floats, sure: float) -> Floats:
    """The mean of values over those laws, `sure` of the weight, where they are least; radii are along the last axis."""
    rows = np.ascontiguousarray(values.reshape(weights.size, -1).T)
    order = rows.argsort(axis=1)
    sorted_weights = weights.ravel().take(order)
    part = sure - (np.cumsum(sorted_weights, axis=1) - sorted_weights)
    part = np.minimum(np.maximum(part, 0.0, out=part), sorted_weights, out=part)
    part *= rows.take(order + np.arange(0, rows.size, weights.size)[:, None])
    return np.asarray(part.sum(axis=1) / sure)


def free_counts(radius: float) -> Floats:
    """How much a gradient of each subcell counts among the companions of a clipped gradient."""
    return np.asarray(np.sqrt(np.maximum(1 - (LENGTH_POINTS / radius) ** 2, 0.0)))


def _weighted_median(values: Floats, weights: Floats) -> float:
    order = values.argsort()
    place = int(np.searchsorted(np.cumsum(weights[order]), 0.5))
    return float(values[order[min(place, len(order) - 1)]])
