"""Sums of compiled kernels as numbers, for tests: words made by `PackedCurves` or any `CurveSums`."""

from __future__ import annotations

import numpy as np

from dpfda.privacy.clipping import EllipsoidBound, EntrywiseBound
from dpfda.privacy.cones import CompanionBound, HistogramBound, from_triangle
from dpfda.protocol.statistics import LENGTH_CELLS
from dpfda.silo.kernels.packed import PackedCurves
from dpfda.silo.sums import ClippedGradientSum, DesignMomentSum, LengthCounts, LevelCounts, TruncatedGradientSum


class Sums:
    """Answers of a `CurveSums` about all of its curves."""

    def __init__(self, curves):
        self.curves = curves

    def total(self, request, bound):
        return bound.total(self.words(request), self.n).total

    @property
    def n(self):
        return self.curves.n

    def words(self, request):
        return self.curves.words(request, range(self.n))

    def truncated(self, iterate, radii):
        bound = EntrywiseBound(radii)
        return self.total(TruncatedGradientSum(iterate, bound), bound)

    def clipped(self, iterate, whitener, radius):
        """(vector, outer products in units of the radius, counts by length) of gradients within a ball."""
        bound, size = CompanionBound(iterate.size, radius, LENGTH_CELLS), iterate.size
        total = self.total(ClippedGradientSum(iterate, whitener, bound), bound)
        vector, products, counts = np.split(total, [size, total.size - LENGTH_CELLS])
        return vector, from_triangle(products / radius * np.sqrt(2)), counts / radius

    def octaves(self, iterate, whitener, signs=0):
        bound = HistogramBound(LENGTH_CELLS << signs)
        return self.total(LengthCounts(iterate, whitener, bound, signs), bound)

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

    def lengths(self, iterate, whitener):
        return self.polar(iterate, whitener)[0]

    def polar(self, iterate, whitener):
        return self.curves.polar(iterate, whitener)

    @property
    def nbytes(self):
        return self.curves.nbytes


def pack(curves, basis, **options):
    """Prepared curves in one pack."""
    arrays = curves.u, curves.y, curves.offsets, curves.design
    return Packed(PackedCurves.pack(*arrays, basis, rows=curves.rows, **options))
