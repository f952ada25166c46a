"""Curves far from the iterate, on the side where the bounds of y leave room: as many as noise may hide.

Where the iterate is near one bound and far from the other, gradients much longer than those of a curve at the nearer bound
are all on one side, and what clipping takes of them is a bias along the level. How many there may be is limited: a share s
of curves that are `away` from the iterate lifts the mean by s times `away`, so that a mean near a bound has few of them; and
where many curves stay at that bound, others must lie above the mean in balance. A histogram of lengths tells the share of an
octave up to its noise. What it leaves open is part of the choice of the radius, of the estimate and of the band.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpfda._typing import Floats
from dpfda.methods.adaptive import constants
from dpfda.methods.adaptive.lengths import LENGTH_POINTS, LengthLaw
from dpfda.protocol.statistics import LENGTH_CELLS, SHORTEST_OCTAVE

_LENGTHS = 2.0 ** (SHORTEST_OCTAVE - 0.5 + np.arange(LENGTH_CELLS))


def judge_one_sided(near: float) -> float:
    """Whether y has room on one side only, from 0 to 1, where the nearer of its bounds, -1 and 1, is `near` away."""
    return min(max(math.log2((2 - near) / max(near, constants.TINY)) - 1, 0.0), 1.0)


@dataclass(frozen=True)
class Room:
    """What bounds leave for far curves: what is known of it before lengths are counted.

    `unit` is the length of a curve that is 1 away from the iterate everywhere; `near` is how far the nearer bound is,
    `doubt` the sd of the level, `at_bound` the share of values at that bound; `part` multiplies all shares.
    """

    unit: float
    near: float
    doubt: float
    at_bound: float
    part: float = 1.0

    def expect(self, law: LengthLaw) -> Floats:
        """The share of curves that may be in each octave: none where bounds leave no room."""
        away = _LENGTHS / self.unit
        always = self.at_bound * self._weigh_within(law, constants.ALL_AT_BOUND)
        lifted = (constants.FAR_SHARE + constants.FAR_AT_BOUND * always) * (self.near + self.doubt)
        shares = self.part * np.minimum(lifted / away, constants.MOST_FAR)
        room = (away >= constants.FAR_FROM * self.near) & (away <= constants.FAR_TO * (2 - self.near))
        return np.where(room, shares, 0.0)

    def suspect(self, law: LengthLaw) -> float:
        """Whether there are far curves, from 0 to 1: there is room on one side, and the bulk reaches to the nearer bound."""
        return judge_one_sided(self.near) * self._weigh_within(law, constants.NEAR_BOUND)

    def _weigh_within(self, law: LengthLaw, limits: tuple[float, float]) -> float:
        """How much of the law has its bulk within the first limit, in octaves, of the nearer bound, none from the second."""
        reached, free = limits
        octaves = math.log2(max(self.near * self.unit, constants.LEAST_LENGTH)) - law.median
        return float(law.weights @ np.clip((free - octaves) / (free - reached), 0.0, 1.0))

    def observe(self, shares: Floats, sd: float, law: LengthLaw) -> FarCurves:
        """What noisy shares of the octaves leave open, besides what the law of lengths makes of them."""
        prior = self.suspect(law) * self.expect(law) ** 2
        gain = prior / (prior + sd**2)
        more = np.maximum(gain * (shares - law.weights @ np.maximum(law.mass, 0.0)), 0.0)
        return FarCurves(self.unit, gain * sd**2 + more**2, law.longest)


@dataclass(frozen=True)
class FarCurves:
    """The mean square of the share of curves in each octave that is not known."""

    unit: float
    squares: Floats
    longest: float

    def take(self, radii: Floats) -> Floats:
        """By how much clipping at each radius may shift the level: root mean square, in y."""
        points = np.minimum(LENGTH_POINTS, self.longest)[:, None]
        beyond = np.maximum(points - radii, 0.0).reshape(LENGTH_CELLS, -1, radii.size).mean(axis=1)
        return np.asarray(np.sqrt(self.squares @ beyond**2) / self.unit)
