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

    def total(self, request, bound, part=slice(None)):
        return bound.total(self.words(request)[:, part], self.n).total

    @property
    def n(self):
        return self.curves.n

    def words(self, request):
        return self.curves.words(request, range(self.n))

    def truncated(self, iterate, radii):
        bound = EntrywiseBound(radii)
        return self.total(TruncatedGradientSum(iterate, bound), bound)

    def whitened(self, iterate, whitener, radius, *, threshold=-1.0, outer_products=False, direction=None, reach=1.0):
        """(gradient, number of short ones, outer products or None, remainder or None)."""
        ball, outer = EllipsoidBound(np.ones(iterate.size), radius), OuterProductBound(iterate.size, 1.0)
        remainder = None if direction is None else EntrywiseBound([reach * radius])
        request = WhitenedGradientSums(
            iterate, whitener, ball, threshold, direction, remainder, outer if outer_products else None
        )
        words = self.words(request)
        assert words.shape == (2, request.width)
        matrix = from_triangle(outer.total(words[:, request.triangle], self.n).total) if outer_products else None
        left = None if remainder is None else remainder.total(words[:, request.clipped_remainder], self.n).total[0]
        return ball.total(words[:, request.gradient], self.n).total, int(words[1, request.short]), matrix, left

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

    def words(self, request):
        return request.packed_words(self.curves)

    def norms(self, iterate, whitener):
        return self.curves.norms(iterate, whitener)

    @property
    def nbytes(self):
        return self.curves.nbytes


def pack(curves, basis, **options):
    """Prepared curves in one pack."""
    arrays = curves.u, curves.y, curves.offsets, curves.design
    return Packed(PackedCurves.pack(*arrays, basis, rows=curves.rows, **options))
