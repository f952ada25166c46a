"""Sums of compiled kernels as numbers, for tests: words made by `PackedCurves` or any `CurveSums`."""

from __future__ import annotations

import numpy as np

from dpfda.privacy.clipping import EllipsoidBound, EntrywiseBound
from dpfda.privacy.cones import HistogramBound, OuterProductBound, from_triangle
from dpfda.silo.kernels.packed import PackedCurves
from dpfda.silo.sums import DesignMomentSum, LevelCounts, TruncatedGradientSum, WhitenedGradientSums


class Sums:
    """Answers of a `CurveSums` about all of its curves."""

    def __init__(self, curves):
        self.curves = curves

    def total(self, ask, bound, part=slice(None)):
        return bound.total(self.words(ask)[:, part], self.n).total

    @property
    def n(self):
        return self.curves.n

    def words(self, ask):
        return self.curves.words(ask, range(self.n))

    def truncated(self, iterate, radii):
        bound = EntrywiseBound(radii)
        return self.total(TruncatedGradientSum(iterate, bound), bound)

    def whitened(self, iterate, whitener, radius, *, threshold=-1.0, spread=False, direction=None, reach=1.0):
        """(gradient, number of short ones, spread matrix or None, rest or None)."""
        ball, outer = EllipsoidBound(np.ones(iterate.size), radius), OuterProductBound(iterate.size, 1.0)
        rest = None if direction is None else EntrywiseBound([reach * radius])
        ask = WhitenedGradientSums(iterate, whitener, ball, threshold, direction, rest, outer if spread else None)
        words = self.words(ask)
        assert words.shape == (2, ask.width)
        matrix = from_triangle(outer.total(words[:, ask.triangle], self.n).total) if spread else None
        left = None if rest is None else rest.total(words[:, ask.clipped_rest], self.n).total[0]
        return ball.total(words[:, ask.gradient], self.n).total, int(words[1, ask.short]), matrix, left

    def moments(self, centre, radius, weights=None):
        if not len(centre):  # no plan asks a basis of one function for moments
            return np.zeros(0)
        bound = EllipsoidBound(np.ones(len(centre)) if weights is None else weights, radius)
        return self.total(DesignMomentSum(centre, bound), bound)

    def levels(self, bins):
        bound = HistogramBound(bins + 1)
        return self.total(LevelCounts(bound), bound)


class Packed(Sums):
    """The same of one pack."""

    def words(self, ask):
        return ask.packed_words(self.curves)

    def norms(self, iterate, whitener):
        return self.curves.norms(iterate, whitener)

    @property
    def nbytes(self):
        return self.curves.nbytes


def pack(curves, basis, **options):
    """Prepared curves in one pack."""
    return Packed(PackedCurves.pack(curves.u, curves.y, curves.offsets, curves.design, basis, **options))
