"""Where a curve is largest or smallest, with a confidence set.

At the true place of an inner maximum the slope is zero, and no other value is larger. A place is kept if its slope is not
significantly different from zero (nine tenths of the error allowed; at an end of the domain the slope may point outwards)
and if the curve is nowhere significantly larger (one tenth; `dpfda.inference.critical` bounds the largest standardised
difference). Both are tests at one place, the true one: no correction for the many places is needed. Where slopes cannot be
had (cosines), differences alone decide. Cells between 401 equidistant nodes are kept as a whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcinv

from dpfda._typing import Floats, Interval
from dpfda.inference.critical import KNOWN, solve_one_sided
from dpfda.inference.places import write_place

if TYPE_CHECKING:
    from dpfda.inference.curve import ReleasedCurve

CELLS = 400
_FOR_SLOPES = 0.9
_SAME = 1e-12  # share of the largest variance below which a difference counts as known


@dataclass(frozen=True)
class Extremum:
    """The place of a largest or smallest value.

    Attributes
    ----------
    kind : str
        "maximum" or "minimum".
    x, value : float
        Where it is in the estimate, to 1/400 of the domain, and the estimate there.
    level : float
        Probability with which `intervals` hold the true place.
    intervals : tuple of (low, high)
        The confidence set.
    x_origin : str or None
        The date from which places are counted in days, if x is a date.
    """

    kind: str
    x: float
    value: float
    level: float
    intervals: tuple[Interval, ...]
    x_origin: str | None = None

    def __contains__(self, x: float) -> bool:
        return any(low <= x <= high for low, high in self.intervals)

    def __repr__(self) -> str:
        return self.describe(partial(write_place, origin=self.x_origin))

    def describe(self, write: Callable[[float], str]) -> str:
        """In words, places written by `write`."""
        where = ", ".join(f"{write(low)} to {write(high)}" for low, high in self.intervals)
        return f"{self.kind} {self.value:.4g} at {write(self.x)} ({self.level:.0%} confidence set: {where})"


def find_extremum(curve: ReleasedCurve, level: float, sign: float) -> Extremum:
    """The largest (sign 1) or smallest (sign -1) value of a curve."""
    u = np.arange(CELLS + 1) / CELLS
    values = sign * curve.at_unit(u)
    uses_slopes = curve.has_free_ends
    alpha = 1 - level
    near = _not_exceeded(curve, u, values, alpha * (1 - _FOR_SLOPES) if uses_slopes else alpha)
    cells = near[1:] | near[:-1]
    if uses_slopes:
        level_nodes, turns = _level_slopes(curve, u, alpha * _FOR_SLOPES, sign)
        cells &= level_nodes[1:] | level_nodes[:-1] | turns
    low, high = curve.domain
    best = int(np.argmax(values))
    cells[max(best - 1, 0) : best + 1] = True
    intervals = tuple((low + (high - low) * left, low + (high - low) * right) for left, right in _runs(cells))
    kind = "maximum" if sign > 0 else "minimum"
    place = low + (high - low) * float(u[best])
    return Extremum(kind, place, float(curve([place])[0]), level, intervals, curve.x_origin)


def _not_exceeded(curve: ReleasedCurve, u: Floats, values: Floats, alpha: float) -> NDArray[np.bool_]:
    """Nodes that no other node is significantly above."""
    features = curve.features_unit(u)
    between = features @ curve.covariance @ features.T
    own = np.diag(between)
    spread = own[:, None] - 2 * between + own[None, :]  # row: candidate, column: rival
    doubtful = spread > _SAME * max(float(own.max()), 0.0)
    sd = np.sqrt(np.where(doubtful, spread, 1.0))
    ratios = np.where(doubtful, (values[None, :] - values[:, None]) / sd, 0.0)
    joint = between[:-1, 1:].diagonal()[None, :] - between[:, :-1] - between[:, 1:] + own[:, None]
    pairs = doubtful[:, 1:] & doubtful[:, :-1]
    place = np.arange(len(u))
    pairs &= (place[:, None] != place[None, :-1]) & (place[:, None] != place[None, 1:])
    cosines = np.clip(joint / (sd[:, 1:] * sd[:, :-1]), -1.0, 1.0)
    lengths = np.where(pairs, np.arccos(cosines), 0.0).sum(axis=1)
    sides = np.where((place == 0) | (place == len(u) - 1), 1.0, 2.0)
    return np.asarray(ratios.max(axis=1) <= solve_one_sided(alpha, sides, lengths))


def _level_slopes(
    curve: ReleasedCurve, u: Floats, alpha: float, sign: float
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Nodes where the slope may be zero (or point outwards at an end), and cells in which its estimate is."""
    slope = curve.derivative()
    steep, variance = sign * slope.at_unit(u), slope.sd_unit(u) ** 2
    sd = np.sqrt(np.where(variance > KNOWN * variance.max(initial=0.0), variance, 0.0))
    two_sided, one_sided = (math.sqrt(2) * float(erfcinv(each)) for each in (alpha, min(2 * alpha, 1.0)))
    kept = np.abs(steep) <= two_sided * sd
    kept[0], kept[-1] = steep[0] <= one_sided * sd[0], steep[-1] >= -one_sided * sd[-1]
    return kept, steep[1:] * steep[:-1] <= 0


def _runs(cells: NDArray[np.bool_]) -> list[Interval]:
    """The unions of neighbouring cells, as places in [0, 1]."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], cells, [False]]).astype(np.int8)))
    return [(float(left) / CELLS, float(right) / CELLS) for left, right in zip(edges[::2], edges[1::2], strict=True)]
