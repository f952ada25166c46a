"""One number from many silos: inverse public variance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dpfda._typing import Floats
from dpfda.protocol.messages import Release
from dpfda.protocol.plan import Plan
from dpfda.protocol.statistics import Statistic

SAMPLING = 0.3  # variance of one curve's contribution in the units of the helpers, all of order 1


@dataclass(frozen=True)
class Pooled:
    """A weighted mean of releases, the sd of its noise, and the number of curves it amounts to."""

    values: Floats
    sd: Floats
    n: float

    def scaled(self, factor: float) -> Pooled:
        """The same measurement in other units."""
        return Pooled(self.values * factor, self.sd * factor, self.n)


def pool(plan: Plan, index: int, kind: type[Statistic], releases: Mapping[str, Release]) -> Pooled:
    """Combine one measure of a round over the silos that answered, weights 1 / (noise variance + 0.3/n_s)."""
    place = plan.slice_of(index, kind)
    values = np.stack([release.values[place] for release in releases.values()])
    sd = np.stack([release.noise_sd[place] for release in releases.values()])
    n = np.array([plan.terms(name).n for name in releases], dtype=np.float64)
    weights = 1 / ((sd**2).mean(axis=1) + SAMPLING / n)
    weights /= weights.sum()
    noise = np.sqrt((weights[:, None] ** 2 * sd**2).sum(axis=0))
    return Pooled(weights @ values, noise, float(1 / (weights**2 / n).sum()))
