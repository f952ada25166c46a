"""The bias of clipping, from the sides on which long gradients lie: what is measured of it, and what is left open.

T(C) = E (L - C)+ u is what clipping at C takes from a mean gradient, L u being one curve's. A histogram that also tells the
signs of the first two coordinates says for each octave by how much one side has more curves than the other. That times
(L - C)+ and a typical |u_k|, added up, is T_k. Noise, and what is typical, leave T_k open to some extent; in the other
directions T is only known to be a part of E (L - C)+. How large a part is averaged by evidence: where long gradients lie
evenly along level and slope, a law is likely to be symmetric.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpfda._typing import Floats
from dpfda.methods.adaptive import constants
from dpfda.methods.adaptive.lengths import LengthLaw, square_beyond, take_least
from dpfda.methods.adaptive.pooling import Pooled
from dpfda.protocol.statistics import LENGTH_CELLS, SHORTEST_OCTAVE

_SCALES = np.array([*constants.ASYMMETRIES, constants.TAIL_ASYMMETRY])  # the last one is of long gradients alone
_LIGHT_ODDS = np.array([*constants.ASYMMETRY_ODDS, 0.0])
_HEAVY_ODDS = np.array(constants.HEAVY_ASYMMETRY_ODDS)
_SECOND_ODDS = np.array([*constants.SECOND_ASYMMETRY_ODDS, 0.0])
_ONES = np.ones(LENGTH_CELLS)
_OCTAVES = SHORTEST_OCTAVE - 0.5 + np.arange(LENGTH_CELLS)


def _side(turn: Floats) -> Floats:
    """(laws, octaves): gradients of a skewed law that are longer than `turn` lie on one side, the others on the other."""
    return np.minimum(np.maximum(_OCTAVES - turn[:, None], -constants.SHORT_SIDE), 1.0)


def _balance(mass: Floats) -> Floats:
    """The sides of laws of these masses, (laws, octaves), where both sides weigh the same."""
    turn, step = np.full(len(mass), _OCTAVES[0]), _OCTAVES[-1] + 1.0 - _OCTAVES[0]
    for _ in range(constants.BALANCE_STEPS):
        step /= 2
        turn += step * ((mass * _side(turn + step)) @ _ONES > 0)
    return _side(turn + step / 2)


def _total(values: Floats) -> Floats:
    """Over sizes, (laws, 1)."""
    return np.asarray(values.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class Sides:
    """By how many curves, as shares of all, one side of a coordinate exceeds the other in each octave; sd of the noise."""

    excess: Floats  # (coordinates, octaves)
    sd: float
    n: float


def split_signs(histogram: Pooled, filled: float) -> tuple[Floats, float, Sides | None]:
    """Shares of the octaves among curves with points and their sd; and the sides, if the histogram tells them.

    Curves without points are in the first cell. Sides have the sign of what a release is taken to measure, -g.
    """
    cells = histogram.values.reshape(-1, LENGTH_CELLS) / filled
    sd = float(histogram.sd[0]) / filled * math.sqrt(len(cells))
    shares = cells.sum(axis=0)
    shares[0] -= (1 - filled) / filled
    if len(cells) == 1:
        return shares, sd, None
    quadrant = np.arange(len(cells))
    signs = np.array([np.where(quadrant >> k & 1, 1.0, -1.0) for k in range(int(math.log2(len(cells))))])
    sides = signs @ cells
    sides[:, 0] = 0.0
    return shares, sd, Sides(sides, sd, histogram.n * filled)


@dataclass(frozen=True)
class Bias:
    """What is thought of T in a round: mean and sd along the first coordinates, and the size of T elsewhere.

    The size is that of all of T if it were spread as usual; the part of it along the first coordinates is not used.
    """

    mean: Floats
    sd: Floats
    size: float
    far: Floats | None = None  # root mean square of what clipping takes of far curves, in all coordinates

    def divided(self, by: float, far: Floats | None = None) -> Bias:
        """In longer units, with what clipping takes of far curves."""
        return Bias(self.mean / by, self.sd / by, self.size / by, far)

    def root(self, directions: Floats) -> tuple[Floats, Floats]:
        """Mean of T in all coordinates, and a root of its covariance; `directions` is a root of how it is usually spread."""
        known = directions[: len(self.mean)]
        gram = known @ known.T
        along = np.linalg.solve(gram + constants.RIDGE * np.trace(gram) * np.eye(len(known)), known @ directions.T).T
        rest = directions - along @ known
        far = np.zeros(len(directions)) if self.far is None else self.far
        return along @ self.mean, np.column_stack([self.size * rest, along * self.sd, far])


@dataclass(frozen=True)
class _SplitSides:
    """The sides of the octaves along a coordinate: own + together z + noise, z one number for all octaves, N(0, 1).

    Arrays are (laws, sizes, octaves). The sides that were seen have the covariance plain + together together', so that all
    of it is known from sums over octaves. T_k is the sum over octaves of what is clipped there times own + together z.
    """

    own: Floats  # variances
    together: Floats
    linear: Floats  # (laws, 2 sizes, octaves): what stays open of `together` when z is known; what is known of `own`
    left: Floats  # variances that stay open of `own`
    spike: Floats  # (laws, sizes): 1 + together' plain^-1 together
    pull: Floats  # ... the mean of z
    log_evidence: Floats

    @classmethod
    def see(cls, own: Floats, together: Floats, noise: Floats, seen: Floats) -> _SplitSides:
        """Take in the sides that were seen."""
        plain = own + noise
        weight, noisy = seen / plain, noise / plain
        spike = 1 + (together**2 / plain) @ _ONES
        pulled = (together * weight) @ _ONES
        misfit = weight @ seen - pulled**2 / spike
        log_evidence = -0.5 * (misfit + np.log(plain) @ _ONES + np.log(spike))
        linear = np.concatenate([together * noisy, own * weight], axis=1)
        return cls(own, together, linear, own * noisy, spike, pulled / spike, log_evidence)

    def find_taken(self, taken: Floats) -> tuple[Floats, Floats]:
        """Mean and variance of T_k for every law, size and radius; `taken` is (laws, last octaves, radii)."""
        last = slice(-taken.shape[1], None)
        together, own = np.split(self.linear[..., last] @ taken, 2, axis=1)
        variance = self.left[..., last] @ taken**2 + together**2 / self.spike[..., None]
        return own + self.pull[..., None] * together, variance

    def vary(self, taken: Floats) -> Floats:
        """The variance of T_k before any side is seen."""
        last = slice(-taken.shape[1], None)
        return np.asarray(self.own[..., last] @ taken**2 + (self.together[..., last] @ taken) ** 2)


@dataclass(frozen=True)
class Asymmetry:
    """Laws of lengths, and for each of them sizes of the asymmetry, weighed by the sides that were seen.

    Sides do not weigh the laws themselves: whether a group far out is real is left to the counts. `part` multiplies all
    sizes: 1, but for several columns. `shares` are variances of T along the coordinates, of a total of 1; `typical` is
    the usual |u_k|; gradients were balanced by the round before, in which they counted up to `reach`.
    """

    law: LengthLaw
    sides: Sides | None
    shares: Floats
    typical: Floats
    part: float
    reach: float
    hidden: float = constants.HIDDEN

    @cached_property
    def _mass(self) -> Floats:
        return np.maximum(self.law.mass, 0.0)

    @cached_property
    def _pattern(self) -> Floats:
        """(laws, sizes, octaves): the sides of a skewed law; long gradients on one, the others on the other, in balance.

        A second group is on one side by itself; so are, for the last size, the long gradients of a bulk.
        """
        mass = self._mass * np.minimum(2.0**_OCTAVES, self.reach)
        alone = np.isneginf(self.law.second)
        far = np.where(alone, self.law.median + constants.TAIL_FROM, self.law.second - constants.BEFORE_SECOND)
        side = _side(far)
        long = side > 0
        short = (mass * side * long).sum(axis=1) / np.maximum((mass * ~long).sum(axis=1), constants.LEAST_CELL)
        tail = np.where(long, side, -np.minimum(short, 1.0)[:, None])
        usual = tail.copy()
        usual[alone] = _balance(mass[alone])
        return np.stack([usual] * len(constants.ASYMMETRIES) + [tail], axis=1)

    @cached_property
    def _growth(self) -> Floats:
        """By how much more than usual a law's bias may be: noise hides the longest gradients of a heavy tail."""
        return np.where(self.law.heavy, constants.HEAVY_GROWTH, 1.0)

    @cached_property
    def _hidden(self) -> Floats:
        """(laws, octaves): mean square of the share of curves that noise may hide in a tail."""
        tail = self.law.heavy[:, None] & (self._pattern[:, -1] > 0)
        return np.where(tail, (self.hidden * self.law.mass_before) ** 2, 0.0)

    def _split_sides(self, k: int, factor: float) -> _SplitSides:
        """How the sides along a coordinate are thought to come about."""
        assert self.sides is not None
        own, together, noise = self._parts
        scale = factor * self.part * math.sqrt(self.shares[k]) / self.typical[k] * self._growth[:, None, None]
        return _SplitSides.see(scale**2 * own, scale * together, noise, self.sides.excess[k])

    @cached_property
    def _parts(self) -> tuple[Floats, Floats, Floats]:
        """(laws, sizes, octaves): own variance of an octave's sides, what all long octaves share, and the noise."""
        assert self.sides is not None
        spread, variance = self._mass[:, None, :] * _SCALES[:, None], (self.law.variance + self._hidden)[:, None, :]
        together = math.sqrt(constants.COMMON_SIDE) * spread * self._pattern
        more = np.maximum(constants.LONG_SIDE / _SCALES, 1.0)[:, None] ** 2
        own = (1 - constants.COMMON_SIDE) * spread**2 + _SCALES[:, None] ** 2 * variance
        own *= np.where(self._pattern > 0, more, 1.0)
        return own, together, self.sides.sd**2 + self._mass[:, None, :] / self.sides.n

    @cached_property
    def _splits(self) -> list[_SplitSides]:
        """For each coordinate, sizes as they are."""
        return [] if self.sides is None else [self._split_sides(k, 1.0) for k in range(len(self.sides.excess))]

    @cached_property
    def _weights(self) -> tuple[list[Floats], Floats]:
        """Weights of (laws, sizes): for each coordinate, and for the directions that are not measured.

        Coordinates are alike in how asymmetric they are, or each is for itself.
        """
        odds = np.where(self.law.heavy[:, None], _HEAVY_ODDS, _LIGHT_ODDS)
        odds = np.where(np.isfinite(self.law.second)[:, None], _SECOND_ODDS, odds)
        alike = constants.ALIKE_ASYMMETRY
        if self.sides is None:
            return [], self.law.weights[:, None] * odds
        logs = [split.log_evidence for split in self._splits]
        likely = [np.exp(each - each.max(axis=1, keepdims=True)) for each in logs]
        mixed = [alike * each + (1 - alike) * _total(odds * each) + constants.TINY for each in likely]
        weights = odds * np.prod(mixed, axis=0)
        weights *= self.law.weights[:, None] / _total(weights)
        own = [
            each * (alike * weights / mix + (1 - alike) * odds * _total(weights / mix))
            for each, mix in zip(likely, mixed, strict=True)
        ]
        return own, alike * weights + (1 - alike) * odds * _total(weights)

    def find_biases(self, radii: Floats, sure: float, factor: float = 1.0) -> list[Bias]:
        """What is thought of T at each radius, over those laws, `sure` of the weight, where it is least.

        A band believes in sizes that are `factor` times as large; the mean stays what it is. And where sides tell nothing,
        it allows along every coordinate for as much of the bound as is usual there.
        """
        own, rest = self._weights
        squares = self._squares(radii, factor)
        sizes = np.sqrt(take_least(squares, rest, sure))
        if self.sides is None:
            sds = sizes * np.sqrt(self.shares)[:, None]
            means = np.zeros_like(sds)
        else:
            taken = self.law.excess_by_octave(radii)
            found = [self._measured(k, taken, squares, sure, factor, weights) for k, weights in enumerate(own)]
            means, sds = (np.array(each) for each in zip(*found, strict=True))
        return [Bias(means[:, at], sds[:, at], float(sizes[at])) for at in range(radii.size)]

    def _squares(self, radii: Floats, factor: float) -> Floats:
        """Squared size of T for every law, size and radius."""
        part = factor * self.part * self._growth[:, None, None] * _SCALES[None, :, None]
        squares = self.law.excess_by_law(radii) ** 2 + self._hidden @ square_beyond(radii, self.law.longest)
        return np.asarray(part**2 * squares[:, None])

    def _measured(
        self, k: int, taken: Floats, squares: Floats, sure: float, factor: float, weights: Floats
    ) -> tuple[Floats, Floats]:
        """Mean and sd of T_k at each radius; `taken` is what is clipped of each octave's gradients."""
        taken = self.typical[k] * taken
        split = self._splits[k]
        each, variance = split.find_taken(taken)
        mean = weights.ravel() @ each.reshape(weights.size, -1)
        usual = self.shares[k] * squares
        if factor > 1:
            split = self._split_sides(k, factor)
            each, variance = split.find_taken(taken)
            variance *= np.maximum(usual / np.maximum(split.vary(taken), constants.TINY), 1.0)
        untold = constants.UNTOLD**2 * usual
        return mean, np.sqrt(take_least(variance + (each - mean) ** 2 + untold, weights, sure))
