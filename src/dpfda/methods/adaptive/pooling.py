"""One number from many silos: inverse public variance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dpfda._typing import Floats
from dpfda.methods.adaptive.constants import SAMPLING_VARIANCE
from dpfda.protocol.messages import Release
from dpfda.protocol.plan import Plan
from dpfda.protocol.statistics import Statistic


@dataclass(frozen=True)
class Pooled:
    """A weighted mean of releases, the sd of its noise, and the number of curves it amounts to."""

    values: Floats
    sd: Floats
    n: float

    def scaled(self, factor: float) -> Pooled:
        """The same measurement in other units."""
        return Pooled(self.values * factor, self.sd * factor, self.n)


def weigh_silos(noise_variance: Floats, n: Floats) -> Floats:
    """Weights that add up to 1, in proportion to 1 / (noise variance + sampling variance)."""
    weights = 1 / (noise_variance + SAMPLING_VARIANCE / n)
    return np.asarray(weights / weights.sum())


def pool(
    plan: Plan,
    index: int,
    kind: type[Statistic],
    releases: Mapping[str, Release],
    trust: Mapping[str, float] | None = None,
) -> Pooled:
    """Combine one statistic of a round over the silos that answered; those that are not trusted weigh less."""
    place = plan.slice_of(index, kind)
    if len(releases) == 1:  # the weight is 1
        ((name, release),) = releases.items()
        return Pooled(release.values[place].copy(), np.sqrt(release.noise_sd[place] ** 2), 1 / (1 / plan.silo(name).n))
    values = np.stack([release.values[place] for release in releases.values()])
    sd = np.stack([release.noise_sd[place] for release in releases.values()])
    n = np.array([plan.silo(name).n for name in releases], dtype=np.float64)
    weights = np.array(list(find_shares(plan, index, kind, releases, trust).values()))
    noise = np.sqrt((weights[:, None] ** 2 * sd**2).sum(axis=0))
    return Pooled(weights @ values, noise, float(1 / (weights**2 / n).sum()))


def find_shares(
    plan: Plan,
    index: int,
    kind: type[Statistic],
    releases: Mapping[str, Release],
    trust: Mapping[str, float] | None = None,
) -> dict[str, float]:
    """What each silo counts for in the pooled statistic; they add up to 1."""
    place = plan.slice_of(index, kind)
    sd = np.stack([release.noise_sd[place] for release in releases.values()])
    n = np.array([plan.silo(name).n for name in releases], dtype=np.float64)
    weights = weigh_silos((sd**2).mean(axis=1), n)
    if trust:
        weights *= [trust.get(name, 1.0) for name in releases]
        weights /= weights.sum()
    return dict(zip(releases, weights.tolist(), strict=True))


def pool_if_released(
    plan: Plan,
    index: int,
    kind: type[Statistic],
    releases: Mapping[str, Release],
    trust: Mapping[str, float] | None = None,
) -> Pooled | None:
    """The same, or None where the round has no such statistic."""
    return None if plan.slice_of(index, kind) is None else pool(plan, index, kind, releases, trust)


def pool_each(plan: Plan, index: int, kind: type[Statistic], releases: Mapping[str, Release]) -> dict[str, Pooled]:
    """One statistic of a round, of each silo by itself."""
    return {name: pool(plan, index, kind, {name: releases[name]}) for name in releases}
