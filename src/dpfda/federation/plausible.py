"""What a silo of these terms can release: the sd of its noise and the reach of its numbers, which are public.

Both follow from the terms and the question. They are computed as a silo computes them, for as many subjects without a
point, once for all silos that are alike. Every subject can move the whitened sum by mu, so the sums of n subjects are within
n mu of it; noise adds a few sd. A release beyond that is no silo's, and one hostile member could end a study for all with
it.
"""

from __future__ import annotations

import numpy as np

from dpfda._typing import Floats
from dpfda.curves.curves import Curves
from dpfda.errors import DpfdaError
from dpfda.privacy.gaussian import prepare_release
from dpfda.protocol.messages import Query, Release
from dpfda.protocol.plans.registry import make_plan
from dpfda.protocol.terms import StudyTerms
from dpfda.silo.chunked_sums import sums_of_curves
from dpfda.silo.study import Study

_NOISE_REACH = 50.0  # sd: an honest silo exceeds it with probability 1e-545
_SD_TOLERANCE = 1e-6  # between the arithmetic of two machines


class Plausible:
    """Judges releases of one study; keeps empty silos, so that a round costs a look at their sums."""

    def __init__(self, terms: StudyTerms) -> None:
        self._terms, self._plan = terms, make_plan(terms)
        self._empty: dict[int, Study] = {}
        self._asked: Query | None = None
        self._expected: dict[tuple[float, ...], tuple[Floats, Floats, float]] = {}  # of the question asked last

    def expect(self, query: Query, silo: str) -> tuple[Floats, Floats, float]:
        """Of this silo's release: its numbers without any point and without noise, the sd of its noise, its reach in sd."""
        if query is not self._asked:
            self._asked, self._expected = query, {}
        mu = self._plan.event(silo, query.round).mu
        alike = (self._terms.silo(silo).n, mu, *self._plan.statistic_mus(silo, query.round))
        if alike not in self._expected:
            bounded, size = self._study(silo).bounded_sum(query)
            sd = prepare_release(bounded.total, bounded.sensitivity, mu).sd
            self._expected[alike] = np.asarray(bounded.total) / size, sd / size, size * mu + _NOISE_REACH
        return self._expected[alike]

    def is_plausible(self, query: Query, release: Release) -> bool:
        """Whether a silo of these terms can have answered so to this question."""
        if release.values.size != self._plan.release_width(query.round):
            return False
        try:
            centre, sd, reach = self.expect(query, release.silo)
        except DpfdaError:
            return False
        with np.errstate(over="ignore", invalid="ignore"):
            same = bool((np.abs(release.noise_sd - sd) <= _SD_TOLERANCE * sd).all())
            return same and bool((np.abs(release.values - centre) <= reach * sd).all())

    def _study(self, silo: str) -> Study:
        n = self._terms.silo(silo).n
        if n not in self._empty:
            offsets, design = np.zeros(n + 1, dtype=np.int64), np.zeros((n, self._plan.n_coefficients))
            curves = Curves(np.empty(0), np.empty(0), offsets, design)
            scalings = [self._plan.of_outcome(place).scaling for place in range(self._plan.count_outcomes)]
            sums = tuple(sums_of_curves(curves, self._plan.basis, scaling) for scaling in scalings)
            self._empty[n] = Study(self._plan, silo, sums)
        known = self._empty[n]
        return Study(known.plan, silo, known.outcomes)
